"""Kinds of columns of numbers, and columns that number the rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from presage.columns import ColumnKind, guess_kinds
from presage.inference.inputs.tables import Table

__all__ = ["looks_like_counts", "numeric_kinds", "row_numbers"]

_CELLS_AT_ONCE = 1 << 22


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


def numeric_kinds(table: Table) -> np.ndarray:
    """The kind of every column of numbers: int8 [d] of `ColumnKind`.

    Kinds of a `Dataset` are kept; otherwise `guess_kinds` decides by the values. Columns that all measure the same
    thing, as genes do, get one kind: counts, binary or continuous.
    """
    if table.kinds is not None:
        return table.kinds
    values = table.values
    missing = table.missing
    if values.dtype.kind == "f":
        missing = np.isnan(values) if missing is None else missing | np.isnan(values)
    if not table.one_kind:
        return guess_kinds(values, missing)
    kind = ColumnKind.CONTINUOUS
    if looks_like_counts(values):
        kind = ColumnKind.COUNT
    elif all(bool(np.isin(part[~np.isnan(part)], (0, 1)).all()) for part in _floats(values, missing)):
        kind = ColumnKind.BINARY
    return np.full(values.shape[1], kind, dtype=np.int8)


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
