"""Run a method in a process of its own, with a time limit; whatever happens becomes a recorded outcome."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from presage.baselines.api import AnswerKind, Baseline
from presage.baselines.environments import environment_python
from presage.baselines.fitting import fit_and_note
from presage.errors import ConfigError
from presage.types import Dataset

__all__ = ["Outcome", "Status", "read_outcome", "run_here", "run_isolated"]

Clock = Literal["wall", "cpu"]
PATIENCE = 20.0
"""With the cpu clock, wall time may reach this many times the limit: a method that only waits must end too."""
Status = Literal["ok", "time-out", "crash", "not installed", "no model"]
WORKER = Path(__file__).with_name("worker.py")
KILL_GRACE = 5.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What came of one run.

    matrices: [k, d, d], one answer per bootstrap resample (k is 1 without bootstrap), None unless status is "ok".
    seconds, cpu_seconds: wall and processor time of the method itself, without starting Python where it got that far.
    message: what went wrong.
    """

    status: Status
    kind: AnswerKind = "graph"
    matrices: np.ndarray | None = None
    scores: tuple[float | None, ...] = ()
    seconds: float = float("nan")
    cpu_seconds: float = float("nan")
    note: str = ""
    message: str = ""


def run_isolated(
    baseline: Baseline,
    data: Dataset,
    *,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    time_limit: float = 3600.0,
    bootstrap: int = 0,
    threads: int = 1,
    clock: Clock = "wall",
) -> Outcome:
    """Fit in a child process; with bootstrap=k, to k resamples of the rows instead of to the rows themselves.

    clock: what the time limit counts, wall time or the processor time of the child (fairer on a busy machine).
    """
    if clock not in ("wall", "cpu"):
        raise ConfigError(f"the clock must be 'wall' or 'cpu', not {clock!r}")
    if time_limit <= 0.0:
        raise ConfigError(f"the time limit must be above 0 seconds, not {time_limit!r}")
    if bootstrap < 0:
        raise ConfigError(f"the number of bootstrap resamples must be at least 0, not {bootstrap!r}")
    chosen = baseline.settings(settings)
    python = environment_python(baseline.environment)
    if python is None:
        return Outcome(
            status="not installed",
            message=f"build its environment with: presage baselines install {baseline.environment}",
        )
    with tempfile.TemporaryDirectory(prefix="presage-run-") as folder:
        _write_request(Path(folder), baseline, data, chosen, seed, bootstrap, time_limit if clock == "cpu" else None)
        return _supervise(Path(folder), python, time_limit, threads, clock)


def run_here(
    baseline: Baseline, data: Dataset, *, settings: Mapping[str, Any] | None = None, seed: int = 0, bootstrap: int = 0
) -> Outcome:
    """Fit in this process, for methods of our own: a forward pass ends, and starting Python takes longer than it."""
    meta, matrices = fit_and_note(baseline, data, baseline.settings(settings), seed=seed, bootstrap=bootstrap)
    return _outcome(meta, matrices)


def _write_request(
    folder: Path,
    baseline: Baseline,
    data: Dataset,
    settings: dict[str, Any],
    seed: int,
    bootstrap: int,
    cpu_limit: float | None,
) -> None:
    np.savez(folder / "data.npz", x=data.x, interventions=data.interventions, missing=data.missing)
    request = {
        "method": baseline.name,
        "settings": settings,
        "seed": seed,
        "bootstrap": bootstrap,
        "cpu_limit": cpu_limit,
        "kind": data.kind,
        "names": list(data.names),
    }
    (folder / "request.json").write_text(json.dumps(request))


def _supervise(folder: Path, python: Path, time_limit: float, threads: int, clock: Clock) -> Outcome:
    limits = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
    environment = {**os.environ, **{f"{name}_NUM_THREADS": str(threads) for name in limits}, "MPLBACKEND": "Agg"}
    started = time.monotonic()
    with open(folder / "log", "wb") as log:
        child = subprocess.Popen(
            [str(python), str(WORKER), str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # so that whatever it starts can be ended with it
        )
        try:
            code = child.wait(timeout=time_limit * (PATIENCE if clock == "cpu" else 1.0))
        except subprocess.TimeoutExpired:
            return Outcome(
                status="time-out",
                seconds=time.monotonic() - started,
                message=f"stopped after {time_limit:g} seconds",
            )
        finally:
            _end_group(child)
    if clock == "cpu" and code == -signal.SIGXCPU:
        return Outcome(
            status="time-out",
            seconds=time.monotonic() - started,
            message=f"stopped after {time_limit:g} seconds of processor time",
        )
    answer = folder / "answer.npz"
    if code == 0 and answer.is_file():
        return read_outcome(answer)[0]
    return Outcome(status="crash", seconds=time.monotonic() - started, message=_reason(folder, code))


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """End the child and everything it started: they share a session of their own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait(timeout=KILL_GRACE)


def _reason(folder: Path, code: int) -> str:
    lines = (folder / "log").read_text(errors="replace").strip().splitlines()
    last = lines[-1].strip() if lines else "it said nothing"
    return f"exit code {code}: {last[:300]}"


def read_outcome(path: Path) -> tuple[Outcome, dict[str, Any]]:
    """An outcome from the file it was written to, and everything that was noted beside it."""
    with np.load(path, allow_pickle=False) as file:
        meta = json.loads(str(file["meta"]))
        matrices = file.get("matrices")
    return _outcome(meta, matrices), meta


def _outcome(meta: Mapping[str, Any], matrices: np.ndarray | None) -> Outcome:
    return Outcome(
        status=meta["status"],
        kind=meta["kind"],
        matrices=matrices,
        scores=tuple(meta["scores"]),
        seconds=meta["seconds"],
        cpu_seconds=meta["cpu_seconds"],
        note=meta["note"],
        message=meta["message"],
    )
