"""Limits on the density of a graph or on the number of parents, enforced by dropping random edges."""

from __future__ import annotations

import numpy as np

__all__ = ["limit_density", "limit_parents"]


def limit_density(rng: np.random.Generator, graph: np.ndarray, max_density: float) -> np.ndarray:
    """Drop random edges so that the expected share of adjacent pairs is at most `max_density`; one edge may remain."""
    m = len(graph)
    edges, most = int(graph.sum()), max(1.0, max_density * m * (m - 1) / 2)
    return graph if edges <= most else graph * (rng.random((m, m)) < most / edges).astype(graph.dtype)


def limit_parents(rng: np.random.Generator, graph: np.ndarray, max_parents: int) -> np.ndarray:
    """Keep at most `max_parents` parents of each variable, chosen at random."""
    if graph.sum(axis=0).max(initial=0) <= max_parents:
        return graph
    score = graph * (1.0 + rng.random(graph.shape))  # parents first, in random order
    rank = np.argsort(np.argsort(-score, axis=0), axis=0)
    kept: np.ndarray = graph * (rank < max_parents).astype(graph.dtype)
    return kept
