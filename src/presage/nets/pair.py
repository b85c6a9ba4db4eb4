"""The pair network: learned second moments in, triangles of edges through, one logit per ordered pair out.

One token lives on every ordered pair of variables; the n rows are read through sums only. So a million rows cost
one streaming pass per round, the trunk's cost does not depend on n, and cutting the rows into pieces changes nothing.
Design and trials: docs/how-it-works.md. Shapes: B datasets, n rows, d variables, k pair channels, c cell channels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from presage.errors import ConfigError
from presage.nets.api import NetConfig, Network, register_network
from presage.nets.statistics import CELL_FEATURES, PAIR_FEATURES, RowStatistics

__all__ = ["PairConfig", "PairNetwork"]

KINDS = 4  # triangles: chain, fork, collider, reverse chain


@dataclass(frozen=True, kw_only=True)
class PairConfig(NetConfig):
    """Size of a pair network."""

    net: ClassVar[str] = "pair"

    width: int = 64
    """Channels of a pair."""
    cells: int = 32
    """Channels of a cell (one row of one variable)."""
    rounds: int = 3
    """How often rows are read; cells are updated between readings."""
    blocks: int = 2
    """Triangle blocks in each round."""
    outer: int = 16
    """Channels of each side of the outer-product means over all rows."""
    outer_hit: int = 8
    """The same over the rows in which the first variable is intervened on."""
    triangle: int = 64
    """Channels that meet in triangles, shared among the four kinds."""
    heads: int = 4
    """Mixtures of other variables' cells in a cell update."""
    expand: int = 2
    """Hidden width of the feed-forward parts over the width."""

    def __post_init__(self) -> None:
        for name in ("width", "cells", "rounds", "blocks", "outer", "outer_hit", "triangle", "heads", "expand"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"the pair network's {name} must be a whole number of at least 1, not {value!r}")
        if self.triangle % KINDS:
            raise ConfigError(f"triangle ({self.triangle}) must be a multiple of {KINDS}, one share for each kind")
        if self.cells % self.heads:
            raise ConfigError(f"cells ({self.cells}) must be a multiple of heads ({self.heads})")


