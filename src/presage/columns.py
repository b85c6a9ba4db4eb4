"""Kinds of columns of a table."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

__all__ = ["MAX_ORDINAL_LEVELS", "ColumnKind", "guess_kinds"]

MAX_ORDINAL_LEVELS = 10
"""Whole numbers with more distinct values are counts."""


class ColumnKind(IntEnum):
    """What the numbers of a column mean. Codes of discrete kinds are 0, 1, ..., levels - 1."""

    CONTINUOUS = 0
    COUNT = 1
    BINARY = 2
    ORDINAL = 3
    """Codes are ranks."""
    NOMINAL = 4
    """The order of codes means nothing."""
    ENVIRONMENT = 5
    """A nominal context of a row (batch, site, condition) that no other variable causes."""


def guess_kinds(x: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
    """The kind of each column of numbers x [n, d], by its distinct values: int8 [d].

    Two values are binary, 3 to 10 consecutive whole numbers ordinal, other whole numbers of at least 0 counts, all else
    continuous. Numbers are never guessed to be nominal: only their source can tell.
    """
    return np.array([_guess(x[:, j], None if missing is None else missing[:, j]) for j in range(x.shape[1])], np.int8)


def _guess(column: np.ndarray, missing: np.ndarray | None) -> ColumnKind:
    seen = column if missing is None else column[~missing]
    head = seen[:256]
    if len(seen) == 0 or ((head != np.floor(head)).any() and len(np.unique(head)) > 2):
        return ColumnKind.CONTINUOUS  # decided without sorting a long column
    values = np.unique(seen)
    if len(values) <= 2:
        return ColumnKind.BINARY if len(values) == 2 else ColumnKind.CONTINUOUS
    if (values != np.floor(values)).any():
        return ColumnKind.CONTINUOUS
    if len(values) <= MAX_ORDINAL_LEVELS and values[-1] == values[0] + len(values) - 1 and len(seen) >= 5 * len(values):
        return ColumnKind.ORDINAL
    return ColumnKind.COUNT if values[0] >= 0 else ColumnKind.CONTINUOUS
