"""HTML of a result: the self-contained page report.html, and the display in notebooks. Templates are in assets."""

from __future__ import annotations

import base64
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import presage
from presage.inference.knowledge import Knowledge
from presage.ood.summaries import LABELS
from presage.report.plots import figure_bytes, graph_figure, heat_map_figure, reliability_figure, scatter_figure
from presage.report.suggestions import suggested_experiments
from presage.report.text import knowledge_facts, sentence

if TYPE_CHECKING:
    import jinja2
    from matplotlib.figure import Figure

    from presage.inference.result import Result
    from presage.types import Dataset

__all__ = ["markdown_html", "notebook_html", "report_html"]

TEMPLATES = Path(__file__).parents[1] / "assets" / "templates"

_SHOWN = 40
"""Edges listed in the report; the others are in edges.csv."""
_SCATTERED = 6
_MANY = 40
"""With more variables than this, heat map and graph are separate pictures."""


_SAMPLED = 30
"""With more variables than this, sampling graphs for suggestions of experiments takes too long for a report."""


def report_html(
    result: Result,
    threshold: float = 0.5,
    *,
    dataset: Dataset | None = None,
    title: str = "",
    code: str = "",
    picture: bytes | None = None,
) -> str:
    """The report as one page that loads nothing from elsewhere.

    dataset: the data for scatter plots; the excerpt of the result by default. title: the name of the file by default.
    code: Python code that gives the same result; the command is shown if there is none.
    picture: `result.plot(threshold)` as png, if it is drawn already.
    """
    above, acyclic = result.adjacency(threshold, acyclic=False), result.adjacency(threshold)
    many = len(result.names) > _MANY
    context = {
        **_summary(result, threshold, shown=_SHOWN),
        "picture": "" if many else _base64(picture or figure_bytes(result.plot(threshold))),
        "title": title or result.data.get("name") or f"{len(result.names)} variables",
        "file": result.data.get("name") or title,
        "date": time.strftime("%d %B %Y, %H:%M").lstrip("0"),
        "command": code.strip() or result.data.get("command", ""),
        "version": presage.__version__,
        "facts": _facts(result, threshold),
        "heat_map": _embedded(heat_map_figure(result, threshold), 100) if many else "",
        "graph": _embedded(graph_figure(result, threshold), 110) if many and above.any() else "",
        "scatter": _scatter(result, dataset or result.excerpt, threshold),
        "confounded": result.confounded_pairs()[:_SHOWN],
        "estimates_hidden_causes": result.hidden_causes is not None,
        "experiments": [] if len(result.names) > _SAMPLED else suggested_experiments(result, dataset or result.excerpt),
        "columns": _columns(result),
        "left_out": [(result.names[i], result.names[j]) for i, j in np.argwhere(above > acyclic)],
        "exact": result.is_exact(threshold),
        "ood": result.ood,
        "labels": LABELS,
        "known": _knowledge_lines(result.known),
        "calibration": _calibration(result),
        "card": None if result.card is None else markdown_html(str(result.card)),
    }
    return _environment().get_template("report.html").render(context).lstrip()


def _embedded(figure: Figure, dpi: int) -> str:
    return _base64(figure_bytes(figure, dpi=dpi))


def _scatter(result: Result, dataset: Dataset | None, threshold: float) -> str:
    """Scatter plots of the most probable edges, or nothing without data."""
    edges = result.edges(threshold)
    if dataset is None or dataset.names != result.names or edges.empty:
        return ""
    place = {name: j for j, name in enumerate(result.names)}
    listed = [
        (place[row.source], place[row.target], f"probability {row.probability:.2f}")
        for row in edges.head(_SCATTERED).itertuples(index=False)
    ]
    return _embedded(scatter_figure(dataset, listed), 110)


def _calibration(result: Result) -> str:
    """The model's calibration on held-out datasets, or nothing if its card does not state it."""
    bins = () if result.card is None else result.card.calibration
    return _embedded(reliability_figure(bins), 90) if bins else ""


def _columns(result: Result) -> list[tuple[str, str, str]]:
    """Name, kind and share of missing cells of each variable."""
    kinds, missing = result.data.get("column_kinds"), result.data.get("missing_shares")
    if kinds is None or missing is None:
        return []
    return [
        (name, kind, "" if share == 0 else "< 0.1 %" if share < 0.001 else f"{share:.1%}".replace("%", " %"))
        for name, kind, share in zip(result.names, kinds, missing, strict=True)
    ]


def notebook_html(result: Result) -> str:
    """A short display of a result: summary, warnings, most probable edges and picture."""
    picture = _base64(figure_bytes(result.plot(), dpi=70))
    return _environment().get_template("notebook.html").render(_summary(result, 0.5, shown=10), picture=picture)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _summary(result: Result, threshold: float, *, shown: int) -> dict[str, Any]:
    edges = result.edges(threshold)
    listed = edges.head(shown) if len(edges) else result.top(5)
    return {
        "model": result.model or "unnamed",
        "variables": len(result.names),
        "threshold": f"{threshold:g}",
        "count": len(edges),
        "edges": listed.to_dict("records"),
        "effects": result.effect is not None,
        "hidden": max(0, len(edges) - shown),
        "warnings": [sentence(text) for text in result.warnings],
    }


def _facts(result: Result, threshold: float) -> list[tuple[str, str]]:
    """Label and value of the boxes at the top of the report."""
    data = result.data
    facts = [("variables", f"{len(result.names):,}"), (f"edges above {threshold:g}", str(len(result.edges(threshold))))]
    if data:
        facts.insert(0, ("rows", f"{data['rows']:,}"))
        facts.append(("rows with interventions", f"{data['interventional_rows']:,}"))
        if data.get("soft_targets"):
            facts.append(("targets of soft interventions", f"{len(data['soft_targets'])} of {data['targets']}"))
        share = data["missing_share"]
        if share > 0:
            facts.append(("missing cells", "< 0.1%" if share < 0.001 else f"{share:.1%}"))
    if result.ood is not None:
        facts.append(("expected loss of AUPRC, out of distribution", f"{result.ood.score:.2f}"))
    return facts


def _knowledge_lines(known: Knowledge | None) -> list[str]:
    """One line for each piece of background knowledge."""
    lines = [text for text, _ in knowledge_facts(known)]
    if known and known.tiers:
        lines.append("order of tiers: " + " before ".join("{" + ", ".join(tier) + "}" for tier in known.tiers))
    return lines


@cache
def _environment() -> jinja2.Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def markdown_html(text: str) -> Any:
    """Markdown (with tables) as HTML that templates insert unescaped; headings move down one level.

    Raw HTML in the text is escaped, and pictures are not loaded.
    """
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 1, 6)}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))
