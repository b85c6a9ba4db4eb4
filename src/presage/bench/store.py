"""Results and instances on disk. Every file takes its place in one step, so that a killed run loses nothing done."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from presage.baselines.run import Outcome, read_outcome
from presage.bench.tasks import Task, describe, instance_key
from presage.files import atomic_write
from presage.rng import Stream
from presage.types import Dataset

__all__ = ["Store"]


@dataclass(frozen=True, kw_only=True)
class Store:
    """A folder of instances and results, each named by its key."""

    folder: Path

    def _path(self, what: str, key: str) -> Path:
        return self.folder / what / key[:2] / f"{key}.npz"

    def instance(self, task: Task) -> Dataset:
        """The dataset of a task with its true graph, drawn once and kept."""
        path = self._path("instances", instance_key(task))
        if path.is_file():
            with np.load(path, allow_pickle=False) as file:
                return Dataset(
                    x=file["x"],
                    interventions=file["interventions"],
                    graph=file["graph"],
                    names=tuple(str(name) for name in file["names"]),
                    kind=str(file["kind"]),  # type: ignore[arg-type]
                )
        data = _draw(task)
        with atomic_write(path) as file:
            np.savez_compressed(
                file,
                x=data.x,
                interventions=data.interventions,
                graph=np.asarray(data.graph),
                names=np.array(data.names),
                kind=np.array(data.kind),
            )
        return data

    def load(self, key: str) -> tuple[Outcome, dict[str, Any]] | None:
        """A stored outcome and what was written beside it."""
        path = self._path("results", key)
        if not path.is_file():
            return None
        return read_outcome(path)

    def save(self, key: str, task: Task, outcome: Outcome, **beside: Any) -> None:
        """Keep an outcome."""
        meta = {
            "task": describe(task),
            "status": outcome.status,
            "kind": outcome.kind,
            "scores": list(outcome.scores),
            "seconds": outcome.seconds,
            "cpu_seconds": outcome.cpu_seconds,
            "note": outcome.note,
            "message": outcome.message,
            **beside,
        }
        parts: dict[str, Any] = {} if outcome.matrices is None else {"matrices": outcome.matrices}
        with atomic_write(self._path("results", key)) as file:
            np.savez_compressed(file, meta=np.array(json.dumps(meta)), **parts)


def _draw(task: Task) -> Dataset:
    setting = task.setting
    if setting.domain == "sachs":
        from presage.datasets import load_sachs

        data = load_sachs()
        if setting.section == "interventional":
            return data
        return Dataset(x=data.x, names=data.names, graph=data.graph)  # all rows, without their targets
    from presage.domain.catalog import get_domain

    batch = get_domain(setting.domain).sample(
        d=setting.d,
        n=setting.n,
        n_interventional=setting.n_interventional,
        seed=task.seed,
        stream=Stream(task.stream),
        start=task.instance,
    )
    return batch[0]
