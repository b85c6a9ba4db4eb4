"""Right side of the page: graph, heat map, threshold, details, background knowledge, downloads."""

from __future__ import annotations

from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update

from presage.errors import ConfigError, PresageError
from presage.graphs.ops import is_acyclic
from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.report.text import sentence
from presage.web.data_callbacks import Context
from presage.web.exports import file_content, knowledge_tags, python_code
from presage.web.layout import data
from presage.web.sessions import Analysis
from presage.web.view import (
    EXTRA,
    MAX_DRAWN,
    MISSED,
    RIGHT,
    View,
    elements,
    heat_figure,
    node_positions,
    pair_figure,
    scores,
    uncertain,
    variable_figure,
)

__all__ = ["count_text", "legend_part", "register", "tier_columns", "update_knowledge", "view_of"]


def view_of(threshold: float | None, top: int | None, switches: list[str] | None) -> View:
    """The controls as a `View`."""
    return View(
        threshold=0.5 if threshold is None else float(threshold),
        top=None if not top else int(top),
        acyclic="acyclic" in (switches or ()),
    )


def update_knowledge(
    known: dict[str, Any], what: str, names: tuple[str, ...], chosen: list[int], move: dict[str, Any]
) -> Knowledge:
    """Knowledge after a click: require, forbid or forget an edge, root or unroot a variable, move one into a tier."""
    facts = {key: [*map(_plain, known.get(key, []))] for key in ("required", "forbidden", "tiers", "roots")}
    if what in ("require", "forbid", "forget") and len(chosen) == 2:
        edge = [names[chosen[0]], names[chosen[1]]]
        for key in ("required", "forbidden"):
            facts[key] = [other for other in facts[key] if other != edge]
        if what != "forget":
            facts[f"{what}d" if what == "require" else "forbidden"].append(edge)
    elif what in ("root", "unroot") and len(chosen) == 1:
        name = names[chosen[0]]
        facts["roots"] = [other for other in facts["roots"] if other != name] + ([name] if what == "root" else [])
    elif what == "drop":
        facts["required"] = [edge for edge in facts["required"] if edge != move.get("required")]
        facts["forbidden"] = [edge for edge in facts["forbidden"] if edge != move.get("forbidden")]
        facts["roots"] = [name for name in facts["roots"] if name != move.get("root")]
    elif what == "tier":
        tiers = [[name for name in tier if name != move["name"]] for tier in facts["tiers"]]
        place = int(move["tier"])
        if place >= len(tiers):
            tiers.append([move["name"]])
        elif place >= 0:
            tiers[place].append(move["name"])
        facts["tiers"] = [tier for tier in tiers if tier]
    elif what == "no-tiers":
        facts["tiers"] = []
    return Knowledge.from_json(facts)


def _plain(item: Any) -> Any:
    return list(item) if isinstance(item, (list, tuple)) else item


def tier_columns(names: tuple[str, ...], known: Knowledge | None) -> list[Any]:
    """Columns of variables: those in no tier, the tiers from earliest to latest, and an empty one."""
    tiers = [list(tier) for tier in known.tiers] if known else []
    placed = {name for tier in tiers for name in tier}
    loose = [name for name in names if name not in placed]
    columns = [("no tier", -1, loose)]
    columns += [(f"tier {k + 1}" + (" (first)" if k == 0 else ""), k, tier) for k, tier in enumerate(tiers)]
    columns.append(("new tier: drop here", len(tiers), []))
    return [
        html.Div(
            [
                html.H3(title),
                *(html.Span(name, className="chip", title=name, **data(name=name)) for name in members),
            ],
            className="tier",
            **data(tier=number),
        )
        for title, number, members in columns
    ]


def count_text(result: Result, view: View, limit: float) -> str:
    """Description of the edges shown."""
    graph = view.graph(result)
    count = int(graph.sum())
    text = (
        f"{count} edge{'s' * (count != 1)} above {limit:.2g}"
        if view.top is None
        else f"the {count} most probable edges"
    )
    if view.acyclic:
        how = "" if result.is_exact(limit) else " (heuristic)"
        text += f", most probable acyclic graph{how}"
    elif not is_acyclic(graph):
        text += "; they form a cycle"
    if count > MAX_DRAWN:
        text += f"; the {MAX_DRAWN} most probable are drawn"
    return text


def legend_part(coloured: bool) -> list[Any]:
    """Legend of the colours."""
    if coloured:
        parts = [("right", RIGHT), ("extra", EXTRA), ("missed", MISSED)]
    else:
        parts = [("improbable", "#c9d8ea"), ("probable", "#0b3c6f")]
    return [html.Span([html.I(style={"borderColor": colour}), label]) for label, colour in parts]


def _warnings(texts: list[str]) -> html.Div:
    if not texts:
        return html.Div("No warnings.", className="warnings fine")
    return html.Div([html.B("Warnings"), html.Ul([html.Li(sentence(text)) for text in texts])], className="warnings")


