"""The pair network: learned second moments as input, triangle updates of pairs, one logit per ordered pair.

It has one token per ordered pair of variables, and the n rows enter through sums only. A million rows cost one
streaming pass per round, the cost of the trunk does not depend on n, and the result does not depend on the chunking.
Design: docs/how-it-works.md. Shapes: B datasets, n rows, d variables, k pair channels, c cell channels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from presage.columns import ColumnKind
from presage.config import param
from presage.data.row_statistics import Columns, RowStatistics, cell_features, pair_features
from presage.errors import ConfigError
from presage.networks.network import (
    NetConfig,
    Network,
    Prediction,
    continuous_columns,
    register_network,
)
from presage.networks.pair_layers import (
    TRIANGLES,
    CellUpdate,
    LinearOuterProductMeans,
    OuterProductMeans,
    TriangleBlock,
    in_pieces,
)
from presage.networks.threads import map_in_threads

__all__ = ["PairConfig", "PairNetwork"]

GROWABLE = ("rounds", "blocks", "pair_z_scores", "add_row_scaled_view")
"""Fields that may be larger than in the network of a warm start. Additional weights start at zero."""
REMOVABLE = ("column_kinds", "hidden_causes", "effects")
"""Fields that may be off although they are on in the network of a warm start."""
VIEW_FIELDS = ("winsorize_sd", "row_clip_sd")
"""Fields that no weight depends on. They may differ from the network of a warm start."""

KEPT_CELLS = 1 << 26
"""Values of cells that are kept between rounds during inference (256 MiB); larger tables compute them again."""
GROUPS, GROUP_CHUNKS = 32, 8
"""Chunks are summed in at most this many groups, which threads share, of at least so many chunks."""
GROUP_SUMS = 1 << 24
"""Largest number of sums that every thread may hold; with more, single products are large enough for all threads."""


@dataclass(frozen=True, kw_only=True)
class PairConfig(NetConfig):
    """Size of a pair network."""

    net: ClassVar[str] = "pair"

    width: int = param(64, ge=1)
    """Channels of a pair."""
    cell_width: int = param(32, ge=1)
    """Channels of a cell (one row of one variable)."""
    rounds: int = param(2, ge=1)
    """How often the rows are read; cells are updated in between."""
    blocks: int = param(2, ge=1)
    """Triangle blocks in each round."""
    outer: int = param(12, ge=1)
    """Channels of each side of the outer-product means over all rows."""
    outer_intervened: int = param(8, ge=1)
    """The same over the rows in which the first variable is intervened on."""
    outer_hidden: int = param(2, ge=0)
    """Hidden width of the MLP after the outer-product means, in multiples of the width; 0 projects them linearly."""
    triangle: int = param(64, ge=1)
    """Channels of the triangle products, a quarter for each of the four kinds."""
    heads: int = param(4, ge=1)
    """Mixtures of other variables' cells in a cell update."""
    expand: int = param(2, ge=1)
    """Hidden width of the feed-forward layers, in multiples of the width."""
    cell_expand: int = param(1, ge=1)
    """The same for the cells."""
    pair_z_scores: bool = False
    """Add z-scores of the pair statistics to the input features."""
    winsorize_sd: float = param(3.0, ge=0, le=1e6)
    """Values beyond this many standard deviations are winsorized before moments are computed; 0: off (counts)."""
    row_clip_sd: float = param(0.0, ge=0, le=1e6)
    """Rows with a value beyond this many standard deviations are scaled down as a whole, which preserves linear
    relations under heavy-tailed noise; 0: off."""
    add_row_scaled_view: bool = False
    """Add row-rescaled values as a third input view instead of replacing the values by them."""
    column_kinds: bool = False
    """Read kinds of columns, second scores of nominal levels and associations (`presage.data.encode`)."""
    hidden_causes: bool = False
    """Also predict hidden common causes of every pair."""
    effects: bool = False
    """Also predict the signed standardized effect of every edge, with its uncertainty."""

    def check(self) -> None:
        if self.row_clip_sd and not self.winsorize_sd:
            raise self.fail("row_clip_sd", "refers to winsorized values; set winsorize_sd above 0")
        if self.add_row_scaled_view and not self.row_clip_sd:
            raise self.fail("add_row_scaled_view", "needs a row_clip_sd above 0")
        if self.triangle % TRIANGLES:
            raise self.fail(
                "triangle", f"must be a multiple of {TRIANGLES} (one share for each kind), not {self.triangle}"
            )
        if self.cell_width % self.heads:
            raise self.fail("cell_width", f"must be a multiple of heads ({self.heads}), not {self.cell_width}")

    @property
    def depth(self) -> int:
        """Number of triangle blocks."""
        return self.rounds * self.blocks

    @property
    def views(self) -> int:
        """Number of input views: values, normal scores of ranks and, with add_row_scaled_view, row-rescaled values."""
        return 3 if self.add_row_scaled_view else 2


