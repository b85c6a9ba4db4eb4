"""benchmarks/RESULTS.md: what was measured here, from recorded results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from presage.bench.experiments import EXPERIMENTS
from presage.bench.records import RunRecord, read_record, write_text
from presage.bench.render import picture, table_text
from presage.errors import ConfigError
from presage.files import atomic_write

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["PICTURES", "run_facts", "write_results"]

_HEAD = """# Results

Written by `presage bench results` from the csv files under `records/bench`; record a run to change this file. The
paper's numbers are those printed in its tables (`src/presage/assets/paper.csv`), on its own draws of the same
distributions and with its authors' implementations of the baselines; ours are on the instances 0, 1, ... of the test
stream of seed 0. `results.csv` of an experiment has a line per run: metrics, settings, time, memory, date, machine.
"""
PICTURES = "pictures"


def write_results(records: Path, target: Path) -> Path:
    """Write the tables of every recorded experiment into one file, and their pictures into a folder next to it."""
    found = _read(records)
    if not found:
        raise ConfigError(
            f"{str(records)!r} holds no recorded results; record a run with: "
            f"presage bench table-30 --out results/ --records {records}"
        )
    parts = [_HEAD]
    for record in found:
        name = record.experiment.name
        parts += [f"## {name}\n", run_facts(record.results) + "\n", table_text(record)]
        parts += _picture(picture(record), record.experiment.title, name, target)
    parts += _illustration(target)
    recorded = {record.experiment.name for record in found}
    missing = [name for name, experiment in EXPERIMENTS.items() if experiment.settings and name not in recorded]
    if missing:
        parts.append(f"No results are recorded of: {', '.join(missing)}.\n")
    return write_text(target, "\n".join(parts))


def _read(records: Path) -> list[RunRecord]:
    """Recorded experiments with results: those of the paper in their order, then folders by name."""
    found = [read_record(path.parent) for path in sorted(records.glob("*/run.json"))]
    order = list(EXPERIMENTS)
    found = [record for record in found if len(record.results)]
    return sorted(
        found, key=lambda record: order.index(record.experiment.name) if record.experiment.name in order else len(order)
    )


def _picture(figure: Figure | None, title: str, name: str, target: Path) -> list[str]:
    """Write a picture next to the file; only png, the format of pages."""
    if figure is None:
        return []
    with atomic_write(target.parent / PICTURES / f"{name}.png") as file:
        figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
    return [f"![{title}]({PICTURES}/{name}.png)\n"]


def _illustration(target: Path) -> list[str]:
    """The illustration of the domains follows from the code, not from results."""
    from presage.bench.illustration import illustrate

    title = EXPERIMENTS["illustration"].title
    return ["## illustration\n", *_picture(illustrate(), title, "illustration", target)]


def run_facts(frame: pd.DataFrame) -> str:
    """One paragraph on how an experiment was run: instances, dates, machines, limits."""
    ours = frame["method"].str.startswith("presage")
    sentences = [
        f"{who}: {_instances(part)}, {_span(part['finished'].dropna().str[:10])}."
        for who, part in (("Our networks", frame[ours]), ("Other methods", frame[~ours]))
        if len(part) and part["finished"].notna().any()
    ]
    machines = "; ".join(sorted(set(frame["machine"].dropna())))
    if machines:
        sentences.append(f"Machine: {machines}.")
    limited = frame[~ours].dropna(subset=["time_limit"])
    for clock, part in limited.groupby("clock"):
        sentences.append(
            f"Limits of a run ({clock} clock): {_span(part['time_limit'], 's')}, "
            f"{_span((part['memory_limit'] / 2**30).round(1), 'GiB')}."
        )
    seconds = frame.loc[frame["status"] == "ok", "cpu_seconds"].dropna()
    if len(seconds):
        sentences.append(f"The longest answer took {seconds.max():.1f} s of processor time.")
    return " ".join(sentences)


def _instances(part: pd.DataFrame) -> str:
    """How many instances of a setting the methods were run on."""
    counts = part.groupby(["section", "column", "row"])[["domain", "instance"]].apply(
        lambda cell: len(cell.drop_duplicates())
    )
    text = _span(counts)
    return f"{text} {'instance' if text == '1' else 'instances'}"


def _span(values: pd.Series, unit: str = "") -> str:
    low, high = values.min(), values.max()
    shown = [
        f"{value:g}" if isinstance(value, (int, float)) or hasattr(value, "dtype") else str(value)
        for value in (low, high)
    ]
    return (shown[0] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]}") + (f" {unit}" if unit else "")
