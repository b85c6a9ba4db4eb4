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
    """Sample x [n, d] with x_j = f_j(parents) + noise_j, and x_j = softness_j x_j + values_j where `mask` is True.

    mask: bool [n, d]; values: [n, d]; softness: [d] between 0 and 1. Without softness all interventions are hard.
    """
    n, d = mask.shape
    order = topological_order(graph).tolist()
    effects, causes = np.nonzero(graph.T)  # sorted by effect
    first = np.searchsorted(effects, np.arange(d + 1)).tolist()
    parents = [causes[first[j] : first[j + 1]] for j in range(d)]
    n_parents = [len(parents[j]) for j in order]
    functions = mechanism.functions(rng, n_parents)
    samplers = noise.samplers(rng, n_parents)
    intervened = _intervened_rows(mask)
    columns = np.empty((d, n))  # transposed, so that each variable is contiguous while sampling
    for j, function, draw in zip(order, functions, samplers, strict=True):
        inputs = columns.take(parents[j], axis=0).T  # [n, p]
        column = columns[j]
        np.add(function(inputs), draw(rng, inputs), out=column)
        if j in intervened:
            rows = intervened[j]
            column[rows] = values[rows, j] + (
                softness[j] * column[rows] if softness is not None and softness[j] else 0.0
            )
    return np.ascontiguousarray(columns.T)


def _intervened_rows(mask: np.ndarray) -> dict[int, np.ndarray]:
    """Interventional rows of every variable that is intervened on at least once."""
    rows, columns = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return {j: rows[columns == j] for j in set(columns.tolist())}
