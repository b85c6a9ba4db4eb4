"""Producers of the training buffer as Ray actors, for a cluster."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np

from presage.data.producers import Recipe, Stored, Task, Worker, WorkerPool, describe
from presage.errors import require_extra

__all__ = ["RayPool"]


class RayPool(WorkerPool):
    """Producers as Ray actors of one core each, on this machine or, with RAY_ADDRESS set, on a cluster."""

    def __init__(self, recipe: Recipe, workers: int, **links: Any) -> None:
        super().__init__(recipe, workers, **links)
        self._ray = require_extra("ray", "ray", "a buffer filled by Ray actors")
        self._ours = not self._ray.is_initialized()
        if self._ours and os.environ.get("RAY_ADDRESS"):
            self._ray.init(address="auto", log_to_driver=False)
        elif self._ours:
            cores = max(workers, os.cpu_count() or 1)  # an actor without a core of its own would wait for ever
            self._ray.init(num_cpus=cores, include_dashboard=False, log_to_driver=False)
        self._actor = self._ray.remote(num_cpus=1, max_restarts=0)(_Producer)
        self._recipe = self._ray.put(recipe)
        self._pending: dict[Any, tuple[Worker, Task | None]] = {}

    def close(self) -> None:
        """End the actors, and Ray itself if it was started here."""
        super().close()
        if self._ours:
            self._ours = False
            self._ray.shutdown()

    def _spawn(self) -> Any:
        return self._actor.remote(self._recipe)

    def _submit(self, worker: Worker, task: Task) -> bool:
        self._pending[worker.handle.make.remote(tuple(task))] = (worker, task)
        return True

    def _poll(self, timeout: float) -> list[tuple[Worker, Any]]:
        asked = {worker for worker, task in self._pending.values() if task is None}
        for worker in self._staff:  # an actor may wait long for a free core: it gets tasks only once it answers
            if not worker.ready and worker not in asked:
                self._pending[worker.handle.ready.remote()] = (worker, None)
        if not self._pending:
            return []
        done, _ = self._ray.wait(list(self._pending), num_returns=1, timeout=timeout)
        heard: list[tuple[Worker, Any]] = []
        for reference in done:
            worker, task = self._pending.pop(reference)
            try:
                answer = self._ray.get(reference)
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError):
                heard.append((worker, None))
                continue
            if isinstance(answer, str) or task is None:
                heard.append((worker, answer))
            else:
                heard.append((worker, (task, Stored(*answer))))
        return heard

    def _stop(self, worker: Worker) -> None:
        self._pending = {reference: entry for reference, entry in self._pending.items() if entry[0] is not worker}
        with contextlib.suppress(Exception):  # already dead, or Ray is shutting down
            self._ray.kill(worker.handle)


class _Producer:
    """The body of a Ray actor."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def ready(self) -> str:
        return "ready"

    def make(self, task: tuple[int, int]) -> tuple[np.ndarray, ...] | str:
        try:
            return tuple(self.recipe.make(Task(*task)))
        except Exception as error:
            return describe(error)
