"""Kinds of columns of numbers, guessed from their values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from presage.columns import ColumnKind

__all__ = ["looks_like_counts", "numeric_kinds", "row_numbers"]

_CELLS_AT_ONCE = 1 << 22
_MAX_ORDINAL = 10
_ROWS_PER_LEVEL = 5


def looks_like_counts(values: np.ndarray) -> bool:
    """Whether all values are non-negative whole numbers, some above 1, as counts of molecules or events are.

    >>> looks_like_counts(np.array([[0.0, 7.0], [3.0, 0.0]])), looks_like_counts(np.array([[0.0, 1.0], [1.0, 0.0]]))
    (True, False)
    """
    if values.dtype.kind == "b":
        return False
    largest = 0.0
    for part in _pieces(values):
        if values.dtype.kind == "f":
            present = ~np.isnan(part)
            if not np.where(present, part == np.floor(part), True).all():
                return False
            part = np.where(present, part, 0.0)
        if (part < 0).any():
            return False
        largest = max(largest, float(part.max(initial=0)))
    return largest > 1


def numeric_kinds(values: np.ndarray, missing: np.ndarray | None = None, *, one_kind: bool = False) -> np.ndarray:
    """Guess the kind of every column of numbers: int8 [d] of `ColumnKind`.

    Two distinct values: binary. Whole numbers of at least 0, some 0, some above 2: counts. Whole numbers 1, 2, ..., k
    with k from 3 to 10, all of them present and at least 5 rows for each level: ordinal. All others are continuous,
    also whole numbers such as ages or years. one_kind: all columns measure the same thing, so they get one kind.

    >>> numeric_kinds(np.array([[1.0, 0, 0.5], [2.0, 9, 1.5], [2.0, 3, 2.5]])).tolist()
    [2, 1, 0]
    """
    d = values.shape[1]
    kinds = np.zeros(d, dtype=np.int8)
    if len(values) == 0:
        return kinds
    if one_kind:
        if looks_like_counts(values):
            kinds[:] = ColumnKind.COUNT
        elif all(bool(np.isin(part[~np.isnan(part)], (0, 1)).all()) for part in _floats(values, missing)):
            kinds[:] = ColumnKind.BINARY
        return kinds
    at = 0
    for part in _floats(values, missing):
        kinds[at : at + part.shape[1]] = _kinds_of(part)
        at += part.shape[1]
    return kinds


def _kinds_of(part: np.ndarray) -> np.ndarray:
    """Kinds of a few columns, float64 [n, k] with NaN where missing."""
    present = ~np.isnan(part)
    low = np.where(present, part, np.inf).min(axis=0)
    high = np.where(present, part, -np.inf).max(axis=0)
    varying = low < high
    binary = varying & (~present | (part == low) | (part == high)).all(axis=0)
    with np.errstate(invalid="ignore"):
        whole = varying & ~binary & (~present | (part == np.floor(part))).all(axis=0) & np.isfinite(high)
    kinds = np.zeros(part.shape[1], dtype=np.int8)
    kinds[binary] = ColumnKind.BINARY
    kinds[whole & (low == 0) & (high > 2)] = ColumnKind.COUNT
    for j in np.flatnonzero(whole & (low == 1) & (high <= _MAX_ORDINAL)):
        counts = np.bincount(part[present[:, j], j].astype(np.intp))[1:]
        if (counts > 0).all() and counts.sum() >= _ROWS_PER_LEVEL * len(counts):
            kinds[j] = ColumnKind.ORDINAL
    return kinds


def row_numbers(values: np.ndarray, missing: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Which columns hold a different whole number in every row, and which of these are consecutive: bool [d], [d]."""
    n, d = values.shape
    distinct, consecutive = np.zeros(d, dtype=bool), np.zeros(d, dtype=bool)
    at = 0
    for part in _floats(values, missing):
        with np.errstate(invalid="ignore"):
            whole = (part == np.floor(part)).all(axis=0)  # False where a cell is missing
            spread = part.max(axis=0) - part.min(axis=0)
        for j in np.flatnonzero(whole & (spread >= n - 1) & np.isfinite(spread)):
            ordered = np.sort(part[:, j])
            if (ordered[1:] > ordered[:-1]).all():
                distinct[at + j] = True
                consecutive[at + j] = spread[j] == n - 1
        at += part.shape[1]
    return distinct, consecutive


def _pieces(values: np.ndarray) -> list[np.ndarray]:
    """Views of a few columns each, so that no step copies the whole table."""
    n, d = values.shape
    width = max(1, _CELLS_AT_ONCE // max(n, 1))
    return [values[:, at : at + width] for at in range(0, d, width)]


def _floats(values: np.ndarray, missing: np.ndarray | None) -> Iterator[np.ndarray]:
    """The pieces as float64 with NaN where missing, made one at a time."""
    at = 0
    for part in _pieces(values):
        numbers = part.astype(np.float64)
        if missing is not None:
            numbers[missing[:, at : at + part.shape[1]]] = np.nan
        at += part.shape[1]
        yield numbers
