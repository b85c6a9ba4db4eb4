"""Calibration: whether edges predicted with probability p exist in a fraction p of the cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from presage.errors import DataError

__all__ = ["BINS", "CalibrationCurve", "calibration_curve", "ece"]

BINS = 10
"""Number of bins in the paper."""


@dataclass(frozen=True, kw_only=True)
class CalibrationCurve:
    """One entry per bin: mean predicted probability, fraction of true edges, number of pairs. Empty bins hold NaN."""

    predicted: np.ndarray
    empirical: np.ndarray
    count: np.ndarray

    @property
    def ece(self) -> float:
        """Expected calibration error: the mean distance from the diagonal, weighted by the pairs in each bin."""
        filled = self.count > 0
        gap = np.abs(self.empirical[filled] - self.predicted[filled])
        return float((gap * self.count[filled]).sum() / self.count.sum())


def calibration_curve(
    true_graphs: np.ndarray | Sequence[np.ndarray],
    probabilities: np.ndarray | Sequence[np.ndarray],
    *,
    bins: int = BINS,
) -> CalibrationCurve:
    """Calibration curve of one prediction, or of several predictions pooled (graphs may differ in size).

    Bin m holds probabilities in [(m - 1) / bins, m / bins); the last bin includes 1.

    >>> curve = calibration_curve(np.array([[0, 1], [0, 0]]), np.array([[0.0, 0.75], [0.25, 0.0]]), bins=2)
    >>> curve.count.tolist(), curve.empirical.tolist(), round(curve.ece, 4)
    ([3, 1], [0.0, 1.0], 0.125)
    """
    if bins < 1:
        raise DataError(f"the number of bins must be at least 1, not {bins!r}")
    truth = _flat(true_graphs) != 0
    predicted = _flat(probabilities)
    if truth.shape != predicted.shape or len(truth) == 0:
        raise DataError("true graphs and predictions must have the same sizes and must not be empty")
    # Compare with the bin edges: predicted * bins would round some probabilities into the next bin.
    which = np.searchsorted(np.arange(1, bins) / bins, predicted, side="right")
    count = np.bincount(which, minlength=bins)
    filled = np.maximum(count, 1)
    empty_is_nan = np.where(count > 0, 1.0, np.nan)
    return CalibrationCurve(
        predicted=np.bincount(which, weights=predicted, minlength=bins) / filled * empty_is_nan,
        empirical=np.bincount(which, weights=truth, minlength=bins) / filled * empty_is_nan,
        count=count,
    )


def ece(true_graph: np.ndarray, probabilities: np.ndarray, *, bins: int = BINS) -> float:
    """Expected calibration error of one prediction."""
    return calibration_curve(true_graph, probabilities, bins=bins).ece


def _flat(matrices: np.ndarray | Sequence[np.ndarray]) -> np.ndarray:
    if isinstance(matrices, np.ndarray):
        return matrices.ravel().astype(np.float64)
    arrays = [np.asarray(matrix, dtype=np.float64).ravel() for matrix in matrices]
    return np.concatenate(arrays) if arrays else np.empty(0)
