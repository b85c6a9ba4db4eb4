"""Choosing the settings of the baselines as the paper does: on held-out instances of each test distribution.

Methods with a held-out score (DAG-GNN, GraN-DAG, DCDI, DiBS) take the settings with the best mean score of five
instances, fitted to 80% of the rows. PC and IGSP have none; they take the settings with the best mean rank by SID and
F1 against the true graphs, which is impossible in practice and favours them.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from presage.baselines.registry import BASELINES, get_baseline
from presage.bench.engine import Record, RunOptions, run_tasks
from presage.bench.experiments import FAMILIES, Setting, default_settings
from presage.bench.frame import tidy
from presage.bench.run import Progress
from presage.bench.store import Store
from presage.bench.tasks import Task
from presage.errors import ConfigError
from presage.files import atomic_write
from presage.rng import Stream

__all__ = ["tune"]

INSTANCES = 5


def candidates(method: str, column: str) -> Iterator[dict[str, Any]]:
    """All combinations of the grid; DiBS has one parameter for each of its two likelihoods."""
    baseline = get_baseline(method)
    grid = dict(baseline.grid)
    if method == "dibs":
        grid.pop("parameter_length" if column == "linear" else "effective_size")
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def tune(
    out: Path,
    *,
    methods: tuple[str, ...] = (),
    columns: tuple[str, ...] = (),
    instances: int = INSTANCES,
    options: RunOptions,
    variables: int = 30,
    rows: int = 1000,
    progress: Progress | None = None,
) -> Path:
    """Write `out`/tuned.json with the best settings per column and method, keeping what is there for other methods."""
    tunable = [name for name, baseline in BASELINES.items() if baseline.grid]
    wanted = [name for name in methods if name != "all"] or tunable
    for name in wanted:
        if name not in tunable:
            raise ConfigError(f"{name} has no settings to choose; those that have: {', '.join(tunable)}")
    for column in columns:
        if column not in FAMILIES:
            raise ConfigError(f"there is no column {column!r}; choose among: {', '.join(FAMILIES)}")
    tasks = [
        _task(method, column, changes, instance, variables, rows)
        for method in wanted
        for column in columns or FAMILIES
        for changes in candidates(method, column)
        for instance in range(instances)
    ]
    store = Store(folder=out / "cache")
    records: list[Record] = []
    for record in run_tasks(tasks, store, options):
        records.append(record)
        if progress:
            progress(len(records), len(tasks), record)
    path = out / "tuned.json"
    known = json.loads(path.read_text()) if path.is_file() else {"settings": {}}
    for (column, method), best in _select(records).items():
        known["settings"].setdefault(column, {})[method] = best
    known["date"] = time.strftime("%Y-%m-%d", time.gmtime())
    known["instances"] = instances
    with atomic_write(path) as file:
        file.write((json.dumps(known, indent=1) + "\n").encode())
    return path


def _task(method: str, column: str, changes: dict[str, Any], instance: int, d: int, n: int) -> Task:
    baseline = get_baseline(method)
    holdout = {"holdout": True} if "holdout" in baseline.defaults else {}
    settings = baseline.settings({**default_settings(method, column), **changes, **holdout})
    interventional = baseline.interventions
    return Task(
        method=method,
        settings=tuple(sorted(settings.items())),
        setting=Setting(
            column=column,
            domain=f"{column}-ood",
            section="interventional" if interventional else "observational",
            d=d,
            n=n,
            n_interventional=n // 2 if interventional else 0,
        ),
        instance=instance,
        stream=int(Stream.VALIDATION),
    )


def _select(records: list[Record]) -> dict[tuple[str, str], dict[str, Any]]:
    """The best candidate per column and method; candidates without any result are left out."""
    frame = tidy(records)
    grids: dict[tuple[str, str, str], dict[str, Any]] = {}
    for record in records:
        settings = dict(record.task.settings)
        text = " ".join(f"{name}={value}" for name, value in record.task.settings)
        kept = {name: settings[name] for name in get_baseline(record.task.method).grid}
        grids[record.task.setting.column, record.task.method, text] = kept
    chosen: dict[tuple[str, str], dict[str, Any]] = {}
    for (column, method), part in frame.groupby(["column", "method"]):
        means = part.groupby("settings")[["score", "sid", "f1"]].mean()
        if get_baseline(str(method)).selection == "truth":
            merit = -(means["sid"].rank() + means["f1"].rank(ascending=False))
        else:
            merit = means["score"]
        merit = merit.dropna()
        if len(merit) and not math.isnan(float(merit.max())):
            chosen[str(column), str(method)] = grids[str(column), str(method), str(merit.idxmax())]
    return chosen
