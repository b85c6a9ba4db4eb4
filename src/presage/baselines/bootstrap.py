"""The nonparametric DAG bootstrap: edge probabilities for methods that return a single graph."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from presage.baselines.api import EstimateKind
from presage.metrics.structure import orient_favourably
from presage.rng import Stream, generator
from presage.types import Dataset

__all__ = ["edge_probabilities", "resamples"]


def resamples(data: Dataset, k: int, *, seed: int) -> Iterator[Dataset]:
    """k datasets of the same rows drawn with replacement; targets and annotations go with their rows."""
    for number in range(k):
        rows = generator(seed, Stream.ANSWER, 1, number).integers(data.n, size=data.n)
        yield data.take(np.sort(rows))


def edge_probabilities(matrices: np.ndarray, kind: EstimateKind, true_graph: np.ndarray | None = None) -> np.ndarray:
    """The share of the estimates [k, d, d] that contain each edge: [d, d].

    Each equivalence class is oriented in favour of the true graph, as for a single estimate. Without a true graph, an
    undirected edge counts half in each direction.

    >>> edge_probabilities(np.array([[[0, 1], [1, 0]], [[0, 1], [0, 0]]]), "cpdag").tolist()
    [[0.0, 0.75], [0.25, 0.0]]
    """
    matrices = np.asarray(matrices, dtype=np.float64)
    if kind == "cpdag":
        if true_graph is None:
            both = matrices * matrices.transpose(0, 2, 1)
            matrices = matrices - 0.5 * both
        else:
            matrices = np.stack([orient_favourably(true_graph, matrix) for matrix in matrices]).astype(np.float64)
    return np.asarray(matrices.mean(axis=0))
