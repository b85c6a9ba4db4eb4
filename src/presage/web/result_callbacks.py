"""Right side of the page: graph, heat map, table, threshold, details, background knowledge, downloads."""

from __future__ import annotations

from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, no_update

from presage.errors import ConfigError, PresageError
from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.report.suggestions import suggested_experiments
from presage.report.text import sentence
from presage.web.context import Context
from presage.web.exports import KINDS, file_content, python_code
from presage.web.figures import heat_figure, heat_height, pair_figure, variable_figure
from presage.web.panel import edge_part, nothing_part, total_effect_part, variable_part
from presage.web.parts import (
    answer_head,
    count_text,
    experiments_part,
    knowledge_part,
    legend_part,
    scores_part,
    tier_columns,
    update_knowledge,
    warnings_part,
)
from presage.web.sessions import Analysis
from presage.web.table import edge_rows, edge_table
from presage.web.theme import stylesheet, theme_of
from presage.web.view import (
    MANY,
    View,
    causal_order,
    confounded_pairs,
    elements,
    neighbourhood,
    node_positions,
)

__all__ = ["register", "view_of"]


def view_of(threshold: Any, top: Any, switches: Any) -> View:
    """The controls as a `View`; values that no control sends count as not set."""
    number = isinstance(threshold, (int, float)) and not isinstance(threshold, bool) and 0 <= threshold <= 1
    whole = isinstance(top, int) and not isinstance(top, bool) and 0 < top <= 10**6
    acyclic = isinstance(switches, list) and "acyclic" in switches
    return View(threshold=float(threshold) if number else 0.5, top=top if whole else None, acyclic=acyclic)


def _unflat(flat: dict[str, str]) -> dict[str, Any]:
    """The fact of a tag from its id; see `parts.knowledge_part`."""
    return {flat["key"]: flat["first"] if flat["key"] == "root" else [flat["first"], flat["second"]]}


def _indices(chosen: Any, d: int) -> list[int]:
    """The variables that the browser says are chosen, if they exist: none, one, or the two ends of an edge."""
    found = [k for k in chosen if isinstance(k, int) and 0 <= k < d] if isinstance(chosen, list) else []
    return found if len(found) in (1, 2) and len(found) == len(chosen) and len(set(found)) == len(found) else []


def _knowledge(known: Any) -> Knowledge:
    return Knowledge.from_json(known if isinstance(known, dict) else {})


def _shown(context: Context, key: Any, answer: Any, known: Any) -> tuple[Analysis, Knowledge, Result]:
    """What a page shows: the run, the background knowledge, and the result under it."""
    analysis, knowledge = context.analysis(key, answer), _knowledge(known)
    return analysis, knowledge, context.result_given(analysis, knowledge)


