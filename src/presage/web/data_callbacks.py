"""Left side of the page: upload, example, simulation, interventions, model, progress, cancel, loading a page again."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update

from presage.errors import ConfigError, DataError, PresageError
from presage.inference.hub import DEFAULT_MODEL, load_model
from presage.report.text import sentence
from presage.web.column_guess import roles_from_page
from presage.web.column_panel import columns_part
from presage.web.context import Context
from presage.web.jobs import Job
from presage.web.layout import data
from presage.web.sessions import Analysis, Run, Session
from presage.web.sources import Example, Preview, Simulation, Source, Upload
from presage.web.worker import RESAMPLES

__all__ = [
    "finish",
    "intervention_choices",
    "prepare_run",
    "preview_part",
    "recommended",
    "register",
    "settings_changed",
    "settings_of",
    "store_upload",
]


def store_upload(session: Session, role: str, name: str, content: bytes, context: Context) -> None:
    """Keep an uploaded file as the data or as the intervention mask of a session.

    After a refused file the session has no data, because a result for the earlier file would mislead.
    """
    if role != "mask":
        session.replace_source(None)
    if len(content) > context.limit:
        raise DataError(f"the file {name!r} is larger than the limit of {context.limit // 2**20} MB")
    if not content:
        raise DataError(f"the file {name!r} is empty")
    upload = Upload(name, content, reader=context.reader, limit=context.limit)
    if role == "mask":
        session.mask = upload
    else:
        session.source = upload


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


def prepare_run(session: Session, *controls: Any, offered: Collection[str]) -> tuple[dict[str, Any], Run]:
    """Read the data once; returns the task of the worker, which calls `discover`, and the description of the run.

    controls: values of the controls, see `settings_of`. offered: names of the models that may be asked for; a page may
    not load other files of the server.
    """
    source, settings = session.source, settings_of(session, *controls)
    choice, model, roles = settings["interventions"], settings["model"], dict(settings["roles"])
    if source is None:
        raise ConfigError("choose data first: upload a file, or use an example")
    if not model:
        raise ConfigError("no model was found; start the page with --model FILE")
    if not isinstance(model, str) or model not in offered:
        raise ConfigError("this page does not offer that model; choose one from the list")
    targets: Any = None
    name = None
    if choice.startswith("column:"):
        targets = name = choice.removeprefix("column:")
        roles.pop(name, None)  # the column of interventions has that role
    elif choice == "mask":
        if session.mask is None:
            raise ConfigError("upload the file with the intervention mask first, or choose another option")
        targets, name = session.mask, session.mask.name
    flag = {"counts": True, "real": False}.get(settings["counts"])
    bootstrap = RESAMPLES if settings["stability"] else 0
    arguments = {
        "interventions": {"targets": name, "kind": "soft"} if settings["soft"] else name,
        "layer": settings["layer"],
        "model": None if model == DEFAULT_MODEL else model,
        "counts": flag,
        "roles": roles or None,
        "bootstrap": bootstrap or None,
    }
    given = {"targets": targets, "kind": "soft"} if settings["soft"] else targets
    inputs = source.inputs(given, layer=settings["layer"], roles=roles or None)
    session.count += 1
    run = Run(
        number=session.count,
        dataset=inputs.dataset,
        source=source,
        arguments={key: value for key, value in arguments.items() if value is not None},
        settings=settings,
    )
    return {"inputs": inputs, "model": model, "counts": flag, "bootstrap": bootstrap}, run


def settings_of(
    session: Session,
    choice: Any,
    layer: Any,
    model: Any,
    counts: Any,
    roles: Any = None,
    stability: Any = None,
    soft: Any = None,
) -> dict[str, Any]:
    """The values of the controls as settings of a run; values that no control sends count as not set."""
    choice = choice if isinstance(choice, str) else "none"
    return {
        "interventions": choice,
        "soft": bool(soft) and choice != "none",
        "mask": session.mask if choice == "mask" else None,
        "layer": layer if isinstance(layer, str) and layer else None,
        "model": model,
        "counts": counts if isinstance(counts, str) else "look",
        "roles": roles_from_page(roles),
        "stability": bool(stability),
    }


def settings_changed(session: Session | None, *controls: Any) -> bool:
    """Whether the page shows a result of the user with other settings. controls: see `settings_of`."""
    if session is None or session.analysis is None or session.source is None or not session.has_answer:
        return False
    return session.analysis.settings != settings_of(session, *controls)


def finish(job: Job, run: Run) -> Analysis:
    """The run of a job that is done, with its result."""
    if job.result is None:
        raise DataError("the run has no result")
    return Analysis(**vars(run), result=job.result, seconds=job.seconds)


def recommended(context: Context, countlike: bool) -> str | None:
    """The first offered model for this kind of values."""
    kind = "counts" if countlike else "real"
    return next((offer.name for offer in context.models if offer.kind == kind), None)


def _simulation(domain: Any, d: Any, n: Any, share: Any, seed: Any) -> Simulation:
    try:
        return Simulation(str(domain), int(d), int(n), float(share) / 100.0, int(seed or 0))
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, PresageError):
            raise
        raise ConfigError("variables, rows, share and seed of a simulation must be whole numbers") from error


_DATA_OUTPUTS = {
    "result_hidden": Output("result", "hidden", allow_duplicate=True),  # the result of other data would mislead
    "preview": Output("preview", "children"),
    "columns": Output("columns", "children"),
    "columns_hidden": Output("columns-place", "hidden"),
    "column_line_hidden": Output("column-line", "hidden"),
    "roles": Output("roles", "data"),
    "options": Output("interventions", "options"),
    "choice": Output("interventions", "value"),
    "layer_hidden": Output("layer-place", "hidden"),
    "layers": Output("layer", "options"),
    "layer": Output("layer", "value"),
    "run_disabled": Output("run", "disabled"),
    "mask": Output("mask-name", "children"),
    "countlike": Output("countlike", "data"),
    "error": Output("data-error", "children"),
    "mask_error": Output("mask-error", "children"),
    "tick": Output("tick", "disabled"),
    "progress_hidden": Output("progress", "hidden"),
    "answer": Output("answer", "data"),
}


def _data_outputs(**changes: Any) -> dict[str, Any]:
    return {**dict.fromkeys(_DATA_OUTPUTS, no_update), **changes}


def _show_source(source: Source) -> dict[str, Any]:
    preview = source.preview
    options, value = intervention_choices(preview)
    return _data_outputs(
        preview=preview_part(preview),
        columns=columns_part(preview.roles, preview.unlisted_columns, preview.guess),
        columns_hidden=not preview.roles,
        column_line_hidden=not preview.roles,
        roles={},
        options=options,
        choice=value,
        layer_hidden=not preview.layers,
        layers=preview.layers,
        layer=None,
        run_disabled=False,
        mask="",
        countlike=preview.countlike,
        error=None,
        mask_error=None,
    )


def _refuse(error: str) -> dict[str, Any]:
    """After a refused file: no preview, no result, nothing to run."""
    preview = [html.H1("No data"), html.P("The file was refused. Choose another one on the left.", className="soft")]
    return _data_outputs(
        result_hidden=True,
        preview=preview,
        columns=[],
        columns_hidden=True,
        column_line_hidden=True,
        roles={},
        run_disabled=True,
        countlike=None,
        error=sentence(error),
    )


def register(app: Dash, context: Context) -> None:
    """Add the callbacks of the left side of the page."""
    sessions = context.sessions
    in_browser: Any = app.clientside_callback  # untyped in dash
    in_browser(ClientsideFunction("presage", "session"), Output("session", "data"), Input("page", "id"))

    @app.callback(
        output=_DATA_OUTPUTS,
        inputs={
            "event": Input("upload-event", "data"),
            "_clicks": (Input("use-example", "n_clicks"), Input("use-simulation", "n_clicks")),
            "key": Input("session", "data"),
            "example": State("example", "value"),
            "simulation": tuple(State(name, "value") for name in ("domain", "sim-d", "sim-n", "sim-share", "sim-seed")),
        },
        prevent_initial_call=True,
        running=[
            (Output("use-simulation", "disabled"), True, False),
            (Output("use-simulation", "children"), "Simulating …", "Simulate"),
        ],
    )
    def load_data(event: Any, _clicks: Any, key: Any, example: Any, simulation: Any) -> dict[str, Any]:
        by = ctx.triggered_id
        if by == "session":
            return _restore(context, key)
        try:
            session = sessions.open(key)
            if by == "upload-event":
                event = event if isinstance(event, dict) else {}
                if event.get("role") == "mask":
                    if event.get("error"):
                        return _data_outputs(mask_error=sentence(str(event["error"])))
                    if session.mask is None:
                        return _data_outputs()
                    text = f"{session.mask.name}: {session.mask.preview.facts}"
                    return _data_outputs(mask=text, mask_error=None)
                if event.get("error"):
                    session.replace_source(None)
                    return _refuse(str(event["error"]))
            else:
                session.replace_source(None)
                session.replace_source(Example(str(example)) if by == "use-example" else _simulation(*simulation))
            if session.source is None:
                return _data_outputs()
            return _show_source(session.source) | {"result_hidden": True}
        except PresageError as error:
            return _refuse(str(error))

    @app.callback(Output("mask-place", "hidden"), Output("soft-place", "hidden"), Input("interventions", "value"))
    def ask_about_interventions(choice: Any) -> tuple[bool, bool]:
        return choice != "mask", choice in (None, "none")

    @app.callback(
        Output("stale", "hidden"),
        Input("interventions", "value"),
        Input("layer", "value"),
        Input("model", "value"),
        Input("counts", "value"),
        Input("roles", "data"),
        Input("stability", "value"),
        Input("soft", "value"),
        Input("mask-name", "children"),
        Input("answer", "data"),
        State("session", "data"),
        prevent_initial_call=True,
    )
    def compare_settings(*given: Any) -> bool:
        *controls, _mask, _answer, key = given
        choice, roles = controls[0], controls[4]
        session = sessions.find(key)
        if session is not None and session.source is not None:  # kept for a page that is loaded again
            if "roles.data" in ctx.triggered_prop_ids:
                session.roles = roles_from_page(roles)
            if "interventions.value" in ctx.triggered_prop_ids and isinstance(choice, str):
                session.choice = choice
        return not settings_changed(session, *controls)

    in_browser(
        ClientsideFunction("presage", "roles"),
        Output("marked", "data", allow_duplicate=True),
        Input("roles", "data"),
        Input("columns", "children"),
        Input("interventions", "value"),
        prevent_initial_call=True,
    )

    @app.callback(Output("model-about", "children"), Input("model", "value"), Input("countlike", "data"))
    def describe_model(model: Any, countlike: Any) -> list[Any]:
        about = next((offer.about for offer in context.models if offer.name == model), "")
        detail = about.partition("; ")[2] or about  # the label of the model says what it is for
        parts: list[Any] = [html.P(sentence(detail))] if detail else []
        best = None if countlike is None else recommended(context, bool(countlike))
        if best is None:
            return parts
        if best == model:
            return [html.P("Recommended for this table.", className="good"), *parts]
        label = next(offer.label for offer in context.models if offer.name == best)
        button = html.Button(label, className="plain", id="use-recommended", **data(model=best))
        return [html.P(["Recommended for this table: ", button]), *parts]

    @app.callback(
        Output("card", "children"),
        Output("card-error", "children"),
        Input("show-card", "n_clicks"),
        State("model", "value"),
        prevent_initial_call=True,
    )
    def show_card(_show: Any, model: Any) -> tuple[Any, Any]:
        if not isinstance(model, str) or model not in context.offered:
            return no_update, "This page does not offer that model."
        try:
            return str(load_model(model).card), None
        except PresageError as error:
            return no_update, sentence(str(error))

    @app.callback(
        Output("progress", "hidden", allow_duplicate=True),
        Output("tick", "disabled", allow_duplicate=True),
        Output("run-error", "children"),
        Output("run", "disabled", allow_duplicate=True),
        Output("stage", "children"),
        Output("bar", "style"),
        Input("run", "n_clicks"),
        Input("run-again", "n_clicks"),
        State("session", "data"),
        State("interventions", "value"),
        State("layer", "value"),
        State("model", "value"),
        State("counts", "value"),
        State("roles", "data"),
        State("stability", "value"),
        State("soft", "value"),
        prevent_initial_call=True,
        running=[(Output("run", "children"), "Reading the table …", "Run")],
    )
    def start(_clicks: Any, _again: Any, key: Any, *controls: Any) -> tuple[Any, ...]:
        try:
            session = sessions.get(key)
            if session.job is not None:
                session.job.cancel()
            task, run = prepare_run(session, *controls, offered=context.offered)
        except PresageError as error:
            return True, True, sentence(str(error)), False, "", {"width": "0%"}
        session.job = context.runner.submit(task)
        session.job.pending = run
        return False, False, None, True, "starting", {"width": "2%"}

    @app.callback(
        Output("progress", "hidden", allow_duplicate=True),
        Output("tick", "disabled", allow_duplicate=True),
        Output("run-error", "children", allow_duplicate=True),
        Output("run", "disabled", allow_duplicate=True),
        Output("stage", "children", allow_duplicate=True),
        Output("bar", "style", allow_duplicate=True),
        Output("answer", "data", allow_duplicate=True),
        Input("tick", "n_intervals"),
        Input("cancel", "n_clicks"),
        State("session", "data"),
        prevent_initial_call=True,
    )
    def follow(_tick: Any, _cancel: Any, key: Any) -> tuple[Any, ...]:
        over = (True, True)
        session = sessions.find(key)
        job = None if session is None else session.job
        if session is None or job is None:
            return _follow_example(context, session)
        session = sessions.get(key)
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


def _follow_example(context: Context, session: Session | None) -> tuple[Any, ...]:
    """Ticks of a page without a run: the example's answer when it is there."""
    quiet = (True, True, no_update, session is None or session.source is None, "", {"width": "0%"})
    if session is not None and session.source is not None:
        return (*quiet, no_update)
    example = context.example()
    if isinstance(example, Job):
        return (True, example.over, no_update, True, "", {"width": "0%"}, no_update)
    return (*quiet, {"example": True})


def _restore(context: Context, key: Any) -> dict[str, Any]:
    """The state of a page that was loaded again; a new page gets the example's answer."""
    session = context.sessions.find(key)
    if session is None or session.source is None:
        example = context.example()
        return _data_outputs(tick=not isinstance(example, Job)) | (
            {} if isinstance(example, Job) else {"answer": {"example": True}}
        )
    shown = _show_source(session.source) | {"roles": session.roles}
    if session.choice is not None:
        shown["choice"] = session.choice
    running = session.job is not None and not session.job.over
    if session.analysis is not None and session.analysis.source is session.source:
        shown["layer"] = session.analysis.settings["layer"]
        shown["answer"] = {"number": session.analysis.number, "again": time.time()}
    if session.mask is not None:
        shown["mask"] = f"{session.mask.name}: {session.mask.preview.facts}"
    return shown | {"tick": not running, "progress_hidden": not running, "run_disabled": running}
