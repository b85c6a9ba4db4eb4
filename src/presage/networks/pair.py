"""The pair network: learned second moments in, triangles of edges through, one logit per ordered pair out.

One token lives on every ordered pair of variables; the n rows are read through sums only. So a million rows cost
one streaming pass per round, the trunk's cost does not depend on n, and cutting the rows into pieces changes nothing.
Design and trials: docs/how-it-works.md. Shapes: B datasets, n rows, d variables, k pair channels, c cell channels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from presage.data.row_statistics import RowStatistics, cell_features, pair_features
from presage.errors import ConfigError
from presage.networks.network import NetConfig, Network, register_network

__all__ = ["PairConfig", "PairNetwork"]

GROWABLE = (
    "rounds",
    "blocks",
    "pair_z_scores",
    "add_row_scaled_view",
)
"""Fields that may be larger than in the network whose weights are taken; what is added starts at zero."""
VIEW_FIELDS = (
    "winsorize_sd",
    "row_clip_sd",
)
"""Fields that no weight depends on: they may differ from those of the network whose weights are taken."""
KINDS = 4  # triangles: chain, fork, collider, reverse chain


@dataclass(frozen=True, kw_only=True)
class PairConfig(NetConfig):
    """Size of a pair network."""

    net: ClassVar[str] = "pair"

    width: int = 64
    """Channels of a pair."""
    cell_width: int = 32
    """Channels of a cell (one row of one variable)."""
    rounds: int = 2
    """How often rows are read; cells are updated between readings."""
    blocks: int = 2
    """Triangle blocks in each round."""
    outer: int = 12
    """Channels of each side of the outer-product means over all rows."""
    outer_intervened: int = 8
    """The same over the rows in which the first variable is intervened on."""
    triangle: int = 64
    """Channels that meet in triangles, shared among the four kinds."""
    heads: int = 4
    """Mixtures of other variables' cells in a cell update."""
    expand: int = 2
    """Hidden width of the feed-forward parts over the width."""
    cell_expand: int = 1
    """The same for the cells."""
    pair_z_scores: bool = False
    """Whether pairs also start from how many standard errors their statistics are from 0."""
    winsorize_sd: float = 3.0
    """Values beyond this many standard deviations are winsorized before moments are computed; 0 turns it off (counts)."""
    row_clip_sd: float = 0.0
    """Rows with a value further out than this many deviations are scaled down as a whole before anything is taken: it
    keeps linear relations under heavy winsorize_sd. 0 leaves them."""
    add_row_scaled_view: bool = False
    """Add row-rescaled values as a third input view instead of replacing the values by them."""

    def check(self) -> None:
        for spec in dataclasses.fields(self):
            if (name := spec.name) in ("winsorize_sd", "pair_z_scores", "row_clip_sd", "add_row_scaled_view"):
                continue
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"the pair network's {name} must be a whole number of at least 1, not {value!r}")
        for name in ("pair_z_scores", "add_row_scaled_view"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"the pair network's {name} must be true or false, not {getattr(self, name)!r}")
        for name in VIEW_FIELDS:
            value = getattr(self, name)
            if not 0.0 <= value < float("inf"):
                raise ConfigError(f"the pair network's {name} must be 0 or a number of deviations, not {value!r}")
        if self.row_clip_sd and not self.winsorize_sd:
            raise ConfigError(
                "the pair network's row_clip_sd counts deviations of winsorized values; set winsorize_sd above 0"
            )
        if self.add_row_scaled_view and not self.row_clip_sd:
            raise ConfigError("the pair network's add_row_scaled_view needs a row_clip_sd above 0")
        if self.triangle % KINDS:
            raise ConfigError(f"triangle ({self.triangle}) must be a multiple of {KINDS}, one share for each kind")
        if self.cell_width % self.heads:
            raise ConfigError(f"cells ({self.cell_width}) must be a multiple of heads ({self.heads})")

    @property
    def sources(self) -> int:
        """Number of input views: values, normal scores of ranks and, with add_row_scaled_view, row-rescaled values."""
        return 3 if self.add_row_scaled_view else 2


