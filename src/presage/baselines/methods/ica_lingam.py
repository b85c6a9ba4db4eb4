"""LiNGAM by independent component analysis, written from Shimizu et al. (2006).

The package lingam excludes current versions of SciPy, and the copy of it in causal-learn 0.1.4.8 sets one weight too
many to zero before it looks for a causal order: for two variables, the first always causes the second.
"""

from __future__ import annotations

import warnings

import numpy as np

from presage.baselines.api import Estimate, Problem
from presage.baselines.methods.trivial import sort_and_regress
from presage.baselines.orientation import graph_row_to_column
from presage.errors import ConfigError
from presage.graphs.ops import is_acyclic, topological_order

__all__ = ["lingam"]


PARTS = 10
"""Number of parts of the rows by which weights are pruned."""


def lingam(problem: Problem, *, threshold: float, pruning: str) -> Estimate:
    """Causal order by independent components, then each variable regressed on those before it.

    pruning: "blocks" keeps a weight if its mean over consecutive parts of the rows exceeds its standard deviation, as
    the authors' implementation does; "lasso" is an adaptive lasso chosen by BIC. If rows are ordered by
    experiment, weights differ between parts and "blocks" keeps far fewer.
    """
    if pruning not in ("blocks", "lasso"):
        raise ConfigError(f"the pruning of LiNGAM is 'blocks' or 'lasso', not {pruning!r}")
    x = problem.regular()
    order = causal_order(_weights(x, problem.seed))
    if pruning == "blocks":
        return graph_row_to_column(_stable_weights(x, order), threshold)
    place = np.empty(problem.d)
    place[order] = np.arange(problem.d)
    return graph_row_to_column(sort_and_regress(x, place, problem.rng), threshold)


def _stable_weights(x: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Mean weights [cause, effect] over consecutive parts of the rows; 0 where the spread exceeds the mean."""
    n, d = x.shape
    parts = np.array_split(x, max(2, min(PARTS, n // (3 * d))))  # enough rows in each for a regression
    weights = np.stack([_regressions(part, order) for part in parts])  # [parts, d, d]
    mean, spread = weights.mean(axis=0), weights.std(axis=0, ddof=1)
    return np.asarray(np.where(np.abs(mean) > spread, mean, 0.0))


def _regressions(x: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Least squares weights [cause, effect] of each variable on those before it."""
    x = x - x.mean(axis=0)
    weights = np.zeros((x.shape[1], x.shape[1]))
    for place in range(1, len(order)):
        causes, effect = order[:place], order[place]
        weights[causes, effect] = np.linalg.lstsq(x[:, causes], x[:, effect], rcond=None)[0]
    return weights


def _weights(x: np.ndarray, seed: int) -> np.ndarray:
    """Weights [effect, cause] of the linear model: rows of the unmixing matrix, permuted to a large diagonal."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.decomposition import FastICA

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gaussian data does not converge, and has no unmixing to find
        unmixing = FastICA(max_iter=1000, random_state=seed % 2**32, whiten="unit-variance").fit(x).components_
    component, variable = linear_sum_assignment(1.0 / np.maximum(np.abs(unmixing), 1e-12))
    permuted = np.empty_like(unmixing)
    permuted[variable] = unmixing[component]
    return np.asarray(np.eye(len(permuted)) - permuted / np.diagonal(permuted)[:, None])


def causal_order(weights: np.ndarray) -> np.ndarray:
    """The order that remains when the smallest weights [effect, cause] are set to 0 until no cycle is left.

    >>> causal_order(np.array([[0.0, 0.9], [0.1, 0.0]])).tolist()
    [1, 0]
    """
    d = len(weights)
    graph = np.abs(weights).T.copy()  # [cause, effect]
    np.fill_diagonal(graph, 0.0)
    smallest = np.argsort(graph, axis=None)
    # At least d (d + 1) / 2 entries of an acyclic matrix are 0.
    graph.ravel()[smallest[: d * (d + 1) // 2]] = 0.0
    for entry in smallest[d * (d + 1) // 2 :]:
        if is_acyclic(graph):
            break
        graph.ravel()[entry] = 0.0
    return topological_order(graph)
