"""Statistics of the rows that the pair network starts from: normal scores, residuals and second moments.

Everything here is a sum over rows or a rank within a column, so it does not depend on the order of the rows and can
be computed in chunks. Nothing here is differentiated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from presage.columns import ColumnKind
from presage.data.encode import ASSOCIATIONS

__all__ = [
    "Columns",
    "Piece",
    "RowStatistics",
    "cell_features",
    "pair_features",
    "rank_normal",
    "rescale_rows",
    "winsorize",
]

RIDGES = (0.003, 0.1)
"""Ridges of the precision matrices: a small one for nearly deterministic relations, a large one for small n."""
CLIP = 6.0
AT_ONCE, RANKED_AT_ONCE = 1 << 23, 1 << 20
"""Values that are scaled and ranked at once, which bounds memory."""


Piece: TypeAlias = slice | Tensor
"""Rows of a chunk: a slice, or indices."""


class Columns(NamedTuple):
    """Network input for columns of several kinds (`presage.data.encode`), for B datasets."""

    kinds: Tensor  # [B, d], `ColumnKind`
    second: Tensor  # [B, n, d]
    association: Tensor  # [B, d, d, ASSOCIATIONS]


def cell_features(views: int = 2, kinds: bool = False) -> int:
    """Number of input features of a cell; `views` is the number of input views of the values."""
    return 1 + views * (1 + len(RIDGES)) + 4 + kinds * (1 + len(ColumnKind))


def pair_features(z_scores: bool, views: int = 2, kinds: bool = False) -> int:
    """Number of input features of a pair."""
    return 2 * views * (1 + 2 * len(RIDGES) + 2 + 4 * z_scores) + 4 + kinds * (ASSOCIATIONS + 1 + 2 * len(ColumnKind))


def rank_normal(x: Tensor, missing: Tensor | None = None) -> Tensor:
    """Normal scores of the ranks within each column: inverse normal CDF of (rank + 1/2) / n, ties averaged.

    x: [B, n, d]; missing cells get 0 and do not count.
    """
    columns = x.transpose(1, 2).contiguous()  # [B, d, n]
    count = torch.full((1, 1, 1), float(columns.shape[-1]), device=x.device)
    if missing is not None:
        hidden = missing.transpose(1, 2)
        columns = columns.masked_fill(hidden, math.inf)
        count = (~hidden).sum(-1, keepdim=True).clamp_min(1).to(x.dtype)
    scores = torch.empty_like(columns)
    # Sorted values, their places and the ranks of ties take 80 bytes per cell: large tables go by few columns.
    width = max(1, RANKED_AT_ONCE // max(1, columns.shape[0] * columns.shape[2]))
    for start in range(0, columns.shape[1], width):
        part = slice(start, start + width)
        ordered, index = columns[:, part].sort(dim=-1)
        total = count if count.shape[1] == 1 else count[:, part]
        share = _tied_ranks(ordered).to(x.dtype) / (2.0 * total)  # mean of rank + 1/2 over ties
        in_order = math.sqrt(2.0) * torch.erfinv(2.0 * share.clamp(1e-7, 1.0 - 1e-7) - 1.0)
        scores[:, part].scatter_(-1, index, in_order.expand_as(ordered))
    if missing is not None:
        scores.masked_fill_(hidden, 0.0)
    return scores.transpose(1, 2)


def _tied_ranks(ordered: Tensor) -> Tensor:
    """Twice (mean rank of the ties + 1/2) of sorted values [B, d, n]: int64 [B, d, n], or [n] where there are no ties.

    That is the number of values below plus the number up to each value.
    """
    n = ordered.shape[-1]
    position = torch.arange(n, device=ordered.device)
    tied = ordered[..., 1:] == ordered[..., :-1]
    if not bool(tied.any()):
        return 2 * position + 1
    edge = torch.zeros_like(tied[..., :1])
    below = position.masked_fill(torch.cat([edge, tied], dim=-1), 0).cummax(-1).values
    last = position.masked_fill(torch.cat([tied, edge], dim=-1), n - 1)
    return below + last.flip(-1).cummin(-1).values.flip(-1) + 1


def _column_scaled(x: Tensor, observed: Tensor | None) -> Tensor:
    """Each column of [B, n, d] to mean 0 and variance 1 over its observed rows; constant columns to 0."""
    count = float(x.shape[1]) if observed is None else observed.sum(1, keepdim=True).clamp_min(1.0)
    mean = x.sum(1, keepdim=True) / count
    centred = x - mean if observed is None else (x - mean) * observed
    deviation = (centred.square().sum(1, keepdim=True) / count).sqrt()
    return centred / deviation.masked_fill(deviation < 1e-6, 1.0)


def winsorize(x: Tensor, missing: Tensor | None, sd: float, passes: int = 6) -> Tensor:
    """Columns of [B, n, d] about their medians, with values beyond `sd` standard deviations set to that bound.

    The standard deviation is computed again after each pass, so that a few enormous values (Cauchy noise) cannot set
    the scale of all others. Missing cells become 0.
    """
    x = _about_median(x, missing)
    for _ in range(passes):
        bound = sd * _deviation(x, missing)
        x = torch.clamp(x, -bound, bound)
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


def rescale_rows(
    x: Tensor, missing: Tensor | None, winsorize_sd: float, row_clip_sd: float, discrete: Tensor | None = None
) -> Tensor:
    """Columns of [B, n, d] about their medians in winsorized standard deviations, each row rescaled to `row_clip_sd`.

    A row with a larger value is scaled down as a whole: where effects are proportional to causes it keeps its
    relations, however large its noise, while winsorizing single values breaks them. Missing cells become 0. Columns
    marked in `discrete` [B, 1, d] neither cause rescaling nor are rescaled.
    """

    def in_deviations(part: Tensor, hidden: Tensor | None) -> Tensor:
        deviation = _deviation(winsorize(part, hidden, winsorize_sd), hidden)
        return _about_median(part, hidden) / deviation.masked_fill(deviation < 1e-6, math.inf)

    values = _by_columns(in_deviations, x, missing)
    if discrete is not None:
        values.masked_fill_(discrete, 0.0)
    largest = torch.linalg.vector_norm(values, math.inf, dim=2, keepdim=True)  # [B, n, 1]
    values.mul_(row_clip_sd / largest.clamp_min(row_clip_sd))
    bound = row_clip_sd * (1.0 - 1e-5)  # values that reach the bound must be ties in ranks, whatever their rounding
    values.clamp_(-bound, bound)
    return values if discrete is None else torch.where(discrete, x, values)


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
    """Normal scores, residuals and moments of standardized values x [B, n, d] with intervention and missing masks.

    columns: kinds of the columns and their encodings, for networks that read them.
    rows: how many rows are processed at a time. winsorize_sd, row_clip_sd, add_row_scaled_view: as in `PairConfig`.
    """

    def __init__(
        self,
        x: Tensor,
        u: Tensor,
        missing: Tensor | None = None,
        rows: int | None = None,
        *,
        columns: Columns | None = None,
        winsorize_sd: float = 0.0,
        row_clip_sd: float = 0.0,
        add_row_scaled_view: bool = False,
    ) -> None:
        self.columns = columns
        with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
            x = x.float()
            self.missing = missing if missing is not None and bool(missing.any()) else None
            self._views(x, winsorize_sd, row_clip_sd, add_row_scaled_view)
            self._moments(x, u, rows or x.shape[1], winsorize_sd > 0.0)

    def _views(self, x: Tensor, winsorize_sd: float, row_clip_sd: float, add_row_scaled_view: bool) -> None:
        """The input views of the values: winsorized, normal scores and perhaps row-rescaled; each [B, n, d]."""
        self.observed = _observed(self.missing)
        self.given = x if self.observed is None else x * self.observed
        # Discrete columns have no outliers: winsorizing would erase a rare level.
        discrete = None
        if self.columns is not None:
            discrete = (self.columns.kinds >= ColumnKind.BINARY)[:, None]
            discrete = discrete if bool(discrete.any()) else None

        def scaled(values: Tensor) -> Tensor:
            view = _by_columns(lambda part, hidden: _scaled(part, hidden, winsorize_sd), values, self.missing)
            if discrete is None or not winsorize_sd:
                return view
            return torch.where(discrete, _by_columns(lambda p, h: _scaled(p, h, 0.0), values, self.missing), view)

        rescaled = rescale_rows(x, self.missing, winsorize_sd, row_clip_sd, discrete) if row_clip_sd else x
        first = x if add_row_scaled_view else rescaled
        self.views = [
            scaled(first),
            _by_columns(
                lambda part, hidden: _column_scaled(rank_normal(part, hidden), _observed(hidden)), first, self.missing
            ),
        ]
        if add_row_scaled_view:
            self.views.append(scaled(rescaled))

    def _moments(self, x: Tensor, u: Tensor, rows: int, winsorized: bool) -> None:
        self.u = u  # kept as it is: a mask of bytes takes a quarter of the memory; chunks become float when read
        self.any = u.bool().any(dim=2, keepdim=True)  # whether any variable of the row is intervened on
        self.x = self.views[0] if winsorized else self.given
        self.chunk_slices = [slice(start, start + rows) for start in range(0, x.shape[1], rows)]
        # Rows in which i was intervened on and j observed, and rows in which both were observed: [B, d, d].
        everywhere = torch.ones_like(x[:, :1, :1]).expand_as(x)  # takes no memory
        self.n_intervened = self._products(self.u, everywhere if self.observed is None else self.observed)
        self.any_intervened = bool(u.any())
        self.counts = (
            torch.full((1, 1, 1), float(x.shape[1]), device=x.device)
            if self.observed is None
            else self._products(self.observed, self.observed)
        )
        self.moments, self.precisions = [], []
        eye = torch.eye(x.shape[2], device=x.device)
        for v in self.views:
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
        for piece in self.chunk_slices:
            left = a[:, piece].float() if weight is None else a[:, piece] * weight[:, piece]
            part = left.transpose(1, 2) @ (b[:, piece] if power == 1 else b[:, piece] ** power)
            total = part if total is None else total.add_(part)
        return a.new_zeros(()) if total is None else total

    @torch.no_grad()
    def pair_features(self, pair_z_scores: bool = False) -> Tensor:
        """Fixed statistics of every ordered pair and of its reverse: [B, d, d, pair_features(...)].

        pair_z_scores: also their asinh-scaled z-scores, so that the network need not learn how the precision of a
        statistic depends on the number of rows.
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
                # An intervention may change the variance of i and of its descendants: the variance of j is a feature.
                spread = (square_j - 1.0) * 0.5**0.5
                errors += [(part * self.n_intervened.sqrt()).asinh() for part in (mean_j, cross_j, spread)]
            plain.append(parts)
            sure.append(errors)
        # Features of a third view come last, so that a network can be extended to read it.
        columns = [*plain[:2], *sure[:2], *plain[2:], *sure[2:]]
        here = torch.stack([column for part in columns for column in part], dim=-1).clamp(-CLIP, CLIP)
        d = here.shape[1]
        n_intervened = self.n_intervened.log1p() * 0.25
        size = (self.counts.clamp_min(1.0).log() * 0.25).expand_as(n_intervened)
        own = torch.eye(d, device=here.device).expand_as(n_intervened)
        extra = torch.stack([n_intervened, n_intervened.transpose(1, 2), size, own], dim=-1)
        return torch.cat([here, here.transpose(1, 2), extra, *self._kind_features(d)], dim=-1)

    def _kind_features(self, d: int) -> list[Tensor]:
        """Associations and kinds of both variables of a pair, [B, d, d, .] each."""
        if self.columns is None:
            return []
        association = self.columns.association
        kinds = F.one_hot(self.columns.kinds.long(), len(ColumnKind)).float()  # [B, d, kinds]
        first, second = kinds[:, :, None].expand(-1, d, d, -1), kinds[:, None].expand(-1, d, d, -1)
        return [association, association[..., -1:].transpose(1, 2), first, second]

    def chunks(self, rows: int | None) -> list[Piece]:
        """The rows of each chunk, at most `rows` in each; None: one chunk of all rows.

        Rows with interventions on the same variable come together, which makes sums over them cheap. No sum depends on
        the order of the rows.
        """
        if rows is None:
            return [slice(None)]
        if len(self.u) > 1 or not self.any_intervened:
            return list(self.chunk_slices)
        # `index_select` of a transposed view would copy all of it for every chunk.
        self.views = [view.contiguous() for view in self.views]
        self.x = self.x.contiguous()
        first_target = self.u[0].byte().argmax(dim=1).masked_fill_(~self.any[0, :, 0], -1)  # [n]
        return list(first_target.argsort(stable=True).split(rows))

    def masks(self, piece: Piece) -> tuple[Tensor, Tensor | None]:
        """Interventions and observed cells of a chunk, float [B, n', d]."""
        return _take(self.u, piece).float(), None if self.observed is None else _take(self.observed, piece)

    @torch.no_grad()
    def features(self, piece: Piece) -> Tensor:
        """Cell features [B, n', d, f] of a chunk."""
        with torch.autocast(self.x.device.type, enabled=False):
            u, observed = self.masks(piece)
            values = [_take(v, piece) for v in self.views]
            residuals = [
                v @ precision / precision.diagonal(dim1=1, dim2=2)[:, None].sqrt()
                for v, precisions in zip(values, self.precisions, strict=True)
                for precision in precisions
            ]
            own, two = len(RIDGES), 2  # of the first two views; features of a third come last
            hidden = torch.zeros_like(u) if observed is None else 1.0 - observed
            zero = (_take(self.given, piece) == 0.0).float()  # counts have many ties
            parts = [_take(self.x, piece), *values[:two], *residuals[: two * own]]
            parts += [u, _take(self.any, piece).float().expand_as(u), hidden, zero]
            parts += [*values[two:], *residuals[two * own :]]
            if self.columns is not None:
                kinds = F.one_hot(self.columns.kinds.long(), len(ColumnKind)).float()  # [B, d, kinds]
                parts.append(_take(self.columns.second, piece))
                parts += [kind[:, None].expand_as(u) for kind in kinds.unbind(-1)]
            return torch.stack(parts, dim=-1).clamp_(-CLIP, CLIP)


def _take(values: Tensor, piece: Piece) -> Tensor:
    """The rows of a chunk of [B, n, ...]."""
    return values[:, piece] if isinstance(piece, slice) else values.index_select(1, piece)
