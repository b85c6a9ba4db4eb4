"""Tables in Markdown and LaTeX: our mean and standard error, and the paper's beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from presage.baselines.registry import BASELINES
from presage.bench.experiments import Experiment
from presage.bench.paper import paper_value
from presage.metrics import highlight, mean_and_error

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Cell", "Table", "build_table", "format_number", "latex", "markdown", "method_title"]

LOWER = {"sid", "shd", "ece"}
NEUTRAL = {"edges", "acyclic"}
TITLES = {"sid": "SID", "shd": "SHD", "f1": "F1", "auroc": "AUROC", "auprc": "AUPRC", "ece": "ECE"}
_MATH = {"sid": r"SID $\downarrow$", "shd": r"SHD $\downarrow$", "ece": r"ECE $\downarrow$", "f1": r"F1 $\uparrow$"}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What stands in one place: our number, whether it is among the best, and the paper's number."""

    ours: str
    best: bool
    paper: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """sections: title -> rows of (method, done, cells). heads: (column, metric) of every cell."""

    title: str
    heads: tuple[tuple[str, str], ...]
    sections: dict[str, list[tuple[str, str, list[Cell]]]]
    notes: tuple[str, ...]


def method_title(label: str, starred: bool = False) -> str:
    """The name in tables; a star marks the bootstrap.

    >>> method_title("presage:rff"), method_title("ges", starred=True)
    ('Presage (rff)', 'GES*')
    """
    name, _, model = label.partition(":")
    title = BASELINES[name].title + (f" ({model.rstrip('/').rsplit('/', 1)[-1]})" if model else "")
    return title + ("*" if starred and BASELINES[name].point_estimate else "")


def format_number(metric: str, value: float, error: float | None) -> str:
    """A mean with its standard error, in as many digits as the paper gives.

    >>> format_number("f1", 0.8271, 0.0213), format_number("sid", 17.0, None)
    ('0.827 (0.02)', '17')
    """
    if math.isnan(value):
        return "–"
    digits = 1 if metric in ("sid", "shd") else 3
    if metric == "edges" or (metric in ("sid", "shd") and error is None):
        return f"{value:.0f}" if error is None or math.isnan(error) else f"{value:.1f} ({error:.1f})"
    text = f"{value:.{digits}f}"
    return text if error is None or math.isnan(error) else f"{text} ({error:.{1 if digits == 1 else 2}f})"


def _rows(frame: pd.DataFrame) -> list[str]:
    """Row labels: a network chosen by column is one row, "presage"."""
    order = {name: place for place, name in enumerate(BASELINES)}
    return sorted(frame["row"].unique(), key=lambda label: (order[label.partition(":")[0]], label))


def build_table(experiment: Experiment, frame: pd.DataFrame, remark: str = "") -> Table:
    """Means over instances; bold follows the Welch t-test within each section and column, as in the paper."""
    present = set(frame["column"])
    columns = [column for column in _columns(experiment) if column in present]
    heads = tuple((column, metric) for column in columns for metric in experiment.metrics)
    sections: dict[str, list[tuple[str, str, list[Cell]]]] = {}
    notes: list[str] = []
    for section in dict.fromkeys(setting.section for setting in experiment.settings):
        part = frame[frame["section"] == section]
        if not len(part):
            continue
        best = {
            (column, metric): _best(part[part["column"] == column], metric) if metric not in NEUTRAL else set()
            for column, metric in heads
        }
        rows = []
        for label in _rows(part):
            mine = part[part["row"] == label]
            cells = [_cell(experiment, section, label, mine, column, metric, best) for column, metric in heads]
            done = int((mine["status"] == "ok").sum())
            rows.append((method_title(label, starred=experiment.bootstrap > 0), f"{done}/{len(mine)}", cells))
            notes += _failures(method_title(label), section, mine)
        sections[section] = rows
    title = f"{experiment.title}; {remark}" if remark else experiment.title
    return Table(title=title, heads=heads, sections=sections, notes=tuple(notes))


def _columns(experiment: Experiment) -> tuple[str, ...]:
    return tuple(dict.fromkeys(setting.column for setting in experiment.settings))


