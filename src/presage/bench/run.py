"""Run an experiment from its declaration to tidy results, tables and pictures."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from presage.bench.engine import Record, RunOptions, run_tasks
from presage.bench.experiments import Experiment
from presage.bench.frame import prediction, tidy
from presage.bench.instances import instance
from presage.bench.plan import Choice, choose_methods, plan
from presage.bench.store import Store
from presage.files import atomic_write

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Run", "run_experiment"]

Progress = Callable[[int, int, Record | None], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What came out: the tidy table, files written, how many tasks were read from disk and how many were run."""

    frame: pd.DataFrame
    files: tuple[Path, ...]
    cached: int
    executed: int


def run_experiment(
    experiment: Experiment,
    out: Path,
    *,
    choice: Choice,
    options: RunOptions,
    tuned: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run what is not on disk under `out`/cache yet, then write `out`/NAME: results, tables, pictures."""
    folder = out / experiment.name
    if experiment.kind == "illustration":
        from presage.bench.figures import save
        from presage.bench.illustration import illustrate

        return Run(frame=_empty(), files=tuple(save(illustrate(), folder / "illustration")), cached=0, executed=0)
    store = Store(folder=out / "cache")
    tasks = plan(experiment, choice, tuned)
    started = time.time()
    records: list[Record] = []
    if progress:
        progress(0, len(tasks), None)
    for record in run_tasks(tasks, store, options):
        records.append(record)
        if progress:
            progress(len(records), len(tasks), record)
    frame = tidy(records)
    if len(frame):
        frame["row"] = _row_labels(frame["method"], choice, experiment)
    files = _write(experiment, folder, frame, records, _remark(choice))
    executed = sum(not record.cached for record in records)
    about = {
        "experiment": experiment.name,
        **_instances(frame),
        "engine": options.engine,
        "jobs": options.jobs,
        "time_limit": options.limits.seconds,
        "memory_limit": options.limits.memory / 2**30,
        "clock": options.limits.clock,
        "longest": _longest(frame),
        "smaller": {"variables": choice.variables, "rows": choice.rows, "bootstrap": choice.bootstrap},
        "date": time.strftime("%Y-%m-%d", time.gmtime(started)),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "seconds": round(time.time() - started, 1),
        "executed": executed,
    }
    files.append(_text(folder / "run.json", json.dumps(about, indent=1) + "\n"))
    return Run(frame=frame, files=tuple(files), cached=len(records) - executed, executed=executed)


def _instances(frame: pd.DataFrame) -> dict[str, int]:
    """How many instances the searches and our networks saw."""
    if not len(frame):
        return {"instances": 0, "own_instances": 0}
    ours = frame["method"].str.startswith("presage")
    found = {"instances": int(frame.loc[~ours, "instance"].nunique()), "own_instances": 0}
    found["own_instances"] = int(frame.loc[ours, "instance"].nunique())
    return found


def _longest(frame: pd.DataFrame) -> float | None:
    """Processor seconds of the longest answer: answers of an earlier command with a higher limit stay."""
    seconds = frame.loc[frame["status"] == "ok", "cpu_seconds"].dropna() if len(frame) else ()
    return round(float(max(seconds)), 1) if len(seconds) else None


def _row_labels(methods: Iterable[str], choice: Choice, experiment: Experiment) -> list[str]:
    """The network of each column is one row "presage", unless networks were named."""
    if any(chosen.model for chosen in choose_methods(experiment, choice.methods)):
        return list(methods)
    return ["presage" if method.startswith("presage:") else method for method in methods]


def _remark(choice: Choice) -> str:
    """What differs from the experiment as declared."""
    changed = {"d": choice.variables, "n": choice.rows, "resamples": choice.bootstrap}
    parts = [f"{name} = {value}" for name, value in changed.items() if value is not None]
    return f"a smaller version with {', '.join(parts)}" if parts else ""


def _empty() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame()


def _text(path: Path, text: str) -> Path:
    with atomic_write(path) as file:
        file.write(text.encode())
    return path


def _write(
    experiment: Experiment, folder: Path, frame: pd.DataFrame, records: Sequence[Record], remark: str
) -> list[Path]:
    from presage.bench.grids import radar_grid, scaling_grid
    from presage.bench.tables import build_table, latex, markdown

    files = [_text(folder / "results.csv", frame.to_csv(index=False))]
    with atomic_write(folder / "results.parquet") as file:
        frame.to_parquet(file, index=False)
    files.append(folder / "results.parquet")
    if not len(frame):
        return files
    if experiment.kind in ("table", "calibration", "sachs"):
        table = build_table(experiment, frame, remark)
        files.append(_text(folder / "table.md", markdown(table)))
        files.append(_text(folder / "table.tex", latex(table)))
    elif experiment.kind in ("radar", "scaling"):
        grid = radar_grid if experiment.kind == "radar" else scaling_grid
        files.append(_text(folder / "table.md", grid(experiment, frame)))
    return files + _pictures(experiment, folder, frame, records)


def _pictures(experiment: Experiment, folder: Path, frame: pd.DataFrame, records: Sequence[Record]) -> list[Path]:
    from presage.bench import figures

    columns = [c for c in dict.fromkeys(s.column for s in experiment.settings) if c in set(frame["column"])]
    sections = [s for s in dict.fromkeys(s.section for s in experiment.settings) if s in set(frame["section"])]
    if experiment.kind == "radar":
        return figures.save(figures.radar_picture(frame, columns, experiment.metrics), folder / "radar")
    if experiment.kind == "scaling":
        return figures.save(figures.scaling_picture(frame, columns), folder / "scaling")
    if experiment.kind not in ("calibration", "sachs"):
        return []
    rows = dict(zip(frame["method"], frame["row"], strict=True))
    predictions: dict[tuple[str, str, str], list[tuple[np.ndarray, np.ndarray]]] = {}
    truth = np.zeros((1, 1))
    names: tuple[str, ...] = ()
    for record in records:
        if record.outcome.status != "ok":
            continue
        data = instance(record.task)
        truth, names = np.asarray(data.graph), data.names
        guess = prediction(record, truth)
        setting = record.task.setting
        key = (setting.section, setting.column, rows[record.task.label])
        predictions.setdefault(key, []).append((truth, np.asarray(guess)))
    if not predictions:
        return []
    if experiment.kind == "calibration":
        picture = figures.calibration_picture(predictions, columns, sections)
    else:
        picture = figures.sachs_picture(predictions, names, truth, sections)
    return figures.save(picture, folder / experiment.name)
