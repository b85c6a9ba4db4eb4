"""Running tasks: several at a time in processes of this machine, or on a Ray cluster. Finished runs are cached."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Literal

from presage.baselines.registry import get_baseline
from presage.baselines.run import Outcome, run_here, run_isolated
from presage.bench.instances import instance
from presage.bench.store import Store
from presage.bench.tasks import Task, task_key
from presage.errors import ConfigError, require_extra
from presage.processes import ProcessLimits

__all__ = ["ENGINES", "Engine", "Record", "RunOptions", "run_tasks"]

Engine = Literal["processes", "ray"]
ENGINES = ("processes", "ray")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """limits: of each run. jobs: parallel runs. retry: repeat runs that crashed."""

    limits: ProcessLimits = field(default_factory=lambda: ProcessLimits(seconds=3600.0))
    jobs: int = 1
    retry: bool = False
    engine: Engine = "processes"

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ConfigError(f"the number of jobs must be at least 1, not {self.jobs!r}")
        if self.engine not in ENGINES:
            raise ConfigError(f"there is no engine {self.engine!r}; choose one of: {', '.join(ENGINES)}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """A task and its outcome. cached: whether it was on disk. provenance: see `presage.bench.frame.PROVENANCE`."""

    task: Task
    outcome: Outcome
    cached: bool
    provenance: Mapping[str, Any] = field(default_factory=dict)


def _execute(task: Task, options: RunOptions) -> Outcome:
    """Draw the instance, then run the method on it: in a separate process unless it is ours."""
    data = instance(task)
    baseline, settings = get_baseline(task.method), dict(task.settings)
    if not baseline.isolated:
        return run_here(baseline, data, settings=settings, seed=task.instance, bootstrap=task.bootstrap)
    return run_isolated(
        baseline,
        data,
        settings=settings,
        seed=task.instance,
        limits=options.limits,
        bootstrap=task.bootstrap,
    )


def _known(store: Store, task: Task, options: RunOptions) -> Record | None:
    """A result that need not be repeated.

    A run that hit its limit of time or memory counts until a higher limit is given, a crash until a retry is asked
    for, and a missing environment never: it may have been built since.
    """
    key = task_key(task)
    if key is None:
        outcome = Outcome(status="no model", message=f"there is no model {dict(task.settings)['model']!r}")
        return Record(task=task, outcome=outcome, cached=True)
    found = store.load(key)
    if found is None:
        return None
    outcome, meta = found
    stale = (
        (outcome.status == "time-out" and meta["time_limit"] < options.limits.seconds)
        or (outcome.status == "memory" and meta.get("memory_limit", 0.0) < options.limits.memory)
        or (outcome.status == "crash" and options.retry)
        or outcome.status == "not installed"
    )
    return None if stale else Record(task=task, outcome=outcome, cached=True, provenance={**meta, "key": key})


def run_tasks(tasks: Sequence[Task], store: Store, options: RunOptions) -> Iterator[Record]:
    """Yield a record per task as it is done: those on disk first, then the others as they finish.

    Each outcome is on disk before it is yielded. If the caller stops early, running tasks are stopped.
    """
    open_tasks: dict[str, list[Task]] = {}  # tasks on equal data have one key and run once
    for task in tasks:
        known = _known(store, task, options)
        if known is not None:
            yield known
        else:
            open_tasks.setdefault(task_key(task) or "", []).append(task)
    if not open_tasks:
        return
    work = _on_ray if options.engine == "ray" else _in_processes
    for key, outcome in work({key: same[0] for key, same in open_tasks.items()}, options):
        about = {
            "time_limit": options.limits.seconds,
            "clock": options.limits.clock,
            "memory_limit": options.limits.memory,
            "engine": options.engine,
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        }
        store.save(key, open_tasks[key][0], outcome, **about)
        for place, task in enumerate(open_tasks[key]):
            yield Record(task=task, outcome=outcome, cached=place > 0, provenance={**about, "key": key})


def _in_processes(tasks: dict[str, Task], options: RunOptions) -> Iterator[tuple[str, Outcome]]:
    """Threads only wait: each method runs in a separate process anyway."""
    pool = ThreadPoolExecutor(options.jobs)
    waiting: dict[Future[Outcome], str] = {}
    queue = iter(tasks.items())
    try:
        while True:
            for key, task in queue:
                waiting[pool.submit(_guarded, task, options)] = key
                if len(waiting) >= options.jobs:
                    break
            if not waiting:
                return
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _guarded(task: Task, options: RunOptions) -> Outcome:
    """An instance that cannot be drawn is a recorded result like any other."""
    try:
        return _execute(task, options)
    except Exception as error:
        return Outcome(status="crash", message=f"{type(error).__name__}: {str(error)[:300]}")


def _on_ray(tasks: dict[str, Task], options: RunOptions) -> Iterator[tuple[str, Outcome]]:
    ray: Any = require_extra("ray", "ray", "the engine 'ray'")
    started = not ray.is_initialized()
    if started:
        address = os.environ.get("RAY_ADDRESS")
        cluster: dict[str, Any] = (
            {"address": address} if address else {"num_cpus": options.jobs, "include_dashboard": False}
        )
        ray.init(log_to_driver=False, logging_level="ERROR", **cluster)
    try:
        remote = ray.remote(num_cpus=1)(_guarded)
        waiting = {remote.remote(task, options): key for key, task in tasks.items()}
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=1)
            for reference in done:
                yield waiting.pop(reference), ray.get(reference)
    finally:
        if started:
            with contextlib.suppress(Exception):
                ray.shutdown()
