"""Node positions of a layered drawing: causes above effects, few crossings, isolated variables below."""

from __future__ import annotations

import numpy as np

from presage.graphs.ops import topological_order

__all__ = ["layered_positions"]


def layered_positions(graph: np.ndarray, aspect: float = 1.6) -> np.ndarray:
    """Positions [d, 2] of an acyclic graph's variables; x to the right, y upwards, about one unit apart.

    aspect: boxes side by side for each row of boxes; wider layers are split into several rows.

    Layers are assigned by longest path. Within a layer, variables are sorted by the mean position of their neighbours
    in alternating sweeps down and up (barycentre heuristic). Variables without edges are placed in rows below.

    >>> layered_positions(np.array([[0, 1], [0, 0]]))[:, 1].tolist()
    [1.0, 0.0]
    """
    graph = np.asarray(graph) != 0
    d = len(graph)
    linked = graph.any(axis=0) | graph.any(axis=1)
    layer = _layers(graph)
    width = max(3, int(np.ceil(np.sqrt(aspect * max(int(linked.sum()), 1)))))
    rows = _split_wide([np.flatnonzero(linked & (layer == k)).tolist() for k in range(layer.max(initial=0) + 1)], width)
    position = _order(rows, graph)
    out = np.zeros((d, 2))
    for k, row in enumerate(rows):
        for j in row:
            out[j] = position[j], -k
    _spread_rows(rows, graph, out)
    _place_isolated(np.flatnonzero(~linked).tolist(), len(rows), out)
    out[:, 1] -= out[:, 1].min(initial=0.0)
    return out


def _layers(graph: np.ndarray) -> np.ndarray:
    layer = np.zeros(len(graph), dtype=np.int64)
    order = topological_order(graph)
    for j in order:
        causes = np.flatnonzero(graph[:, j])
        layer[j] = layer[causes].max() + 1 if len(causes) else 0
    for j in order[::-1]:  # pull roots down to just above their first effect: shorter edges
        effects = np.flatnonzero(graph[j])
        if len(effects):
            layer[j] = max(layer[j], layer[effects].min() - 1)
    return layer


def _split_wide(rows: list[list[int]], width: int) -> list[list[int]]:
    """Split layers into rows of at most `width`; a layer has no inner edges, so edges still point downwards."""
    out: list[list[int]] = []
    for row in rows:
        pieces = max(1, -(-len(row) // width))
        out += [row[k::pieces] for k in range(pieces) if row[k::pieces]]
    return out


def _order(rows: list[list[int]], graph: np.ndarray) -> dict[int, float]:
    """Horizontal positions after twelve barycentre sweeps; sorts the rows in place."""
    near = graph | graph.T
    position = {j: k - (len(row) - 1) / 2 for row in rows for k, j in enumerate(row)}
    for sweep in range(12):
        for row in rows if sweep % 2 == 0 else rows[::-1]:

            def key(j: int) -> float:
                around = [position[int(i)] for i in np.flatnonzero(near[j])]
                return float(np.mean(around)) if around else position[j]

            row.sort(key=key)
            for k, j in enumerate(row):
                position[j] = k - (len(row) - 1) / 2
    return position


def _spread_rows(rows: list[list[int]], graph: np.ndarray, out: np.ndarray) -> None:
    """Stretch rows to the full width and shift alternate rows slightly, so that edges do not cross boxes."""
    widest = max((len(row) for row in rows), default=1)
    for k, row in enumerate(rows):
        step = 1.0 if len(row) < 2 else min(2.2, max(1.0, (widest - 1) / (len(row) - 1)))
        for j in row:
            out[j, 0] = out[j, 0] * step + (0.17 if k % 2 else -0.17) * (len(rows) > 2)
    if not rows:
        return
    # A row with a single box is centred below its causes.
    for k, row in enumerate(rows):
        causes = np.flatnonzero(graph[:, row[0]])
        if k and len(row) == 1 and len(causes):
            out[row[0], 0] = out[causes, 0].mean() + (0.45 if k % 2 else -0.45)


def _place_isolated(isolated: list[int], below: int, out: np.ndarray) -> None:
    if not isolated:
        return
    linked = out[:, 0]
    span = max(float(linked.max() - linked.min()), 3.0) if below else np.ceil(np.sqrt(2 * len(isolated)))
    per_row = max(1, int(span) + 1)
    middle = float((linked.max() + linked.min()) / 2) if below else 0.0
    gap = 0.4 if below else 0.0
    for k, j in enumerate(isolated):
        in_row = min(per_row, len(isolated) - (k // per_row) * per_row)
        out[j] = middle + k % per_row - (in_row - 1) / 2, -(below + gap + k // per_row)
