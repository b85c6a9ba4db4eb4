"""Routes of edges in a drawing: curves that avoid the boxes of other variables."""

from __future__ import annotations

import numpy as np

__all__ = ["edge_bends"]

_BENDS = (0.0, 0.07, 0.14, 0.21, 0.28, 0.36, 0.46, 0.58, 0.72)
_WEIGHTS = (0.3, 0.7, 0.12, 0.88)  # places of the control point along the edge, tried when its middle does not do
_POINTS = 48  # checked along a curve
_APART = 0.14  # bend of the two curves of a pair with edges in both directions


def edge_bends(positions: np.ndarray, sizes: np.ndarray, edges: np.ndarray, *, stiffness: float = 0.05) -> np.ndarray:
    """Bend of each edge: the smallest one whose curve meets the fewest boxes of other variables.

    positions: [d, 2] centres. sizes: [d, 2] widths and heights of the boxes, with a margin. edges: [m, 2] of indices.
    stiffness: boxes that an edge rather meets than bend by 1. Returns [m, 2]: bend and weight. An edge from a to b is a
    quadratic Bezier curve with its control point at a + weight * (b - a) + bend * (-(b - a)[1], (b - a)[0]).

    >>> places = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    >>> edge_bends(places, np.full((3, 2), 0.4), np.array([[0, 1], [0, 2]])).round(2).tolist()
    [[0.0, 0.5], [0.21, 0.5]]
    """
    positions, half = np.asarray(positions, dtype=np.float64), np.asarray(sizes, dtype=np.float64) / 2.0
    edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    pairs = {(int(i), int(j)) for i, j in edges}
    signed = np.array([sign * bend for bend in _BENDS for sign in ((1.0, -1.0) if bend else (1.0,))])  # [c]
    routes = np.zeros((len(edges), 2))
    for k, (i, j) in enumerate(edges):
        bends = signed[signed >= _APART] if (int(j), int(i)) in pairs else signed
        others = np.delete(np.arange(len(positions)), [i, j])
        ends, boxes = (positions[i], positions[j]), (positions[others], half[others])
        best = (np.inf, 0.0, 0.5)
        for weight in (0.5, *_WEIGHTS):
            cost = _boxes_met(*ends, bends, weight, *boxes) + stiffness * (np.abs(bends) + 0.3 * abs(weight - 0.5))
            found = int(np.argmin(cost))
            best = min(best, (float(cost[found]), float(bends[found]), weight))
            if best[0] < 1.0:
                break
        routes[k] = best[1:]
    return routes


def _boxes_met(
    start: np.ndarray, end: np.ndarray, bends: np.ndarray, weight: float, centres: np.ndarray, half: np.ndarray
) -> np.ndarray:
    """Number of boxes that each curve meets: [c]."""
    along = end - start
    normal = np.array([-along[1], along[0]])
    reach = float(np.abs(bends).max(initial=0.0)) / 2.0 * np.abs(normal)  # a curve goes half-way to its control point
    low, high = np.minimum(start, end) - reach, np.maximum(start, end) + reach
    near = ((centres + half >= low) & (centres - half <= high)).all(axis=1)
    if not near.any():
        return np.zeros(len(bends))
    t = np.linspace(0.0, 1.0, _POINTS)[:, None]
    middle = 2.0 * t * (1.0 - t)
    base = start + (middle * weight + t**2) * along  # [p, 2]
    curves = base + middle * bends[:, None, None] * normal  # [c, p, 2]
    inside = (np.abs(curves[:, :, None] - centres[near]) < half[near]).all(axis=-1)  # [c, p, k]
    met: np.ndarray = inside.any(axis=1).sum(axis=1).astype(np.float64)
    return met
