"""Jobs of the page: each runs in a child process, so that the page never waits and cancelling is immediate."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from presage.processes import ChildProcess, ProcessFailure, ProcessLimits
from presage.web import worker

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from presage.inference.result import Result

__all__ = ["Job", "Runner"]

Status = Literal["waiting", "running", "done", "failed", "cancelled"]
_MEMORY_SHARE = 0.8  # of the machine, for one job: the page itself must survive


class Job:
    """One job: its progress, and its result or an error message."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task: dict[str, Any] | None = task
        self.status: Status = "waiting"
        self.stage = "waiting for other runs"
        self.share = 0.0
        self.result: Result | None = None
        self.pending: Any = None
        """Data of the caller, kept until the job is over."""
        self.error = ""
        self.started = time.monotonic()
        self.took = 0.0
        self._lock = threading.Lock()
        self._kill: Callable[[], None] | None = None

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self.status in ("done", "failed", "cancelled")

    @property
    def seconds(self) -> float:
        """Duration so far, or in total."""
        return self.took if self.over else time.monotonic() - self.started

    def cancel(self) -> None:
        """Stop at once."""
        if self._finish("cancelled") and self._kill is not None:
            self._kill()

    def _start(self, kill: Callable[[], None]) -> bool:
        with self._lock:
            if self.over:
                return False
            self.status, self._kill = "running", kill
            return True

    def _finish(self, status: Status, *, result: Result | None = None, error: str = "") -> bool:
        with self._lock:
            if self.over:
                return False
            self.took = time.monotonic() - self.started
            self.result, self.error, self.status, self.task = result, error, status, None
            return True


class Runner:
    """Runs a few jobs at a time; others wait. A process is reused for the next job unless its job was cancelled."""

    def __init__(
        self,
        slots: int = 2,
        target: Callable[[Connection], None] = worker.main,
        *,
        warm: bool = False,
        memory_limit: float | None = None,
    ) -> None:
        """slots: jobs at a time. warm: start the first process now, so that the first job need not wait for it.

        memory_limit: bytes for one job, 80 % of the machine's memory by default.
        """
        import psutil

        self._target = target
        self._limits = ProcessLimits(memory=memory_limit or _MEMORY_SHARE * psutil.virtual_memory().total)
        self._queue: queue.Queue[Job | None] = queue.Queue()
        self._threads = [
            threading.Thread(target=self._serve, args=(warm and k == 0,), daemon=True) for k in range(slots)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, task: dict[str, Any]) -> Job:
        """Queue a job."""
        job = Job(task)
        self._queue.put(job)
        return job

    def close(self) -> None:
        """Stop all processes once their jobs are over."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(timeout=5.0)

    def _serve(self, warm: bool) -> None:
        child = ChildProcess.call(self._target) if warm else None
        while (job := self._queue.get()) is not None:
            if job.over:
                continue
            if child is None or not child.is_alive():
                child = ChildProcess.call(self._target)
            if job._start(child.kill) and not self._follow(job, child):
                child.stop()
                child = None
        if child is not None:
            child.stop()

    def _follow(self, job: Job, child: ChildProcess) -> bool:
        """Pass messages on until the job is over; whether the process can take another one."""
        job.stage = "starting"
        try:
            child.send(job.task)
            while not job.over:
                kind, *rest = child.receive(self._limits)
                if kind == "stage":
                    job.stage, job.share = rest
                elif kind == "done":
                    job._finish("done", result=rest[0])
                else:
                    job._finish("failed", error=rest[0])
            return job.status != "cancelled"
        except (ProcessFailure, OSError) as failure:
            out_of_memory = isinstance(failure, ProcessFailure) and failure.status == "memory"
            how = "ran out of memory" if out_of_memory else "stopped unexpectedly, perhaps for lack of memory"
            job._finish("failed", error=f"the run {how}; try fewer rows or variables")
            return False
        finally:
            job._kill = None
