"""Left side of the page: upload, example, simulation, interventions, model, progress, cancel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dash import Dash, Input, Output, State, ctx, html, no_update

from presage.errors import ConfigError, DataError, PresageError
from presage.inference.hub import load_model
from presage.report.text import sentence
from presage.web.jobs import Job, Runner
from presage.web.sessions import Analysis, Run, Session, Sessions
from presage.web.sources import Example, Preview, Simulation, Source, Upload

__all__ = ["Context", "finish", "intervention_choices", "prepare_run", "preview_part", "register", "store_upload"]


@dataclass(frozen=True, kw_only=True)
class Context:
    """Objects that all callbacks share."""

    sessions: Sessions
    runner: Runner
    limit: int


def store_upload(session: Session, role: str, name: str, content: bytes, limit: int) -> None:
    """Keep an uploaded file as the data or as the intervention mask of a session."""
    if len(content) > limit:
        raise DataError(f"the file {name!r} is larger than the limit of {limit // 2**20} MB")
    if not content:
        raise DataError(f"the file {name!r} is empty")
    upload = Upload(name, content)
    if role == "mask":
        session.mask = upload
    else:
        session.source, session.mask = upload, None


def intervention_choices(preview: Preview) -> tuple[list[dict[str, str]], str]:
    """Options of the dropdown, and the initial one."""
    options = [{"value": "none", "label": "No interventions"}]
    if preview.has_mask:
        options = [{"value": "none", "label": "As stored with the data"}]
    options += [{"value": f"column:{name}", "label": f"Column {name}"} for name in preview.intervention_columns]
    options.append({"value": "mask", "label": "A mask file with 0 and 1"})
    return options, "none" if preview.guess is None else f"column:{preview.guess}"


def preview_part(preview: Preview) -> list[Any]:
    """The first rows of the table."""
    head = html.Tr([html.Th(name) for name in preview.columns])
    rows = [html.Tr([html.Td(cell) for cell in row]) for row in preview.rows]
    more = f" The first {len(preview.columns)} columns are shown." if preview.more_columns else ""
    return [
        html.H1(preview.title),
        html.P(f"{preview.facts}.{more}", className="soft"),
        html.Div(html.Table([html.Thead(head), html.Tbody(rows)]), className="scroll"),
    ]


def prepare_run(
    session: Session, choice: str, layer: str | None, model: str | None, counts: str
) -> tuple[dict[str, Any], Run]:
    """Read the data once; returns the task of the worker, which calls `discover`, and the description of the run."""
    source = session.source
    if source is None:
        raise ConfigError("choose data first: upload a file, or use an example")
    if not model:
        raise ConfigError("no model was found; start the page with --model FILE")
    arguments: dict[str, Any] = {}
    interventions: Any = None
    if choice.startswith("column:"):
        interventions = arguments["interventions"] = choice.removeprefix("column:")
    elif choice == "mask":
        if session.mask is None:
            raise ConfigError("upload the file with the intervention mask first, or choose another option")
        interventions, arguments["interventions"] = session.mask, session.mask.name
    if layer:
        arguments["layer"] = layer
    if model != "scm":
        arguments["model"] = model
    flag = {"counts": True, "real": False}.get(counts)
    if flag is not None:
        arguments["counts"] = flag
    inputs = source.inputs(interventions, layer=layer or None)
    session.count += 1
    run = Run(number=session.count, dataset=inputs.dataset, source=source, arguments=arguments)
    return {"inputs": inputs, "model": model, "counts": flag}, run


def finish(job: Job, run: Run) -> Analysis:
    """The run of a job that is done, with its result."""
    if job.result is None:
        raise DataError("the run has no result")
    return Analysis(**vars(run), result=job.result)


def register(app: Dash, context: Context) -> None:
    """Add the callbacks of the left side of the page."""
    sessions = context.sessions

    @app.callback(
        Output("result", "hidden", allow_duplicate=True),  # the result of other data would mislead
        Output("preview", "children"),
        Output("interventions", "options"),
        Output("interventions", "value"),
        Output("layer-place", "hidden"),
        Output("layer", "options"),
        Output("layer", "value"),
        Output("run", "disabled"),
        Output("mask-name", "children"),
        Output("error", "children"),
        Input("upload-event", "data"),
        Input("use-example", "n_clicks"),
        Input("use-simulation", "n_clicks"),
        State("session", "data"),
        State("example", "value"),
        State("domain", "value"),
        State("sim-d", "value"),
        State("sim-n", "value"),
        State("sim-share", "value"),
        State("sim-seed", "value"),
        prevent_initial_call=True,
        running=[
            (Output("use-simulation", "disabled"), True, False),
            (Output("use-simulation", "children"), "Simulating …", "Simulate"),
        ],
    )
    def load_data(
        event: dict[str, Any] | None,
        _example: int | None,
        _simulate: int | None,
        key: str,
        example: str,
        domain: str,
        d: int,
        n: int,
        share: float,
        seed: int | None,
    ) -> tuple[Any, ...]:
        nothing = (no_update,) * 9
        try:
            session = sessions.get(key)
            if ctx.triggered_id == "upload-event":
                event = event or {}
                if event.get("error"):
                    return (*nothing, sentence(event["error"]))
                if event.get("role") == "mask" and session.mask is not None:
                    text = f"{session.mask.name}: {session.mask.preview.facts}"
                    return (*nothing[:-1], text, None)
            elif ctx.triggered_id == "use-example":
                session.source = Example(example)
            else:
                session.source = Simulation(domain, int(d), int(n), float(share) / 100.0, int(seed or 0))
            source: Source | None = session.source
            if source is None:
                return (*nothing, None)
            preview = source.preview
            options, value = intervention_choices(preview)
            layers = preview.layers
            return (True, preview_part(preview), options, value, not layers, layers, None, False, "", None)
        except PresageError as error:
            return (*nothing, sentence(str(error)))

    @app.callback(Output("mask-place", "hidden"), Input("interventions", "value"))
    def ask_for_mask(choice: str) -> bool:
        return choice != "mask"

    @app.callback(
        Output("card", "children"),
        Output("card-place", "hidden"),
        Input("show-card", "n_clicks"),
        Input("hide-card", "n_clicks"),
        Input("model", "value"),
        State("card-place", "hidden"),
        prevent_initial_call=True,
    )
    def show_card(_show: int | None, _hide: int | None, model: str | None, hidden: bool) -> tuple[Any, bool]:
        if ctx.triggered_id == "hide-card" or (ctx.triggered_id == "model" and hidden):
            return no_update, True
        try:
            return str(load_model(model or "").card), False
        except PresageError as error:
            return sentence(str(error)), False

    @app.callback(
        Output("progress", "hidden"),
        Output("tick", "disabled"),
        Output("error", "children", allow_duplicate=True),
        Output("run", "disabled", allow_duplicate=True),
        Output("stage", "children"),
        Output("bar", "style"),
        Input("run", "n_clicks"),
        State("session", "data"),
        State("interventions", "value"),
        State("layer", "value"),
        State("model", "value"),
        State("counts", "value"),
        prevent_initial_call=True,
        running=[(Output("run", "children"), "Reading the table …", "Run")],
    )
    def start(_clicks: int, key: str, choice: str, layer: str | None, model: str, counts: str) -> tuple[Any, ...]:
        try:
            session = sessions.get(key)
            if session.job is not None:
                session.job.cancel()
            task, run = prepare_run(session, choice, layer, model, counts)
        except PresageError as error:
            return True, True, sentence(str(error)), False, "", {"width": "0%"}
        session.job = context.runner.submit(task)
        session.job.pending = run
        return False, False, None, True, "starting", {"width": "2%"}

    @app.callback(
        Output("progress", "hidden", allow_duplicate=True),
        Output("tick", "disabled", allow_duplicate=True),
        Output("error", "children", allow_duplicate=True),
        Output("run", "disabled", allow_duplicate=True),
        Output("stage", "children", allow_duplicate=True),
        Output("bar", "style", allow_duplicate=True),
        Output("answer", "data"),
        Input("tick", "n_intervals"),
        Input("cancel", "n_clicks"),
        State("session", "data"),
        prevent_initial_call=True,
    )
    def follow(_tick: int | None, _cancel: int | None, key: str) -> tuple[Any, ...]:
        over = (True, True)
        try:
            session = sessions.get(key)
        except PresageError as error:
            return (*over, sentence(str(error)), False, "", {"width": "0%"}, no_update)
        job = session.job
        if job is None:
            return (*over, no_update, False, "", {"width": "0%"}, no_update)
        if ctx.triggered_id == "cancel":
            job.cancel()
        if not job.over:
            stage = f"{sentence(job.stage)[:-1]}, {job.seconds:.0f} s"
            return False, False, no_update, True, stage, {"width": f"{2 + 98 * job.share:.0f}%"}, no_update
        # The browser drops responses that a newer tick has overtaken, so the end of a run is reported on every tick.
        if job.status == "cancelled":
            return (*over, "The run was cancelled.", False, "", {"width": "0%"}, no_update)
        if job.status == "failed":
            return (*over, sentence(job.error), False, "", {"width": "0%"}, no_update)
        if session.analysis is None or session.analysis.number != job.pending.number:
            session.analysis = finish(job, job.pending)
        return (*over, None, False, "", {"width": "100%"}, {"number": session.analysis.number})
