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
) -> np.ndarray:
    """Values [n, d] of x_j = f_j(parents) + noise_j, with x_j = values where `mask` says it is intervened on."""
    n, d = mask.shape
    columns = np.empty((d, n))  # one contiguous row per variable while sampling
    forced = mask.any(axis=0)
    for j in topological_order(graph):
        parents = np.flatnonzero(graph[:, j])
        inputs = columns[parents].T  # [n, p]
        function = mechanism.function(rng, len(parents))
        draw = noise.sampler(rng, len(parents))
        columns[j] = function(inputs) + draw(rng, inputs)
        if forced[j]:
            rows = mask[:, j]
            columns[j, rows] = values[rows, j]
    return np.ascontiguousarray(columns.T)
