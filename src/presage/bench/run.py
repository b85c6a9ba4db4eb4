"""Run an experiment from its declaration to recorded results, tables and pictures."""

from __future__ import annotations

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
from presage.bench.records import RunRecord, read_record
from presage.bench.render import render
from presage.bench.store import Store
from presage.errors import ConfigError
from presage.metrics import calibration_curve

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Run", "run_experiment"]

Progress = Callable[[int, int, Record | None], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """The tidy table, the files written, and how many tasks were read from disk or run.

    warnings: entries of the cache that were unreadable and run again.
    """

    frame: pd.DataFrame
    files: tuple[Path, ...]
    cached: int
    executed: int
    warnings: tuple[str, ...] = ()


def run_experiment(
    experiment: Experiment,
    out: Path,
    *,
    choice: Choice,
    options: RunOptions,
    tuned: dict[str, Any] | None = None,
    records: Path | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run what is not on disk under `out`/cache yet, then write `out`/NAME: results, tables, pictures.

    records: a folder of recorded results; those of this run are merged into `records`/NAME.
    """
    remark = _remark(choice)
    if records is not None and remark:
        raise ConfigError("a smaller version of an experiment is not recorded; leave out -d, -n and --bootstrap")
    folder = out / experiment.name
    if experiment.kind == "illustration":
        from presage.bench.figures import save
        from presage.bench.illustration import illustrate

        return Run(frame=_empty(), files=tuple(save(illustrate(), folder / "illustration")), cached=0, executed=0)
    store = Store(folder=out / "cache")
    tasks = plan(experiment, choice, tuned)
    done: list[Record] = []
    if progress:
        progress(0, len(tasks), None)
    for record in run_tasks(tasks, store, options):
        done.append(record)
        if progress:
            progress(len(done), len(tasks), record)
    frame = tidy(done)
    if len(frame):
        frame["row"] = _row_labels(frame["method"], choice, experiment)
    found = RunRecord(experiment=experiment, results=frame, extras=_extras(experiment, frame, done), remark=remark)
    files = [*found.save(folder), *render(found, folder)]
    if records is not None and len(frame):
        kept = records / experiment.name
        files += (read_record(kept).merge(found) if (kept / "run.json").is_file() else found).save(kept)
    executed = sum(not record.cached for record in done)
    damaged = tuple(f"{str(path)!r} was damaged; its task was run again" for path in store.damaged)
    return Run(frame=frame, files=tuple(files), cached=len(done) - executed, executed=executed, warnings=damaged)


def _row_labels(methods: Iterable[str], choice: Choice, experiment: Experiment) -> list[str]:
    """The network of each column is one row "presage", unless networks were named or one serves all columns."""
    named = any(chosen.model for chosen in choose_methods(experiment, choice.methods))
    if named or experiment.kind == "folder":
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


def _extras(experiment: Experiment, frame: pd.DataFrame, records: Sequence[Record]) -> dict[str, pd.DataFrame]:
    """The tidy tables behind pictures that metrics alone do not give."""
    if experiment.kind not in ("calibration", "sachs"):
        return {}
    rows = dict(zip(frame["method"], frame["row"], strict=True))
    answered = [record for record in records if record.outcome.status == "ok"]
    if not answered:
        return {}
    if experiment.kind == "calibration":
        return {"calibration": _calibration(answered, rows)}
    return {"edges": _edges(answered, rows)}


def _calibration(records: Sequence[Record], rows: dict[str, str]) -> pd.DataFrame:
    """Bins of the calibration curve of every section, column and row, all instances pooled."""
    import pandas as pd

    pooled: dict[tuple[str, str, str], list[tuple[np.ndarray, np.ndarray]]] = {}
    for record in records:
        setting, truth = record.task.setting, np.asarray(instance(record.task).graph)
        key = (setting.section, setting.column, rows[record.task.label])
        pooled.setdefault(key, []).append((truth, np.asarray(prediction(record, truth))))
    found = []
    for (section, column, row), pairs in pooled.items():
        curve = calibration_curve([truth for truth, _ in pairs], [guess for _, guess in pairs])
        found += [
            {"section": section, "column": column, "row": row, "bin": place, "predicted": p, "empirical": e, "count": c}
            for place, (p, e, c) in enumerate(zip(curve.predicted, curve.empirical, curve.count, strict=True))
        ]
    return pd.DataFrame(found)


def _edges(records: Sequence[Record], rows: dict[str, str]) -> pd.DataFrame:
    """Edges with a probability above 0 in every section and row, and those of the reference graph."""
    import pandas as pd

    from presage.bench.figures import REFERENCE

    found = []
    for record in records:
        data, section = instance(record.task), record.task.setting.section
        truth = np.asarray(data.graph)
        for row, matrix in (
            (REFERENCE, truth.astype(float)),
            (rows[record.task.label], np.asarray(prediction(record, truth))),
        ):
            found += [
                {
                    "section": section,
                    "row": row,
                    "source": data.names[i],
                    "target": data.names[j],
                    "probability": round(float(matrix[i, j]), 6),
                }
                for i, j in zip(*np.nonzero(matrix), strict=True)
            ]
    return pd.DataFrame(found).drop_duplicates(ignore_index=True)
