"""Conversion of other packages' conventions to ours: `matrix[i, j]` means i -> j. No other module converts them.

cpdag: i - j undirected is written as both entries 1.
"""

from __future__ import annotations

import numpy as np

from presage.baselines.api import Estimate
from presage.graphs.ops import project_to_dag

__all__ = [
    "cpdag_row_to_column",
    "from_endpoints",
    "from_pag",
    "graph_row_to_column",
    "probabilities",
    "weights_child_by_parent",
]


def from_endpoints(marks: np.ndarray) -> Estimate:
    """causal-learn: marks[i, j] is the mark at i of the edge between i and j: -1 a tail, 1 an arrowhead, 0 no edge.

    i -> j has a tail at i and a head at j. An edge with two heads is a conflict of PC, with two tails it is
    undirected; both count as undirected.
    """
    edge = (marks != 0) & (marks.T != 0)
    directed = (marks == -1) & (marks.T == 1)
    undirected = edge & (marks == marks.T)
    return Estimate(matrix=directed | undirected, kind="cpdag")


def from_pag(marks: np.ndarray) -> Estimate:
    """causal-learn, FCI: as above, and 2 is a circle, an undetermined mark.

    i -> j and i o-> j become the edge i -> j, i o-o j an undirected one, and i <-> j none: it is a hidden common cause.
    confounded: 1 for i <-> j, 1/2 where undetermined marks allow it, 0 where an end is a tail.
    """
    head, tail = marks == 1, marks == -1
    edge = (marks != 0) & (marks.T != 0)
    confounded = np.where(edge & ~tail & ~tail.T, np.where(head & head.T, 1.0, 0.5), 0.0)
    into_j = edge & ~head & ~tail.T  # no arrowhead at i, no tail at j
    return Estimate(matrix=into_j | (edge & tail & tail.T), kind="cpdag", confounded=confounded)


def cpdag_row_to_column(matrix: np.ndarray) -> Estimate:
    """gies and our own permutation searches: row causes column already, both entries set where undirected."""
    return Estimate(matrix=np.asarray(matrix) != 0, kind="cpdag")


def graph_row_to_column(
    weights: np.ndarray, threshold: float = 0.0, *, score: float | None = None, note: str = ""
) -> Estimate:
    """gcastle, dagma, sdcd and our own: |weights[i, j]| above the threshold means i -> j."""
    return Estimate(matrix=np.abs(np.asarray(weights)) > threshold, kind="graph", score=score, note=note)


def weights_child_by_parent(weights: np.ndarray, threshold: float = 0.0) -> Estimate:
    """lingam: weights[child, parent], transposed; a matrix that is not acyclic keeps its strongest edges."""
    size = np.abs(np.asarray(weights)).T
    return Estimate(matrix=project_to_dag(size, threshold), kind="graph")


def probabilities(samples: np.ndarray, *, score: float | None = None, note: str = "") -> Estimate:
    """dibs: the share of sampled graphs [k, d, d] (row causes column) that contain an edge."""
    return Estimate(
        matrix=np.asarray(samples, dtype=np.float64).mean(axis=0), kind="probabilities", score=score, note=note
    )
