"""The only place where values are normalised, for training, prediction and baselines alike.

Both functions take [..., n, d] and return float32 of the same shape; missing cells become 0.
"""

from __future__ import annotations

import numpy as np

from presage.types import Dataset, Kind

__all__ = ["standardize", "standardize_counts", "standardize_dataset", "standardize_real"]


_AT_ONCE = 1 << 22
"""Values of a table that are standardized at once."""


def standardize_real(x: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
    """Each variable to mean 0 and variance 1 over its measured rows; constant variables stay 0.

    >>> standardize_real(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    x = np.asarray(x)
    if x.ndim == 2 and x.size > _AT_ONCE and x.shape[1] > 1:
        return _by_columns(x, missing)
    x = x.astype(np.float64)
    hidden = np.isnan(x) if missing is None else np.isnan(x) | missing
    if hidden.any():
        x = np.where(hidden, 0.0, x)
        count = np.maximum((~hidden).sum(axis=-2, keepdims=True), 1)
        # Dividing by the largest value first keeps sums of squares of heavy-tailed data finite.
        largest = np.abs(x).max(axis=-2, keepdims=True)
        largest[largest == 0.0] = 1.0
        x = x / largest
        mean = x.sum(axis=-2, keepdims=True) / count
        centred = np.where(hidden, 0.0, x - mean)
        deviation = np.sqrt((centred**2).sum(axis=-2, keepdims=True) / count)
    else:
        largest = np.abs(x).max(axis=-2, keepdims=True, initial=0.0)
        largest[largest == 0.0] = 1.0
        x = x / largest
        centred = x - x.mean(axis=-2, keepdims=True) if x.shape[-2] else x
        deviation = np.sqrt(np.mean(centred**2, axis=-2, keepdims=True)) if x.shape[-2] else np.ones_like(largest)
    # After division by the largest value, a spread at rounding level means a constant column.
    constant = deviation < 1e-12
    return np.where(constant, 0.0, centred / np.where(constant, 1.0, deviation)).astype(np.float32)


def _by_columns(x: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
    """`standardize_real` of a large table, a few columns at a time, so that temporaries stay small."""
    out = np.empty(x.shape, dtype=np.float32)
    width = max(1, _AT_ONCE // len(x))
    for start in range(0, x.shape[1], width):
        part = slice(start, start + width)
        out[:, part] = standardize_real(x[:, part], None if missing is None else missing[:, part])
    return out


def standardize_counts(x: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
    """log2 counts per million: zeros stay 0, the others minus the dataset's minimum over its standard deviation.

    Minimum and deviation are taken over all non-zero cells of a dataset (the last two axes), as in the paper.
    """
    x = np.asarray(x, dtype=np.float64)
    hidden = np.isnan(x) if missing is None else np.isnan(x) | missing
    x = np.where(hidden, 0.0, x)
    library = x.sum(axis=-1, keepdims=True)
    present = x > 0
    log_cpm = np.log2(np.where(present, x, 1.0) * 1e6 / np.where(library > 0, library, 1.0))
    axes = (-2, -1)
    count = np.maximum(present.sum(axis=axes, keepdims=True), 1)
    mean = np.where(present, log_cpm, 0.0).sum(axis=axes, keepdims=True) / count
    variance = np.where(present, (log_cpm - mean) ** 2, 0.0).sum(axis=axes, keepdims=True) / count
    least = np.where(present, log_cpm, np.inf).min(axis=axes, keepdims=True, initial=np.inf)
    deviation = np.sqrt(variance)
    scale = np.where(deviation > 1e-12, deviation, 1.0)
    return np.where(present, (log_cpm - np.where(np.isfinite(least), least, 0.0)) / scale, 0.0).astype(np.float32)


def standardize(x: np.ndarray, kind: Kind, missing: np.ndarray | None = None) -> np.ndarray:
    """Standardize values of a kind for a network: float32 [..., n, d]."""
    return standardize_counts(x, missing) if kind == "counts" else standardize_real(x, missing)


def standardize_dataset(dataset: Dataset) -> np.ndarray:
    """Standardize a dataset for a network: float32 [n, d]."""
    return standardize(dataset.x, dataset.kind, dataset.missing if dataset.missing.any() else None)
