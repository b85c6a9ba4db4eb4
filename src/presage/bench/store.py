"""Results on disk. Every file takes its place in one step, so that a killed run loses nothing done."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from presage.baselines.run import Outcome, read_outcome
from presage.bench.tasks import Task, describe
from presage.files import atomic_write

__all__ = ["Store"]


@dataclass(frozen=True, kw_only=True)
class Store:
    """A folder of results, each named by its key."""

    folder: Path

    def _path(self, key: str) -> Path:
        return self.folder / "results" / key[:2] / f"{key}.npz"

    def load(self, key: str) -> tuple[Outcome, dict[str, Any]] | None:
        """A stored outcome and what was written beside it."""
        path = self._path(key)
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
            "peak_memory": outcome.peak_memory,
            "note": outcome.note,
            "message": outcome.message,
            **beside,
        }
        arrays = {"matrices": outcome.matrices, "confounded": outcome.confounded}
        parts: dict[str, Any] = {name: array for name, array in arrays.items() if array is not None}
        with atomic_write(self._path(key)) as file:
            np.savez_compressed(file, meta=np.array(json.dumps(meta)), **parts)
