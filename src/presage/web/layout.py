"""The elements of the page; callbacks refer to them by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dash_cytoscape as cyto
from dash import dcc, html

import presage
from presage.web.exports import KINDS
from presage.web.sources import MAX_VARIABLES
from presage.web.view import STYLESHEET

__all__ = ["data", "page"]

_GRAPH_TOOLS: Any = {"displaylogo": False, "displayModeBar": False}


def page(
    *,
    session: str,
    models: Sequence[tuple[str, str]],
    model: str | None,
    examples: Sequence[str],
    domains: Sequence[tuple[str, str]],
    limit: int,
) -> html.Div:
    """The page of one session. models, domains: (name, label). limit: largest upload in bytes."""
    return html.Div(
        id="page",
        **data(session=session, limit=limit),
        children=[
            dcc.Store(id="session", data=session),
            dcc.Store(id="upload-event"),
            dcc.Store(id="answer"),
            dcc.Store(id="knowledge", data={}),
            dcc.Store(id="chosen", data=[]),
            dcc.Store(id="places"),
            dcc.Store(id="tier-move"),
            dcc.Store(id="pointed"),
            dcc.Download(id="download"),
            dcc.Interval(id="tick", interval=400, disabled=True),
            html.Header(
                [
                    html.Div([html.B("Presage"), html.Span("causal discovery from tables")], className="brand"),
                    html.Span(f"version {presage.__version__} · data stays on this machine", className="soft"),
                ]
            ),
            html.Div(
                className="columns",
                children=[
                    html.Aside([_bring(examples, domains, limit), _interventions(), _model(models, model), _run()]),
                    html.Main([html.Div(id="error", role="alert"), _preview(), _answer()]),
                ],
            ),
        ],
    )


def data(**marks: object) -> dict[str, Any]:
    """HTML attributes data-... of an element, for the script of the page."""
    return {f"data-{name}": str(value) for name, value in marks.items()}


def _step(number: int, title: str, *children: Any) -> html.Section:
    return html.Section([html.H2([html.Span(str(number), className="number"), title]), *children], className="step")


def _bring(examples: Sequence[str], domains: Sequence[tuple[str, str]], limit: int) -> html.Section:
    upload = html.Div(
        [
            html.Button(
                [html.B("Drop a file here"), html.Span("or click to choose one")],
                id="drop",
                className="drop",
                **data(role="data"),
            ),
            html.P(
                f"csv, tsv, parquet, npz or h5ad; up to {limit // 2**20} MB and {MAX_VARIABLES} variables. One column "
                "per variable, one row per observation. Uploads are kept in memory only.",
                className="soft small",
            ),
        ]
    )
    example = html.Div(
        [
            html.Label("Bundled simulated dataset with its true graph", htmlFor="example"),
            dcc.Dropdown(id="example", options=list(examples), value="rff", clearable=False, searchable=False),
            html.Button("Use this example", id="use-example", className="wide"),
        ]
    )
    simulate = html.Div(
        [
            html.Label("Domain", htmlFor="domain"),
            dcc.Dropdown(
                id="domain",
                options=[{"value": name, "label": label} for name, label in domains],
                value="rff",
                clearable=False,
            ),
            _slider("Variables", "sim-d", 2, 60, 1, 12),
            _slider("Rows", "sim-n", 50, 2000, 50, 400),
            _slider("Interventional rows, %", "sim-share", 0, 100, 5, 50),
            html.Label("Seed", htmlFor="sim-seed"),
            dcc.Input(id="sim-seed", type="number", value=0, min=0, step=1),
            html.Button("Simulate", id="use-simulation", className="wide"),
        ]
    )
    tabs = dcc.Tabs(
        id="bring",
        value="file",
        mobile_breakpoint=0,
        children=[
            dcc.Tab(upload, label="File", value="file"),
            dcc.Tab(example, label="Example", value="example"),
            dcc.Tab(simulate, label="Simulate", value="simulate"),
        ],
    )
    return _step(1, "Data", tabs)


def _slider(label: str, name: str, low: float, high: float, step: float, value: float) -> html.Div:
    return html.Div(
        [
            html.Label(label, htmlFor=name),
            dcc.Slider(
                id=name,
                min=low,
                max=high,
                step=step,
                value=value,
                marks=None,
                tooltip={"placement": "top", "always_visible": False},
            ),
        ],
        className="slider",
    )


def _interventions() -> html.Section:
    return _step(
        2,
        "Interventions",
        dcc.Dropdown(
            id="interventions",
            options=[{"value": "none", "label": "No interventions"}],
            value="none",
            clearable=False,
        ),
        html.P(
            "A column with each row's target (empty or “control”: none), or a mask file with 0 or 1 for every cell.",
            className="soft small",
        ),
        html.Div(
            [
                html.Button(
                    [html.B("Drop the mask here"), html.Span("0 and 1, in the shape of the data")],
                    id="drop-mask",
                    className="drop",
                    **data(role="mask"),
                ),
                html.P(id="mask-name", className="soft small"),
            ],
            id="mask-place",
            hidden=True,
        ),
        html.Div(
            [html.Label("Layer", htmlFor="layer"), dcc.Dropdown(id="layer", placeholder="X")],
            id="layer-place",
            hidden=True,
        ),
    )


def _model(models: Sequence[tuple[str, str]], model: str | None) -> html.Section:
    return _step(
        3,
        "Model",
        dcc.Dropdown(
            id="model",
            options=[{"value": name, "label": label} for name, label in models],
            value=model,
            clearable=False,
            placeholder="no model was found",
        ),
        html.Div(
            [
                html.Button("Model card", id="show-card", className="plain"),
                dcc.Dropdown(
                    id="counts",
                    options=[
                        {"value": "look", "label": "detect counts"},
                        {"value": "counts", "label": "values are counts"},
                        {"value": "real", "label": "read as real values"},
                    ],
                    value="look",
                    clearable=False,
                    searchable=False,
                ),
            ],
            className="row",
        ),
        html.Div(
            [
                html.Button("Close", id="hide-card", className="plain right"),
                dcc.Loading(dcc.Markdown(id="card", className="card")),
            ],
            id="card-place",
            className="sheet",
            hidden=True,
        ),
    )


def _run() -> html.Section:
    return html.Section(
        [
            html.Button("Run", id="run", className="primary wide", disabled=True),
            html.Div(
                [
                    html.Div(html.Div(id="bar", className="bar"), className="track"),
                    html.Div(
                        [
                            html.Span(id="stage", className="soft small"),
                            html.Button("Cancel", id="cancel", className="plain"),
                        ],
                        className="row",
                    ),
                ],
                id="progress",
                hidden=True,
            ),
        ],
        className="step",
    )


def _preview() -> html.Section:
    return html.Section(
        [
            html.H1("Causal discovery from a table"),
            html.P(
                "Upload a table of measurements. Presage estimates the probability of every edge between two variables "
                "and warns about suspicious data; you can add background knowledge. Start with a file of your own, or "
                "with an example on the left."
            ),
        ],
        id="preview",
        className="box",
    )


def _answer() -> html.Div:
    return html.Div(
        [
            html.Div(id="warnings"),
            html.Section(_controls(), className="box controls"),
            html.Div(
                [
                    html.Section(
                        [_graph_head(), _graph(), html.Div(id="legend", className="legend")], className="box graph-box"
                    ),
                    html.Section(
                        [
                            html.H2("Edge probabilities"),
                            dcc.Graph(id="heat", config=_GRAPH_TOOLS, responsive=True, style={"height": "540px"}),
                        ],
                        className="box",
                    ),
                ],
                className="pair",
            ),
            html.Div(
                [
                    html.Section(_chosen(), className="box", id="chosen-place"),
                    html.Section(_known(), className="box"),
                ],
                className="pair",
            ),
            html.Div(
                [
                    html.Section([html.H2("Most uncertain edges"), html.Div(id="uncertain")], className="box"),
                    html.Section(
                        [html.H2("Scores against the true graph"), html.Div(id="scores")],
                        className="box",
                        id="scores-place",
                    ),
                    html.Section(_take(), className="box"),
                ],
                className="triple",
            ),
        ],
        id="result",
        hidden=True,
    )


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
        html.Button("Redo layout", id="tidy", title="Place the variables again, causes above effects"),
    ]


def _graph_head() -> html.Div:
    return html.Div([html.H2("Graph"), html.Span(id="count", className="soft small")], className="row")


def _graph() -> html.Div:
    return html.Div(
        [
            cyto.Cytoscape(
                id="graph",
                layout={"name": "preset", "fit": True, "padding": 24},
                stylesheet=STYLESHEET,
                elements=[],
                minZoom=0.15,
                maxZoom=3.0,
                responsive=True,
                style={"width": "100%", "height": "100%"},
            ),
        ],
        className="graph",
    )


def _chosen() -> list[Any]:
    return [
        html.H2("Details", id="chosen-title"),
        html.P("Click an edge of the graph, a cell of the heat map or a variable.", id="chosen-text", className="soft"),
        html.Div(
            [
                html.Button("It exists", id="require", title="This edge is known to exist"),
                html.Button("It does not exist", id="forbid", title="This edge is known not to exist"),
                html.Button("Reverse", id="turn", title="Show the reverse edge"),
                html.Button("Unknown", id="forget", title="Use the model's probability"),
            ],
            id="arrow-buttons",
            className="row buttons",
            hidden=True,
        ),
        html.Div(
            [
                html.Button("It has no causes", id="root"),
                html.Button("Unknown", id="unroot"),
            ],
            id="variable-buttons",
            className="row buttons",
            hidden=True,
        ),
        html.Div(
            dcc.Graph(id="scatter", config=_GRAPH_TOOLS, responsive=True, style={"height": "340px"}),
            id="scatter-place",
            hidden=True,
        ),
    ]


def _known() -> list[Any]:
    return [
        html.H2("Background knowledge"),
        html.P(
            "Click an edge and state whether it exists; the result is updated at once. Drag variables into tiers "
            "if some come before others: no variable is caused by one of a later tier.",
            className="soft small",
        ),
        html.Div(id="known-error", role="alert"),
        html.Div(id="known-list"),
        html.Div(id="tiers", className="tiers"),
    ]


def _take() -> list[Any]:
    return [
        html.H2("Downloads"),
        html.Div(
            [html.Button(kind, id={"type": "take", "kind": kind}) for kind in KINDS], className="row buttons takes"
        ),
        html.P("The same result in Python:", className="soft small"),
        html.Pre(id="lines"),
    ]
