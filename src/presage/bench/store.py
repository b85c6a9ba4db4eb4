"""Results on disk. Every file is written atomically, so that a killed run loses no finished work."""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from presage.baselines.run import Outcome, read_outcome
from presage.bench.tasks import Task, describe
from presage.files import atomic_write

__all__ = ["Store"]


@dataclass(frozen=True, kw_only=True)
class Store:
    """A folder of results, each named by its key.

    damaged: files found that cannot be read; they count as missing, and running their tasks again replaces them.
    """

    folder: Path
    damaged: list[Path] = field(default_factory=list)

    def _path(self, key: str) -> Path:
        return self.folder / "results" / key[:2] / f"{key}.npz"

    def load(self, key: str) -> tuple[Outcome, dict[str, Any]] | None:
        """A stored outcome and what was stored with it; None if there is none or its file is damaged."""
        path = self._path(key)
        if not path.is_file():
            return None
        try:
            outcome, meta = read_outcome(path)
            if outcome.status == "ok" and (outcome.matrices is None or outcome.matrices.ndim != 3):
                raise ValueError("an answer without its matrices")
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error):
            self.damaged.append(path)
            return None
        return outcome, meta

    def save(self, key: str, task: Task, outcome: Outcome, **provenance: Any) -> None:
        """Store an outcome."""
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
            **provenance,
        }
        arrays = {"matrices": outcome.matrices, "confounded": outcome.confounded}
        parts: dict[str, Any] = {name: array for name, array in arrays.items() if array is not None}
        with atomic_write(self._path(key)) as file:
            np.savez_compressed(file, meta=np.array(json.dumps(meta)), **parts)
