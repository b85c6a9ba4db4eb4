"""The panel next to the graph: what is known about an edge or a variable."""

from __future__ import annotations

from typing import Any

import numpy as np
from dash import html

from presage.errors import ConfigError
from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.web.layout import data
from presage.web.result_layout import HINT
from presage.web.table import edge_stability, signed
from presage.web.view import uncertain

__all__ = ["edge_part", "nothing_part", "total_effect_part", "variable_part"]

_LISTED = 8


def nothing_part(result: Result) -> list[Any]:
    """What the panel shows before anything is chosen: the most uncertain edges."""
    found = uncertain(result)
    if not found:
        return [html.P(HINT, className="soft"), html.P("Every probability is close to 0 or 1.", className="soft")]
    rows = [(i, j, f"{p:.2f}") for i, j, p in found]
    return [html.P(HINT, className="soft"), html.H3("Most uncertain edges"), _links(result, rows)]


def edge_part(result: Result, before: Result, i: int, j: int) -> list[Any]:
    """Probabilities in both directions, effect and hidden cause of a pair. before: without background knowledge."""
    a, b = result.names[i], result.names[j]
    rows = [_bar(f"{a} → {b}", result.matrix[i, j]), _bar(f"{b} → {a}", result.matrix[j, i])]
    if result.hidden_causes is not None:
        rows.append(_bar("hidden cause of both", float(result.hidden_causes[i, j]), "hidden"))
    parts: list[Any] = [html.Div(rows, className="bars")]
    if result.effect is not None and np.isfinite(result.effect[i, j]):
        value = float(result.effect[i, j])
        low, high = (float(end[i, j]) for end in result.effect_interval())
        parts.append(
            html.P(
                [
                    "Direct effect ",
                    html.B(signed(value), className="plus" if value >= 0 else "minus"),
                    f" (90 % interval {signed(low)} to {signed(high)}): {b} {'rises' if value >= 0 else 'falls'} by "
                    f"{abs(value):.2f} standard deviations when {a} rises by one and its other causes stay.",
                ],
                className="small",
            )
        )
    spread = edge_stability(result, i, j)
    if spread is not None:
        parts.append(html.P(f"Over resampled rows, the probability varies by ± {spread:.2f}.", className="soft small"))
    if result.matrix[i, j] != before.matrix[i, j]:
        parts.append(html.P(f"{before.matrix[i, j]:.2f} without the background knowledge.", className="soft small"))
    return parts


def total_effect_part(result: Result, i: int, j: int) -> Any:
    """The effect of setting one variable on another along all directed paths; a reason where there is none."""
    try:
        found = result.total_effect(result.names[i], result.names[j])
    except ConfigError as error:  # nominal variables, or a result without data
        return html.P(f"No total effect: {error}.", className="soft small")
    return html.P(
        [
            "Total effect ",
            html.B(signed(found.effect), className="plus" if found.effect >= 0 else "minus"),
            f" ({100 * found.level:.0f} % interval {signed(found.low)} to {signed(found.high)}) of setting "
            f"{found.cause}, along all directed paths (linear fit). It is an ancestor in "
            f"{100 * found.probability:.0f} % of the sampled graphs.",
        ],
        className="small",
    )


def variable_part(result: Result, known: Knowledge, j: int, threshold: float) -> list[Any]:
    """Most probable causes and effects of a variable."""
    parts: list[Any] = []
    if result.names[j] in known.roots:
        parts.append(html.P("Known to have no causes.", className="soft small"))
    for title, values, inward in (("Causes", result.matrix[:, j], True), ("Effects", result.matrix[j], False)):
        order = [int(k) for k in np.argsort(-values, kind="stable") if values[k] > threshold]
        parts.append(html.H3(title))
        if not order:
            parts.append(html.P(f"None above {threshold:.2g}.", className="soft small"))
            continue
        edges = [(k, j) if inward else (j, k) for k in order[:_LISTED]]
        parts.append(_links(result, [(a, b, f"{result.matrix[a, b]:.2f}") for a, b in edges]))
        if len(order) > _LISTED:
            parts.append(html.P(f"{len(order) - _LISTED} more in the table.", className="soft small"))
    return parts


def _bar(label: str, value: float, kind: str = "") -> html.Div:
    return html.Div(
        [
            html.Span(label, title=label),
            html.Div(html.I(style={"width": f"{100 * float(value):.0f}%"}, className=kind), className="gauge"),
            html.B(f"{value:.2f}"),
        ]
    )


def _links(result: Result, rows: list[tuple[int, int, str]]) -> html.Div:
    return html.Div(
        [
            html.Button(
                [html.Span(f"{result.names[i]} → {result.names[j]}"), html.Span(text, className="soft")],
                **data(i=i, j=j),
            )
            for i, j, text in rows
        ],
        className="list",
    )
