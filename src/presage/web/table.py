"""The table of edges: searched, sorted, and limited to what a browser can show."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from dash import html

from presage.inference.result import Result
from presage.web.layout import data
from presage.web.result_layout import aria

__all__ = ["MAX_ROWS", "EdgeRow", "edge_rows", "edge_stability", "edge_table", "signed"]

MAX_ROWS = 300


@dataclass(frozen=True, kw_only=True)
class EdgeRow:
    """One line: an edge with what is known about it; None where the model does not predict it."""

    i: int
    j: int
    source: str
    target: str
    probability: float
    effect: float | None = None
    hidden: float | None = None
    stability: float | None = None


_COLUMNS = {
    "source": ("cause", "Name of the cause"),
    "target": ("outcome", "Name of the outcome"),
    "probability": ("probability", "Probability that the cause acts on the outcome directly"),
    "effect": (
        "direct effect",
        "Change of the outcome, in standard deviations, when the cause rises by one and the other causes stay",
    ),
    "hidden": ("hidden cause", "Probability that an unmeasured variable causes both"),
    "stability": ("stability", "Standard deviation of the probability over resampled rows; small is stable"),
}


def edge_rows(
    result: Result, graph: np.ndarray, *, search: str = "", sort: Any = None, within: Collection[int] | None = None
) -> list[EdgeRow]:
    """The edges of a graph [d, d] whose cause or effect contains the search text; "a -> b" asks for both.

    sort: {"by": field, "down": whether the largest comes first}. within: only edges between these variables.
    """
    rows = [
        EdgeRow(
            i=int(i),
            j=int(j),
            source=result.names[i],
            target=result.names[j],
            probability=float(result.matrix[i, j]),
            effect=_finite(result.effect, i, j),
            hidden=_finite(result.hidden_causes, i, j),
            stability=edge_stability(result, i, j),
        )
        for i, j in np.argwhere(graph != 0)
        if within is None or (i in within and j in within)
    ]
    rows = [row for row in rows if _matches(row, search)]
    sort = sort if isinstance(sort, dict) else {}
    by = sort.get("by") if sort.get("by") in _COLUMNS else "probability"
    down = bool(sort.get("down", by not in ("source", "target")))
    rows.sort(key=lambda row: -row.probability)
    if by in ("source", "target"):
        rows.sort(key=lambda row: str(getattr(row, by)).casefold(), reverse=down)
    else:
        rows.sort(key=lambda row: _size(getattr(row, by), down), reverse=down)
    return rows


def edge_stability(result: Result, i: int, j: int) -> float | None:
    """Standard deviation over resampled rows; None if unknown or if background knowledge changed the probability."""
    return _finite(result.stability, i, j) if result.matrix[i, j] == result.unconstrained[i, j] else None


def _finite(values: np.ndarray | None, i: int, j: int) -> float | None:
    return None if values is None or not np.isfinite(values[i, j]) else float(values[i, j])


def _size(value: float | None, down: bool) -> float:
    """Key that places unknown values last in either direction."""
    return (-np.inf if down else np.inf) if value is None else value


def _matches(row: EdgeRow, search: str) -> bool:
    text = str(search or "").casefold().replace("→", "->").strip()
    cause, arrow, effect = (part.strip() for part in text.partition("->"))
    if arrow:
        return cause in row.source.casefold() and effect in row.target.casefold()
    return text in row.source.casefold() or text in row.target.casefold()


def signed(value: float) -> str:
    """An effect with its sign.

    >>> signed(0.5), signed(-0.25)
    ('+0.50', '−0.25')
    """
    return f"{value:+.2f}".replace("-", "−")


def edge_table(rows: list[EdgeRow], sort: Any, *, left_out: Collection[str] = ()) -> Any:
    """The table as HTML; the script of the page listens to clicks and keys on lines and headings.

    left_out: columns that the model does not predict.
    """
    if not rows:
        return html.P("No edges to list: lower the threshold, or clear the search.", className="soft")
    sort = sort if isinstance(sort, dict) else {}
    shown = [key for key in _COLUMNS if key not in left_out]
    heads = []
    for key in shown:
        label, meaning = _COLUMNS[key]
        direction = ("descending" if sort.get("down", True) else "ascending") if sort.get("by") == key else "none"
        mark = {"descending": " ↓", "ascending": " ↑", "none": ""}[direction]
        button = html.Button(f"{label}{mark}", className="head", title=f"{meaning}; click to sort", **data(sort=key))
        heads.append(html.Th(button, **aria(sort=direction)))
    lines = [
        html.Tr([_cell(row, key) for key in shown], tabIndex=0, **data(i=row.i, j=row.j)) for row in rows[:MAX_ROWS]
    ]
    parts: list[Any] = [html.Table([html.Thead(html.Tr(heads)), html.Tbody(lines)])]
    if len(rows) > MAX_ROWS:
        parts.append(html.P(f"{len(rows) - MAX_ROWS:,} more; search for a variable to see them.", className="soft"))
    return parts


def _cell(row: EdgeRow, key: str) -> html.Td:
    if key == "probability":
        bar = html.I(className="meter", style={"width": f"{60 * row.probability:.0f}px"})
        return html.Td([bar, f"{row.probability:.2f}"], className="number-cell")
    value = getattr(row, key)
    if key == "effect":
        if value is None:
            return html.Td("–", className="number-cell")
        return html.Td(signed(value), className=f"number-cell {'plus' if value >= 0 else 'minus'}")
    if key in ("hidden", "stability"):
        sign = "± " if key == "stability" else ""
        return html.Td("–" if value is None else f"{sign}{value:.2f}", className="number-cell")
    return html.Td(value, title=value)
