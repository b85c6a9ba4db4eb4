"""benchmarks/RESULTS.md: what was run here, from the folders that `presage bench` wrote."""

from __future__ import annotations

import json
from pathlib import Path

from presage.bench.experiments import EXPERIMENTS
from presage.errors import ConfigError
from presage.files import atomic_write

__all__ = ["PICTURES", "run_facts", "write_results"]

_HEAD = """# Results

Written by `presage bench results --out FOLDER --to benchmarks/RESULTS.md` from finished runs; edit the runs, not this
file. The paper's numbers are those printed in its tables (`src/presage/assets/paper.csv`), on its own draws of the same
distributions and with its authors' implementations of the baselines; ours are on the instances 0, 1, ... of the test
stream of seed 0.
"""
PICTURES = "pictures"


def write_results(out: Path, target: Path) -> Path:
    """Collect the tables of every experiment under `out` into one file, and their pictures into a folder beside it."""
    parts = [_HEAD]
    for name, experiment in EXPERIMENTS.items():
        about, table = out / name / "run.json", out / name / "table.md"
        pictures = sorted((out / name).glob("*.png"))
        if not (about.is_file() or pictures):
            continue
        parts.append(f"## {name}\n")
        if about.is_file():
            parts.append(run_facts(json.loads(about.read_text())) + "\n")
        if table.is_file():
            parts.append(table.read_text())
        for picture in pictures:
            with atomic_write(target.parent / PICTURES / picture.name) as file:
                file.write(picture.read_bytes())
            parts.append(f"![{experiment.title}]({PICTURES}/{picture.name})\n")
    if len(parts) == 1:
        raise ConfigError(f"{out} holds no finished experiment; run one with: presage bench table-30 --out {out}")
    with atomic_write(target) as file:
        file.write("\n".join(parts).encode())
    return target


def run_facts(facts: dict[str, object]) -> str:
    """One paragraph on how an experiment was run."""
    smaller = facts.get("smaller")
    changed = {key: value for key, value in smaller.items() if value is not None} if isinstance(smaller, dict) else {}
    counts = [
        f"{facts[key]} {'instance' if facts[key] == 1 else 'instances'} for {who}"
        for key, who in (("own_instances", "our networks"), ("instances", "the other methods"))
        if facts.get(key)
    ]
    text = (
        f"{', '.join(counts) or 'no instances'}; {facts['date']}, {facts['machine']}, Python {facts['python']}, "
        f"time limit {facts['time_limit']:g} s ({facts['clock']} clock) per run, "
        f"engine {facts['engine']} with {facts['jobs']} at a time."
    )
    if facts.get("longest") is not None:
        text += f" The longest answer, of this or an earlier command, took {facts['longest']} s of processor time."
    if changed:
        text += " Smaller than the paper's: " + ", ".join(f"{key} {value}" for key, value in changed.items()) + "."
    return text
