"""Put newly measured rows of our networks into benchmarks/RESULTS.md, and leave the other methods' rows as they are.

    presage bench table-30 --methods presage --own-instances 30 --out results/     # and so on, experiment by experiment
    python scripts/renew_results.py results/

For a change of models: the searches take hours, and what they answer does not depend on our networks. Bold is set
anew, by a Welch test on the means and errors as they are printed.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from presage.bench.experiments import EXPERIMENTS
from presage.bench.results import PICTURES, run_facts
from presage.bench.tables import LOWER, NEUTRAL
from presage.metrics import highlight

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "RESULTS.md"
OURS = "Presage"
SPLIT = " Other rows: "


@dataclass(frozen=True)
class Row:
    """A line of a table: its first two columns, and our numbers with whatever stands after the bar."""

    title: str
    done: str
    cells: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, line: str) -> Row:
        title, done, *cells = (part.strip() for part in line.strip("|").split(" | "))
        split = [cell.replace("**", "").partition(" / ") for cell in cells]
        return cls(title, done, tuple((ours, paper) for ours, _, paper in split))

    def sample(self, column: int, columns: int) -> np.ndarray | None:
        """Numbers with the printed mean and standard error, as many as there were runs."""
        found = re.fullmatch(r"(-?[\d.]+)(?: \(([\d.]+)\))?", self.cells[column][0])
        if found is None:
            return None
        runs = max(1, round(int(self.done.split("/")[0]) / columns))
        if found[2] is None or runs == 1:
            return np.array([float(found[1])])
        shape = np.linspace(-1.0, 1.0, runs)
        return float(found[1]) + float(found[2]) * np.sqrt(runs) * shape / shape.std(ddof=1)


def bold(rows: list[Row], heads: list[str]) -> list[str]:
    """The lines of a table's body with the best of every column in bold."""
    metrics = [head.rsplit(" ", 1)[1].lower() for head in heads]
    columns = len({head.rsplit(" ", 1)[0] for head in heads})
    best: list[set[str]] = []
    for place, metric in enumerate(metrics):
        samples = {row.title: one for row in rows if (one := row.sample(place, columns)) is not None}
        best.append(set() if metric in NEUTRAL else highlight(samples, higher_is_better=metric not in LOWER))
    lines = []
    for row in rows:
        shown = [
            (f"**{ours}**" if row.title in best[place] else ours) + (f" / {paper}" if paper else "")
            for place, (ours, paper) in enumerate(row.cells)
        ]
        lines.append(f"| {row.title} | {row.done} | " + " | ".join(shown) + " |")
    return lines


def tables(lines: list[str]) -> dict[str, tuple[int, int]]:
    """Where the bodies of a section's tables stand, by their header line."""
    found = {}
    for at, line in enumerate(lines):
        if line.startswith("| --- "):
            end = at + 1
            while end < len(lines) and lines[end].startswith("| "):
                end += 1
            found[lines[at - 1]] = (at + 1, end)
    return found


def renewed(old: str, fresh: str, facts: str) -> str:
    """A section of RESULTS.md with our rows from a fresh table."""
    lines, new = old.splitlines(), fresh.splitlines()
    if not any(line.startswith("| ") and not line.startswith(f"| {OURS}") for line in body(lines)):
        return "\n".join([lines[0], "", facts, "", *new]) + "\n"  # nothing but ours in it
    theirs = tables(new)
    for head, (start, end) in reversed(tables(lines).items()):
        if head not in theirs:
            continue
        here = [Row.read(line) for line in lines[start:end]]
        ours = [row for row in map(Row.read, new[slice(*theirs[head])]) if row.title.startswith(OURS)]
        kept = [row for row in here if not row.title.startswith(OURS)]
        lines[start:end] = bold([*kept, *ours], head.strip("|").split(" | ")[2:])
    before = lines[2].partition(SPLIT)[2] or re.sub(r"^\d+ instances? for our networks, ", "", lines[2])
    lines[2] = f"Rows of {OURS}: {facts}{SPLIT}{before}"
    return "\n".join(lines) + "\n"


def body(lines: list[str]) -> list[str]:
    """The lines in the tables of a section; tables whose rows are no methods count as ours."""
    return [line for head, (start, end) in tables(lines).items() if "| runs |" in head for line in lines[start:end]]


def main() -> None:
    """Renew every section for which there is a fresh table."""
    out = Path(sys.argv[1])
    head, *sections = re.split(r"(?m)^(?=## )", RESULTS.read_text())
    for place, section in enumerate(sections):
        name = section.splitlines()[0].removeprefix("## ")
        if not (out / name / "table.md").is_file():
            continue
        run = json.loads((out / name / "run.json").read_text())
        text, *pictures = re.split(r"(?m)^(?=!\[)", section)
        text = renewed(text.rstrip("\n"), (out / name / "table.md").read_text(), run_facts({**run, "instances": None}))
        sections[place] = "\n".join([text, *pictures]) if pictures else text + "\n"
        for picture in (out / name).glob("*.png"):
            shutil.copy(picture, RESULTS.parent / PICTURES / picture.name)
        print(f"{name}: {EXPERIMENTS[name].title}")
    RESULTS.write_text(head + "".join(sections))


if __name__ == "__main__":
    main()
