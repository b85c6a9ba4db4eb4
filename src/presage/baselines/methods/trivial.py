"""Methods without causal reasoning. A benchmark on which they do well is too easy."""

from __future__ import annotations

import numpy as np

from presage.baselines.api import Estimate, Problem
from presage.baselines.orientation import graph_row_to_column

__all__ = ["empty", "r2_scores", "r2_sort", "random_graph", "sort_and_regress", "variance_sort"]


def empty(problem: Problem) -> Estimate:
    """No edges."""
    return graph_row_to_column(np.zeros((problem.d, problem.d)))


def random_graph(problem: Problem, *, edges_per_node: float) -> Estimate:
    """A random acyclic graph with the expected number of edges."""
    d = problem.d
    share = min(1.0, 2.0 * edges_per_node / max(d - 1, 1))
    graph = np.triu(problem.rng.random((d, d)) < share, k=1)
    order = problem.rng.permutation(d)
    return graph_row_to_column(graph[np.ix_(order, order)])


def sort_and_regress(x: np.ndarray, key: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Weights [d, d] of regressing each variable on those with a smaller key, with an adaptive lasso chosen by BIC."""
    from sklearn.linear_model import LassoLarsIC, LinearRegression

    d = x.shape[1]
    weights = np.zeros((d, d))
    order = np.lexsort((rng.permutation(d), key))  # ties in random order
    for place in range(1, d):
        target, causes = order[place], order[:place]
        if np.ptp(x[:, target]) == 0.0:  # a constant has no causes, and no noise to choose by
            continue
        inputs = x[:, causes]
        scale = np.abs(LinearRegression().fit(inputs, x[:, target]).coef_)
        try:
            lasso = LassoLarsIC(criterion="bic").fit(inputs * scale, x[:, target])
        except ValueError:  # fewer rows than variables leave no noise estimate
            lasso = LassoLarsIC(criterion="bic", noise_variance=float(x[:, target].var())).fit(
                inputs * scale, x[:, target]
            )
        weights[causes, target] = lasso.coef_ * scale
    return weights


def variance_sort(problem: Problem) -> Estimate:
    """Causal order by variance of the data as measured (standardized data all have variance 1)."""
    return graph_row_to_column(sort_and_regress(problem.x, problem.raw.var(axis=0), problem.rng))


def r2_sort(problem: Problem) -> Estimate:
    """Causal order by how well each variable is predicted linearly from all others."""
    return graph_row_to_column(sort_and_regress(problem.x, r2_scores(problem.regular()), problem.rng))


def r2_scores(x: np.ndarray) -> np.ndarray:
    """Share of each variable's variance explained by all others, from the inverse correlation matrix: [d]."""
    if x.shape[1] == 1:
        return np.zeros(1)
    return 1.0 - 1.0 / np.diagonal(np.linalg.pinv(np.corrcoef(x, rowvar=False), hermitian=True))
