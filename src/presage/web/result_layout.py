"""The elements of an answer: what was run, graph, panel, table, heat map, knowledge, scores, downloads."""

from __future__ import annotations

from typing import Any

import dash_cytoscape as cyto
from dash import dcc, html

from presage.web.exports import KINDS
from presage.web.theme import LIGHT, stylesheet

__all__ = ["HINT", "KEPT", "answer", "aria"]

HINT = "Click an edge, a variable, a cell of the heat map or a line of the table."
KEPT: dict[str, Any] = {"persistence": True, "persistence_type": "session"}
"""Of controls whose value stays when the page is loaded again."""
_TOOLS: Any = {"displaylogo": False, "displayModeBar": False}


def answer() -> html.Div:
    """Everything about the result; hidden until there is one."""
    return html.Div(
        [
            html.Section(
                [
                    html.Div(id="answer-head"),
                    html.Div(
                        [
                            html.Span("Settings changed: run again to apply them."),
                            html.Button("Run again", id="run-again", className="quiet"),
                        ],
                        id="stale",
                        className="stale",
                        role="status",
                        hidden=True,
                    ),
                ],
                className="box answer-head",
            ),
            html.Div(
                [
                    html.Div(
                        [
                            html.Div(id="warnings"),
                            html.Section(_controls(), className="box controls"),
                            _graph_box(),
                            _table_box(),
                            _heat_box(),
                            _known_box(),
                            _last_row(),
                        ],
                        className="stack",
                    ),
                    html.Aside(_details(), id="details", className="box details"),
                ],
                className="answer",
            ),
        ],
        id="result",
        hidden=True,
    )


def aria(**marks: str) -> dict[str, Any]:
    """HTML attributes aria-... of an element, for screen readers."""
    return {f"aria-{name}": value for name, value in marks.items()}


def _controls() -> list[Any]:
    return [
        html.Div(
            [
                html.Label([html.Span("Show edges above "), html.B(id="threshold-text")], id="threshold-label"),
                dcc.Slider(
                    id="threshold",
                    min=0.01,
                    max=0.99,
                    step=0.01,
                    value=0.5,
                    marks={0.01: "0", 0.25: "0.25", 0.5: "0.5", 0.75: "0.75", 0.99: "1"},
                    updatemode="drag",
                    allow_direct_input=False,
                    **KEPT,
                ),
            ],
            className="grow",
        ),
        html.Div(
            [
                html.Label("or the k most probable", htmlFor="top"),
                dcc.Input(id="top", type="number", min=1, step=1, placeholder="all", debounce=0.3),
            ],
            className="small-input",
        ),
        dcc.Checklist(
            id="switches",
            options=[{"value": "acyclic", "label": "acyclic"}, {"value": "truth", "label": "colour by truth"}],
            value=[],
            className="switches",
        ),
    ]


def _graph_box() -> html.Section:
    head = html.Div(
        [
            html.Div([html.H2("Graph"), html.Span(id="count", className="soft small")]),
            html.Div(
                [
                    dcc.Dropdown(id="focus", placeholder="Find a variable …", closeOnSelect=True, className="focus"),
                    html.Button("Enlarge", id="widen", className="quiet", title="Give the graph the whole window"),
                    html.Button("Fit", id="fit", className="quiet", title="Show the whole graph"),
                    html.Button(
                        "Redo layout",
                        id="tidy",
                        className="quiet",
                        title="Place the variables again, causes above effects",
                    ),
                ],
                className="row tools",
            ),
        ],
        className="row box-head",
    )
    graph = html.Div(
        cyto.Cytoscape(
            id="graph",
            layout={"name": "preset", "fit": True, "padding": 24},
            stylesheet=stylesheet(LIGHT),
            elements=[],
            minZoom=0.1,
            maxZoom=3.0,
            responsive=True,
            style={"width": "100%", "height": "100%"},
        ),
        id="graph-place",
        className="graph",
        tabIndex=0,
        role="application",
        **aria(
            label="Graph. Left and right arrow keys go through the edges, plus and minus zoom, Escape closes "
            "the panel. The table below lists the same edges."
        ),
    )
    return html.Section([head, graph, html.Div(id="legend", className="legend")], className="box graph-box")


def _table_box() -> html.Section:
    return html.Section(
        [
            html.Div(
                [
                    html.Div([html.H2("Edges"), html.Span(id="table-count", className="soft small")]),
                    dcc.Input(id="table-search", type="search", placeholder="Search …", debounce=0.2),
                ],
                className="row box-head",
            ),
            html.Div(id="edge-table", className="scroll edge-table"),
        ],
        className="box",
    )


def _heat_box() -> html.Section:
    return html.Section(
        [
            html.Div([html.H2("Edge probabilities"), html.Span(id="heat-note", className="soft small")]),
            dcc.Graph(id="heat", config=_TOOLS, responsive=True, style={"height": "540px"}),
        ],
        className="box",
    )


def _details() -> list[Any]:
    return [
        html.Div(
            [html.H2("Details", id="chosen-title"), html.Button("×", id="unchoose", className="plain", title="Close")],
            className="row",
        ),
        html.Div(HINT, id="chosen-text"),
        html.Div(id="total-effect"),
        html.Div(
            [
                html.Button("It exists", id="require", title="This edge is known to exist"),
                html.Button("It does not exist", id="forbid", title="This edge is known not to exist"),
                html.Button("Unknown", id="forget", title="Use the model's probability"),
                html.Button("Reverse edge", id="turn", title="Show the reverse edge"),
            ],
            id="arrow-buttons",
            className="row buttons",
            hidden=True,
        ),
        html.Div(
            [
                html.Button("It has no causes", id="root"),
                html.Button("Unknown", id="unroot"),
                html.Button("Show its neighbourhood", id="focus-chosen"),
            ],
            id="variable-buttons",
            className="row buttons",
            hidden=True,
        ),
        html.Div(id="known-error", role="alert", className="error"),
        html.Div(
            dcc.Graph(id="scatter", config=_TOOLS, responsive=True, style={"height": "330px"}),
            id="scatter-place",
            hidden=True,
        ),
    ]


def _known_box() -> html.Section:
    return html.Section(
        [
            html.H2("Background knowledge"),
            html.P(
                "Click an edge and state whether it exists; the result is updated at once. Drag variables into tiers "
                "if some come before others (or press the arrow keys on one): no variable is caused by one of a later "
                "tier.",
                className="soft small",
            ),
            html.Div(id="known-list"),
            html.Div(id="tiers", className="tiers"),
        ],
        className="box",
    )


def _last_row() -> html.Div:
    return html.Div(
        [
            html.Section(
                [html.H2("Scores against the true graph"), html.Div(id="scores")], className="box", id="scores-place"
            ),
            html.Section(
                [
                    html.Div(
                        [
                            html.H2("Next experiments"),
                            html.Button("Suggest experiments", id="suggest", className="quiet"),
                        ],
                        className="row",
                    ),
                    html.P(
                        "The most informative interventions; variables that were intervened on already are left out.",
                        className="soft small",
                    ),
                    html.Div(id="experiments"),
                ],
                className="box",
            ),
            html.Section(
                [
                    html.H2("Downloads"),
                    html.Div(
                        [html.Button(kind, id={"type": "take", "kind": kind}) for kind in KINDS],
                        className="row buttons takes",
                    ),
                    html.Div(id="download-error", role="alert", className="error"),
                    html.P("The same result in Python:", className="soft small"),
                    html.Pre(id="lines"),
                ],
                className="box",
            ),
        ],
        className="stack",
    )
