"""Encoding of columns of any kind as numbers: scores of nominal levels, and associations between columns.

A nominal level becomes two numbers: its coordinates on the first two singular vectors of (levels x means of the other
columns), a correspondence analysis of the column against the rest of the table. Associations between
columns of any kinds are squared canonical correlations, marginal and conditional on all other columns. Everything is a
function of sums over rows, so neither the order of rows nor the order of levels matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from presage.columns import ColumnKind
from presage.data.standardize import standardize_real

__all__ = ["ASSOCIATIONS", "Encoded", "encode", "is_nominal"]

ASSOCIATIONS = 5
"""Features of a pair in `Encoded.association`."""
_ROWS_AT_ONCE = 1 << 15
_CLIP = 4.0
_MAX_LEVELS = 24
"""Levels beyond the most frequent ones are pooled into one."""


class Encoded(NamedTuple):
    """Network input for a table with columns of several kinds."""

    x: np.ndarray
    """float32 [n, d]: standardized values; of nominal columns the first score of the level."""
    second: np.ndarray
    """float32 [n, d]: the second score of the level; 0 for all other columns."""
    association: np.ndarray
    """float32 [d, d, ASSOCIATIONS]: marginal and conditional association with their z-scores, degrees of freedom."""


def is_nominal(kinds: np.ndarray) -> np.ndarray:
    """Which columns have levels without an order: bool [d]."""
    return np.asarray(kinds) >= ColumnKind.NOMINAL


def encode(values: np.ndarray, kinds: np.ndarray, missing: np.ndarray | None = None) -> Encoded:
    """Encode a table [n, d] whose nominal columns hold whole-number codes."""
    x = standardize_real(values, missing)
    if missing is not None:
        x = np.where(missing, np.float32(0.0), x)
    second = np.zeros_like(x)
    blocks = _Blocks(values, x, np.asarray(kinds), missing)
    gram = blocks.gram()  # [D, D]
    for j, levels in blocks.nominal.items():
        scores = _level_scores(gram, blocks, j)  # [levels, 2]
        codes = levels.codes
        x[:, j], second[:, j] = scores[codes, 0], scores[codes, 1]
        if missing is not None:
            x[missing[:, j], j] = second[missing[:, j], j] = 0.0
    return Encoded(x, second, _association(gram, blocks, len(x)))


class _Levels(NamedTuple):
    codes: np.ndarray  # uint8 [n], 0 .. levels - 1, the most frequent ones
    basis: np.ndarray  # [levels, levels - 1]: whitened indicator coordinates of each level


class _Blocks:
    """The table with every nominal column expanded to whitened indicator coordinates: D columns in d blocks."""

    def __init__(self, values: np.ndarray, x: np.ndarray, kinds: np.ndarray, missing: np.ndarray | None) -> None:
        self.x, self.missing = x, missing
        self.nominal: dict[int, _Levels] = {}
        widths = np.ones(x.shape[1], dtype=np.intp)
        for j in np.flatnonzero(is_nominal(kinds)):
            present = None if missing is None else ~missing[:, j]
            self.nominal[int(j)] = levels = _levels(values[:, j], present)
            widths[j] = levels.basis.shape[1]
        self.widths = widths
        self.starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
        self.total = int(widths.sum())

    def gram(self) -> np.ndarray:
        """Mean over rows of products of expanded columns: float64 [D, D]; diagonal blocks are the identity."""
        n = len(self.x)
        total = np.zeros((self.total, self.total))
        for at in range(0, n, _ROWS_AT_ONCE):
            rows = slice(at, at + _ROWS_AT_ONCE)
            part = self._expand(rows)
            total += part.T @ part
        return total / max(n, 1)

    def _expand(self, rows: slice) -> np.ndarray:
        if not self.nominal:
            found: np.ndarray = np.clip(self.x[rows], -_CLIP, _CLIP)
            return found
        out = np.empty((len(self.x[rows]), self.total), dtype=np.float32)
        for j, (start, width) in enumerate(zip(self.starts, self.widths, strict=True)):
            levels = self.nominal.get(j)
            if levels is None:
                out[:, start] = np.clip(self.x[rows, j], -_CLIP, _CLIP)
                continue
            out[:, start : start + width] = levels.basis[levels.codes[rows]]
            if self.missing is not None:
                out[self.missing[rows, j], start : start + width] = 0.0
        return out


def _levels(column: np.ndarray, present: np.ndarray | None) -> _Levels:
    """Codes of the levels of a column and their coordinates, orthonormal under the observed frequencies."""
    observed = column if present is None else column[present]
    found, counts = np.unique(observed, return_counts=True)
    if len(found) == 0:
        return _Levels(np.zeros(len(column), dtype=np.uint8), np.zeros((1, 0), dtype=np.float32))
    if len(found) > _MAX_LEVELS:
        kept = np.sort(np.argsort(-counts, kind="stable")[: _MAX_LEVELS - 1])
        pooled = np.full(len(found), _MAX_LEVELS - 1, dtype=np.uint8)
        pooled[kept] = np.arange(_MAX_LEVELS - 1)
        counts = np.bincount(pooled, weights=counts, minlength=_MAX_LEVELS)
    else:
        pooled = np.arange(len(found), dtype=np.uint8)
    codes = pooled[np.clip(np.searchsorted(found, column), 0, len(found) - 1)]
    root = np.sqrt(counts / counts.sum())  # [L]
    # Columns after the first of this orthogonal matrix span what is orthogonal to sqrt(p): centred indicators.
    reflected = np.eye(len(root)) - np.outer(root - _first(root), root - _first(root)) / max(1.0 - root[0], 1e-12)
    return _Levels(codes, (reflected[:, 1:] / root[:, None]).astype(np.float32))


def _first(root: np.ndarray) -> np.ndarray:
    unit = np.zeros_like(root)
    unit[0] = 1.0
    return unit


def _level_scores(gram: np.ndarray, blocks: _Blocks, j: int) -> np.ndarray:
    """Two scores [L, 2] for each level of column j; of mean 0 and variance 1 over the rows, or 0."""
    start, width = int(blocks.starts[j]), int(blocks.widths[j])
    basis = blocks.nominal[j].basis.astype(np.float64)  # [L, L - 1]
    scores = np.zeros((len(basis), 2))
    if width == 0:
        return scores
    cross = np.delete(gram[start : start + width], np.s_[start : start + width], axis=1)  # [L - 1, D - L + 1]
    top = np.linalg.eigh(cross @ cross.T).eigenvectors[:, ::-1][:, :2]  # [L - 1, 1 or 2]
    scores[:, : top.shape[1]] = basis @ top
    # The sign of a singular vector is arbitrary; a positive third moment fixes it for any order of levels.
    frequency = 1.0 / np.maximum((basis**2).sum(axis=1) + 1.0, 1e-12)  # [L]: |basis_l|^2 = 1 / p_l - 1
    third = (frequency[:, None] * scores**3).sum(axis=0)
    return scores * np.where(third < 0.0, -1.0, 1.0)


def _association(gram: np.ndarray, blocks: _Blocks, n: int) -> np.ndarray:
    """Marginal and conditional association of all pairs: float32 [d, d, ASSOCIATIONS]."""
    d, total = len(blocks.widths), blocks.total
    found = np.zeros((d, d, ASSOCIATIONS), dtype=np.float32)
    if total == 0:
        return found
    keep = blocks.widths > 0
    starts = blocks.starts[keep]
    ridge = 0.003 + 0.1 * total / max(n, 1)
    precision = np.linalg.inv(gram + ridge * np.eye(total))
    scaled = precision.copy()
    for start, width in zip(starts, blocks.widths[keep], strict=True):
        own = slice(start, start + width)
        if width == 1:
            root = np.array([[precision[start, start] ** -0.5]])
        else:
            values, vectors = np.linalg.eigh(precision[own, own])
            root = (vectors / np.sqrt(np.maximum(values, 1e-9))) @ vectors.T
        scaled[own] = root @ scaled[own]
        scaled[:, own] = scaled[:, own] @ root
    widths = blocks.widths[keep].astype(np.float64)
    freedom = np.outer(widths, widths)
    rows, columns = np.ix_(keep, keep)
    for k, matrix in enumerate((gram, scaled)):
        square = np.add.reduceat(np.add.reduceat(matrix**2, starts, axis=0), starts, axis=1)  # [d, d]
        share = np.sqrt(square / np.minimum(widths[:, None], widths[None, :]))
        z = np.arcsinh((n * square - freedom) / np.sqrt(2.0 * freedom))
        found[rows, columns, 2 * k] = np.minimum(share, 1.5)
        found[rows, columns, 2 * k + 1] = 0.5 * z
    found[rows, columns, 4] = np.log(widths)[None, :] * 0.5
    found[np.arange(d), np.arange(d), :4] = 0.0
    return found
