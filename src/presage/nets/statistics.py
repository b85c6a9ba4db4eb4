"""What the pair network reads of the rows before learning anything: scores, residuals and second moments.

Everything here is a sum over rows or a rank within a column, so it does not depend on the order of the rows and can
be taken chunk by chunk. Nothing here is differentiated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

__all__ = ["CELL_FEATURES", "PAIR_FEATURES", "RowStatistics", "rank_normal"]

RIDGES = (0.003, 0.1)
"""Ridges of the precision matrices: one follows almost deterministic relations, one stays calm when n is small."""
CLIP = 6.0
CELL_FEATURES = 3 + 2 * len(RIDGES) + 4
PAIR_FEATURES = 2 * (2 * (1 + 2 * len(RIDGES) + 2)) + 4


def rank_normal(x: Tensor, missing: Tensor | None = None) -> Tensor:
    """Normal scores of the ranks within each column: inverse normal CDF of (rank + 1/2) / n, ties averaged.

    x: [B, n, d]; missing cells get 0 and do not count.
    """
    columns = x.transpose(1, 2).contiguous()  # [B, d, n]
    if missing is None:
        ordered = columns.sort(dim=-1).values
        count = torch.full((1, 1, 1), float(columns.shape[-1]), device=x.device)
    else:
        hidden = missing.transpose(1, 2)
        columns = columns.masked_fill(hidden, math.inf)
        ordered = columns.sort(dim=-1).values
        count = (~hidden).sum(-1, keepdim=True).clamp_min(1).to(x.dtype)
    below = torch.searchsorted(ordered, columns, right=False)
    up_to = torch.searchsorted(ordered, columns, right=True)
    share = (below + up_to).to(x.dtype) / (2.0 * count)  # mean of rank + 1/2 over ties
    scores = math.sqrt(2.0) * torch.erfinv(2.0 * share.clamp(1e-7, 1.0 - 1e-7) - 1.0)
    if missing is not None:
        scores = scores.masked_fill(missing.transpose(1, 2), 0.0)
    return scores.transpose(1, 2)


def _column_scaled(x: Tensor, seen: Tensor | None) -> Tensor:
    """Each column of [B, n, d] to mean 0 and variance 1 over its seen rows; constant columns to 0."""
    count = float(x.shape[1]) if seen is None else seen.sum(1, keepdim=True).clamp_min(1.0)
    mean = x.sum(1, keepdim=True) / count
    centred = x - mean if seen is None else (x - mean) * seen
    deviation = (centred.square().sum(1, keepdim=True) / count).sqrt()
    return centred / deviation.masked_fill(deviation < 1e-6, 1.0)


class RowStatistics:
    """Scores, residuals and moments of standardized values x [B, n, d] with intervention mask u and missing mask."""

    def __init__(self, x: Tensor, u: Tensor, missing: Tensor | None = None, rows: int | None = None) -> None:
        with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
            self._prepare(x.float(), u.float(), missing, rows or x.shape[1])

    def _prepare(self, x: Tensor, u: Tensor, missing: Tensor | None, rows: int) -> None:
        self.missing = missing if missing is not None and bool(missing.any()) else None
        self.seen = None if self.missing is None else (~self.missing).float()
        self.x = x if self.seen is None else x * self.seen
        self.u = u
        self.any = u.amax(dim=2, keepdim=True)  # whether any variable of the row is intervened on
        self.sources = (_column_scaled(self.x, self.seen), _column_scaled(rank_normal(x, self.missing), self.seen))
        self.pieces = [slice(start, start + rows) for start in range(0, x.shape[1], rows)]
        # Rows in which i was intervened on and j seen, and rows in which both were seen: [B, d, d].
        self.hits = self._sum(lambda p: self.u[:, p].transpose(1, 2) @ self._seen(p))
        self.hit = bool(u.any())
        self.counts = (
            torch.full((1, 1, 1), float(x.shape[1]), device=x.device)
            if self.seen is None
            else self._sum(lambda p: self._seen(p).transpose(1, 2) @ self._seen(p))
        )
        self.moments, self.precisions = [], []
        eye = torch.eye(x.shape[2], device=x.device)
        for v in self.sources:
            cross = self._sum(lambda p, v=v: v[:, p].transpose(1, 2) @ v[:, p]) / self.counts.clamp_min(1.0)
            mean_j = self._sum(lambda p, v=v: self.u[:, p].transpose(1, 2) @ v[:, p])
            cross_j = self._sum(lambda p, v=v: (self.u[:, p] * v[:, p]).transpose(1, 2) @ v[:, p])
            hits = self.hits.clamp_min(1.0)
            self.moments.append((cross, mean_j / hits, cross_j / hits))
            # A correlation matrix has trace d; the ridge keeps it invertible for n < d and constant columns.
            self.precisions.append([torch.linalg.inv(cross + ridge * eye) for ridge in RIDGES])

    def _seen(self, piece: slice) -> Tensor:
        return torch.ones_like(self.u[:, piece]) if self.seen is None else self.seen[:, piece]

    def _sum(self, term: Callable[[slice], Tensor]) -> Tensor:
        total = term(self.pieces[0])
        for piece in self.pieces[1:]:
            total = total + term(piece)
        return total

    @torch.no_grad()
    def pair_features(self) -> Tensor:
        """Fixed statistics of every ordered pair and of its mirror image: [B, d, d, PAIR_FEATURES]."""
        parts: list[Tensor] = []
        for (cross, mean_j, cross_j), precisions in zip(self.moments, self.precisions, strict=True):
            parts.append(cross)
            for precision in precisions:
                own = precision.diagonal(dim1=1, dim2=2)  # [B, d]
                parts.append(-precision / (own[:, :, None] * own[:, None, :]).sqrt())
                parts.append(-precision / own[:, None, :])  # regression weight of i in the equation of j
            parts += [mean_j, cross_j]
        here = torch.stack(parts, dim=-1).clamp(-CLIP, CLIP)
        d = here.shape[1]
        hits = self.hits.log1p() * 0.25
        size = (self.counts.clamp_min(1.0).log() * 0.25).expand_as(hits)
        own = torch.eye(d, device=here.device).expand_as(hits)
        extra = torch.stack([hits, hits.transpose(1, 2), size, own], dim=-1)
        return torch.cat([here, here.transpose(1, 2), extra], dim=-1)

    def chunks(self, rows: int | None) -> Callable[[], Iterator[tuple[Tensor, Tensor, Tensor | None]]]:
        """A function that yields (cell features [B, n', d, CELL_FEATURES], u, seen [B, n', d]) chunk by chunk."""
        if rows is None:
            whole = [self._cells(slice(None))]
            return lambda: iter(whole)
        return lambda: (self._cells(piece) for piece in self.pieces)

    @torch.no_grad()
    def _cells(self, piece: slice) -> tuple[Tensor, Tensor, Tensor | None]:
        with torch.autocast(self.x.device.type, enabled=False):
            u = self.u[:, piece]
            parts = [self.x[:, piece], self.sources[0][:, piece], self.sources[1][:, piece]]
            for v, precisions in zip(self.sources, self.precisions, strict=True):
                for precision in precisions:
                    residual = v[:, piece] @ precision
                    parts.append(residual / precision.diagonal(dim1=1, dim2=2)[:, None].sqrt())
            seen = None if self.seen is None else self.seen[:, piece]
            hidden = torch.zeros_like(u) if seen is None else 1.0 - seen
            zero = (self.x[:, piece] == 0.0).float()  # counts have many
            parts += [u, self.any[:, piece].expand_as(u), hidden, zero]
            return torch.stack(parts, dim=-1).clamp_(-CLIP, CLIP), u, seen  # [B, n', d, f]
