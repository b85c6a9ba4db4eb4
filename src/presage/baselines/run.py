"""Run a method in a separate process, with limits on time and memory; every failure becomes a recorded outcome."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from presage.baselines.api import Baseline, EstimateKind
from presage.baselines.environments import environment_python
from presage.baselines.fitting import fit_and_time
from presage.errors import ConfigError
from presage.processes import ChildProcess, ProcessFailure, ProcessLimits, temporary_folder, thread_variables
from presage.types import Dataset

__all__ = ["Outcome", "Status", "read_outcome", "run_here", "run_isolated"]

Status = Literal["ok", "time-out", "memory", "crash", "not applicable", "not installed", "no model"]
WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """The result of one run, or why there is none.

    matrices: [k, d, d], one estimate per bootstrap resample (k is 1 without bootstrap), None unless status is "ok".
    confounded: [k, d, d] probabilities of hidden common causes, None for methods that assume that there are none.
    seconds, cpu_seconds: wall and processor time of the method; of the whole process where it did not finish.
    peak_memory: largest resident memory of its process in bytes, NaN for methods that run in the calling process.
    message: what went wrong.
    """

    status: Status
    kind: EstimateKind = "graph"
    matrices: np.ndarray | None = None
    confounded: np.ndarray | None = None
    scores: tuple[float | None, ...] = ()
    seconds: float = math.nan
    cpu_seconds: float = math.nan
    peak_memory: float = math.nan
    note: str = ""
    message: str = ""


def run_isolated(
    baseline: Baseline,
    data: Dataset,
    *,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    limits: ProcessLimits | None = None,
    bootstrap: int = 0,
) -> Outcome:
    """Fit in a child process of one thread; with bootstrap=k, to k resamples of the rows instead of the rows."""
    if bootstrap < 0:
        raise ConfigError(f"the number of bootstrap resamples must be at least 0, not {bootstrap!r}")
    request = {
        "method": baseline.name,
        "settings": baseline.settings(settings),
        "seed": seed,
        "bootstrap": bootstrap,
        "kind": data.kind,
        "names": list(data.names),
    }
    python = environment_python(baseline.environment)
    if python is None:
        return Outcome(
            status="not installed",
            message=f"build its environment with: presage baselines install {baseline.environment}",
        )
    with temporary_folder("run") as folder:
        names = ("x", "interventions", "missing", "column_kinds")
        np.savez(folder / "data.npz", allow_pickle=False, **{name: getattr(data, name) for name in names})
        (folder / "request.json").write_text(json.dumps(request))
        return _supervise(folder, python, limits or ProcessLimits(seconds=3600.0))


def run_here(
    baseline: Baseline, data: Dataset, *, settings: Mapping[str, Any] | None = None, seed: int = 0, bootstrap: int = 0
) -> Outcome:
    """Fit in this process, for our own methods: a forward pass takes less time than starting Python."""
    meta, arrays = fit_and_time(baseline, data, baseline.settings(settings), seed=seed, bootstrap=bootstrap)
    return _outcome(meta, arrays)


def _supervise(folder: Path, python: Path, limits: ProcessLimits) -> Outcome:
    command = [str(python), str(WORKER), str(folder)]
    environment = {**thread_variables(1), "MPLBACKEND": "Agg"}
    with open(folder / "log", "wb") as log, ChildProcess.run(command, environment=environment, log=log) as child:
        try:
            child.wait(limits)
            if not (folder / "outcome.npz").is_file():
                raise ProcessFailure("crash", "the process ended without a result")
            outcome, _ = read_outcome(folder / "outcome.npz")
        except ProcessFailure as failure:
            status, message = failure.status, str(failure)
            if status == "crash":
                lines = (folder / "log").read_text(errors="replace").strip().splitlines()
                last = lines[-1].strip() if lines else "it printed nothing"
                status = "memory" if last.startswith("MemoryError") else status
                message = f"{message}: {last[:300]}"
            usage = child.usage()
            outcome = Outcome(status=status, seconds=usage.seconds, cpu_seconds=usage.cpu_seconds, message=message)
    return replace(outcome, peak_memory=float(child.peak_memory))


def read_outcome(path: Path) -> tuple[Outcome, dict[str, Any]]:
    """An outcome from its file, and everything stored with it."""
    # Opened here: NumPy leaves a damaged file open.
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        meta = json.loads(str(file["meta"]))
        arrays = {name: file[name] for name in ("matrices", "confounded") if name in file.files}
    return _outcome(meta, arrays), meta


def _outcome(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Outcome:
    return Outcome(
        status=meta["status"],
        kind=meta["kind"],
        matrices=arrays.get("matrices"),
        confounded=arrays.get("confounded"),
        scores=tuple(meta["scores"]),
        seconds=meta["seconds"],
        cpu_seconds=meta["cpu_seconds"],
        peak_memory=meta.get("peak_memory", math.nan),
        note=meta["note"],
        message=meta["message"],
    )
