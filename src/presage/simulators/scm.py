"""Ancestral sampling of a structural causal model."""

from __future__ import annotations

import numpy as np

from presage.graphs.ops import topological_order
from presage.simulators.mechanisms import Mechanism
from presage.simulators.noise import Noise

__all__ = ["sample_scm"]


def sample_scm(
    rng: np.random.Generator,
    graph: np.ndarray,
    mechanism: Mechanism,
    noise: Noise,
    mask: np.ndarray,
    values: np.ndarray,
    softness: np.ndarray | None = None,
) -> np.ndarray:
    """Values [n, d] of x_j = f_j(parents) + noise_j, with x_j = values where `mask` says it is intervened on.

    softness: how much of what x_j would have been is added there, for each variable [d]; nothing, unless given.
    """
    n, d = mask.shape
    order = topological_order(graph).tolist()
    effects, causes = np.nonzero(graph.T)  # sorted by effect
    first = np.searchsorted(effects, np.arange(d + 1)).tolist()
    parents = [causes[first[j] : first[j + 1]] for j in range(d)]
    n_parents = [len(parents[j]) for j in order]
    functions = mechanism.functions(rng, n_parents)
    samplers = noise.samplers(rng, n_parents)
    forced = _forced_rows(mask)
    columns = np.empty((d, n))  # one contiguous row per variable while sampling
    for j, function, draw in zip(order, functions, samplers, strict=True):
        inputs = columns.take(parents[j], axis=0).T  # [n, p]
        column = columns[j]
        np.add(function(inputs), draw(rng, inputs), out=column)
        if j in forced:
            rows = forced[j]
            column[rows] = values[rows, j] + (
                softness[j] * column[rows] if softness is not None and softness[j] else 0.0
            )
    return np.ascontiguousarray(columns.T)


def _forced_rows(mask: np.ndarray) -> dict[int, np.ndarray]:
    """Rows in which a variable is intervened on, for the variables that are so anywhere."""
    rows, columns = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return {j: rows[columns == j] for j in set(columns.tolist())}
