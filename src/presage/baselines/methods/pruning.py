"""Preliminary neighbour selection before, and pruning by additive regressions after, a search for a graph."""

from __future__ import annotations

import numpy as np

__all__ = ["neighbourhoods", "prune"]


def neighbourhoods(x: np.ndarray, threshold: float, *, seed: int) -> np.ndarray:
    """Candidate causes [d, d] bool: importance in randomised trees above `threshold` times the mean importance."""
    from sklearn.ensemble import ExtraTreesRegressor

    d = x.shape[1]
    chosen = np.zeros((d, d), dtype=bool)
    for j in range(d):
        others = np.delete(np.arange(d), j)
        if len(others) == 0 or x[:, j].std() == 0.0:
            continue
        forest = ExtraTreesRegressor(n_estimators=60, min_samples_leaf=5, random_state=seed % 2**32)
        importance = forest.fit(x[:, others], x[:, j]).feature_importances_
        chosen[others, j] = importance > threshold * importance.mean()
    return chosen


def _basis(x: np.ndarray, pieces: int = 6) -> np.ndarray:
    """Cubic splines [n, k] of one variable with knots at its quantiles, centred; k is 1 for few distinct values."""
    from scipy.interpolate import BSpline

    inner = np.unique(np.quantile(x, np.linspace(0.0, 1.0, pieces + 1)))
    if len(inner) < 3:
        return np.asarray(x - x.mean())[:, None]
    knots = np.concatenate([np.repeat(inner[0], 3), inner, np.repeat(inner[-1], 3)])
    columns = BSpline.design_matrix(np.clip(x, inner[0], inner[-1]), knots, 3).toarray()[:, 1:]
    return np.asarray(columns - columns.mean(axis=0))


def prune(x: np.ndarray, graph: np.ndarray, cutoff: float) -> np.ndarray:
    """Keep an edge i -> j if dropping the spline of i from the additive regression of j is significant (F-test)."""
    from scipy import special

    n, d = x.shape
    kept = np.array(graph, dtype=bool)
    basis = [_basis(x[:, i]) for i in range(d)]
    for j in range(d):
        parents = np.flatnonzero(kept[:, j])
        target = x[:, j] - x[:, j].mean()
        full = _residual(target, [basis[i] for i in parents])
        freedom = n - 1 - sum(basis[i].shape[1] for i in parents)
        if freedom < 1:
            continue
        for i in parents:
            less = _residual(target, [basis[k] for k in parents if k != i])
            terms = basis[i].shape[1]
            ratio = max(less - full, 0.0) / terms / max(full / freedom, 1e-300)
            kept[i, j] = special.fdtrc(terms, freedom, ratio) < cutoff
    return kept


def _residual(target: np.ndarray, blocks: list[np.ndarray]) -> float:
    """Residual sum of squares of a least squares fit."""
    if not blocks:
        return float(target @ target)
    design = np.hstack(blocks)
    rest = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return float(rest @ rest)
