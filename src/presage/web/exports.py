"""Downloads of the page as text."""

from __future__ import annotations

import json

from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.report.text import escape_formulas
from presage.web.sessions import Analysis
from presage.web.view import View

__all__ = ["KINDS", "file_content", "python_code"]

KINDS = ("report.html", "edges.csv", "probabilities.csv", "graph.graphml", "graph.dot", "result.json", "reproduce.py")
"""Names of the files that the page offers."""


def python_code(analysis: Analysis, known: Knowledge | None, view: View, limit: float) -> str:
    """Python code that gives the same result; run it in the folder of the uploaded file."""
    arguments = [analysis.source.code()]
    arguments += [f"{name}={value!r}" for name, value in analysis.arguments.items()]
    lines = ["import presage", ""]
    if known:
        fields = {name: getattr(known, name) for name in ("required", "forbidden", "tiers", "roots")}
        parts = [f"{name}={json.loads(json.dumps(value))!r}" for name, value in fields.items() if value]
        lines.append(f"known = presage.Knowledge({', '.join(parts)})")
        arguments.append("known=known")
    lines.append(f"result = presage.discover({', '.join(arguments)})")
    lines += [
        f"print(result.edges({limit:.6g}))",
        f"graph = result.graph({limit:.6g}, acyclic={view.acyclic})",
        'result.save("result/")',
    ]
    return "\n".join(lines) + "\n"


def file_content(kind: str, analysis: Analysis, result: Result, limit: float, acyclic: bool, code: str) -> str:
    """The content of one of the files in `KINDS`. result: with background knowledge. code: that of reproduce.py."""
    if kind == "report.html":
        from presage.report.html import report_html

        return report_html(result, limit, dataset=analysis.dataset, title=analysis.source.preview.title, code=code)
    if kind == "edges.csv":
        return str(escape_formulas(result.edges(limit)).to_csv(index=False))
    if kind == "probabilities.csv":
        return str(escape_formulas(result.probabilities).to_csv())
    if kind == "graph.graphml":
        return result.to_graphml(limit, acyclic)
    if kind == "graph.dot":
        return result.to_dot(limit, acyclic)
    if kind == "result.json":
        return json.dumps(result.to_json(limit), indent=1)
    return code
