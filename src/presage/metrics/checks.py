"""What graphs and probabilities must look like before they are compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from presage.errors import DataError

__all__ = ["as_graph", "as_probabilities"]


def as_graph(graph: Any, what: str = "true graph") -> np.ndarray:
    """int8 [d, d] of 0 and 1, or a sentence about what is wrong. Self-loops are refused."""
    array = np.asarray(graph)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] == 0:
        raise DataError(f"the {what} must be a square table, not of shape {array.shape}")
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise DataError(f"the {what} must hold only 0 and 1 (row causes column)")
    if np.diagonal(array).any():
        raise DataError(f"the {what} has a variable that causes itself; set its diagonal to 0")
    return array.astype(np.int8)


def as_probabilities(probabilities: Any, d: int) -> np.ndarray:
    """float64 [d, d] between 0 and 1 with a diagonal of 0, as a copy, or a sentence about what is wrong."""
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
