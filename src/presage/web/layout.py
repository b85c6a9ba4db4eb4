"""The elements of the page: header, and the steps on the left. Callbacks refer to elements by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dash import dcc, html

import presage
from presage.web.result_layout import KEPT, answer
from presage.web.sources import MAX_VARIABLES
from presage.web.worker import RESAMPLES

__all__ = ["Offer", "data", "error_place", "page"]


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A model that the page offers."""

    name: str
    kind: str
    about: str = ""

    @property
    def purpose(self) -> str:
        """What the model is for."""
        stated = self.about.partition(";")[0]
        if stated.startswith("for ") and len(stated) <= 60:
            return stated
        return "for counts" if self.kind == "counts" else "for real-valued tables"

    @property
    def label(self) -> str:
        """Name without its folder, and purpose."""
        return f"{self.name.rstrip('/').rpartition('/')[2].removesuffix('.safetensors')}: {self.purpose}"


def page(
    *, models: Sequence[Offer], examples: Sequence[str], domains: Sequence[tuple[str, str]], limit: int
) -> html.Div:
    """The page, the same for everyone: the browser makes the key of its session. domains: (name, label).

    limit: largest upload in bytes.
    """
    stores = ("upload-event", "answer", "places", "tier-move", "marked", "run-at", "countlike", "roles")
    return html.Div(
        id="page",
        **data(limit=limit),
        children=[
            dcc.Store(id="session"),
            dcc.Store(id="theme"),
            dcc.Store(id="knowledge", data={}),
            dcc.Store(id="chosen", data=[]),
            dcc.Store(id="table-sort", data={"by": "probability", "down": True}),
            *(dcc.Store(id=name) for name in stores),
            dcc.Download(id="download"),
            dcc.Interval(id="tick", interval=400, disabled=True),
            html.Header(
                [
                    html.Div([html.B("Presage"), html.Span("causal discovery from tables")], className="brand"),
                    html.Div(
                        [
                            html.Span(f"version {presage.__version__} · data stays on this machine", className="soft"),
                            html.Button("Dark", id="theme-button", className="quiet", title="Light or dark colours"),
                        ],
                        className="brand-end",
                    ),
                ]
            ),
            error_place("page-error"),
            html.Div(
                className="columns",
                children=[
                    html.Aside([_data_step(examples, domains, limit), _interventions(), _model(models), _run()]),
                    html.Main([_preview(), _columns(), answer()]),
                ],
            ),
            _card_dialog(),
        ],
    )


def data(**marks: object) -> dict[str, Any]:
    """HTML attributes data-... of an element, for the script of the page."""
    return {f"data-{name}": str(value) for name, value in marks.items()}


def error_place(key: str) -> html.Div:
    """An empty place for a message; the script of the page scrolls to it when it is filled."""
    return html.Div(id=key, role="alert", className="error")


def _step(number: int, title: str, *children: Any) -> html.Section:
    return html.Section([html.H2([html.Span(str(number), className="number"), title]), *children], className="step")


def _data_step(examples: Sequence[str], domains: Sequence[tuple[str, str]], limit: int) -> html.Section:
    upload = html.Div(
        [
            html.Button(
                [html.B("Drop a file here"), html.Span("or click to choose one")],
                id="drop",
                className="drop",
                **data(role="data"),
            ),
            html.P(
                f"csv, tsv, xlsx, ods, parquet, npz or h5ad; up to {limit // 2**20} MB and {MAX_VARIABLES} variables. "
                "One column per variable, one row per observation. Uploads are kept in memory only.",
                className="soft small",
            ),
        ]
    )
    example = html.Div(
        [
            html.Label("Bundled simulated dataset with its true graph", htmlFor="example"),
            _dropdown("example", list(examples), "rff", searchable=False),
            html.Button("Use this example", id="use-example", className="wide"),
        ]
    )
    simulate = html.Div(
        [
            html.Label("Domain", htmlFor="domain"),
            _dropdown("domain", [{"value": name, "label": label} for name, label in domains], "rff"),
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
    summary = html.P(
        [html.Span(id="column-summary"), html.Button("Change", id="show-columns", className="plain")],
        id="column-line",
        className="small",
        hidden=True,
    )
    return _step(1, "Data", tabs, error_place("data-error"), summary)


def _dropdown(key: str, options: Any, value: Any, **more: Any) -> dcc.Dropdown:
    return dcc.Dropdown(
        id=key, options=options, value=value, clearable=False, closeOnSelect=True, optionHeight="auto", **more
    )


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
                allow_direct_input=True,
                tooltip={"placement": "top", "always_visible": False},
            ),
        ],
        className="slider",
    )


def _interventions() -> html.Section:
    return _step(
        2,
        "Interventions",
        _dropdown("interventions", [{"value": "none", "label": "No interventions"}], "none"),
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
                error_place("mask-error"),
            ],
            id="mask-place",
            hidden=True,
        ),
        html.Div(
            dcc.Checklist(
                id="soft",
                options=[{"value": "soft", "label": "Soft: they shift their target without setting it"}],
                value=[],
                className="switches small",
                **KEPT,
            ),
            id="soft-place",
            hidden=True,
            title="A hard intervention sets its target, whatever its causes. A soft one changes how the target depends "
            "on its causes.",
        ),
        html.Div(
            [
                html.Label("Layer", htmlFor="layer"),
                dcc.Dropdown(id="layer", placeholder="X", closeOnSelect=True),
            ],
            id="layer-place",
            hidden=True,
        ),
    )


def _model(models: Sequence[Offer]) -> html.Section:
    return _step(
        3,
        "Model",
        _dropdown(
            "model",
            [{"value": offer.name, "label": offer.label} for offer in models],
            models[0].name if models else None,
            placeholder="no model was found",
            **KEPT,
        ),
        html.Div(id="model-about", className="soft small"),
        html.Div(
            [
                html.Button("Model card", id="show-card", className="plain"),
                _dropdown(
                    "counts",
                    [
                        {"value": "look", "label": "detect counts"},
                        {"value": "counts", "label": "values are counts"},
                        {"value": "real", "label": "read as real values"},
                    ],
                    "look",
                    searchable=False,
                    **KEPT,
                ),
            ],
            className="row",
        ),
        dcc.Checklist(
            id="stability",
            options=[{"value": "on", "label": f"Stability over {RESAMPLES} resamples of the rows (slower)"}],
            value=[],
            className="switches small",
            **KEPT,
        ),
        error_place("card-error"),
    )


def _card_dialog() -> html.Dialog:
    return html.Dialog(
        [
            html.Div(
                [html.H2("Model card"), html.Button("Close", id="hide-card", className="quiet")],
                className="row dialog-head",
            ),
            dcc.Markdown(id="card", className="card"),
        ],
        id="card-dialog",
    )


def _run() -> html.Section:
    return html.Section(
        [
            html.Button("Run", id="run", className="primary wide", disabled=True),
            error_place("run-error"),
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


def _columns() -> html.Section:
    return html.Section(
        [
            html.H2("How the columns are read"),
            html.P(
                "The roles were guessed from names and values. Change those that are wrong before you run.",
                className="soft small",
            ),
            html.Div(id="columns"),
        ],
        id="columns-place",
        className="box",
        hidden=True,
    )
