"""What the pair network reads of the rows before learning anything: pair_z_scores, residuals and second moments.

Everything here is a sum over rows or a rank within a column, so it does not depend on the order of the rows and can
be taken chunk by chunk. Nothing here is differentiated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

__all__ = ["RowStatistics", "cell_features", "pair_features", "rank_normal", "rescale_rows", "winsorize"]

RIDGES = (0.003, 0.1)
"""Ridges of the precision matrices: one follows almost deterministic relations, one stays calm when n is small."""
CLIP = 6.0
AT_ONCE = 1 << 23
"""Values that are ranked and scaled at once, which bounds memory."""


def cell_features(sources: int = 2) -> int:
    """How many numbers a cell starts from, where values are read in this many ways."""
    return 1 + sources * (1 + len(RIDGES)) + 4


def pair_features(pair_z_scores: bool, sources: int = 2) -> int:
    """How many numbers `RowStatistics.pair_features` gives for each pair."""
    return 2 * sources * (1 + 2 * len(RIDGES) + 2 + 4 * pair_z_scores) + 4


def rank_normal(x: Tensor, missing: Tensor | None = None) -> Tensor:
    """Normal pair_z_scores of the ranks within each column: inverse normal CDF of (rank + 1/2) / n, ties averaged.

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
    pair_z_scores = math.sqrt(2.0) * torch.erfinv(2.0 * share.clamp(1e-7, 1.0 - 1e-7) - 1.0)
    if missing is not None:
        pair_z_scores = pair_z_scores.masked_fill(missing.transpose(1, 2), 0.0)
    return pair_z_scores.transpose(1, 2)


def _column_scaled(x: Tensor, observed: Tensor | None) -> Tensor:
    """Each column of [B, n, d] to mean 0 and variance 1 over its observed rows; constant columns to 0."""
    count = float(x.shape[1]) if observed is None else observed.sum(1, keepdim=True).clamp_min(1.0)
    mean = x.sum(1, keepdim=True) / count
    centred = x - mean if observed is None else (x - mean) * observed
    deviation = (centred.square().sum(1, keepdim=True) / count).sqrt()
    return centred / deviation.masked_fill(deviation < 1e-6, 1.0)


def winsorize(x: Tensor, missing: Tensor | None, winsorize_sd: float, passes: int = 6) -> Tensor:
    """Columns of [B, n, d] about their medians, values beyond `winsorize_sd` deviations moved to that border.

    The deviation is taken again after each pass, so that a few enormous values (Cauchy noise) cannot set the scale of
    all others. Missing cells become 0.
    """
    x = _about_median(x, missing)
    for _ in range(passes):
        border = winsorize_sd * _deviation(x, missing)
        x = torch.clamp(x, -border, border)
    return x


def _about_median(x: Tensor, missing: Tensor | None) -> Tensor:
    if missing is None:
        return x - x.median(1, keepdim=True).values
    x = x.masked_fill(missing, math.nan)
    return (x - x.nanmedian(1, keepdim=True).values).nan_to_num(0.0)


def _deviation(x: Tensor, missing: Tensor | None) -> Tensor:
    """Root mean square [B, 1, d] of columns whose missing cells are 0."""
    count = float(x.shape[1]) if missing is None else (~missing).sum(1, keepdim=True).clamp_min(1)
    return (x.square().sum(1, keepdim=True) / count).sqrt()


def rescale_rows(x: Tensor, missing: Tensor | None, winsorize_sd: float, row_clip_sd: float) -> Tensor:
    """Columns of [B, n, d] about their medians, in (drawn in) deviations; rows that row_clip_sd beyond `row_clip_sd` of them are
    scaled down as a whole.

    Where effects are in proportion to causes a row that is scaled down keeps its relations, however large its noise;
    drawing in single values breaks them. Missing cells become 0.
    """

    def in_deviations(part: Tensor, hidden: Tensor | None) -> Tensor:
        deviation = _deviation(winsorize(part, hidden, winsorize_sd), hidden)
        return _about_median(part, hidden) / deviation.masked_fill(deviation < 1e-6, math.inf)

    values = _by_columns(in_deviations, x, missing)
    furthest = torch.linalg.vector_norm(values, math.inf, dim=2, keepdim=True)  # [B, n, 1]
    values.mul_(row_clip_sd / furthest.clamp_min(row_clip_sd))
    border = row_clip_sd * (1.0 - 1e-5)  # what ends there is to be a tie in ranks, not in an order of rounding errors
    return values.clamp_(-border, border)


