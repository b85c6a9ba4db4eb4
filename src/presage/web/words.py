"""What the page lets a user take away as text: Python lines, files, sentences."""

from __future__ import annotations

import json
from typing import Any

from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.web.sessions import Answer
from presage.web.view import View

__all__ = ["KINDS", "file_of", "knowledge_lines", "python_lines", "sentence"]

KINDS = ("report.html", "edges.csv", "probabilities.csv", "graph.graphml", "graph.dot", "result.json", "reproduce.py")


def python_lines(answer: Answer, known: Knowledge | None, view: View, limit: float) -> str:
    """Python that gives the same answer; run it where the uploaded file lies."""
    arguments = [answer.source.code()]
    arguments += [f"{name}={value!r}" for name, value in answer.asked.items()]
    lines = ["import presage", ""]
    if known:
        parts = [f"{key}={value!r}" for key, value in known.to_json().items() if value and key != "type"]
        lines.append(f"known = presage.Knowledge({', '.join(parts)})")
        arguments.append("known=known")
    lines.append(f"result = presage.discover({', '.join(arguments)})")
    acyclic = ", acyclic=True" if view.acyclic else ""
    lines += [
        f"print(result.edges({limit:.6g}))",
        f"graph = result.graph({limit:.6g}{acyclic})",
        'result.save("result/")',
    ]
    return "\n".join(lines) + "\n"


def file_of(kind: str, result: Result, limit: float, acyclic: bool, lines: str) -> str:
    """The content of a file to take away."""
    if kind == "report.html":
        from presage.report.html import report_html

        return report_html(result, limit)
    if kind == "edges.csv":
        return str(result.edges(limit).to_csv(index=False))
    if kind == "probabilities.csv":
        return str(result.probabilities.to_csv())
    if kind == "graph.graphml":
        import networkx as nx

        return "\n".join(nx.generate_graphml(result.graph(limit, acyclic)))
    if kind == "graph.dot":
        return result.to_dot(limit, acyclic)
    if kind == "result.json":
        return json.dumps(result.to_json(limit), indent=1)
    return lines


def knowledge_lines(known: Knowledge | None) -> list[tuple[str, dict[str, Any]]]:
    """Each piece of knowledge as words, with what to drop to take it back."""
    if not known:
        return []
    lines: list[tuple[str, dict[str, Any]]] = []
    for cause, effect in known.required:
        lines.append((f"{cause} → {effect} exists", {"required": [cause, effect]}))
    for cause, effect in known.forbidden:
        lines.append((f"{cause} → {effect} does not exist", {"forbidden": [cause, effect]}))
    for name in known.roots:
        lines.append((f"nothing here causes {name}", {"root": name}))
    return lines


def sentence(text: str) -> str:
    """A message of the library as a sentence of the page."""
    text = " ".join(text.split())
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