def _uncertain(result: Result) -> Any:
    found = uncertain(result)
    if not found:
        return html.P("None: every probability is close to 0 or 1.", className="soft")
    return html.Div(
        [
            html.Button(
                [html.Span(f"{result.names[i]} → {result.names[j]}"), html.Span(f"{p:.2f}", className="soft")],
                id={"type": "look", "i": i, "j": j},
            )
            for i, j, p in found
        ],
        className="list",
    )


def _scores(result: Result, analysis: Analysis, limit: float) -> Any:
    if analysis.dataset.graph is None:
        return None
    rows = [
        html.Tr([html.Td(name), html.Td(value, className="number-cell")], title=meaning)
        for name, value, meaning in scores(result, analysis.dataset.graph, limit)
    ]
    return html.Table(html.Tbody(rows), className="scores")


def _known_part(known: Knowledge | None) -> list[Any]:
    tags = [
        html.Span([text, html.Button("×", id={"type": "drop", **_flat(what)}, title="Remove")], className="tag")
        for text, what in knowledge_tags(known)
    ]
    if known and known.tiers:
        tags.append(
            html.Span([f"{len(known.tiers)} tiers", html.Button("×", id={"type": "no-tiers", "k": 0})], className="tag")
        )
    return [html.Div(tags, className="tags")] if tags else []


def _flat(what: dict[str, Any]) -> dict[str, str]:
    """A fact as a flat dictionary, which ids of dash require."""
    ((key, value),) = what.items()
    pair = value if isinstance(value, list) else [value, ""]
    return {"key": key, "first": pair[0], "second": pair[1]}


def _unflat(flat: dict[str, str]) -> dict[str, Any]:
    return {flat["key"]: flat["first"] if flat["key"] == "root" else [flat["first"], flat["second"]]}