def _observed(missing: Tensor | None) -> Tensor | None:
    return None if missing is None else (~missing).float()


def _by_columns(function: Callable[[Tensor, Tensor | None], Tensor], x: Tensor, mask: Tensor | None) -> Tensor:
    """`function` of x [B, n, d], a few columns at a time where x is large: columns do not depend on each other."""
    width = max(1, AT_ONCE // max(1, x.shape[0] * x.shape[1]))
    if width >= x.shape[2]:
        return function(x, mask)
    out = torch.empty_like(x)
    for start in range(0, x.shape[2], width):
        part = slice(start, start + width)
        out[..., part] = function(x[..., part], None if mask is None else mask[..., part])
    return out


def _scaled(x: Tensor, missing: Tensor | None, winsorize_sd: float) -> Tensor:
    if winsorize_sd:
        return _column_scaled(winsorize(x, missing, winsorize_sd), _observed(missing))
    return _column_scaled(x if missing is None else x.masked_fill(missing, 0.0), _observed(missing))


class RowStatistics:
    """Scores, residuals and moments of standardized values x [B, n, d] with intervention mask u and missing mask.

    winsorize_sd: values beyond this many deviations are drawn in before anything but ranks is taken; 0 leaves them.
    row_clip_sd: rows that row_clip_sd further than this are shrunk before anything is taken; 0 leaves them. `add_row_scaled_view`: they are
    read so add_row_scaled_view what they are, not in its place.
    rows: how many rows are read at a time.
    """

    def __init__(
        self,
        x: Tensor,
        u: Tensor,
        missing: Tensor | None = None,
        rows: int | None = None,
        *,
        winsorize_sd: float = 0.0,
        row_clip_sd: float = 0.0,
        add_row_scaled_view: bool = False,
    ) -> None:
        with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
            self._prepare(x.float(), u, missing, rows or x.shape[1], winsorize_sd, row_clip_sd, add_row_scaled_view)

    def _prepare(
        self,
        x: Tensor,
        u: Tensor,
        missing: Tensor | None,
        rows: int,
        winsorize_sd: float,
        row_clip_sd: float,
        add_row_scaled_view: bool,
    ) -> None:
        self.missing = missing if missing is not None and bool(missing.any()) else None
        self.observed = _observed(self.missing)
        self.given = x if self.observed is None else x * self.observed
        self.u = u  # as it came: a mask of bytes takes a quarter of the memory, pieces become float when read
        self.any = u.bool().any(dim=2, keepdim=True)  # whether any variable of the row is intervened on
        shrunk = rescale_rows(x, self.missing, winsorize_sd, row_clip_sd) if row_clip_sd else x
        first = x if add_row_scaled_view else shrunk
        self.sources = [
            _by_columns(lambda part, hidden: _scaled(part, hidden, winsorize_sd), first, self.missing),
            _by_columns(
                lambda part, hidden: _column_scaled(rank_normal(part, hidden), _observed(hidden)), first, self.missing
            ),
        ]
        if add_row_scaled_view:
            self.sources.append(
                _by_columns(lambda part, hidden: _scaled(part, hidden, winsorize_sd), shrunk, self.missing)
            )
        self.x = self.sources[0] if winsorize_sd else self.given
        self.pieces = [slice(start, start + rows) for start in range(0, x.shape[1], rows)]
        # Rows in which i was intervened on and j observed, and rows in which both were observed: [B, d, d].
        everywhere = torch.ones_like(x[:, :1, :1]).expand_as(x)  # no memory of its own
        self.n_intervened = self._products(self.u, everywhere if self.observed is None else self.observed)
        self.hit = bool(u.any())
        self.counts = (
            torch.full((1, 1, 1), float(x.shape[1]), device=x.device)
            if self.observed is None
            else self._products(self.observed, self.observed)
        )
        self.moments, self.precisions = [], []
        eye = torch.eye(x.shape[2], device=x.device)
        for v in self.sources:
            gram = self._products(v, v)
            mean_j = self._products(self.u, v)
            cross_j = self._products(v, v, weight=self.u)
            square_j = self._products(self.u, v, power=2)
            n_intervened = self.n_intervened.clamp_min(1.0)
            under = (mean_j / n_intervened, cross_j / n_intervened, square_j / n_intervened)
            self.moments.append((gram / self.counts.clamp_min(1.0), *under))
            # Divided by each pair's own count the matrix need not be positive definite once cells are missing; divided
            # by the columns' counts it is. The ridge keeps it invertible for n < d and constant columns.
            own = self.counts.expand_as(gram).diagonal(dim1=1, dim2=2).clamp_min(1.0).sqrt()  # [B, d]
            scaled = gram / (own[:, :, None] * own[:, None, :])
            self.precisions.append([torch.linalg.inv(scaled + ridge * eye) for ridge in RIDGES])

    def _products(self, a: Tensor, b: Tensor, weight: Tensor | None = None, power: int = 1) -> Tensor:
        """Sums over rows of (weight) a_i b_j^power, chunk by chunk: [B, d, d]."""
        total: Tensor | None = None
        for piece in self.pieces:
            left = a[:, piece].float() if weight is None else a[:, piece] * weight[:, piece]
            part = left.transpose(1, 2) @ (b[:, piece] if power == 1 else b[:, piece] ** power)
            total = part if total is None else total + part
        return a.new_zeros(()) if total is None else total

    @torch.no_grad()
    def pair_features(self, pair_z_scores: bool = False) -> Tensor:
        """Fixed statistics of every ordered pair and of its mirror image: [B, d, d, pair_features(pair_z_scores)].

        pair_z_scores: also how many standard errors from 0 they are (on a scale of asinh), so that the network need not learn
        to weigh a number by the count behind it.
        """
        plain: list[list[Tensor]] = []
        sure: list[list[Tensor]] = []
        for (cross, mean_j, cross_j, square_j), precisions in zip(self.moments, self.precisions, strict=True):
            parts, errors = [cross], []
            for number, precision in enumerate(precisions):
                own = precision.diagonal(dim1=1, dim2=2)  # [B, d]
                partial = -precision / (own[:, :, None] * own[:, None, :]).sqrt()
                parts += [partial, -precision / own[:, None, :]]  # the second: regression weight of i for j
                if pair_z_scores and number == 0:
                    errors.append((partial * self.counts.sqrt()).asinh())
            parts += [mean_j, cross_j]
            if pair_z_scores:
                # A variable set to a calm value calms its descendants: the spread of j then is worth a number, too.
                spread = (square_j - 1.0) * 0.5**0.5
                errors += [(part * self.n_intervened.sqrt()).asinh() for part in (mean_j, cross_j, spread)]
            plain.append(parts)
            sure.append(errors)
        # What a third source adds comes last, so that a network can learn to read it add_row_scaled_view what it knew.
        columns = [*plain[:2], *sure[:2], *plain[2:], *sure[2:]]
        here = torch.stack([column for part in columns for column in part], dim=-1).clamp(-CLIP, CLIP)
        d = here.shape[1]
        n_intervened = self.n_intervened.log1p() * 0.25
        size = (self.counts.clamp_min(1.0).log() * 0.25).expand_as(n_intervened)
        own = torch.eye(d, device=here.device).expand_as(n_intervened)
        extra = torch.stack([n_intervened, n_intervened.transpose(1, 2), size, own], dim=-1)
        return torch.cat([here, here.transpose(1, 2), extra], dim=-1)

    def chunks(self, rows: int | None) -> Callable[[], Iterator[tuple[Tensor, Tensor, Tensor | None]]]:
        """A function that yields (cell features [B, n', d, f], u, observed [B, n', d]) chunk by chunk."""
        if rows is None:
            whole = [self._cells(slice(None))]
            return lambda: iter(whole)
        return lambda: (self._cells(piece) for piece in self.pieces)

    @torch.no_grad()
    def _cells(self, piece: slice) -> tuple[Tensor, Tensor, Tensor | None]:
        with torch.autocast(self.x.device.type, enabled=False):
            u = self.u[:, piece].float()
            values = [v[:, piece] for v in self.sources]
            residuals = [
                v @ precision / precision.diagonal(dim1=1, dim2=2)[:, None].sqrt()
                for v, precisions in zip(values, self.precisions, strict=True)
                for precision in precisions
            ]
            own, two = len(RIDGES), 2  # of the first two sources; what a third adds comes last
            observed = None if self.observed is None else self.observed[:, piece]
            hidden = torch.zeros_like(u) if observed is None else 1.0 - observed
            zero = (self.given[:, piece] == 0.0).float()  # counts have many
            parts = [self.x[:, piece], *values[:two], *residuals[: two * own]]
            parts += [u, self.any[:, piece].float().expand_as(u), hidden, zero]
            parts += [*values[two:], *residuals[two * own :]]
            return torch.stack(parts, dim=-1).clamp_(-CLIP, CLIP), u, observed  # [B, n', d, f]
