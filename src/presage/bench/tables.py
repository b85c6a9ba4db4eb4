"""Tables in Markdown and LaTeX: our mean and standard error, next to the paper's."""

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

__all__ = [
    "MIN_INSTANCES",
    "Block",
    "Cell",
    "Row",
    "Table",
    "answered",
    "best_rows",
    "build_table",
    "failures",
    "format_number",
    "is_trivial",
    "latex",
    "markdown",
    "method_title",
    "row_labels",
]

LOWER = {"sid", "shd", "ece"}
NEUTRAL = {"edges", "acyclic"}
MIN_INSTANCES = 10
"""Methods with fewer instances are not compared by a significance test."""
TITLES = {"sid": "SID", "shd": "SHD", "f1": "F1", "auroc": "AUROC", "auprc": "AUPRC", "ece": "ECE"}
_MATH = {"sid": r"SID $\downarrow$", "shd": r"SHD $\downarrow$", "ece": r"ECE $\downarrow$", "f1": r"F1 $\uparrow$"}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell: our number, whether it is among the best, and the paper's number."""

    ours: str
    best: bool
    paper: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """A method in one block. done: runs with a result of all runs. trivial: needs no causal reasoning."""

    title: str
    done: str
    cells: list[Cell]
    trivial: bool = False


@dataclass(frozen=True, kw_only=True)
class Block:
    """Rows that are compared with each other. heads: (column, metric) of every cell."""

    title: str
    heads: tuple[tuple[str, str], ...]
    rows: list[Row]

    def parts(self) -> list[tuple[str, list[Row]]]:
        """The rows in two parts, each with its title: methods, and trivial methods."""
        found = [(self.title, [row for row in self.rows if not row.trivial])]
        found.append((f"{self.title}, trivial methods", [row for row in self.rows if row.trivial]))
        return [(title, rows) for title, rows in found if rows]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Blocks one below the other; notes: runs without a result. against_paper: whether to show the paper's numbers."""

    title: str
    blocks: list[Block]
    notes: tuple[str, ...]
    against_paper: bool = True


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


def row_labels(frame: pd.DataFrame) -> list[str]:
    """Labels of rows in the order of the registry: a network chosen by column is one row, "presage"."""
    order = {name: place for place, name in enumerate(BASELINES)}
    return sorted(frame["row"].unique(), key=lambda label: (order[label.partition(":")[0]], label))


def is_trivial(label: str) -> bool:
    """Whether a row belongs to a method that needs no causal reasoning."""
    return BASELINES[label.partition(":")[0]].trivial


def build_table(experiment: Experiment, frame: pd.DataFrame, remark: str = "") -> Table:
    """Means over instances; bold follows the Welch t-test within each section and column, as in the paper."""
    present = set(frame["column"])
    columns = [column for column in dict.fromkeys(s.column for s in experiment.settings) if column in present]
    heads = tuple((column, metric) for column in columns for metric in experiment.metrics)
    blocks: list[Block] = []
    notes: list[str] = []
    for section in dict.fromkeys(setting.section for setting in experiment.settings):
        part = frame[frame["section"] == section]
        if not len(part):
            continue
        best = {(column, metric): best_rows(part[part["column"] == column], metric) for column, metric in heads}
        rows = []
        for label in row_labels(part):
            mine = part[part["row"] == label]
            cells = [_cell(experiment, section, label, mine, column, metric, best) for column, metric in heads]
            title = method_title(label, starred=experiment.bootstrap > 0)
            rows.append(Row(title=title, done=answered(mine), cells=cells, trivial=is_trivial(label)))
            notes += failures(method_title(label), section, mine)
        blocks.append(Block(title=section, heads=heads, rows=rows))
    title = f"{experiment.title}; {remark}" if remark else experiment.title
    return Table(title=title, blocks=blocks, notes=tuple(notes), against_paper=bool(experiment.paper))


def answered(mine: pd.DataFrame) -> str:
    """How many runs have a result, and of how many."""
    return f"{int((mine['status'] == 'ok').sum())}/{len(mine)}"


