"""Validation of graphs and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from presage.errors import DataError

__all__ = ["as_graph", "as_probabilities"]


def as_graph(graph: Any, what: str = "true graph") -> np.ndarray:
    """Validate a 0/1 adjacency matrix without self-loops: int8 [d, d], or `DataError`."""
    array = np.asarray(graph)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] == 0:
        raise DataError(f"the {what} must be a square matrix, not of shape {array.shape}")
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise DataError(f"the {what} must hold only 0 and 1 (row causes column)")
    if np.diagonal(array).any():
        raise DataError(f"the {what} has a variable that causes itself; set its diagonal to 0")
    return array.astype(np.int8)


def as_probabilities(probabilities: Any, d: int) -> np.ndarray:
    """Validate edge probabilities: a float64 copy [d, d] with zero diagonal, or `DataError`."""
    array = np.asarray(probabilities)
    if array.shape != (d, d):
        raise DataError(f"the true graph has {d} variables, but the prediction has shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise DataError(f"the prediction must hold numbers between 0 and 1, not {array.dtype}")
    array = array.astype(np.float64)  # a copy: the diagonal is cleared below
    np.fill_diagonal(array, 0.0)
    if not ((array >= 0.0) & (array <= 1.0)).all():  # NaN fails both
        raise DataError("the prediction must hold numbers between 0 and 1 and no missing values")
    return array
