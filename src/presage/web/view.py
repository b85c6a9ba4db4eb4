"""What the page shows of a result: which edges, where, and in which class. Numbers come from `Result` and `metrics`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from presage import metrics
from presage.errors import ConfigError
from presage.graphs.layout import layered_positions
from presage.graphs.ops import project_to_dag, topological_order
from presage.graphs.routing import edge_routes
from presage.inference.knowledge import Knowledge
from presage.inference.result import Result

__all__ = [
    "MANY",
    "MAX_DRAWN",
    "View",
    "causal_order",
    "confounded_pairs",
    "elements",
    "neighbourhood",
    "node_positions",
    "scores",
    "short",
    "uncertain",
]

MAX_DRAWN = 600
MANY = 40
"""With more variables than this, variables without edges are not drawn and the heat map is ordered and thinned."""
_BOX_HEIGHT = 28.0


@dataclass(frozen=True, kw_only=True)
class View:
    """The edges to show: those above a threshold, or the k most probable; acyclic or not."""

    threshold: float = 0.5
    top: int | None = None
    acyclic: bool = False

    def limit(self, result: Result) -> float:
        """The threshold; for the k most probable edges, the probability of the next one."""
        if self.top is None:
            return self.threshold
        if self.top < 1:
            raise ConfigError("show at least 1 edge")
        ranked = result.top(self.top + 1)
        return float(ranked["probability"].iloc[-1]) if len(ranked) > self.top else 0.0

    def graph(self, result: Result) -> np.ndarray:
        """The edges shown: int8 [d, d]."""
        return result.adjacency(self.limit(result), self.acyclic)


def _layers(result: Result, view: View) -> np.ndarray:
    return project_to_dag(np.where(view.graph(result) != 0, result.matrix, 0.0))


def node_positions(result: Result, view: View) -> list[tuple[float, float]]:
    """Positions in pixels for a layered drawing of the edges, causes above effects."""
    layers = _layers(result, view)
    many = len(result.names) > MANY
    places = layered_positions(layers, aspect=0.8 if many else 1.6)
    linked = layers.any(axis=0) | layers.any(axis=1)
    widest = max((_box_width(name) for name in result.names), default=40.0)
    across = widest + 30.0 if many else max(78.0, widest + 40.0)  # gaps for edges between the boxes of a row
    drawn = places[linked] if many and linked.any() else places
    wide, high = np.ptp(drawn, axis=0) if len(drawn) else (1.0, 1.0)
    shape = 0.95 if many else 1.3  # width by height of the place for the graph
    down = np.clip(across * wide / shape / max(float(high), 1.0), 72.0, 120.0)  # long chains are drawn closer
    return [(float(across * x), float(-down * y)) for x, y in places]


def causal_order(result: Result, view: View) -> list[int]:
    """Variables from causes to effects: a topological order of the edges shown."""
    return [int(j) for j in topological_order(_layers(result, view))]


def neighbourhood(graph: np.ndarray, j: int) -> list[int]:
    """A variable with its direct causes and effects, sorted."""
    near = np.asarray(graph[j] != 0) | np.asarray(graph[:, j] != 0)
    near[j] = True
    return [int(k) for k in np.flatnonzero(near)]


def confounded_pairs(result: Result, limit: float) -> list[tuple[int, int, float]]:
    """Pairs i < j whose probability of a hidden common cause is above the limit, most probable first."""
    place = {name: j for j, name in enumerate(result.names)}
    return [(place[a], place[b], p) for a, b, p in result.confounded_pairs(limit)]


def elements(
    result: Result,
    view: View,
    places: list[tuple[float, float]],
    *,
    truth: np.ndarray | None = None,
    known: Knowledge | None = None,
) -> list[dict[str, Any]]:
    """Nodes and edges for Cytoscape; with a true graph, edges have the class right, extra or missed."""
    graph = view.graph(result)
    hidden = confounded_pairs(result, max(view.limit(result), 0.5))[:MAX_DRAWN]
    shown = (graph != 0) if truth is None else (graph != 0) | (truth != 0)
    linked = np.asarray(shown.any(axis=0) | shown.any(axis=1))
    for i, j, _ in hidden:
        linked[[i, j]] = True
    roots = set(known.roots) if known else set()
    nodes: list[dict[str, Any]] = []
    for j, name in enumerate(result.names):
        if not linked[j] and len(result.names) > MANY and name not in roots:
            continue
        classes = [c for c, on in (("lone", not linked[j]), ("root", name in roots)) if on]
        nodes.append(
            {
                "data": {"id": f"n{j}", "label": short(name), "name": name, "wide": _box_width(name)},
                "position": {"x": places[j][0], "y": places[j][1]},
                "classes": " ".join(classes),
            }
        )
    pairs = sorted(np.argwhere(shown).tolist(), key=lambda edge: -result.matrix[edge[0], edge[1]])[:MAX_DRAWN]
    routes = _routes(result, places, pairs + [[i, j] for i, j, _ in hidden], linked)
    required = set(known.required) if known else set()
    thin = float(np.clip(80 / max(len(routes), 1), 0.45, 1.0))  # many edges: finer lines
    edges = []
    for (i, j), route in zip(pairs, routes, strict=False):
        marks = []
        if truth is not None:
            marks.append(("right" if truth[i, j] else "extra") if graph[i, j] else "missed")
        elif result.effect is not None and np.isfinite(result.effect[i, j]):
            marks.append("positive" if result.effect[i, j] >= 0 else "negative")
        if (result.names[i], result.names[j]) in required:
            marks.append("required")
        edges.append(_edge(f"e{i}-{j}", i, j, float(result.matrix[i, j]), route, thin, marks))
    for (i, j, p), route in zip(hidden, routes[len(pairs) :], strict=True):
        edges.append(_edge(f"h{i}-{j}", i, j, p, route, thin, ["hidden"]))
    return nodes + edges


def _edge(key: str, i: int, j: int, p: float, route: np.ndarray, thin: float, marks: list[str]) -> dict[str, Any]:
    data = {
        "id": key,
        "source": f"n{i}",
        "target": f"n{j}",
        "i": i,
        "j": j,
        "p": round(p, 4),
        "bends": route[:, 0].round(1).tolist(),
        "weights": route[:, 1].round(3).tolist(),
        "wide": round(thin * (1.0 + 4.0 * p), 2),
    }
    return {"data": data, "classes": " ".join(marks)}


def _routes(
    result: Result, places: list[tuple[float, float]], pairs: list[Any], linked: np.ndarray
) -> list[np.ndarray]:
    """Control points [k, 2] of each edge for Cytoscape: pixels from the straight line, share along it."""
    if not pairs:
        return []
    positions, edges = np.array(places), np.array(pairs)
    sizes = np.array([(_box_width(name) + 10.0, _BOX_HEIGHT + 12.0) for name in result.names])
    if len(result.names) > MANY:
        sizes[~linked] = 0.0  # not drawn
    length = np.hypot(*(positions[edges[:, 1]] - positions[edges[:, 0]]).T)
    routes = edge_routes(positions, sizes, edges)
    return [route * (far, 1.0) for route, far in zip(routes, length, strict=True)]


def uncertain(result: Result, k: int = 8) -> list[tuple[int, int, float]]:
    """The k ordered pairs whose probability lies closest to one half."""
    distance = np.abs(result.matrix - 0.5)
    np.fill_diagonal(distance, np.inf)
    order = np.argsort(distance, axis=None, kind="stable")[:k]
    pairs = [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, distance.shape), strict=True)]
    return [(i, j, float(result.matrix[i, j])) for i, j in pairs if i != j and 0.02 < result.matrix[i, j] < 0.98]


def scores(result: Result, truth: np.ndarray, threshold: float) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each metric against the true graph."""
    found = metrics.evaluate(truth, result.matrix, threshold=min(threshold, 0.999999))
    rows = [
        ("AUPRC", "auprc", "area under precision and recall; 1 is best"),
        ("AUROC", "auroc", "area under the ROC curve; 1 is best"),
        ("F1", "f1", "of the edges above the threshold; 1 is best"),
        ("precision", "precision", "share of the predicted edges that are true"),
        ("recall", "recall", "share of the true edges that are predicted"),
        ("SHD", "shd", "edges to add, remove or reverse; 0 is best"),
        ("SID", "sid", "interventional distributions that would be wrong; 0 is best"),
        ("ECE", "ece", "expected calibration error of the probabilities; 0 is best"),
    ]
    return [(label, _score(found[key]), meaning) for label, key, meaning in rows]


def _score(value: Any) -> str:
    if isinstance(value, float) and np.isnan(value):
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def short(name: str, limit: int = 14) -> str:
    """A name that fits on a label."""
    return name if len(name) <= limit else name[: limit - 1] + "…"


def _box_width(name: str) -> float:
    return 16.0 + 8.2 * len(short(name))