def _best(part: pd.DataFrame, metric: str) -> set[str]:
    samples = {str(label): group[metric].to_numpy(dtype=float) for label, group in part.groupby("row")}
    return highlight(samples, higher_is_better=metric not in LOWER)


def _cell(
    experiment: Experiment,
    section: str,
    label: str,
    mine: pd.DataFrame,
    column: str,
    metric: str,
    best: dict[tuple[str, str], set[str]],
) -> Cell:
    values = mine.loc[mine["column"] == column, metric].to_numpy(dtype=float)
    found = mean_and_error(values)
    theirs = label.replace("presage", "avici")
    if experiment.name == "ablation" and theirs == "avici:rff":
        theirs = "avici:main"
    printed = paper_value(experiment.paper, section, theirs, column, metric)
    error = None if len(values) == 1 and experiment.instances == 1 else found.error
    return Cell(
        ours=format_number(metric, found.mean, error),
        best=label in best[column, metric],
        paper="" if printed is None else format_number(metric, printed.mean, printed.error),
    )


def _failures(title: str, section: str, mine: pd.DataFrame) -> list[str]:
    notes = []
    for (column, status), group in mine[mine["status"] != "ok"].groupby(["column", "status"]):
        reason = "" if status == "no model" else f" ({group['message'].iloc[0]})"
        notes.append(f"{title}, {section}, {column}: {len(group)} x {status}{reason}")
    return notes


def markdown(table: Table) -> str:
    """GitHub Markdown; each number is ours, then the paper's after the bar."""
    lines = [f"### {table.title}", ""]
    for section, rows in table.sections.items():
        heads = [f"{column} {TITLES.get(metric, metric)}" for column, metric in table.heads]
        lines += [
            f"| {section} | runs | " + " | ".join(heads) + " |",
            "| --- " * (len(heads) + 2) + "|",
        ]
        for title, done, cells in rows:
            shown = [
                (f"**{cell.ours}**" if cell.best else cell.ours) + (f" / {cell.paper}" if cell.paper else "")
                for cell in cells
            ]
            lines.append(f"| {title.replace('*', chr(92) + '*')} | {done} | " + " | ".join(shown) + " |")
        lines.append("")
    lines.append(
        "Mean (standard error) over instances, ours / the paper's. Bold: the best of ours in its section and those a "
        "Welch t-test at 95% cannot tell from it. In rows of Presage the paper's number is AVICI's. "
        "Runs without an answer are left out of the means; `runs` counts the others."
    )
    if any(title.endswith("*") for rows in table.sections.values() for title, _, _ in rows):
        lines.append("\\* DAG bootstrap.")
    if table.notes:
        lines += ["", "Runs without an answer:", "", *(f"- {note}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    for plain, safe in (
        ("\\", r"\textbackslash{}"),
        ("_", r"\_"),
        ("%", r"\%"),
        ("&", r"\&"),
        ("#", r"\#"),
        ("–", "--"),
    ):
        text = text.replace(plain, safe)
    return text


def latex(table: Table) -> str:
    """A tabular for booktabs; the paper's numbers stand small below ours."""
    columns: Sequence[str] = tuple(dict.fromkeys(column for column, _ in table.heads))
    per = len(table.heads) // len(columns)
    lines = [
        f"% {table.title}. Needs \\usepackage{{booktabs}}.",
        r"\begin{tabular}{l" + "c" * len(table.heads) + "}",
        r"\toprule",
        " & ".join(["", *(rf"\multicolumn{{{per}}}{{c}}{{{_escape(column)}}}" for column in columns)]) + r" \\",
        rf"\cmidrule{{2-{len(table.heads) + 1}}}",
        " & ".join(["", *(_MATH.get(metric, TITLES.get(metric, metric)) for _, metric in table.heads)]) + r" \\",
    ]
    for rows in table.sections.values():
        lines.append(r"\midrule")
        for title, _, cells in rows:
            ours = [rf"\textbf{{{_escape(cell.ours)}}}" if cell.best else _escape(cell.ours) for cell in cells]
            lines.append(" & ".join([_escape(title), *ours]) + r" \\")
            if any(cell.paper for cell in cells):
                theirs = [rf"{{\scriptsize {_escape(cell.paper)}}}" if cell.paper else "" for cell in cells]
                lines.append(" & ".join([r"\quad{\scriptsize paper}", *theirs]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])
