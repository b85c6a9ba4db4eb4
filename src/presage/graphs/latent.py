"""Latent projection: what a causal graph says about the observed variables when some are hidden."""

from __future__ import annotations

import numpy as np

__all__ = ["hidden_reach", "latent_projection"]


def hidden_reach(graph: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """reach[i, j]: a directed path runs from i to j on which every variable between them is hidden. bool [m, m]."""
    edges: np.ndarray = graph.astype(bool)
    inner = np.flatnonzero(hidden)
    if len(inner) == 0:
        return edges
    # Closure over the hidden variables alone by repeated squaring; float products use fast matrix multiplication.
    closure = (edges[np.ix_(inner, inner)] | np.eye(len(inner), dtype=bool)).astype(np.float32)
    steps = 1
    while steps < len(inner):
        closure = (closure @ closure > 0).astype(np.float32)
        steps *= 2
    into = edges[:, inner].astype(np.float32)
    out = edges[inner, :].astype(np.float32)
    reach: np.ndarray = edges | (into @ closure @ out > 0)
    return reach


def latent_projection(graph: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directed edges int8 [d, d] and confounded pairs bool [d, d] among the observed variables.

    graph: [m, m], row causes column; hidden: bool [m]. i -> j if a directed path from i to j runs through hidden
    variables only, or there is an edge. i and j are confounded if some hidden variable reaches both through hidden
    variables only. Self-loops of the projection (cycles through hidden variables) are left out.

    >>> chain = np.array([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]])
    >>> directed, confounded = latent_projection(chain, np.array([True, False, False, False]))
    >>> directed.tolist(), confounded.astype(int).tolist()
    ([[0, 0, 1], [0, 0, 0], [0, 0, 0]], [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    """
    hidden = np.asarray(hidden, dtype=bool)
    reach = hidden_reach(graph, hidden)
    observed = np.flatnonzero(~hidden)
    directed = reach[np.ix_(observed, observed)].astype(np.int8)
    from_hidden = reach[np.ix_(np.flatnonzero(hidden), observed)].astype(np.float32)  # [h, d]
    confounded = from_hidden.T @ from_hidden > 0
    np.fill_diagonal(directed, 0)
    np.fill_diagonal(confounded, False)
    return directed, confounded