def zero_init(layer: nn.Linear) -> nn.Linear:
    """A layer that starts at zero, so that its residual branch starts as the identity."""
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


AT_ONCE = 1 << 24
"""Values that are worked on at once where nothing is differentiated, which bounds memory."""


def _pieces(function: Callable[[Tensor], Tensor], pairs: Tensor) -> Tensor:
    """`function` over pairs [B, d, d, k], a few rows at a time where nothing is differentiated and d is large."""
    if torch.is_grad_enabled() or pairs.numel() <= AT_ONCE:
        return function(pairs)
    rows = max(1, AT_ONCE // (pairs.numel() // pairs.shape[1]))
    return torch.cat([function(piece) for piece in pairs.split(rows, dim=1)], dim=1)


class FeedForward(nn.Module):
    """Gated feed-forward with its own norm and residual."""

    def __init__(self, width: int, expand: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        # Two layers rather than two halves of one: halves cost a copy each way.
        self.value = nn.Linear(width, expand * width)
        self.gate = nn.Linear(width, expand * width)
        self.out = zero_init(nn.Linear(expand * width, width))

    def forward(self, pairs: Tensor) -> Tensor:
        """Update pairs [B, d, d, k]."""
        normed = self.norm(pairs)
        return pairs + self.out(self.value(normed) * F.silu(self.gate(normed)))


class Block(nn.Module):
    """What pairs (i, m) and (m, j) say about (i, j), what its mirror image and its ends say, and a feed-forward."""

    def __init__(self, config: PairConfig) -> None:
        super().__init__()
        k = config.width
        self.norm = nn.LayerNorm(k)
        self.value = nn.Linear(k, 2 * config.triangle)
        self.open = nn.Linear(k, 2 * config.triangle)
        self.gate = nn.Linear(k, k)
        self.out = zero_init(nn.Linear(config.triangle, k))
        self.mirror = zero_init(nn.Linear(k, k))
        self.ends = zero_init(nn.Linear(3 * k, 2 * k))
        self.feed = FeedForward(k, config.expand)

    def forward(self, pairs: Tensor) -> Tensor:
        """Update pairs [B, d, d, k]."""
        normed = _pieces(self.norm, pairs)
        # What both ends are like on their own: diagonal, row mean and column mean, for i and for j.
        own = normed.diagonal(dim1=1, dim2=2).transpose(1, 2)  # [B, d, k]
        first, second = self.ends(torch.cat([own, normed.mean(2), normed.mean(1)], dim=-1)).chunk(2, dim=-1)
        pairs = pairs + _pieces(self.mirror, normed).transpose(1, 2)
        pairs += first[:, :, None]
        pairs += second[:, None, :]
        pairs += self._triangles(normed)
        return _pieces(self.feed, pairs)

    def _triangles(self, normed: Tensor) -> Tensor:
        d, k = normed.shape[2:]
        flat = normed.view(-1, k).t()
        # Channels first: then all sides and what meets in them are matrices where they lie, and nothing is copied.
        parts = 1 if torch.is_grad_enabled() or normed.numel() <= AT_ONCE else KINDS
        twos = (two for sides in self._sides(flat, parts) for two in sides.chunk(KINDS // parts))
        met = torch.cat([_meet(kind, two.view(2, -1, d, d)) for kind, two in enumerate(twos)])
        met = met.view(self.out.in_features, -1)  # [t, B d d]
        # The norm over channels is one number a pair, so it may follow the projection.
        length = torch.rsqrt(met.var(0, correction=0) + 1e-5 * d)
        gate = _pieces(lambda part: torch.sigmoid(self.gate(part)), normed).view(-1, k)
        weight = self.out.weight - self.out.weight.mean(1, keepdim=True)  # takes the mean over channels away
        update = (met.t() @ weight.t()) * length[:, None]
        update += self.out.bias
        return (update * gate).view(normed.shape)

    def _sides(self, flat: Tensor, parts: int) -> Iterator[Tensor]:
        """What each pair shows in triangles, [2 t / parts, B d d]: a few channels at a time where memory counts."""
        layers = [
            tensor.chunk(parts) for layer in (self.value, self.open) for tensor in (layer.weight, layer.bias[:, None])
        ]
        for value, shift, opened, tilt in zip(*layers, strict=True):
            yield torch.addmm(shift, value, flat) * torch.sigmoid(torch.addmm(tilt, opened, flat))


def _meet(kind: int, sides: Tensor) -> Tensor:
    """Sums over m of left times right [2, c B, d, d]: chain i -> m -> j, fork i <- m -> j, collider i -> m <- j and
    reverse chain i <- m <- j."""
    left, right = sides.unbind(0)
    return torch.bmm(left.transpose(1, 2) if kind in (1, 3) else left, right.transpose(1, 2) if kind > 1 else right)


class OuterMeans(nn.Module):
    """Means over rows of a(z_i) (x) b(z_j): over all rows, and over those in which i is intervened on."""

    def __init__(self, config: PairConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.cell_width)
        self.outers = (config.outer, config.outer_intervened)
        self.left = nn.ModuleList(nn.Linear(config.cell_width, o) for o in self.outers)
        self.right = nn.ModuleList(nn.Linear(config.cell_width, o) for o in self.outers)
        self.out = nn.ModuleList(nn.Linear(o * o, config.width, bias=False) for o in self.outers)

    def sums(self, cells: Tensor, u: Tensor, observed: Tensor | None, hit: bool) -> list[Tensor]:
        """Sums over the rows of a chunk: cells [B, n, d, c], u and observed [B, n, d] -> for each kind [B, d o, d o]."""
        normed = self.norm(cells)
        found = []
        for number in range(2 if hit else 1):
            left, right = self.left[number](normed), self.right[number](normed)  # [B, n, d, o]
            weight = observed if number == 0 else (u if observed is None else u * observed)
            if weight is not None:
                left = left * weight[..., None]
            if observed is not None:
                right = right * observed[..., None]
            found.append(left.flatten(2).transpose(1, 2) @ right.flatten(2))
        return found

    def forward(self, sums: list[Tensor], counts: list[Tensor]) -> Tensor:
        """Pair updates [B, d, d, k]; counts [B or 1, d or 1, d or 1] say over how many rows each sum ran."""
        updates = []
        for out, o, part, count in zip(self.out, self.outers, sums, counts, strict=False):
            d = part.shape[1] // o
            part = part.view(len(part), d, o, d, o)
            updates.append(self._project(out, part) / count[..., None].clamp_min(1.0))
        return updates[0] if len(updates) == 1 else updates[0] + updates[1]

    @staticmethod
    def _project(out: nn.Module, part: Tensor, at_once: int = 1 << 25) -> Tensor:
        if torch.is_grad_enabled() or part.numel() <= at_once:
            return out(part.transpose(2, 3).flatten(3))  # [B, d, d, o o]
        step = max(1, at_once // (part.numel() // part.shape[1]))
        return torch.cat([out(piece.transpose(2, 3).flatten(3)) for piece in part.split(step, dim=1)], dim=1)


class CellUpdate(nn.Module):
    """Each variable's cells receive signed mixtures of the other variables' cells, weighted by the pairs."""

    def __init__(self, config: PairConfig) -> None:
        super().__init__()
        c = config.cell_width
        self.heads = config.heads
        self.pair_norm = nn.LayerNorm(config.width)
        self.weights = nn.Linear(config.width, 2 * config.heads)
        self.norm = nn.LayerNorm(c)
        self.values = nn.Linear(c, c)
        hidden = config.cell_expand * c
        self.own = nn.Linear(c, hidden)
        self.others = nn.Linear(c, hidden, bias=False)
        self.out = zero_init(nn.Linear(hidden, c))

    def mixture(self, pairs: Tensor) -> Tensor:
        """Weights [B, h, d, d]: how much of variable i's cells variable j receives, none of its own."""
        value, gate = _pieces(lambda part: self.weights(self.pair_norm(part)), pairs).movedim(-1, 1).chunk(2, dim=1)
        own = torch.eye(pairs.shape[1], dtype=torch.bool, device=pairs.device)
        return (value * torch.sigmoid(gate - 2.0)).masked_fill(own, 0.0)

    def forward(self, cells: Tensor, mixture: Tensor) -> Tensor:
        """Update cells [B, n, d, c]."""
        batch, n, d, c = cells.shape
        flat = cells.view(-1, c)  # in matrices sums can be added where they lie
        normed = self.norm(flat)
        values = self.values(normed).view(batch, n, d, self.heads, c // self.heads)
        values = values.permute(0, 3, 2, 1, 4).flatten(3)  # [B, h, d, n c/h]
        mixed = mixture.transpose(-1, -2).to(values.dtype) @ values  # [B, h, d, n c/h]
        mixed = mixed.view(batch, self.heads, d, n, -1).permute(0, 3, 2, 1, 4).reshape(-1, c)
        hidden = self.own(normed).add_(self.others(mixed)).relu_()
        return (flat + self.out(hidden)).view(cells.shape)


class PairNetwork(Network):
    """The whole network; see the module's docstring."""

    def __init__(self, config: PairConfig) -> None:
        super().__init__()
        self.config: PairConfig = config
        k, c = config.width, config.cell_width
        self.cell_in = nn.Sequential(
            nn.Linear(cell_features(config.sources), 2 * c), nn.ReLU(inplace=True), nn.Linear(2 * c, c)
        )
        self.pair_in = nn.Linear(pair_features(config.pair_z_scores, config.sources), k)
        self.pair_mlp = nn.Sequential(nn.LayerNorm(k), nn.Linear(k, 2 * k), nn.GELU(), nn.Linear(2 * k, k))
        self.reads = nn.ModuleList(OuterMeans(config) for _ in range(config.rounds))
        self.updates = nn.ModuleList(CellUpdate(config) for _ in range(config.rounds - 1))
        self.rounds = nn.ModuleList(
            nn.ModuleList(Block(config) for _ in range(config.blocks)) for _ in range(config.rounds)
        )
        self.head_norm = nn.LayerNorm(k)
        self.head = nn.Linear(k, 1)
        nn.init.constant_(self.head.bias, -3.0)

    def forward(self, x: Tensor, u: Tensor, missing: Tensor | None = None) -> Tensor:
        """Edge logits [B, d, d] of x [B, n, d], u [B, n, d]."""
        return self._run(self._statistics(x, u, missing), rows=None)

    def _statistics(self, x: Tensor, u: Tensor, missing: Tensor | None, rows: int | None = None) -> RowStatistics:
        config = self.config
        return RowStatistics(
            x,
            u,
            missing,
            rows,
            winsorize_sd=config.winsorize_sd,
            row_clip_sd=config.row_clip_sd,
            add_row_scaled_view=config.add_row_scaled_view,
        )

    def warm_start(self, other: Network) -> None:
        """Networks of the same size may have fewer rounds, fewer blocks, no pair_z_scores and read rows in fewer ways: what is
        added starts silent. How far values and rows may row_clip_sd can be another number."""
        theirs, ours = other.config, self.config
        if (
            not isinstance(theirs, PairConfig)
            or any(getattr(theirs, name) > getattr(ours, name) for name in GROWABLE)
            or dataclasses.replace(theirs, **{name: getattr(ours, name) for name in (*GROWABLE, *VIEW_FIELDS)}) != ours
        ):
            raise ConfigError(f"its network differs: {theirs} against {ours}")
        for read in cast("list[OuterMeans]", self.reads)[theirs.rounds :]:
            for out in read.out:
                nn.init.zeros_(cast("nn.Linear", out).weight)
        state = other.state_dict()
        old, new = state["pair_in.weight"], torch.zeros_like(self.pair_in.weight)
        last = 4  # features of the pair as a whole; before them those of (i, j), then those of (j, i)
        few, many = (old.shape[1] - last) // 2, (new.shape[1] - last) // 2
        new[:, :few], new[:, many : many + few], new[:, -last:] = old[:, :few], old[:, few:-last], old[:, -last:]
        state["pair_in.weight"] = new
        old, new = state["cell_in.0.weight"], torch.zeros_like(cast("nn.Linear", self.cell_in[0]).weight)
        new[:, : old.shape[1]] = old
        state["cell_in.0.weight"] = new
        self.load_state_dict(state, strict=False)  # further rounds and blocks are missing in it

    def io_layers(self) -> Iterator[nn.Module]:
        """The layers that read cell and pair features, and the head."""
        yield from (self.cell_in[0], self.pair_in, self.head)

    def bytes_per_pair(self) -> float:
        """Working memory of `predict` for each ordered pair (measured)."""
        config = self.config
        return 4.0 * (1.2 * (config.outer**2 + config.outer_intervened**2) + 17.0 * config.width)

    def activation_bytes(self, n: int, d: int) -> int:
        """About what autograd keeps of one dataset (measured: benchmarks/train_step.py)."""
        config = self.config
        pair = config.rounds * (
            config.blocks * (8 * config.width + 4 * config.triangle + 3 * config.expand * config.width)
        )
        outer = config.rounds * (config.outer**2 + config.outer_intervened**2)
        cell = config.rounds * (12 * config.cell_width + 2 * (config.outer + config.outer_intervened))
        return 4 * (d * d * (pair + outer) + n * d * cell)

    @torch.inference_mode()
    def predict(self, x: Tensor, u: Tensor, missing: Tensor | None = None, rows: int | None = None) -> Tensor:
        """Edge logits [d, d] of one dataset, reading at most `rows` rows at a time (default: what fits 64 MB)."""
        n, d = x.shape
        if rows is None:
            rows = max(1, (1 << 24) // (d * self.config.cell_width * 8))
        hidden = None if missing is None else missing[None]
        statistics = self._statistics(x[None], u[None], hidden, rows)
        return self._run(statistics, rows=rows if rows < n else None)[0]

    def _embed(self, features: Tensor) -> Tensor:
        """Cells [B, n, d, c] of their features."""
        first, _, second = cast("list[nn.Linear]", self.cell_in)
        # The same as `first`, but the gradient of its weight comes as a product whose rows are 2 c long. As `nn.Linear`
        # takes it they are as long as there are features, no multiple of 4, for which MKL is up to 15 times slower.
        hidden = torch.addmm(first.bias, features.flatten(0, 2), first.weight.t().contiguous())
        return second(hidden.relu_()).view(*features.shape[:3], -1)

    def _run(self, statistics: RowStatistics, rows: int | None) -> Tensor:
        chunks = statistics.chunks(rows)
        pairs = self.pair_in(statistics.pair_features(self.config.pair_z_scores))
        counts = [statistics.counts, statistics.n_intervened]
        mixtures: list[Tensor] = []
        kept: Tensor | None = None  # with one chunk the cells are kept, with many they are made again in each round
        reads, updates = cast("list[OuterMeans]", self.reads), cast("list[CellUpdate]", self.updates)
        rounds = cast("list[list[Block]]", self.rounds)
        for number, (read, blocks) in enumerate(zip(reads, rounds, strict=True)):
            if number:
                mixtures.append(updates[number - 1].mixture(pairs))
            sums: list[Tensor] = []
            for features, u, observed in chunks():
                if kept is not None:
                    cells = updates[number - 1](kept, mixtures[-1])
                else:
                    cells = self._embed(features)
                    for update, mixture in zip(updates, mixtures, strict=False):
                        cells = update(cells, mixture)
                if rows is None:
                    kept = cells
                part = read.sums(cells, u, observed, statistics.hit)
                sums = [a + b for a, b in zip(sums, part, strict=True)] if sums else part
            pairs = pairs + read(sums, counts)
            if number == 0:
                pairs = pairs + _pieces(self.pair_mlp, pairs)
            for block in blocks:
                pairs = block(pairs)
        return _pieces(lambda part: self.head(self.head_norm(part)), pairs)[..., 0].float()


register_network(PairConfig, PairNetwork)