def register(app: Dash, context: Context) -> None:
    """Add the callbacks of the right side of the page."""
    sessions = context.sessions

    def analysis_of(key: str) -> Analysis:
        analysis = sessions.get(key).analysis
        if analysis is None:
            raise ConfigError("there is no result yet; run the analysis first")
        return analysis

    @app.callback(
        Output("knowledge", "data"),
        Output("chosen", "data"),
        Output("known-error", "children"),
        Output("tier-move", "data"),
        Input("answer", "data"),
        Input("require", "n_clicks"),
        Input("forbid", "n_clicks"),
        Input("forget", "n_clicks"),
        Input("turn", "n_clicks"),
        Input("root", "n_clicks"),
        Input("unroot", "n_clicks"),
        Input("tier-move", "data"),
        Input({"type": "drop", "key": ALL, "first": ALL, "second": ALL}, "n_clicks"),
        Input({"type": "no-tiers", "k": ALL}, "n_clicks"),
        Input("graph", "tapEdgeData"),
        Input("graph", "tapNodeData"),
        Input("heat", "clickData"),
        Input({"type": "look", "i": ALL, "j": ALL}, "n_clicks"),
        State("session", "data"),
        State("knowledge", "data"),
        State("chosen", "data"),
        prevent_initial_call=True,
    )
    def update_selection(_answer: Any, *given: Any) -> tuple[Any, ...]:
        *_, move, _drops, _tiers, edge, node, cell, _looks, key, known, chosen = given
        by = ctx.triggered_id
        kept = (no_update, no_update, no_update, no_update)
        if by == "answer":
            return {}, [], None, None
        if by is None or not ctx.triggered[0]["value"]:
            return kept  # buttons also call when they are created
        if by == "graph":
            if ctx.triggered[0]["prop_id"].endswith("tapEdgeData"):
                return no_update, [edge["i"], edge["j"]], None, no_update
            return no_update, [int(node["id"][1:])], None, no_update
        if by == "heat":
            point = cell["points"][0]
            return (no_update, [point["y"], point["x"]], None, no_update) if point["x"] != point["y"] else kept
        if by == "turn":
            return no_update, chosen[::-1], None, no_update
        if isinstance(by, dict) and by["type"] == "look":
            return no_update, [by["i"], by["j"]], None, no_update
        try:
            analysis = analysis_of(key)
            what, detail = (by, move or {}) if isinstance(by, str) else (by["type"], by)
            if what == "tier-move":
                what = "tier"
            elif what == "drop":
                detail = _unflat(by)
            found = update_knowledge(known or {}, what, analysis.result.names, chosen or [], detail)
            analysis.result.with_knowledge(found)  # raises on contradictions
        except PresageError as error:
            return no_update, no_update, sentence(str(error)), None
        return found.to_json(), no_update, None, None

    @app.callback(
        Output("places", "data"),
        Output("result", "hidden"),
        Output("scores-place", "hidden"),
        Output("switches", "options"),
        Output("switches", "value"),
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
        _answer: Any, _tidy: int | None, key: str, known: Any, threshold: float, top: int | None, switches: list[str]
    ) -> tuple[Any, ...]:
        analysis = analysis_of(key)
        truth = analysis.dataset.graph is not None
        new = ctx.triggered_id == "answer"
        result = analysis.result if new else analysis.result.with_knowledge(Knowledge.from_json(known or {}))
        options = [{"value": "acyclic", "label": "acyclic"}]
        if truth:
            options.append({"value": "truth", "label": "colour by truth"})
        chosen = [s for s in switches if s == "acyclic"] + (["truth"] if truth else []) if new else no_update
        return node_positions(result, view_of(threshold, top, switches)), False, not truth, options, chosen

    @app.callback(
        Output("graph", "elements"),
        Output("heat", "figure"),
        Output("warnings", "children"),
        Output("uncertain", "children"),
        Output("scores", "children"),
        Output("count", "children"),
        Output("legend", "children"),
        Output("threshold-text", "children"),
        Output("lines", "children"),
        Output("known-list", "children"),
        Output("tiers", "children"),
        Input("places", "data"),
        Input("threshold", "value"),
        Input("top", "value"),
        Input("switches", "value"),
        Input("knowledge", "data"),
        Input("chosen", "data"),
        State("session", "data"),
        prevent_initial_call=True,
    )
    def draw(
        places: Any, threshold: float, top: int | None, switches: list[str], known: Any, chosen: list[int], key: str
    ) -> tuple[Any, ...]:
        try:
            analysis = analysis_of(key)
        except PresageError as error:
            return (*((no_update,) * 2), _warnings([str(error)]), *((no_update,) * 8))
        if not places or len(places) != len(analysis.result.names):
            return (no_update,) * 11
        view = view_of(threshold, top, switches)
        knowledge = Knowledge.from_json(known or {})
        result = analysis.result.with_knowledge(knowledge)
        limit = view.limit(result)
        truth = analysis.dataset.graph if "truth" in (switches or ()) else None
        pick = tuple(chosen or ())
        return (
            elements(result, view, places, truth=truth, known=knowledge, chosen=pick),
            heat_figure(result, pick),
            _warnings(result.warnings),
            _uncertain(result),
            _scores(result, analysis, limit),
            count_text(result, view, limit),
            legend_part(truth is not None),
            f"{limit:.2f}",
            python_code(analysis, knowledge, view, limit),
            _known_part(knowledge),
            tier_columns(result.names, knowledge),
        )

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
        Input("chosen", "data"),
        Input("knowledge", "data"),
        State("session", "data"),
        prevent_initial_call=True,
    )
    def show_details(chosen: list[int], known: Any, key: str) -> tuple[Any, ...]:
        if not chosen:
            text = "Click an edge of the graph, a cell of the heat map or a variable."
            return "Details", text, True, True, True, no_update, "", "", ""
        analysis = analysis_of(key)
        knowledge = Knowledge.from_json(known or {})
        names, before = analysis.result.names, analysis.result.matrix
        if len(chosen) == 1:
            name = names[chosen[0]]
            on = "on" if name in knowledge.roots else ""
            return name, "", True, False, False, variable_figure(analysis.dataset, chosen[0]), "", "", on
        i, j = chosen
        edge = (names[i], names[j])
        text = f"probability {before[i, j]:.2f}; of the reverse edge {before[j, i]:.2f}"
        if knowledge:
            after = analysis.result.with_knowledge(knowledge).matrix
            if after[i, j] != before[i, j]:
                text += f"; {after[i, j]:.0f} given the background knowledge"
        marks = ["on" if edge in group else "" for group in (knowledge.required, knowledge.forbidden)]
        return f"{edge[0]} → {edge[1]}", text, False, True, False, pair_figure(analysis.dataset, i, j), *marks, ""

    @app.callback(
        Output("download", "data"),
        Input({"type": "take", "kind": ALL}, "n_clicks"),
        State("session", "data"),
        State("knowledge", "data"),
        State("threshold", "value"),
        State("top", "value"),
        State("switches", "value"),
        prevent_initial_call=True,
    )
    def download(
        clicks: list[int | None], key: str, known: Any, threshold: float, top: int | None, switches: Any
    ) -> Any:
        if not any(clicks) or not isinstance(ctx.triggered_id, dict):
            return no_update
        kind = ctx.triggered_id["kind"]
        analysis = analysis_of(key)
        knowledge = Knowledge.from_json(known or {})
        view = view_of(threshold, top, switches)
        result = analysis.result.with_knowledge(knowledge)
        limit = view.limit(result)
        code = python_code(analysis, knowledge, view, limit)
        return {"content": file_content(kind, result, limit, view.acyclic, code), "filename": kind}

    in_browser: Any = app.clientside_callback  # untyped in dash
    in_browser(ClientsideFunction("presage", "point"), Output("pointed", "data"), Input("heat", "hoverData"))
    in_browser(
        ClientsideFunction("presage", "fit"), Output("pointed", "data", allow_duplicate=True), Input("places", "data"),
        prevent_initial_call=True,
    )  # fmt: skip
