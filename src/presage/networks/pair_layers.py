"""Layers of the pair network: triangle blocks on pairs, outer-product means of cells, updates of cells.

Shapes: B datasets, n rows, d variables, k pair channels, c cell channels, o outer-product channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

if TYPE_CHECKING:
    from presage.networks.pair import PairConfig

__all__ = [
    "TRIANGLES",
    "CellUpdate",
    "FeedForward",
    "LinearOuterProductMeans",
    "OuterProductMeans",
    "TriangleBlock",
    "in_pieces",
    "zero_init",
]

TRIANGLES = 4
"""Kinds of triangles: chain, fork, collider, reverse chain."""


def zero_init(layer: nn.Linear) -> nn.Linear:
    """A layer that starts at zero, so that its residual branch starts as the identity."""
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


AT_ONCE = 1 << 24
"""Number of values processed at once during inference, which bounds memory."""


def in_pieces(function: Callable[[Tensor], Tensor], pairs: Tensor) -> Tensor:
    """Apply `function` to pairs [B, d, d, k], a few rows at a time during inference with large d."""
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
        found: Tensor = pairs + self.out(self.value(normed) * F.silu(self.gate(normed)))
        return found


class TriangleBlock(nn.Module):
    """Updates a pair (i, j) from the pairs (i, m) and (m, j), (j, i), and i and j; then a feed-forward layer."""

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
        normed = in_pieces(self.norm, pairs)
        # Features of the single variables: diagonal, row mean and column mean, for i and for j.
        own = normed.diagonal(dim1=1, dim2=2).transpose(1, 2)  # [B, d, k]
        first, second = self.ends(torch.cat([own, normed.mean(2), normed.mean(1)], dim=-1)).chunk(2, dim=-1)
        pairs = pairs + in_pieces(self.mirror, normed).transpose(1, 2)
        pairs += first[:, :, None]
        pairs += second[:, None, :]
        pairs += self._triangles(normed)
        return in_pieces(self.feed, pairs)

    def _triangles(self, normed: Tensor) -> Tensor:
        d, k = normed.shape[2:]
        flat = normed.view(-1, k).t()
        # Channels first: all triangle products are then matrix products without copies.
        parts = 1 if torch.is_grad_enabled() or normed.numel() <= AT_ONCE else TRIANGLES
        twos = (two for sides in self._sides(flat, parts) for two in sides.chunk(TRIANGLES // parts))
        products = torch.cat([_triangle_product(kind, two.view(2, -1, d, d)) for kind, two in enumerate(twos)])
        products = products.view(self.out.in_features, -1)  # [t, B d d]
        # The norm over channels is one number per pair, so it can be applied after the projection.
        length = torch.rsqrt(products.var(0, correction=0) + 1e-5 * d)
        gate = in_pieces(lambda part: torch.sigmoid(self.gate(part)), normed).view(-1, k)
        weight = self.out.weight - self.out.weight.mean(1, keepdim=True)  # subtracts the mean over channels
        update = (products.t() @ weight.t()) * length[:, None]
        update += self.out.bias
        return (update * gate).view(normed.shape)

    def _sides(self, flat: Tensor, parts: int) -> Iterator[Tensor]:
        """Triangle features of each pair, [2 t / parts, B d d], a few channels at a time if memory is limited."""
        layers = [
            tensor.chunk(parts) for layer in (self.value, self.open) for tensor in (layer.weight, layer.bias[:, None])
        ]
        for weight, bias, gate_weight, gate_bias in zip(*layers, strict=True):
            yield torch.addmm(bias, weight, flat) * torch.sigmoid(torch.addmm(gate_bias, gate_weight, flat))


def _triangle_product(kind: int, sides: Tensor) -> Tensor:
    """Sums over m of left times right [2, c B, d, d]: chain i -> m -> j, fork i <- m -> j, collider i -> m <- j and
    reverse chain i <- m <- j."""
    left, right = sides.unbind(0)
    return torch.bmm(left.transpose(1, 2) if kind in (1, 3) else left, right.transpose(1, 2) if kind > 1 else right)


def _add_product(so_far: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
    """Sums over rows of left (x) right, [B, n, d, o] each -> [B, d o, d o]; added in place to those of other chunks."""
    transposed, flat = left.flatten(2).transpose(1, 2), right.flatten(2)
    return transposed @ flat if so_far is None else so_far.baddbmm_(transposed, flat)


def _add_intervened_product(
    so_far: Tensor | None, under: Tensor, right: Tensor, u: Tensor, observed: Tensor | None
) -> Tensor:
    """`_add_product` over the rows in which the left variable is intervened on; right is 0 where not observed."""
    weight = u if observed is None else u * observed
    if len(u) > 1 or torch.is_grad_enabled():
        return _add_product(so_far, under * weight[..., None], right)
    batch, _, d, o = under.shape
    if so_far is None:
        so_far = under.new_zeros(batch, d * o, right[0, 0].numel())
    # Most rows have few targets, and chunks hold rows with the same targets: the other products are 0.
    rows, targets = (weight[0].any(dim=dim).nonzero()[:, 0] for dim in (1, 0))
    if len(rows):
        left = under[0, rows[:, None], targets] * weight[0, rows[:, None], targets][..., None]  # [rows, targets, o]
        part = left.flatten(1).t() @ right[0].index_select(0, rows).flatten(1)  # [targets o, d o]
        so_far.view(d, o, -1).index_add_(0, targets, part.view(len(targets), o, -1))
    return so_far


class LinearOuterProductMeans(nn.Module):
    """Means over rows of a(z_i) (x) b(z_j), over all rows and over those with i intervened on, projected linearly."""

    def __init__(self, config: PairConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.cell_width)
        self.outers = (config.outer, config.outer_intervened)
        self.left = nn.ModuleList(nn.Linear(config.cell_width, o) for o in self.outers)
        self.right = nn.ModuleList(nn.Linear(config.cell_width, o) for o in self.outers)
        self.out = nn.ModuleList(nn.Linear(o * o, config.width, bias=False) for o in self.outers)

    def sums(
        self, cells: Tensor, u: Tensor, observed: Tensor | None, intervened: bool, so_far: list[Tensor]
    ) -> list[Tensor]:
        """Sums over the rows of a chunk, added to those of earlier chunks (`so_far`, empty at first).

        cells [B, n, d, c], u and observed [B, n, d] -> [B, d o, d o] of each kind.
        """
        normed = self.norm(cells)
        sides = []
        for number in range(2 if intervened else 1):
            left, right = self.left[number](normed), self.right[number](normed)  # [B, n, d, o]
            sides.append((left, right if observed is None else right * observed[..., None]))
        left, right = sides[0]
        found = [
            _add_product(so_far[0] if so_far else None, left if observed is None else left * observed[..., None], right)
        ]
        if intervened:
            found.append(_add_intervened_product(so_far[1] if so_far else None, *sides[1], u, observed))
        return found

    def forward(self, sums: list[Tensor], counts: list[Tensor]) -> Tensor:
        """Pair updates [B, d, d, k]; counts [B or 1, d or 1, d or 1] are the numbers of rows in each sum."""
        updates = []
        for out, o, part, count in zip(self.out, self.outers, sums, counts, strict=False):
            d = part.shape[1] // o
            part = part.view(len(part), d, o, d, o)
            updates.append(self._project(out, part) / count[..., None].clamp_min(1.0))
        return updates[0] if len(updates) == 1 else updates[0] + updates[1]

    @staticmethod
    def _project(out: nn.Module, part: Tensor, at_once: int = 1 << 25) -> Tensor:
        if torch.is_grad_enabled() or part.numel() <= at_once:
            found: Tensor = out(part.transpose(2, 3).flatten(3))  # [B, d, d, o o]
            return found
        step = max(1, at_once // (part.numel() // part.shape[1]))
        return torch.cat([out(piece.transpose(2, 3).flatten(3)) for piece in part.split(step, dim=1)], dim=1)

    def zero_init(self) -> None:
        """Initialise the output at zero, so that the layer starts as the identity."""
        for out in self.out:
            nn.init.zeros_(cast("nn.Linear", out).weight)


class OuterProductMeans(nn.Module):
    """Means over rows of a(z_i) (x) b(z_j), over all rows and over those with i intervened on, through an MLP.

    Both kinds share b. A linear projection cannot compare entries of the two means; the MLP can, and needs far fewer
    datasets for it (LOG.md).
    """

    def __init__(self, config: PairConfig) -> None:
        super().__init__()
        self.outers = (config.outer, config.outer_intervened)
        self.norm = nn.LayerNorm(config.cell_width)
        self.sides = nn.Linear(config.cell_width, 2 * config.outer + config.outer_intervened)
        hidden = config.outer_hidden * config.width
        self.hidden = nn.Linear(sum(self.outers) * config.outer, hidden)
        self.out = zero_init(nn.Linear(hidden, config.width))

    def sums(
        self, cells: Tensor, u: Tensor, observed: Tensor | None, intervened: bool, so_far: list[Tensor]
    ) -> list[Tensor]:
        """Sums over the rows of a chunk, added to those of earlier chunks (`so_far`, empty at first).

        cells [B, n, d, c], u and observed [B, n, d] -> [B, d o, d o] of each kind.
        """
        outer, outer_intervened = self.outers
        left, right, under = self.sides(self.norm(cells)).split([outer, outer, outer_intervened], dim=-1)
        if observed is not None:
            left, right = left * observed[..., None], right * observed[..., None]
        found = [_add_product(so_far[0] if so_far else None, left, right)]
        if intervened:
            found.append(_add_intervened_product(so_far[1] if so_far else None, under, right, u, observed))
        return found

    def forward(self, sums: list[Tensor], counts: list[Tensor]) -> Tensor:
        """Pair updates [B, d, d, k]; counts [B or 1, d or 1, d or 1] are the numbers of rows in each sum."""
        d = sums[0].shape[1] // self.outers[0]
        parts = [part.view(len(part), d, o, d, -1) for part, o in zip(sums, self.outers, strict=False)]
        weight = self.hidden.weight[:, : sum(self.outers[: len(parts)]) * self.outers[0]]  # the other means are 0

        def project(rows: slice) -> Tensor:
            means = [
                part[:, rows] / (count[:, rows] if count.shape[1] > 1 else count)[:, :, None, :, None].clamp_min(1.0)
                for part, count in zip(parts, counts, strict=False)
            ]  # [B, d', o, d, o] each
            flat = (torch.cat(means, dim=2) if len(means) > 1 else means[0]).transpose(2, 3).flatten(3)
            found: Tensor = self.out(F.gelu(F.linear(flat, weight, self.hidden.bias)))  # [B, d', d, k]
            return found

        numbers = sum(part.numel() for part in parts)
        if torch.is_grad_enabled() or numbers <= AT_ONCE:
            return project(slice(None))
        step = max(1, AT_ONCE // (numbers // d))  # the means of all pairs at once would double the memory
        return torch.cat([project(slice(start, start + step)) for start in range(0, d, step)], dim=1)

    def zero_init(self) -> None:
        """Initialise the output at zero, so that the layer starts as the identity."""
        zero_init(self.out)


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
        value, gate = in_pieces(lambda part: self.weights(self.pair_norm(part)), pairs).movedim(-1, 1).chunk(2, dim=1)
        own = torch.eye(pairs.shape[1], dtype=torch.bool, device=pairs.device)
        return (value * torch.sigmoid(gate - 2.0)).masked_fill(own, 0.0)

    def forward(self, cells: Tensor, mixture: Tensor) -> Tensor:
        """Update cells [B, n, d, c]."""
        batch, n, d, c = cells.shape
        flat = cells.view(-1, c)  # matrices allow in-place addition
        normed = self.norm(flat)
        values = self.values(normed).view(batch, n, d, self.heads, c // self.heads)
        values = values.permute(0, 3, 2, 1, 4).flatten(3)  # [B, h, d, n c/h]
        mixed = mixture.transpose(-1, -2).to(values.dtype) @ values  # [B, h, d, n c/h]
        mixed = mixed.view(batch, self.heads, d, n, -1).permute(0, 3, 2, 1, 4).reshape(-1, c)
        hidden = torch.addmm(self.own(normed), mixed, self.others.weight.t()).relu_()
        update = self.out(hidden)
        found: Tensor = update.add_(flat) if update.dtype == flat.dtype else flat + update
        return found.view(cells.shape)
