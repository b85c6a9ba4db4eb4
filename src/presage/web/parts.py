"""Parts of an answer as HTML: heading, counts, legend, warnings, scores, background knowledge."""

from __future__ import annotations

import time
from typing import Any

from dash import html

from presage.graphs.ops import is_acyclic
from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.report.text import knowledge_facts, sentence
from presage.web.layout import data
from presage.web.sessions import Analysis
from presage.web.theme import Theme
from presage.web.view import MANY, MAX_DRAWN, View, scores

__all__ = [
    "answer_head",
    "count_text",
    "experiments_part",
    "knowledge_part",
    "legend_part",
    "scores_part",
    "tier_columns",
    "update_knowledge",
    "warnings_part",
]


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
                *(html.Button(name, className="chip", title=name, **data(name=name)) for name in members),
            ],
            className="tier",
            **data(tier=number),
        )
        for title, number, members in columns
    ]


def answer_head(analysis: Analysis) -> list[Any]:
    """Which data and model gave the result, and when."""
    dataset, result = analysis.dataset, analysis.result
    when = time.strftime("%d %B %Y, %H:%M", time.localtime(analysis.started)).lstrip("0")
    facts = [
        ("rows", f"{dataset.n:,}"),
        ("variables", f"{dataset.d:,}"),
        ("interventional rows", f"{int(dataset.interventions.any(axis=1).sum()):,}"),
        ("model", result.model or "unnamed"),
        ("run", f"{when}, {analysis.seconds:.1f} s"),
    ]
    parts: list[Any] = [html.H1(analysis.source.preview.title)]
    if analysis.is_example:
        parts.append(
            html.P(
                "This is an example answer, about simulated data with a known graph. Click through it, then load your "
                "own data on the left.",
                className="example-note",
            )
        )
    parts.append(html.Dl([html.Div([html.Dt(label), html.Dd(value)]) for label, value in facts], className="facts"))
    return parts


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
    lone = int((~(graph.any(axis=0) | graph.any(axis=1))).sum())
    if lone and len(result.names) > MANY:
        text += f"; {lone} variables without edges are not drawn"
    return text


def legend_part(
    theme: Theme,
    *,
    truth: bool = False,
    effects: bool = False,
    hidden: bool = False,
    known: Knowledge | None = None,
    lone: bool = True,
) -> list[Any]:
    """Legend of widths, colours, dashes, bars and borders; only what can occur."""
    strong = theme.scale[-1]

    def line(label: str, **style: str) -> html.Span:
        return html.Span([html.I(style=style), label])

    parts = [
        line("improbable", borderTop=f"1px solid {theme.soft}"),
        line("probable (wider)", borderTop=f"5px solid {theme.soft}"),
    ]
    if truth:
        parts += [
            line("right", borderTop=f"3px solid {theme.right}"),
            line("extra", borderTop=f"3px solid {theme.extra}"),
            line("missed", borderTop=f"3px dashed {theme.missed}"),
        ]
    elif effects:
        parts += [
            line("raises", borderTop=f"3px solid {theme.positive}"),
            line("lowers", borderTop=f"3px solid {theme.negative}"),
        ]
    else:
        parts[0] = line("improbable", borderTop=f"1px solid {theme.weak}")
        parts[1] = line("probable", borderTop=f"5px solid {strong}")
    if hidden:
        parts.append(line("↔ hidden common cause", borderTop=f"3px dashed {theme.hidden}"))
    if known and known.required:
        parts.append(
            line("known to exist (bar)", borderTop=f"3px solid {theme.soft}", borderLeft=f"3px solid {theme.ink}")
        )
    box = {"width": "1rem", "height": ".7rem", "borderRadius": "3px"}
    if known and known.roots:
        parts.append(line("known to have no causes", border=f"3px double {theme.blue}", **box))
    if lone:
        parts.append(line("no edge shown", border=f"1px solid {theme.faint}", **box))
    return parts


def warnings_part(texts: list[str]) -> html.Div:
    """Warnings, or that there are none."""
    if not texts:
        return html.Div("No warnings.", className="warnings fine")
    return html.Div([html.B("Warnings"), html.Ul([html.Li(sentence(text)) for text in texts])], className="warnings")


def scores_part(result: Result, analysis: Analysis, limit: float) -> Any:
    """Metrics against the true graph, if it is known."""
    if analysis.dataset.graph is None:
        return None
    rows = [
        html.Tr([html.Td(name), html.Td(value, className="number-cell"), html.Td(meaning, className="soft small")])
        for name, value, meaning in scores(result, analysis.dataset.graph, limit)
    ]
    return html.Table(html.Tbody(rows), className="scores")


def experiments_part(result: Result, found: list[tuple[str, str]]) -> Any:
    """Variables to intervene on next, each with its reason; a click shows the variable."""
    if not found:
        return html.P("No further intervention would be informative about the graph.", className="soft")
    place = {name: j for j, name in enumerate(result.names)}
    return html.Ol(
        [
            html.Li([html.Button(name, className="plain", **data(variable=place[name])), html.P(reason)])
            for name, reason in found
        ],
        className="experiments",
    )


def knowledge_part(known: Knowledge | None) -> list[Any]:
    """Each piece of background knowledge with a button that removes it."""
    tags = [
        html.Span([text, html.Button("×", id={"type": "drop", **_flat(what)}, title="Remove")], className="tag")
        for text, what in knowledge_facts(known)
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
