"""HSIC-gamma: a test of whether i and j are independent given Z, for nonlinear relations.

Both are regressed on additive splines of Z. The Hilbert-Schmidt independence criterion of the residuals is compared
with its gamma approximation under independence (Gretton et al. 2008, A kernel statistical test of independence). The
kernels are Gaussian; their width is the median distance.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

__all__ = ["HsicTests"]

KNOTS = 6
RIDGE = 1e-3
KERNELS_KEPT = 256
"""Kernel matrices are large (n x n) and used repeatedly: the most recent ones are cached."""


class _Kernel(NamedTuple):
    centred: np.ndarray  # [n, n], row and column means subtracted
    level: float  # mean off the diagonal


def _kernel(values: np.ndarray) -> _Kernel:
    values = values.astype(np.float32)
    squares = np.square(values[:, None] - values[None, :])
    positive = squares[squares > 0]
    width = float(np.median(positive)) if positive.size else 1.0
    kernel = np.exp(squares / (-2.0 * width))
    n = len(values)
    level = float((kernel.sum(dtype=np.float64) - n) / (n * (n - 1)))
    rows = kernel.mean(axis=0, dtype=np.float64).astype(np.float32)
    return _Kernel(kernel - rows[None, :] - rows[:, None] + rows.mean(), level)


def _p_value(one: _Kernel, two: _Kernel) -> float:
    from scipy import special

    n = len(one.centred)
    both = one.centred * two.centred
    statistic = float(both.sum(dtype=np.float64)) / n
    squares = np.square(both / 6.0)
    variance = float(squares.sum(dtype=np.float64) - np.trace(squares)) / (n * (n - 1))
    variance *= 72.0 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3))
    mean = (1.0 + one.level * two.level - one.level - two.level) / n
    if mean <= 0.0 or variance <= 0.0:  # a constant
        return 1.0
    return float(special.gammaincc(mean * mean / variance, statistic * mean / (variance * n)))


class HsicTests:
    """Conditional independence among the columns of x [n, d]."""

    def __init__(self, x: np.ndarray) -> None:
        from sklearn.preprocessing import SplineTransformer

        self.x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
        splines = SplineTransformer(n_knots=KNOTS, knots="quantile", include_bias=False, extrapolation="linear")
        # Ranks have no repeated quantiles, whatever the data; the spline of a rank is a spline with fitted knots.
        ranks = np.argsort(np.argsort(self.x, axis=0), axis=0) / max(1, len(x) - 1)
        self.bases = [
            np.column_stack([self.x[:, j], splines.fit_transform(ranks[:, j : j + 1])]) for j in range(x.shape[1])
        ]
        self.p_value = cache(self._p_value)
        self.kernel = lru_cache(maxsize=KERNELS_KEPT)(self._kernel)

    def _residual(self, j: int, given: frozenset[int]) -> np.ndarray:
        if not given:
            return np.asarray(self.x[:, j])
        basis = np.column_stack([np.ones(len(self.x)), *(self.bases[k] for k in sorted(given))])
        gram = basis.T @ basis
        gram[np.diag_indices_from(gram)] += RIDGE * len(basis)
        return np.asarray(self.x[:, j] - basis @ np.linalg.solve(gram, basis.T @ self.x[:, j]))

    def _kernel(self, j: int, given: frozenset[int]) -> _Kernel:
        return _kernel(self._residual(j, given))

    def _p_value(self, i: int, j: int, given: frozenset[int]) -> float:
        if len(self.x) < 6:
            return 1.0
        return _p_value(self.kernel(i, given), self.kernel(j, given))