def _silent(layer: nn.Linear) -> nn.Linear:
    """A layer that starts at zero, so that its residual branch starts as the identity."""
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def _pieces(function: Callable[[Tensor], Tensor], pairs: Tensor, cells: int = 1 << 24) -> Tensor:
    """`function` over pairs [B, d, d, k], a few rows at a time where nothing is differentiated and d is large."""
    if torch.is_grad_enabled() or pairs.numel() <= cells:
        return function(pairs)
    rows = max(1, cells // (pairs.numel() // pairs.shape[1]))
    return torch.cat([function(piece) for piece in pairs.split(rows, dim=1)], dim=1)


class FeedForward(nn.Module):
    """Gated feed-forward with its own norm and residual."""

    def __init__(self, width: int, expand: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        # Two layers rather than two halves of one: halves cost a copy each way.
        self.value = nn.Linear(width, expand * width)
        self.gate = nn.Linear(width, expand * width)
        self.out = _silent(nn.Linear(expand * width, width))

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
        self.met_norm = nn.LayerNorm(config.triangle)
        self.gate = nn.Linear(k, k)
        self.out = _silent(nn.Linear(config.triangle, k))
        self.mirror = _silent(nn.Linear(k, k))
        self.ends = _silent(nn.Linear(3 * k, 2 * k))
        self.feed = FeedForward(k, config.expand)

    def forward(self, pairs: Tensor) -> Tensor:
        """Update pairs [B, d, d, k]."""
        normed = _pieces(self.norm, pairs)
        # What both ends are like on their own: diagonal, row mean and column mean, for i and for j.
        own = normed.diagonal(dim1=1, dim2=2).transpose(1, 2)  # [B, d, k]
        first, second = self.ends(torch.cat([own, normed.mean(2), normed.mean(1)], dim=-1)).chunk(2, dim=-1)
        pairs = pairs + _pieces(self.mirror, normed).transpose(1, 2) + first[:, :, None] + second[:, None, :]
        pairs = pairs + self._triangles(normed)
        return _pieces(self.feed, pairs)

    def _triangles(self, normed: Tensor) -> Tensor:
        d = normed.shape[1]
        sides = _pieces(lambda part: self.value(part) * torch.sigmoid(self.open(part)), normed)
        left, right = sides.chunk(2, dim=-1)
        # One product serves the four kinds when the sides are laid out for it: [c, B, d, d], the sum runs over m.
        straight, turned = (3, 0, 1, 2), (3, 0, 2, 1)
        left = _laid_out(left, (straight, turned, straight, turned))
        right = _laid_out(right, (straight, straight, turned, turned))
        # chain i -> m -> j, fork i <- m -> j, collider i -> m <- j, reverse chain i <- m <- j
        met = (torch.bmm(left.flatten(0, 1), right.flatten(0, 1)) * d**-0.5).view(left.shape).permute(1, 2, 3, 0)
        return _pieces(lambda part: self.out(self.met_norm(part)), met) * _pieces(
            lambda part: torch.sigmoid(self.gate(part)), normed
        )


def _laid_out(side: Tensor, orders: tuple[tuple[int, ...], ...]) -> Tensor:
    """Channels first, each share of the channels in its own order of axes: [B, d, d, c] -> [c, B, d, d]."""
    return torch.cat([part.permute(order) for part, order in zip(side.chunk(KINDS, dim=-1), orders, strict=True)])


class OuterMeans(nn.Module):
    """Means over rows of a(z_i) (x) b(z_j): over all rows, and over those in which i is intervened on."""

    def __init__(self, config: PairConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.cells)
        self.outers = (config.outer, config.outer_hit)
        self.left = nn.ModuleList(nn.Linear(config.cells, o) for o in self.outers)
        self.right = nn.ModuleList(nn.Linear(config.cells, o) for o in self.outers)
        self.out = nn.ModuleList(nn.Linear(o * o, config.width, bias=False) for o in self.outers)

    def sums(self, cells: Tensor, u: Tensor, seen: Tensor | None, hit: bool) -> list[Tensor]:
        """Sums over the rows of a chunk: cells [B, n, d, c], u and seen [B, n, d] -> for each kind [B, d o, d o]."""
        normed = self.norm(cells)
        found = []
        for number in range(2 if hit else 1):
            left, right = self.left[number](normed), self.right[number](normed)  # [B, n, d, o]
            weight = seen if number == 0 else (u if seen is None else u * seen)
            if weight is not None:
                left = left * weight[..., None]
            if seen is not None:
                right = right * seen[..., None]
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
    def _project(out: nn.Module, part: Tensor, cells: int = 1 << 25) -> Tensor:
        if torch.is_grad_enabled() or part.numel() <= cells:
            return out(part.transpose(2, 3).flatten(3))  # [B, d, d, o o]
        step = max(1, cells // (part.numel() // part.shape[1]))
        return torch.cat([out(piece.transpose(2, 3).flatten(3)) for piece in part.split(step, dim=1)], dim=1)


class CellUpdate(nn.Module):
    """Each variable's cells receive signed mixtures of the other variables' cells, weighted by the pairs."""

    def __init__(self, config: PairConfig) -> None:
        super().__init__()
        c = config.cells
        self.heads = config.heads
        self.pair_norm = nn.LayerNorm(config.width)
        self.weights = nn.Linear(config.width, 2 * config.heads)
        self.norm = nn.LayerNorm(c)
        self.values = nn.Linear(c, c)
        self.own = nn.Linear(c, 2 * c)
        self.others = nn.Linear(c, 2 * c, bias=False)
        self.out = _silent(nn.Linear(2 * c, c))

    def mixture(self, pairs: Tensor) -> Tensor:
        """Weights [B, h, d, d]: how much of variable i's cells variable j receives, none of its own."""
        value, gate = _pieces(lambda part: self.weights(self.pair_norm(part)), pairs).movedim(-1, 1).chunk(2, dim=1)
        own = torch.eye(pairs.shape[1], dtype=torch.bool, device=pairs.device)
        return (value * torch.sigmoid(gate - 2.0)).masked_fill(own, 0.0)

    def forward(self, cells: Tensor, mixture: Tensor) -> Tensor:
        """Update cells [B, n, d, c]."""
        batch, n, d, c = cells.shape
        normed = self.norm(cells)
        values = self.values(normed).view(batch, n, d, self.heads, c // self.heads)
        values = values.permute(0, 3, 2, 1, 4).flatten(3)  # [B, h, d, n c/h]
        mixed = mixture.transpose(-1, -2).to(values.dtype) @ values  # [B, h, d, n c/h]
        mixed = mixed.view(batch, self.heads, d, n, -1).permute(0, 3, 2, 1, 4).flatten(3)  # [B, n, d, c]
        return cells + self.out(F.relu(self.own(normed) + self.others(mixed)))


class PairNetwork(Network):
    """The whole network; see the module's docstring."""

    def __init__(self, config: PairConfig) -> None:
        super().__init__()
        self.config: PairConfig = config
        k, c = config.width, config.cells
        self.cell_in = nn.Sequential(nn.Linear(CELL_FEATURES, 2 * c), nn.ReLU(), nn.Linear(2 * c, c))
        self.pair_in = nn.Linear(PAIR_FEATURES, k)
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
        return self._run(RowStatistics(x, u, missing), rows=None)

    def activation_bytes(self, n: int, d: int) -> int:
        """About what autograd keeps of one dataset (measured: benchmarks/train_step.py)."""
        config = self.config
        pair = config.rounds * (
            config.blocks * (8 * config.width + 4 * config.triangle + 3 * config.expand * config.width)
        )
        outer = config.rounds * (config.outer**2 + config.outer_hit**2)
        cell = config.rounds * (12 * config.cells + 2 * (config.outer + config.outer_hit))
        return 4 * (d * d * (pair + outer) + n * d * cell)

    @torch.inference_mode()
    def predict(self, x: Tensor, u: Tensor, missing: Tensor | None = None, rows: int | None = None) -> Tensor:
        """Edge logits [d, d] of one dataset, reading at most `rows` rows at a time (default: what fits 64 MB)."""
        n, d = x.shape
        if rows is None:
            rows = max(1, (1 << 24) // (d * self.config.cells * 8))
        statistics = RowStatistics(x[None], u[None], None if missing is None else missing[None], rows=rows)
        return self._run(statistics, rows=rows if rows < n else None)[0]

    def _run(self, statistics: RowStatistics, rows: int | None) -> Tensor:
        chunks = statistics.chunks(rows)
        pairs = self.pair_in(statistics.pair_features())
        counts = [statistics.counts, statistics.hits]
        mixtures: list[Tensor] = []
        kept: Tensor | None = None  # with one chunk the cells are kept, with many they are made again in each round
        reads, updates = cast("list[OuterMeans]", self.reads), cast("list[CellUpdate]", self.updates)
        rounds = cast("list[list[Block]]", self.rounds)
        for number, (read, blocks) in enumerate(zip(reads, rounds, strict=True)):
            if number:
                mixtures.append(updates[number - 1].mixture(pairs))
            sums: list[Tensor] = []
            for features, u, seen in chunks():
                if kept is not None:
                    cells = updates[number - 1](kept, mixtures[-1])
                else:
                    cells = self.cell_in(features)  # [B, n, d, c]
                    for update, mixture in zip(updates, mixtures, strict=False):
                        cells = update(cells, mixture)
                if rows is None:
                    kept = cells
                part = read.sums(cells, u, seen, statistics.hit)
                sums = [a + b for a, b in zip(sums, part, strict=True)] if sums else part
            pairs = pairs + read(sums, counts)
            if number == 0:
                pairs = pairs + _pieces(self.pair_mlp, pairs)
            for block in blocks:
                pairs = block(pairs)
        return _pieces(lambda part: self.head(self.head_norm(part)), pairs)[..., 0].float()


register_network(PairConfig, PairNetwork)
