"""Runs: each in a process of its own, so that the page never waits and cancelling is immediate."""

from __future__ import annotations

import multiprocessing
import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from presage.web import worker

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from presage.inference.result import Result

__all__ = ["Job", "Runner"]

Status = Literal["waiting", "running", "done", "failed", "cancelled"]


class Job:
    """One run: what it is doing, and its result or the sentence that says why there is none."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task: dict[str, Any] | None = task
        self.status: Status = "waiting"
        self.stage = "waiting for a free place"
        self.share = 0.0
        self.result: Result | None = None
        self.pending: Any = None
        """What whoever asked for the run wants to find again when it is over."""
        self.error = ""
        self.begun = time.monotonic()
        self.took = 0.0
        self._lock = threading.Lock()
        self._stop: Callable[[], None] | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in ("done", "failed", "cancelled")

    @property
    def seconds(self) -> float:
        """How long it has been going on, or took."""
        return self.took if self.over else time.monotonic() - self.begun

    def cancel(self) -> None:
        """Stop at once, whatever it is doing."""
        if self._finish("cancelled") and self._stop is not None:
            self._stop()

    def _start(self, stop: Callable[[], None]) -> bool:
        with self._lock:
            if self.over:
                return False
            self.status, self._stop = "running", stop
            return True

    def _finish(self, status: Status, *, result: Result | None = None, error: str = "") -> bool:
        with self._lock:
            if self.over:
                return False
            self.took = time.monotonic() - self.begun
            self.result, self.error, self.status, self.task = result, error, status, None
            return True


class Runner:
    """A few places for runs; further ones wait their turn. Processes are kept for the next run, or ended by cancel."""

    def __init__(self, places: int = 2, target: Callable[[Connection], None] = worker.main, warm: bool = False) -> None:
        """places: runs at a time. warm: start the first process now, so that the first run need not wait for it."""
        self._target = target
        self._queue: queue.Queue[Job | None] = queue.Queue()
        self._threads = [
            threading.Thread(target=self._serve, args=(warm and k == 0,), daemon=True) for k in range(places)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, task: dict[str, Any]) -> Job:
        """Start a run as soon as there is a place."""
        job = Job(task)
        self._queue.put(job)
        return job

    def close(self) -> None:
        """End all processes once their runs are over."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(timeout=5.0)

    def _serve(self, warm: bool) -> None:
        process: SpawnProcess | None = None
        pipe: Connection | None = None
        if warm:
            process, pipe = self._spawn()
        while (job := self._queue.get()) is not None:
            if job.over:
                continue
            if process is None or pipe is None or not process.is_alive():
                process, pipe = self._spawn()
            if job._start(process.terminate) and not self._follow(job, pipe):
                process.terminate()
                process.join(timeout=5.0)
                process = None
        if process is not None and pipe is not None:
            pipe.close()
            process.join(timeout=2.0)
            process.terminate()

    def _spawn(self) -> tuple[SpawnProcess, Connection]:
        context = multiprocessing.get_context("spawn")  # a fork would copy the server's threads in mid-air
        ours, theirs = context.Pipe()
        process = context.Process(target=self._target, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        return process, ours

    @staticmethod
    def _follow(job: Job, pipe: Connection) -> bool:
        """Pass messages on until the run is over; whether the process can take another one."""
        job.stage = "starting"
        try:
            pipe.send(job.task)
            while not job.over:
                kind, *rest = pipe.recv()
                if kind == "stage":
                    job.stage, job.share = rest
                elif kind == "done":
                    job._finish("done", result=rest[0])
                else:
                    job._finish("failed", error=rest[0])
            return job.status != "cancelled"
        except (EOFError, OSError):
            job._finish("failed", error="the run stopped unexpectedly, perhaps for want of memory; try fewer rows")
            return False
        finally:
            job._stop = None
