"""report.html: one self-contained page with the answer, its warnings and the model card; needs no network."""

from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING, Any

import presage
from presage.ood.check import OODReport
from presage.ood.summaries import LABELS
from presage.report.plots import figure_bytes

if TYPE_CHECKING:
    from presage.inference.result import Result

__all__ = ["report_html"]

_SHOWN = 40
"""Edges listed in the page; the rest is in edges.csv."""

_STYLE = """
:root { color-scheme: light; --ink: #1f2a37; --soft: #66707d; --line: #e1e6ed; --blue: #2f6fad; --warn: #9a5b00; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 2rem 1.5rem 4rem; color: var(--ink); background: #fff;
       font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h2 { font-size: 1.2rem; margin: 2.4rem 0 .7rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p { margin: .5rem 0; max-width: 75ch; } .soft { color: var(--soft); }
.facts { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1.2rem 0; }
.facts div { border: 1px solid var(--line); border-radius: 8px; padding: .5rem .9rem; }
.facts b { display: block; font-size: 1.15rem; } .facts span { color: var(--soft); font-size: .85rem; }
.warnings { border-left: 4px solid #e5a53d; background: #fff8ec; padding: .6rem 1rem .6rem 1.2rem; border-radius: 4px; }
.warnings ul { margin: .2rem 0; padding-left: 1.1rem; }
.fine { border-left: 4px solid #5aa977; background: #f1faf4; padding: .6rem 1rem; border-radius: 4px; }
img { max-width: 100%; height: auto; display: block; }
table { border-collapse: collapse; font-size: .92rem; } .scroll { overflow-x: auto; }
th, td { text-align: left; padding: .28rem .9rem .28rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; } .tables { display: flex; flex-wrap: wrap; gap: 0 4rem; }
.tables table { align-self: flex-start; }
.bar { display: inline-block; height: .6em; background: var(--blue); border-radius: 2px; margin-right: .5em; }
details { border: 1px solid var(--line); border-radius: 8px; padding: .6rem 1rem; margin-top: 2rem; }
summary { cursor: pointer; font-weight: 600; } pre { white-space: pre-wrap; font-size: .85rem; line-height: 1.4; }
"""


def report_html(result: Result, threshold: float = 0.5) -> str:
    """The page as text."""
    picture = base64.b64encode(figure_bytes(result.plot(threshold), dpi=140)).decode()
    model = escape(result.model or "unnamed")
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>Presage: {len(result.names)} variables</title><style>{_STYLE}</style></head><body>",
        "<h1>Which variable causes which</h1>",
        f'<p class="soft">Presage {escape(presage.__version__)}, model <b>{model}</b>. An edge is a direct cause; '
        "a probability is the model's belief in it, given the data and its training domain.</p>",
        _facts(result, threshold),
        _warnings(result.warnings),
        "<h2>Probabilities and graph</h2>",
        f'<img alt="Heat map of edge probabilities beside the graph" src="data:image/png;base64,{picture}">',
        _edges(result, threshold),
        _acyclic(result, threshold),
        _foreign(result.ood),
        _known(result),
        _card(result),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _facts(result: Result, threshold: float) -> str:
    data = result.data
    cells = [("variables", f"{len(result.names):,}"), (f"edges above {threshold:g}", str(len(result.edges(threshold))))]
    if data:
        cells.insert(0, ("rows", f"{data['rows']:,}"))
        cells.append(("rows with interventions", f"{data['interventional_rows']:,}"))
        if data["missing_share"] > 0:
            cells.append(
                ("missing cells", "< 0.1%" if data["missing_share"] < 0.001 else f"{data['missing_share']:.1%}")
            )
    if result.ood is not None:
        cells.append(("foreign-data score (usual: below 1)", f"{result.ood.score:.2f}"))
    return (
        '<div class="facts">'
        + "".join(f"<div><b>{escape(v)}</b><span>{escape(k)}</span></div>" for k, v in cells)
        + "</div>"
    )


def _warnings(warnings: list[str]) -> str:
    if not warnings:
        return '<div class="fine">No warnings: nothing odd was seen in the data.</div>'
    items = "".join(f"<li>{escape(_sentence(text))}</li>" for text in warnings)
    return f'<div class="warnings"><b>Before you rely on this</b><ul>{items}</ul></div>'


def _sentence(text: str) -> str:
    text = text if text[:1] in "'\"" else text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."