class _Cells:
    """The cells of all rows, chunk by chunk. Those that fit into `KEPT_CELLS` are kept from round to round."""

    def __init__(self, network: PairNetwork, statistics: RowStatistics, rows: int | None) -> None:
        self.statistics = statistics
        self.embed = network.embed
        self.chunks = statistics.chunks(rows)
        self.updates: list[tuple[CellUpdate, Tensor]] = []
        self.kept: list[Tensor | None] | None = None
        if rows is None or statistics.x.numel() * network.config.cell_width <= KEPT_CELLS:
            self.kept = [None] * len(self.chunks)

    def update(self, update: CellUpdate, pairs: Tensor) -> None:
        """Update all cells from pairs [B, d, d, k] before they are read again."""
        self.updates.append((update, update.mixture(pairs)))

    def sums(self, read: LinearOuterProductMeans | OuterProductMeans) -> list[Tensor]:
        """Sums of `read` over all rows.

        The grouping depends on the table alone, so that the sums do not depend on the number of threads.
        """
        size = self.statistics.x.shape[2] ** 2 * read.outers[0] * sum(read.outers)
        groups = GROUPS if size <= GROUP_SUMS and self.statistics.x.device.type == "cpu" else 1
        length = max(GROUP_CHUNKS, -(-len(self.chunks) // groups))

        def sums_of_group(start: int) -> list[Tensor]:
            found: list[Tensor] = []
            for number in range(start, min(start + length, len(self.chunks))):
                u, observed = self.statistics.masks(self.chunks[number])
                found = read.sums(self._of_chunk(number), u, observed, self.statistics.any_intervened, found)
            return found

        total: list[Tensor] = []
        for found in map_in_threads(sums_of_group, range(0, len(self.chunks), length)):
            total = [a.add_(b) for a, b in zip(total, found, strict=True)] if total else found
        return total

    def _of_chunk(self, number: int) -> Tensor:
        """Cells [B, n', d, c] of a chunk after all updates."""
        cells = None if self.kept is None else self.kept[number]
        if cells is None:
            cells = self.embed(self.statistics.features(self.chunks[number]))
            missed = self.updates
        else:
            missed = self.updates[-1:]
        for update, mixture in missed:
            cells = update(cells, mixture)
        if self.kept is not None:
            self.kept[number] = cells
        return cells


class PairNetwork(Network):
    """The whole network; see the module's docstring."""

    def __init__(self, config: PairConfig) -> None:
        super().__init__()
        self.config: PairConfig = config
        k, c = config.width, config.cell_width
        self.cell_in = nn.Sequential(
            nn.Linear(cell_features(config.views, config.column_kinds), 2 * c),
            nn.ReLU(inplace=True),
            nn.Linear(2 * c, c),
        )
        self.pair_in = nn.Linear(pair_features(config.pair_z_scores, config.views, config.column_kinds), k)
        self.pair_mlp = nn.Sequential(nn.LayerNorm(k), nn.Linear(k, 2 * k), nn.GELU(), nn.Linear(2 * k, k))
        means = OuterProductMeans if config.outer_hidden else LinearOuterProductMeans
        self.reads = nn.ModuleList(means(config) for _ in range(config.rounds))
        self.updates = nn.ModuleList(CellUpdate(config) for _ in range(config.rounds - 1))
        self.rounds = nn.ModuleList(
            nn.ModuleList(TriangleBlock(config) for _ in range(config.blocks)) for _ in range(config.rounds)
        )
        self.head_norm = nn.LayerNorm(k)
        self.head = nn.Linear(k, 1)
        nn.init.constant_(self.head.bias, -3.0)
        if config.hidden_causes:
            self.head_confounded = nn.Linear(k, 1)
            nn.init.constant_(self.head_confounded.bias, -3.0)
        if config.effects:
            self.head_effect = nn.Linear(k, 2)

    def forward(self, x: Tensor, u: Tensor, missing: Tensor | None = None) -> Tensor:
        """Edge logits [B, d, d] of x [B, n, d] and the intervention mask u [B, n, d]."""
        return self.outputs(x, u, missing).edge

    def outputs(
        self, x: Tensor, u: Tensor, missing: Tensor | None = None, columns: Columns | None = None
    ) -> Prediction:
        """All predictions for x [B, n, d] and the intervention mask u [B, n, d]."""
        return self._run(self._statistics(x, u, missing, columns), rows=None)

    def _statistics(
        self, x: Tensor, u: Tensor, missing: Tensor | None, columns: Columns | None, rows: int | None = None
    ) -> RowStatistics:
        config = self.config
        if not config.column_kinds:
            columns = None
        elif columns is None:
            columns = continuous_columns(x)
        return RowStatistics(
            x,
            u,
            missing,
            rows,
            columns=columns,
            winsorize_sd=config.winsorize_sd,
            row_clip_sd=config.row_clip_sd,
            add_row_scaled_view=config.add_row_scaled_view,
        )

    def warm_start(self, other: Network) -> None:
        """Take the weights of a network that may have fewer rounds, blocks, z-scores or views; additions start at 0.

        The other network may also read kinds of columns and predict hidden causes and effects where this one does not.
        Without kinds it also lacks their associations, so its predictions are close but not equal.
        """
        theirs, ours = other.config, self.config
        free = (*GROWABLE, *REMOVABLE, *VIEW_FIELDS)
        if (
            not isinstance(theirs, PairConfig)
            or any(getattr(theirs, name) > getattr(ours, name) for name in GROWABLE)
            or any(getattr(theirs, name) < getattr(ours, name) for name in REMOVABLE)
            or dataclasses.replace(theirs, **{name: getattr(ours, name) for name in free}) != ours
        ):
            raise ConfigError(f"its network differs: {theirs} against {ours}")
        for read in cast("list[LinearOuterProductMeans | OuterProductMeans]", self.reads)[theirs.rounds :]:
            read.zero_init()
        state = {name: tensor for name, tensor in other.state_dict().items() if name.split(".")[0] in self._modules}
        if theirs.column_kinds and not ours.column_kinds:
            _assume_continuous(state)
        old, new = state["pair_in.weight"], torch.zeros_like(self.pair_in.weight)
        # Features of (i, j) come first, then those of (j, i), then those of the pair as a whole.
        last = 4 + pair_features(False, 0, self.config.column_kinds) - pair_features(False, 0)
        few, many = (old.shape[1] - last) // 2, (new.shape[1] - last) // 2
        new[:, :few], new[:, many : many + few], new[:, -last:] = old[:, :few], old[:, few:-last], old[:, -last:]
        state["pair_in.weight"] = new
        old, new = state["cell_in.0.weight"], torch.zeros_like(cast("nn.Linear", self.cell_in[0]).weight)
        last = cell_features(0, self.config.column_kinds) - cell_features(0)
        few, many = old.shape[1] - last, new.shape[1] - last
        new[:, :few], new[:, many:] = old[:, :few], old[:, few:]
        state["cell_in.0.weight"] = new
        self.load_state_dict(state, strict=False)  # it lacks the additional rounds and blocks

    def io_layers(self) -> Iterator[nn.Module]:
        """The layers that read cell and pair features, and the heads."""
        yield from (self.cell_in[0], self.pair_in, self.head)
        if self.config.hidden_causes:
            yield self.head_confounded
        if self.config.effects:
            yield self.head_effect

    def bytes_per_pair(self) -> float:
        """Working memory of `predict` for each ordered pair (measured)."""
        config = self.config
        return 4.0 * (1.2 * (config.outer**2 + config.outer_intervened**2) + 17.0 * config.width)

    def activation_bytes(self, n: int, d: int) -> int:
        """Approximate memory of activations of one dataset (measured: benchmarks/train_step.py)."""
        config = self.config
        pair = config.rounds * (
            config.blocks * (8 * config.width + 4 * config.triangle + 3 * config.expand * config.width)
        )
        outer = config.rounds * (2 * config.outer * (config.outer + config.outer_intervened))
        cell = config.rounds * (12 * config.cell_width + 2 * (config.outer + config.outer_intervened))
        return 4 * (d * d * (pair + outer) + n * d * cell)

    def _stream(
        self, x: Tensor, u: Tensor, missing: Tensor | None, columns: Columns | None, rows: int | None
    ) -> Prediction:
        """All predictions for a batch, reading at most `rows` rows at a time.

        By default the cells of a chunk take 1 MiB, which stays in the cache of a core; chunks of few rows would make
        the outer products slow.
        """
        _, n, d = x.shape
        if rows is None:
            rows = max(160, (1 << 18) // (d * self.config.cell_width))
        return self._run(self._statistics(x, u, missing, columns, rows), rows=rows if rows < n else None)

    def embed(self, features: Tensor) -> Tensor:
        """Cells [B, n, d, c] of their features."""
        first, _, second = cast("list[nn.Linear]", self.cell_in)
        # The same as `first`, but the gradient of its weight is a product whose rows are 2 c long. In `nn.Linear` they
        # are as long as there are features; MKL is up to 15 times slower for lengths that are no multiple of 4.
        hidden = torch.addmm(first.bias, features.flatten(0, 2), first.weight.t().contiguous())
        found: Tensor = second(hidden.relu_()).view(*features.shape[:3], -1)
        return found

    def _run(self, statistics: RowStatistics, rows: int | None) -> Prediction:
        cells = _Cells(self, statistics, rows)
        pairs = self.pair_in(statistics.pair_features(self.config.pair_z_scores))
        counts = [statistics.counts, statistics.n_intervened]
        reads = cast("list[OuterProductMeans]", self.reads)
        updates, rounds = cast("list[CellUpdate]", self.updates), cast("list[list[TriangleBlock]]", self.rounds)
        for number, (read, blocks) in enumerate(zip(reads, rounds, strict=True)):
            if number:
                cells.update(updates[number - 1], pairs)
            pairs = pairs + read(cells.sums(read), counts)
            if number == 0:
                pairs = pairs + in_pieces(self.pair_mlp, pairs)
            for block in blocks:
                pairs = block(pairs)
        return self._predictions(pairs)

    def _predictions(self, pairs: Tensor) -> Prediction:
        normed = in_pieces(self.head_norm, pairs)
        edge = in_pieces(self.head, normed)[..., 0].float()
        confounded = effect = scale = None
        if self.config.hidden_causes:
            one_way = in_pieces(self.head_confounded, normed)[..., 0].float()
            confounded = 0.5 * (one_way + one_way.transpose(1, 2))
        if self.config.effects:
            effect, scale = in_pieces(self.head_effect, normed).float().unbind(-1)
        return Prediction(edge, confounded, effect, scale)


def _assume_continuous(state: dict[str, Tensor]) -> None:
    """Remove the inputs that describe kinds of columns; the weight of "continuous", always 1, joins the bias."""
    kinds = len(ColumnKind)
    for layer, width, constant in (
        ("cell_in.0", cell_features(0, True) - cell_features(0), [ColumnKind.CONTINUOUS - kinds]),
        (
            "pair_in",
            pair_features(False, 0, True) - pair_features(False, 0),
            [ColumnKind.CONTINUOUS - 2 * kinds, ColumnKind.CONTINUOUS - kinds],
        ),
    ):
        weight = state[f"{layer}.weight"]
        state[f"{layer}.bias"] = state[f"{layer}.bias"] + weight[:, constant].sum(1)
        state[f"{layer}.weight"] = weight[:, :-width]


register_network(PairConfig, PairNetwork)