def register(app: Dash, context: Context) -> None:
    """Add the callbacks of the right side of the page."""
    sessions = context.sessions

    @app.callback(
        Output("knowledge", "data"),
        Output("chosen", "data"),
        Output("known-error", "children"),
        Output("tier-move", "data"),
        Input("answer", "data"),
        Input("require", "n_clicks"),
        Input("forbid", "n_clicks"),
        Input("forget", "n_clicks"),
        Input("root", "n_clicks"),
        Input("unroot", "n_clicks"),
        Input("tier-move", "data"),
        Input({"type": "drop", "key": ALL, "first": ALL, "second": ALL}, "n_clicks"),
        Input({"type": "no-tiers", "k": ALL}, "n_clicks"),
        State("session", "data"),
        State("knowledge", "data"),
        State("chosen", "data"),
        prevent_initial_call=True,
    )
    def change_knowledge(answer: Any, *given: Any) -> tuple[Any, ...]:
        *_, move, _drops, _tiers, key, known, chosen = given
        by = ctx.triggered_id
        session = sessions.find(key)
        if by == "answer":
            again = isinstance(answer, dict) and "again" in answer and session is not None
            if session is not None and not again:
                session.knowledge = {}
            return (session.knowledge if again and session is not None else {}), [], None, None
        if by is None or not ctx.triggered[0]["value"]:
            return (no_update,) * 4  # buttons also call when they are created
        try:
            analysis = context.analysis(key, answer)
            names = analysis.result.names
            move = move if isinstance(move, dict) else {}
            what, detail = (by, move) if isinstance(by, str) else (by["type"], by)
            if what == "tier-move":
                what = "tier"
                if move.get("name") not in names or not isinstance(move.get("tier"), int):
                    raise ConfigError("that variable cannot be moved there")
            elif what == "drop":
                detail = _unflat(by)
            found = update_knowledge(known or {}, what, names, _indices(chosen, len(names)), detail)
            analysis.result.with_knowledge(found)  # raises on contradictions
        except PresageError as error:
            return no_update, no_update, sentence(str(error)), None
        if session is not None:
            session.knowledge = found.to_json()
        return found.to_json(), no_update, None, None

    @app.callback(
        Output("places", "data"),
        Output("result", "hidden"),
        Output("answer-head", "children"),
        Output("scores-place", "hidden"),
        Output("switches", "options"),
        Output("switches", "value"),
        Output("focus", "options"),
        Output("focus", "value"),
        Input("answer", "data"),
        Input("tidy", "n_clicks"),
        State("session", "data"),
        State("knowledge", "data"),
        State("threshold", "value"),
        State("top", "value"),
        State("switches", "value"),
        prevent_initial_call=True,
    )
    def place_nodes(
        answer: Any, _tidy: Any, key: Any, known: Any, threshold: Any, top: Any, switches: Any
    ) -> tuple[Any, ...]:
        new = ctx.triggered_id == "answer"
        analysis, _, result = _shown(context, key, answer, None if new else known)
        truth = analysis.dataset.graph is not None
        places = node_positions(result, view_of(threshold, top, switches))
        if not new:
            return (places, *(no_update,) * 7)
        options = [{"value": "acyclic", "label": "acyclic"}]
        if truth:
            options.append({"value": "truth", "label": "colour by truth"})
        chosen = [s for s in switches or () if s == "acyclic"] + (["truth"] if truth else [])
        variables = [{"value": j, "label": name} for j, name in enumerate(result.names)]
        return places, False, answer_head(analysis), not truth, options, chosen, variables, None

    @app.callback(
        Output("graph", "elements"),
        Output("graph", "stylesheet"),
        Output("warnings", "children"),
        Output("scores", "children"),
        Output("count", "children"),
        Output("legend", "children"),
        Output("threshold-text", "children"),
        Output("lines", "children"),
        Output("known-list", "children"),
        Output("tiers", "children"),
        Output("graph-place", "className"),
        Input("places", "data"),
        Input("threshold", "value"),
        Input("top", "value"),
        Input("switches", "value"),
        Input("knowledge", "data"),
        Input("theme", "data"),
        State("session", "data"),
        State("answer", "data"),
        prevent_initial_call=True,
    )
    def draw(
        places: Any, threshold: Any, top: Any, switches: Any, known: Any, look: Any, key: Any, answer: Any
    ) -> tuple[Any, ...]:
        theme = theme_of(look)
        if not answer:
            return (no_update, stylesheet(theme), *(no_update,) * 9)
        try:
            analysis, knowledge, result = _shown(context, key, answer, known)
        except PresageError as error:
            return (no_update, no_update, warnings_part([str(error)]), *((no_update,) * 8))
        if not isinstance(places, list) or len(places) != len(analysis.result.names):
            return (no_update,) * 11
        view = view_of(threshold, top, switches)
        limit = view.limit(result)
        truth = analysis.dataset.graph if "truth" in (switches or ()) else None
        legend = legend_part(
            theme,
            truth=truth is not None,
            effects=result.effect is not None,
            hidden=bool(confounded_pairs(result, max(limit, 0.5))),
            known=knowledge,
            lone=len(result.names) <= MANY,
        )
        return (
            elements(result, view, places, truth=truth, known=knowledge),
            stylesheet(theme),
            warnings_part(result.warnings),
            scores_part(result, analysis, limit),
            count_text(result, view, limit),
            legend,
            f"{limit:.2f}",
            python_code(analysis, knowledge, view, limit),
            knowledge_part(knowledge),
            tier_columns(result.names, knowledge),
            "graph many" if len(result.names) > MANY else "graph",
        )

    @app.callback(
        Output("heat", "figure"),
        Output("heat", "style"),
        Output("heat-note", "children"),
        Input("places", "data"),
        Input("focus", "value"),
        Input("knowledge", "data"),
        Input("theme", "data"),
        State("threshold", "value"),
        State("top", "value"),
        State("switches", "value"),
        State("session", "data"),
        State("answer", "data"),
        prevent_initial_call=True,
    )
    def draw_heat_map(
        places: Any, focus: Any, known: Any, look: Any, threshold: Any, top: Any, switches: Any, key: Any, answer: Any
    ) -> tuple[Any, ...]:
        if not answer or not places:
            return (no_update,) * 3
        _, _, result = _shown(context, key, answer, known)
        view = view_of(threshold, top, switches)
        d = len(result.names)
        order = causal_order(result, view) if d > MANY else list(range(d))
        note = "causes before effects; drag over an area to enlarge it, double-click to go back" if d > MANY else ""
        if _indices([focus], d):
            near = set(neighbourhood(view.graph(result), focus))
            order = [j for j in order if j in near]
            note = f"only {result.names[focus]} with its causes and effects"
        figure = heat_figure(result, order, theme_of(look))
        return figure, {"height": f"{heat_height(len(order))}px"}, note

    @app.callback(
        Output("edge-table", "children"),
        Output("table-count", "children"),
        Input("places", "data"),
        Input("threshold", "value"),
        Input("top", "value"),
        Input("switches", "value"),
        Input("knowledge", "data"),
        Input("focus", "value"),
        Input("table-search", "value"),
        Input("table-sort", "data"),
        State("session", "data"),
        State("answer", "data"),
        prevent_initial_call=True,
    )
    def list_edges(
        places: Any, threshold: Any, top: Any, switches: Any, known: Any, focus: Any, search: Any, sort: Any,
        key: Any, answer: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        if not answer or not places:
            return no_update, no_update
        _, _, result = _shown(context, key, answer, known)
        graph = view_of(threshold, top, switches).graph(result)
        within = set(neighbourhood(graph, focus)) if _indices([focus], len(result.names)) else None
        rows = edge_rows(result, graph, search=search or "", sort=sort, within=within)
        total = int(graph.sum())
        text = f"{total}" if len(rows) == total else f"{len(rows)} of {total}"
        estimates = {"effect": result.effect, "hidden": result.hidden_causes, "stability": result.stability}
        return edge_table(rows, sort, left_out=[key for key, found in estimates.items() if found is None]), text

    @app.callback(
        Output("chosen-title", "children"),
        Output("chosen-text", "children"),
        Output("arrow-buttons", "hidden"),
        Output("variable-buttons", "hidden"),
        Output("scatter-place", "hidden"),
        Output("scatter", "figure"),
        Output("require", "className"),
        Output("forbid", "className"),
        Output("root", "className"),
        Output("details", "className"),
        Input("chosen", "data"),
        Input("knowledge", "data"),
        Input("places", "data"),
        Input("theme", "data"),
        State("threshold", "value"),
        State("session", "data"),
        State("answer", "data"),
        prevent_initial_call=True,
    )
    def show_details(
        chosen: Any, known: Any, _places: Any, look: Any, threshold: Any, key: Any, answer: Any
    ) -> tuple[Any, ...]:
        if not answer:
            return (no_update,) * 10
        theme, (analysis, knowledge, result) = theme_of(look), _shown(context, key, answer, known)
        picked = _indices(chosen, len(result.names))
        if not picked:
            return "Details", nothing_part(result), True, True, True, no_update, "", "", "", "box details"
        if len(picked) == 1:
            (j,) = picked
            on = "on" if result.names[j] in knowledge.roots else ""
            text = variable_part(result, knowledge, j, view_of(threshold, None, None).threshold)
            figure = variable_figure(analysis.dataset, j, theme)
            return result.names[j], text, True, False, False, figure, "", "", on, "box details open"
        i, j = picked
        edge = (result.names[i], result.names[j])
        marks = ["on" if edge in group else "" for group in (knowledge.required, knowledge.forbidden)]
        text = edge_part(result, analysis.result, i, j)
        figure = pair_figure(analysis.dataset, i, j, theme)
        return f"{edge[0]} → {edge[1]}", text, False, True, False, figure, *marks, "", "box details open"

    @app.callback(
        Output("total-effect", "children"),
        Input("chosen", "data"),
        Input("knowledge", "data"),
        State("session", "data"),
        State("answer", "data"),
        prevent_initial_call=True,
        running=[(Output("total-effect", "className"), "faint", "")],
    )
    def show_total_effect(chosen: Any, known: Any, key: Any, answer: Any) -> Any:
        # Apart from the other details because it samples graphs, which takes seconds for many variables.
        if not answer:
            return no_update
        _, _, result = _shown(context, key, answer, known)
        picked = _indices(chosen, len(result.names))
        return total_effect_part(result, *picked) if len(picked) == 2 else None

    @app.callback(
        Output("experiments", "children"),
        Input("suggest", "n_clicks"),
        Input("answer", "data"),
        Input("knowledge", "data"),
        State("session", "data"),
        prevent_initial_call=True,
        running=[
            (Output("suggest", "disabled"), True, False),
            (Output("suggest", "children"), "Sampling graphs …", "Suggest experiments"),
        ],
    )
    def suggest(_clicks: Any, answer: Any, known: Any, key: Any) -> Any:
        if ctx.triggered_id != "suggest" or not answer:
            return None  # suggestions for another result would mislead
        analysis, _, result = _shown(context, key, answer, known)
        return experiments_part(result, suggested_experiments(result, analysis.dataset))

    @app.callback(
        Output("download", "data"),
        Output("download-error", "children"),
        Input({"type": "take", "kind": ALL}, "n_clicks"),
        State("session", "data"),
        State("answer", "data"),
        State("knowledge", "data"),
        State("threshold", "value"),
        State("top", "value"),
        State("switches", "value"),
        prevent_initial_call=True,
    )
    def download(
        clicks: Any, key: Any, answer: Any, known: Any, threshold: Any, top: Any, switches: Any
    ) -> tuple[Any, Any]:
        by = ctx.triggered_id
        kind = by.get("kind") if isinstance(by, dict) else None
        if not any(clicks or ()) or kind not in KINDS:
            return no_update, no_update
        try:
            analysis, knowledge, result = _shown(context, key, answer, known)
            view = view_of(threshold, top, switches)
            limit = view.limit(result)
            code = python_code(analysis, knowledge, view, limit)
            content = file_content(kind, analysis, result, limit, view.acyclic, code)
        except PresageError as error:
            return no_update, sentence(str(error))
        return {"content": content, "filename": kind}, None

    in_browser: Any = app.clientside_callback  # untyped in dash
    for name, inputs in (
        ("point", [Input("heat", "hoverData")]),
        ("fit", [Input("places", "data")]),
        ("mark", [Input("chosen", "data"), Input("graph", "elements"), Input("heat", "figure"), Input("focus", "value"),
                  Input("edge-table", "children")]),
    ):  # fmt: skip
        in_browser(
            ClientsideFunction("presage", name),
            Output("marked", "data", allow_duplicate=True),
            *inputs,
            prevent_initial_call=True,
        )
