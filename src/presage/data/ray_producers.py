"""Workers of the training buffer as Ray actors, for a cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from presage.data.producers import Backend, DatasetKey, DatasetSampler, Message, StoredDataset, Worker, error_message
from presage.errors import require_extra

__all__ = ["RayBackend"]


class RayBackend(Backend):
    """Ray actors of one core each, on this machine or, with RAY_ADDRESS set, on a cluster."""

    def __init__(self, sampler: DatasetSampler, workers: int) -> None:
        self._ray = require_extra("ray", "ray", "a buffer filled by Ray actors")
        self._started = not self._ray.is_initialized()
        if self._started and os.environ.get("RAY_ADDRESS"):
            self._ray.init(address="auto", log_to_driver=False)
        elif self._started:
            cores = max(workers, os.cpu_count() or 1)  # an actor without a core would wait forever
            self._ray.init(num_cpus=cores, include_dashboard=False, log_to_driver=False)
        self._actor = self._ray.remote(num_cpus=1, max_restarts=0)(_Producer)
        self._sampler = self._ray.put(sampler)
        self._pending: dict[Any, tuple[Worker, DatasetKey | None]] = {}

    def close(self) -> None:
        """Shut Ray down if it was started here."""
        if self._started:
            self._started = False
            self._ray.shutdown()

    def spawn(self) -> Any:
        """Start an actor."""
        return self._actor.remote(self._sampler)

    def submit(self, worker: Worker, key: DatasetKey) -> bool:
        """Call the actor."""
        self._pending[worker.handle.sample.remote(tuple(key))] = (worker, key)
        return True

    def poll(self, workers: Sequence[Worker], timeout: float) -> list[tuple[Worker, Message]]:
        """Results of finished calls. An actor may wait for a free core, so it is first asked for its process id."""
        asked = {worker for worker, key in self._pending.values() if key is None}
        for worker in workers:
            if worker.pid is None and worker not in asked:
                self._pending[worker.handle.pid.remote()] = (worker, None)
        if not self._pending:
            return []
        done, _ = self._ray.wait(list(self._pending), num_returns=1, timeout=timeout)
        messages: list[tuple[Worker, Message]] = []
        for reference in done:
            worker, key = self._pending.pop(reference)
            try:
                result = self._ray.get(reference)
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError):
                result = None
            if isinstance(result, tuple) and key is not None:
                result = (key, StoredDataset(*result))
            messages.append((worker, result))
        return messages

    def stop(self, worker: Worker) -> None:
        """Kill the actor."""
        self._pending = {reference: entry for reference, entry in self._pending.items() if entry[0] is not worker}
        with contextlib.suppress(Exception):  # already dead, or Ray is shutting down
            self._ray.kill(worker.handle)


class _Producer:
    """Body of a Ray actor."""

    def __init__(self, sampler: DatasetSampler) -> None:
        self.sampler = sampler

    def pid(self) -> int:
        return os.getpid()

    def sample(self, key: tuple[int, int]) -> tuple[np.ndarray, ...] | str:
        try:
            return tuple(self.sampler.sample(DatasetKey(*key)))
        except Exception as error:
            return error_message(error)
