"""A result as figures and lists. Numbers come from `Result` and `metrics`; positions and colours are chosen here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from presage import metrics
from presage.errors import ConfigError
from presage.graphs.layout import layered_positions
from presage.graphs.ops import project_to_dag
from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.types import Dataset

__all__ = [
    "STYLESHEET",
    "View",
    "elements",
    "heat_figure",
    "node_positions",
    "pair_figure",
    "scores",
    "uncertain",
    "variable_figure",
]

INK, SOFT, LINE, BLUE = "#1f2a37", "#6b7686", "#e3e8ef", "#2f6fad"
SCALE = ["#ffffff", "#c9d8ea", "#7fa8d1", "#2f6fad", "#0b3c6f"]
RIGHT, EXTRA, MISSED = "#2e8b57", "#d9822b", "#b03a48"
MAX_DRAWN = 600
MAX_POINTS = 1500
_LABELLED = 60


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


def node_positions(result: Result, view: View) -> list[tuple[float, float]]:
    """Positions in pixels for a layered drawing of the edges, causes above effects."""
    graph = view.graph(result)
    places = layered_positions(project_to_dag(np.where(graph != 0, result.matrix, 0.0)))
    longest = max((len(_short(name)) for name in result.names), default=4)
    across = max(78.0, 16.0 + 9.0 * longest)
    return [(float(across * x), float(-96.0 * y)) for x, y in places]


def elements(
    result: Result,
    view: View,
    places: list[tuple[float, float]],
    *,
    truth: np.ndarray | None = None,
    known: Knowledge | None = None,
    chosen: tuple[int, ...] = (),
) -> list[dict[str, Any]]:
    """Nodes and edges for Cytoscape; with a true graph, edges have the class right, extra or missed."""
    graph = view.graph(result)
    both = graph if truth is None else graph + truth
    linked = np.asarray(both.any(axis=0) | both.any(axis=1))
    roots = set(known.roots) if known else set()
    nodes: list[dict[str, Any]] = []
    for j, name in enumerate(result.names):
        classes = [c for c, on in (("lone", not linked[j]), ("root", name in roots), ("chosen", chosen == (j,))) if on]
        label = _short(name)
        nodes.append(
            {
                "data": {"id": f"n{j}", "label": label, "name": name, "wide": 18 + 8.2 * len(label)},
                "position": {"x": places[j][0], "y": places[j][1]},
                "classes": " ".join(classes),
            }
        )
    shown = graph != 0
    if truth is not None:
        shown = shown | (truth != 0)
    pairs = sorted(np.argwhere(shown).tolist(), key=lambda edge: -result.matrix[edge[0], edge[1]])[:MAX_DRAWN]
    required = set(known.required) if known else set()
    edges = []
    for i, j in pairs:
        marks = []
        if truth is not None:
            marks.append(("right" if truth[i, j] else "extra") if graph[i, j] else "missed")
        if (result.names[i], result.names[j]) in required:
            marks.append("required")
        if chosen == (i, j):
            marks.append("chosen")
        p = float(result.matrix[i, j])
        edges.append(
            {
                "data": {"id": f"e{i}-{j}", "source": f"n{i}", "target": f"n{j}", "i": i, "j": j, "p": round(p, 4)},
                "classes": " ".join(marks),
            }
        )
    return nodes + edges


STYLESHEET: list[dict[str, Any]] = [
    {
        "selector": "node",
        "style": {
            "shape": "round-rectangle",
            "label": "data(label)",
            "width": "data(wide)",
            "height": 28,
            "background-color": "#ffffff",
            "border-width": 1.5,
            "border-color": BLUE,
            "color": INK,
            "font-size": 14,
            "font-family": "system-ui, sans-serif",
            "text-valign": "center",
            "text-halign": "center",
        },
    },
    {
        "selector": "node.lone",
        "style": {"border-color": "#d5dbe3", "background-color": "#f4f6f9", "color": SOFT},
    },
    {"selector": "node.root", "style": {"border-style": "double", "border-width": 5}},
    {"selector": "node.chosen", "style": {"background-color": "#fff3d6"}},
    {
        "selector": "edge",
        "style": {
            "curve-style": "bezier",
            "control-point-step-size": 36,
            "width": "mapData(p, 0, 1, 1, 5)",
            "line-color": "mapData(p, 0, 1, #d7e2ef, #0b3c6f)",
            "target-arrow-color": "mapData(p, 0, 1, #d7e2ef, #0b3c6f)",
            "target-arrow-shape": "triangle",
            "arrow-scale": 1.1,
        },
    },
    *(
        {"selector": f"edge.{kind}", "style": {"line-color": colour, "target-arrow-color": colour}}
        for kind, colour in (("right", RIGHT), ("extra", EXTRA), ("missed", MISSED))
    ),
    {"selector": "edge.missed", "style": {"line-style": "dashed", "width": 2}},
    {"selector": "edge.required", "style": {"source-arrow-shape": "tee", "source-arrow-color": INK}},
    {"selector": "edge.chosen", "style": {"overlay-color": "#f2b632", "overlay-opacity": 0.35, "overlay-padding": 5}},
    {"selector": ".pointed", "style": {"overlay-color": "#f2b632", "overlay-opacity": 0.25, "overlay-padding": 4}},
]


def heat_figure(result: Result, chosen: tuple[int, ...] = ()) -> dict[str, Any]:
    """Probabilities as a plotly figure: causes in rows, effects in columns."""
    d = len(result.names)
    values: list[list[float | None]] = [
        [None if i == j else round(float(result.matrix[i, j]), 4) for j in range(d)] for i in range(d)
    ]
    names = [_short(name) for name in result.names]
    axis: dict[str, Any] = {"showgrid": False, "zeroline": False, "fixedrange": False, "automargin": True}
    if d <= _LABELLED:
        axis |= {"tickmode": "array", "tickvals": list(range(d)), "ticktext": names, "tickfont": {"size": 11}}
    else:
        axis |= {"showticklabels": False}
    text = [
        ["" if i == j else f"{result.names[i]} → {result.names[j]}: {result.matrix[i, j]:.2f}" for j in range(d)]
        for i in range(d)
    ]
    trace = {
        "type": "heatmap",
        "z": values,
        "zmin": 0,
        "zmax": 1,
        "xgap": 1 if d <= _LABELLED else 0,
        "ygap": 1 if d <= _LABELLED else 0,
        "colorscale": [[k / (len(SCALE) - 1), colour] for k, colour in enumerate(SCALE)],
        "text": text,
        "hovertemplate": "%{text}<extra></extra>",
        "hoverongaps": False,
        "colorbar": {"thickness": 10, "len": 0.7, "outlinewidth": 0, "tickfont": {"size": 11}},
    }
    layout = {
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "#e9edf3",
        "font": _font(),
        "xaxis": {**axis, "title": {"text": "effect"}, "side": "bottom", "tickangle": -90 if d > 8 else 0},
        "yaxis": {**axis, "title": {"text": "cause"}, "autorange": "reversed"},
        "shapes": [_box(*chosen)] if len(chosen) == 2 else [],
        "uirevision": "same",
    }
    return {"data": [trace], "layout": layout}


def _box(i: int, j: int) -> dict[str, Any]:
    """A frame around a cell of the heat map."""
    return {
        "type": "rect",
        "x0": j - 0.5,
        "x1": j + 0.5,
        "y0": i - 0.5,
        "y1": i + 0.5,
        "line": {"color": "#f2a100", "width": 3},
        "fillcolor": "rgba(0,0,0,0)",
    }


def pair_figure(dataset: Dataset, i: int, j: int) -> dict[str, Any]:
    """Scatter plot of two variables, with rows grouped by their interventions."""
    u = dataset.interventions
    observed = ~(dataset.missing[:, i] | dataset.missing[:, j])
    plain = ~u.any(axis=1)
    a, b = dataset.names[i], dataset.names[j]
    groups = [
        ("observational", observed & plain, "#9db4cd", "circle"),
        ("other targets", observed & ~plain & ~u[:, i] & ~u[:, j], "#d5dbe3", "circle"),
        (f"{_short(a)} intervened on", observed & u[:, i], "#d9822b", "diamond"),
        (f"{_short(b)} intervened on", observed & u[:, j] & ~u[:, i], "#7d4fa3", "square"),
    ]
    traces = []
    for label, mask, colour, symbol in groups:
        rows = _some(np.flatnonzero(mask))
        if len(rows):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": f"{label} ({int(mask.sum()):,})",
                    "x": dataset.x[rows, i].tolist(),
                    "y": dataset.x[rows, j].tolist(),
                    "marker": {"color": colour, "size": 6, "symbol": symbol, "opacity": 0.75},
                    "hovertemplate": "%{x:.3g}, %{y:.3g}<extra></extra>",
                }
            )
    return {"data": traces, "layout": _plain_axes(_short(a, 28), _short(b, 28))}


def variable_figure(dataset: Dataset, j: int) -> dict[str, Any]:
    """Histograms of one variable, without and with interventions on it."""
    observed, intervened = ~dataset.missing[:, j], dataset.interventions[:, j]
    groups = (
        ("not intervened on", observed & ~intervened, "#7fa8d1"),
        ("intervened on", observed & intervened, "#d9822b"),
    )
    traces = [
        {
            "type": "histogram",
            "x": dataset.x[mask, j][: 20 * MAX_POINTS].tolist(),
            "name": f"{label} ({int(mask.sum()):,})",
            "marker": {"color": colour},
            "opacity": 0.7,
        }
        for label, mask, colour in groups
        if mask.any()
    ]
    return {"data": traces, "layout": {**_plain_axes(_short(dataset.names[j], 28), "rows"), "barmode": "overlay"}}


def _some(rows: np.ndarray) -> np.ndarray:
    """At most `MAX_POINTS` evenly spaced rows, which a browser can draw."""
    if len(rows) <= MAX_POINTS:
        return rows
    shown: np.ndarray = rows[np.linspace(0, len(rows) - 1, MAX_POINTS).astype(int)]
    return shown


def _plain_axes(x: str, y: str) -> dict[str, Any]:
    axis = {"gridcolor": "#eef1f5", "zeroline": False, "automargin": True}
    return {
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "#ffffff",
        "font": _font(),
        "xaxis": {**axis, "title": {"text": x}},
        "yaxis": {**axis, "title": {"text": y}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "font": {"size": 11}},
    }


def _font() -> dict[str, Any]:
    return {"family": "system-ui, sans-serif", "size": 12, "color": INK}


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


def _short(name: str, limit: int = 14) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"