def _edges(result: Result, threshold: float) -> str:
    edges = result.edges(threshold)
    if not len(edges):
        best = result.top(5)
        if not len(best):
            return "<h2>Edges</h2><p>With fewer than two variables there are none.</p>"
        return f"<h2>Edges</h2><p>None lies above {threshold:g}. The most probable ones:</p>{_edge_table(best)}"
    shown = edges.head(_SHOWN)
    half = len(shown) if len(shown) <= 10 else -(-len(shown) // 2)
    tables = _edge_table(shown[:half]) + (_edge_table(shown[half:]) if half < len(shown) else "")
    more = f'<p class="soft">{len(edges) - _SHOWN} more in edges.csv.</p>' if len(edges) > _SHOWN else ""
    return f'<h2>Edges above {threshold:g}</h2><div class="tables">{tables}</div>{more}'


def _edge_table(edges: Any) -> str:
    rows = "".join(
        f'<tr><td>{escape(str(source))} → {escape(str(target))}</td><td class="number">'
        f'<span class="bar" style="width:{90 * value:.0f}px"></span>{value:.2f}</td></tr>'
        for source, target, value in edges.itertuples(index=False)
    )
    return f"<table><thead><tr><th>edge</th><th>probability</th></tr></thead><tbody>{rows}</tbody></table>"


def _acyclic(result: Result, threshold: float) -> str:
    loose, tight = result.adjacency(threshold), result.adjacency(threshold, acyclic=True)
    dropped = [
        (int(i), int(j)) for i in range(len(loose)) for j in range(len(loose)) if loose[i, j] and not tight[i, j]
    ]
    if not dropped:
        return f"<p>The edges above {threshold:g} have no cycle: they are the most probable acyclic graph, too.</p>"
    how = "the exact optimum" if result.is_exact(threshold) else "found by a heuristic (greedy, then local moves)"
    names = ", ".join(f"{escape(result.names[i])} → {escape(result.names[j])}" for i, j in dropped[:20])
    return f"<p>The most probable acyclic graph ({how}) leaves out {len(dropped)} of them: {names}.</p>"


def _foreign(report: OODReport | None) -> str:
    title = "<h2>Is the data like the training data?</h2>"
    if report is None:
        return f"{title}<p>This model carries no summaries of its training domain, so this was not checked.</p>"
    verdict = "foreign to the model" if report.is_ood else "usual"
    text = f"<p>Score {report.score:.2f}: {verdict} (95 % of training-domain datasets score below 1).</p>"
    if not report.findings:
        return f"{title}{text}<p>No single property lies outside its usual range.</p>"
    rows = "".join(
        f'<tr><td>{escape(LABELS.get(f.name, f.name))}</td><td class="number">{f.value:.3g}</td>'
        f'<td class="number">{f.low:.3g} to {f.high:.3g}</td><td class="number">{f.distance:.1f}</td></tr>'
        for f in report.findings[:10]
    )
    head = "<tr><th>property</th><th>here</th><th>usual at this size</th><th>outside by (half-widths)</th></tr>"
    return f'{title}{text}<div class="scroll"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _known(result: Result) -> str:
    if not result.known:
        return ""
    lines = [f"{cause} → {effect} exists" for cause, effect in result.known.required]
    lines += [f"{cause} → {effect} does not exist" for cause, effect in result.known.forbidden]
    lines += [f"{name} has no causes" for name in result.known.roots]
    if result.known.tiers:
        lines.append("order of tiers: " + " before ".join("{" + ", ".join(tier) + "}" for tier in result.known.tiers))
    return "<h2>What was known</h2><ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _card(result: Result) -> str:
    if result.card is None:
        return ""
    return f"<details open><summary>Model card</summary>{_markdown(str(result.card))}</details>"


def _markdown(text: str) -> str:
    """HTML of the Markdown that cards use: headings, tables, bullets, paragraphs and verbatim blocks."""
    out: list[str] = []
    table: list[list[str]] = []

    def flush() -> None:
        if table:
            body = [row for row in table if not all(cell == "---" for cell in row)]
            head, rest = body[0], body[1:]
            first = f"<thead><tr>{''.join(f'<th>{c}</th>' for c in head)}</tr></thead>" if any(head) else ""
            rows = "".join(f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in rest)
            out.append(f'<div class="scroll"><table>{first}<tbody>{rows}</tbody></table></div>')
            table.clear()

    verbatim: list[str] | None = None
    for line in text.splitlines():
        if line == "```":
            if verbatim is not None:
                out.append(f"<pre>{escape(chr(10).join(verbatim))}</pre>")
            verbatim = [] if verbatim is None else None
            continue
        if verbatim is not None:
            verbatim.append(line)
            continue
        if line.startswith("|"):
            cells = line.replace("\\|", "\0").strip("|").split("|")
            table.append([escape(cell.strip().replace("\0", "|")) for cell in cells])
            continue
        flush()
        if line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            out.append(f"<h{level + 1}>{escape(line.lstrip('# '))}</h{level + 1}>")
        elif line.startswith("- "):
            out.append(f"<ul><li>{escape(line[2:])}</li></ul>")
        elif line:
            out.append(f"<p>{escape(line)}</p>")
    flush()
    return "\n".join(out).replace("</ul>\n<ul>", "")
