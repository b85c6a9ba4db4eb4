"""Plotly figures of the page: heat map, scatter plot of a pair, histogram of a variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from presage.inference.result import Result
from presage.types import Dataset
from presage.web.theme import LIGHT, Theme
from presage.web.view import short

__all__ = ["MAX_POINTS", "heat_figure", "heat_height", "pair_figure", "variable_figure"]

MAX_POINTS = 1500
_ALL_LABELS = 60
"""With more variables than this, labels are thinned; zooming in shows more of them."""


def heat_height(variables: int) -> int:
    """Height in pixels of a heat map."""
    return int(np.clip(300 + 11 * variables, 400, 780))


def heat_figure(result: Result, order: Sequence[int] | None = None, theme: Theme = LIGHT) -> dict[str, Any]:
    """Probabilities as a plotly figure: causes in rows, effects in columns.

    order: the variables shown, in this order; all by default. Positions on both axes are indices of variables as text,
    so that the browser finds them in whatever order they are.
    """
    shown = list(range(len(result.names)) if order is None else order)
    d = len(shown)
    keys = [str(j) for j in shown]
    values: list[list[float | None]] = [
        [None if i == j else round(float(result.matrix[i, j]), 4) for j in shown] for i in shown
    ]
    text = [
        ["" if i == j else f"{result.names[i]} → {result.names[j]}: {result.matrix[i, j]:.2f}" for j in shown]
        for i in shown
    ]
    axis: dict[str, Any] = {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": keys,
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
        "labelalias": {key: short(result.names[j], 16) for key, j in zip(keys, shown, strict=True)},
        "tickfont": {"size": 11 if d <= 40 else 9.5},
        "ticks": "",
    }
    if d <= _ALL_LABELS:
        axis |= {"tickmode": "array", "tickvals": keys}
    trace = {
        "type": "heatmap",
        "x": keys,
        "y": keys,
        "z": values,
        "zmin": 0,
        "zmax": 1,
        "xgap": 1 if d <= _ALL_LABELS else 0,
        "ygap": 1 if d <= _ALL_LABELS else 0,
        "colorscale": [[k / (len(theme.scale) - 1), colour] for k, colour in enumerate(theme.scale)],
        "text": text,
        "hovertemplate": "%{text}<extra></extra>",
        "hoverongaps": False,
        "colorbar": {"thickness": 10, "len": 0.7, "outlinewidth": 0, "tickfont": {"size": 11}},
    }
    layout = {
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": theme.line if d <= _ALL_LABELS else theme.panel,
        "font": _font(theme),
        "xaxis": {**axis, "title": {"text": "effect"}, "side": "bottom", "tickangle": -90 if d > 8 else 0},
        "yaxis": {**axis, "title": {"text": "cause"}, "autorange": "reversed"},
        "shapes": _diagonal(d, theme),
        "uirevision": ",".join(keys),
    }
    return {"data": [trace], "layout": layout}


def _diagonal(d: int, theme: Theme) -> list[dict[str, Any]]:
    """Cells in the colour of the page with a line through them, because they have no probability."""
    cells: list[dict[str, Any]] = []
    if d <= _ALL_LABELS:
        cells = [
            {
                "type": "rect",
                "x0": k - 0.5,
                "x1": k + 0.5,
                "y0": k - 0.5,
                "y1": k + 0.5,
                "line": {"width": 0},
                "fillcolor": theme.panel,
                "layer": "above",
            }
            for k in range(d)
        ]
    line = {"color": theme.faint, "width": 1.5, "dash": "dot"}
    return [
        *cells,
        {"type": "line", "x0": -0.5, "y0": -0.5, "x1": d - 0.5, "y1": d - 0.5, "line": line, "layer": "above"},
    ]


def pair_figure(dataset: Dataset, i: int, j: int, theme: Theme = LIGHT) -> dict[str, Any]:
    """Scatter plot of two variables, with rows grouped by their interventions."""
    u = dataset.interventions
    observed = ~(dataset.missing[:, i] | dataset.missing[:, j])
    plain = ~u.any(axis=1)
    a, b = dataset.names[i], dataset.names[j]
    groups = [
        ("observational", observed & plain, theme.point, "circle"),
        ("other targets", observed & ~plain & ~u[:, i] & ~u[:, j], theme.faint, "circle"),
        (f"{short(a)} intervened on", observed & u[:, i], "#d9822b", "diamond"),
        (f"{short(b)} intervened on", observed & u[:, j] & ~u[:, i], theme.hidden, "square"),
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
                    "marker": {"color": colour, "size": 5, "symbol": symbol, "opacity": 0.75},
                    "hovertemplate": "%{x:.3g}, %{y:.3g}<extra></extra>",
                }
            )
    return {"data": traces, "layout": _plain_axes(short(a, 28), short(b, 28), theme)}


def variable_figure(dataset: Dataset, j: int, theme: Theme = LIGHT) -> dict[str, Any]:
    """Histograms of one variable, without and with interventions on it."""
    observed, intervened = ~dataset.missing[:, j], dataset.interventions[:, j]
    groups = (
        ("not intervened on", observed & ~intervened, theme.point),
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
    axes = _plain_axes(short(dataset.names[j], 28), "rows", theme)
    return {"data": traces, "layout": {**axes, "barmode": "overlay"}}


def _some(rows: np.ndarray) -> np.ndarray:
    """At most `MAX_POINTS` evenly spaced rows, which a browser can draw."""
    if len(rows) <= MAX_POINTS:
        return rows
    shown: np.ndarray = rows[np.linspace(0, len(rows) - 1, MAX_POINTS).astype(int)]
    return shown


def _plain_axes(x: str, y: str, theme: Theme) -> dict[str, Any]:
    axis = {"gridcolor": theme.line, "zeroline": False, "automargin": True}
    return {
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": theme.panel,
        "font": _font(theme),
        "xaxis": {**axis, "title": {"text": x}},
        "yaxis": {**axis, "title": {"text": y}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "font": {"size": 10.5}},
    }


def _font(theme: Theme) -> dict[str, Any]:
    return {"family": "system-ui, sans-serif", "size": 12, "color": theme.ink}
