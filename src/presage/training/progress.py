"""Counters of a training run, and its log."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from presage.errors import InputError, reason
from presage.files import atomic_write, parse_json, read_bytes

__all__ = ["LOG", "Progress", "append_log", "read_log", "trim_log"]

LOG = "metrics.jsonl"


@dataclass
class Progress:
    """Counters of a run; every checkpoint holds all of them.

    `cpu_seconds` is the processor time of rank 0, `core_seconds` that of all processes, assuming that they
    take equally long; a resumed run may have another number of them. The pretraining counters belong to the model whose
    weights the run started with, and to its predecessors.
    """

    step: int = 0
    datasets: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    core_seconds: float = 0.0
    processes: int = 1
    pretraining_datasets: int = 0
    pretraining_core_minutes: float = 0.0
    started: float = field(default_factory=time.monotonic)
    cpu_started: float = field(default_factory=time.process_time)

    def tick(self) -> None:
        """Add the time since the last call."""
        now, cpu = time.monotonic(), time.process_time()
        self.seconds += now - self.started
        self.cpu_seconds += cpu - self.cpu_started
        self.core_seconds += (cpu - self.cpu_started) * self.processes
        self.started, self.cpu_started = now, cpu

    @property
    def core_minutes(self) -> float:
        """Processor time of all processes in minutes."""
        return self.core_seconds / 60.0

    def state(self) -> dict[str, Any]:
        """The counters, without the times at which the clocks were read."""
        return {name: value for name, value in vars(self).items() if not name.endswith("started")}

    def entry(self, event: str, **values: float) -> dict[str, Any]:
        """An entry of the log."""
        return {
            "event": event,
            "step": self.step,
            "datasets": self.datasets,
            "minutes": round(self.seconds / 60.0, 3),
            "core_minutes": round(self.core_minutes, 3),
            **values,
        }


def append_log(folder: Path, entry: dict[str, Any]) -> None:
    """Add an entry to the log of a run."""
    try:
        with (folder / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
    except OSError as error:
        raise InputError(f"cannot write {folder / LOG}: {reason(error)}") from error


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The entries of the log of a run; incomplete lines, as a killed run may leave, are skipped."""
    try:
        text = read_bytes(folder / LOG).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot read {folder / LOG}: {reason(error)}") from error
    entries = []
    for line in text.splitlines():
        try:
            entry = parse_json(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("step"), int) and "event" in entry:
            entries.append(entry)
    return entries


def trim_log(folder: Path, step: int) -> None:
    """Drop entries logged after the last checkpoint of a killed run: those steps are about to run again."""
    kept = [entry for entry in read_log(folder) if entry["step"] <= step]
    with atomic_write(folder / LOG) as file:
        file.write("".join(json.dumps(entry) + "\n" for entry in kept).encode())