def best_rows(part: pd.DataFrame, metric: str) -> set[str]:
    """Labels to print in bold: the best mean and those that do not differ significantly from it.

    Only methods with at least `MIN_INSTANCES` values are compared, and trivial methods never are. The
    test is Welch's t-test at 95%. A single method is not marked.
    """
    if metric in NEUTRAL:
        return set()
    samples = {
        str(label): group[metric].to_numpy(dtype=float)
        for label, group in part.groupby("row")
        if group[metric].notna().sum() >= MIN_INSTANCES and not is_trivial(str(label))
    }
    return highlight(samples, higher_is_better=metric not in LOWER) if len(samples) > 1 else set()


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


def failures(title: str, section: str, mine: pd.DataFrame) -> list[str]:
    """One line per column and reason for runs without a result."""
    notes = []
    for (column, status), group in mine[mine["status"] != "ok"].groupby(["column", "status"]):
        reason = "" if status == "no model" else f" ({group['message'].iloc[0]})"
        where = ", ".join(part for part in (title, section, str(column)) if part)
        notes.append(f"{where}: {len(group)} x {status}{reason}")
    return notes


def markdown(table: Table) -> str:
    """GitHub Markdown; each number is ours, then the paper's after the bar."""
    lines = [f"### {table.title}", ""]
    for block in table.blocks:
        heads = [f"{column} {TITLES.get(metric, metric)}".strip() for column, metric in block.heads]
        for title, rows in block.parts():
            lines += [f"| {title} | runs | " + " | ".join(heads) + " |", "| --- " * (len(heads) + 2) + "|"]
            for row in rows:
                shown = [
                    (f"**{cell.ours}**" if cell.best else cell.ours) + (f" / {cell.paper}" if cell.paper else "")
                    for cell in row.cells
                ]
                lines.append(f"| {row.title.replace('*', chr(92) + '*')} | {row.done} | " + " | ".join(shown) + " |")
            lines.append("")
    avici = " In rows of Presage the paper's number is AVICI's." if table.against_paper else ""
    lines.append(
        f"Mean (standard error) over instances{', ours / the paper' + chr(39) + 's' if table.against_paper else ''}. "
        f"Bold: the best of the methods with at least {MIN_INSTANCES} instances in its block, and those that do "
        f"not differ significantly from it (Welch t-test, 95%); trivial methods are not compared.{avici} "
        "Runs without an answer are left out of the means; `runs` counts the others."
    )
    if any(row.title.endswith("*") for block in table.blocks for row in block.rows):
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
    """A tabular for booktabs; the paper's numbers are in small type below ours."""
    heads = table.blocks[0].heads
    columns: Sequence[str] = tuple(dict.fromkeys(column for column, _ in heads))
    per = len(heads) // len(columns)
    lines = [
        f"% {table.title}. Needs \\usepackage{{booktabs}}.",
        r"\begin{tabular}{l" + "c" * len(heads) + "}",
        r"\toprule",
        " & ".join(["", *(rf"\multicolumn{{{per}}}{{c}}{{{_escape(column)}}}" for column in columns)]) + r" \\",
        rf"\cmidrule{{2-{len(heads) + 1}}}",
        " & ".join(["", *(_MATH.get(metric, TITLES.get(metric, metric)) for _, metric in heads)]) + r" \\",
    ]
    for _, rows in (part for block in table.blocks for part in block.parts()):
        lines.append(r"\midrule")
        for row in rows:
            ours = [rf"\textbf{{{_escape(cell.ours)}}}" if cell.best else _escape(cell.ours) for cell in row.cells]
            lines.append(" & ".join([_escape(row.title), *ours]) + r" \\")
            if any(cell.paper for cell in row.cells):
                theirs = [rf"{{\scriptsize {_escape(cell.paper)}}}" if cell.paper else "" for cell in row.cells]
                lines.append(" & ".join([r"\quad{\scriptsize paper}", *theirs]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])
