"""Producers: worker processes that simulate the datasets of the training buffer ahead of time.

Dataset `number` of d variables is sampled from the generator at the address (seed, stream, d, number). It is the same
whichever worker samples it, and a dataset lost with its worker is sampled again by another one. A `WorkerPool` is a
thread of the trainer: it asks the buffer for the next dataset, gives each worker at most two (one in progress, one
waiting), delivers the results and restarts workers that die. The backends are processes of this machine
(`ProcessBackend`) and Ray actors (`presage.data.ray_producers`).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
import traceback
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from presage.domain.domain import Domain
from presage.errors import ConfigError, DataError, PresageError
from presage.processes import ChildProcess
from presage.rng import Stream, generator

__all__ = [
    "Backend",
    "DatasetKey",
    "DatasetSampler",
    "Message",
    "ProcessBackend",
    "StoredDataset",
    "Worker",
    "WorkerPool",
    "error_message",
]

_DATASETS_PER_WORKER = 2
_POLL_SECONDS = 0.1  # how long a change in the buffer may wait while workers are busy
_MAX_EARLY_DEATHS = 3  # per worker: deaths in a row without a single dataset, before the run gives up
_MAX_DEATHS_PER_DATASET = 5
_FLOAT32_MAX = np.float64(np.finfo(np.float32).max)


class DatasetKey(NamedTuple):
    """Identifies a dataset: how many variables it has, and its number among those."""

    d: int
    number: int


class StoredDataset(NamedTuple):
    """A dataset as the buffer stores it: observational rows first; only interventional rows have a mask."""

    x: np.ndarray  # [observational + interventional, d] float32
    u: np.ndarray  # [interventional, d] bool
    graph: np.ndarray  # [d, d] int8


Message = int | str | tuple[DatasetKey, StoredDataset] | None
"""From a worker: its process id when it is ready, a dataset, the text of an error, or None for its death."""


@dataclass(frozen=True, kw_only=True)
class DatasetSampler:
    """Samples any dataset of a buffer, in any process."""

    domain: Domain
    seed: int
    stream: Stream
    n_observational: int
    n_interventional: int

    @property
    def n(self) -> int:
        """Rows of a stored dataset."""
        return self.n_observational + self.n_interventional

    def sample(self, key: DatasetKey) -> StoredDataset:
        """Simulate one dataset."""
        d, number = key
        rng = generator(self.seed, self.stream, d, number)
        raw = self.domain.draw(rng, d=d, n=self.n, n_interventional=self.n_interventional)
        x, u, graph = (np.asarray(raw[name]) for name in ("x", "interventions", "graph"))
        name = type(self.domain).__name__
        if x.shape != (self.n, d) or u.shape != (self.n, d) or graph.shape != (d, d):
            raise DataError(
                f"{name}.draw was asked for {self.n} rows of {d} variables but returned values {x.shape}, "
                f"interventions {u.shape} and a graph {graph.shape}"
            )
        if not np.isfinite(x).all():
            raise DataError(f"{name}.draw returned a value that is not finite (d = {d}, dataset {number})")
        if u[: self.n_observational].any():
            raise DataError(f"{name}.draw must put its {self.n_interventional} interventional rows last")
        return StoredDataset(
            np.clip(x, -_FLOAT32_MAX, _FLOAT32_MAX).astype(np.float32),
            u[self.n_observational :].astype(bool),
            graph.astype(np.int8),
        )


@dataclass(eq=False)
class Worker:
    """A worker of a pool: the handle of its backend, the datasets given to it, its process id once ready."""

    handle: Any
    keys: list[DatasetKey] = field(default_factory=list)
    pid: int | None = None


class Backend(ABC):
    """How workers are started, given datasets to sample, polled and stopped."""

    @abstractmethod
    def spawn(self) -> Any:
        """Start a worker and return its handle; the worker reports its process id when it is ready."""

    @abstractmethod
    def submit(self, worker: Worker, key: DatasetKey) -> bool:
        """Give a worker a dataset to sample; False if the worker is dead."""

    @abstractmethod
    def poll(self, workers: Sequence[Worker], timeout: float) -> list[tuple[Worker, Message]]:
        """Messages of the workers, after at most `timeout` seconds."""

    @abstractmethod
    def stop(self, worker: Worker) -> None:
        """Stop a worker, even if it has died, and free its resources."""

    def close(self) -> None:  # noqa: B027 - most backends have nothing to close
        """Free what all workers share."""


class WorkerPool:
    """Keeps workers alive and busy, in a daemon thread of the trainer.

    changed: the buffer's condition, held while `next_key` and `deliver` are called and notified after a delivery.
    """

    def __init__(
        self,
        backend: Backend,
        workers: int,
        *,
        changed: threading.Condition,
        next_key: Callable[[], DatasetKey | None],
        deliver: Callable[[DatasetKey, StoredDataset], None],
    ) -> None:
        self.backend = backend
        self.n_workers = workers
        self.restarts = 0
        """Workers that died and were replaced."""
        self.failure: PresageError | None = None
        self._changed = changed
        self._next_key = next_key
        self._deliver = deliver
        self._thread = threading.Thread(target=self._run, name="presage-producers", daemon=True)
        self._closing = False
        self._workers: list[Worker] = []
        self._lost: deque[DatasetKey] = deque()
        self._early_deaths = 0
        self._deaths: Counter[DatasetKey] = Counter()

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that are ready."""
        return [worker.pid for worker in list(self._workers) if worker.pid is not None]

    @property
    def pending(self) -> int:
        """Datasets given to workers and not delivered yet."""
        return sum(len(worker.keys) for worker in list(self._workers))

    def start(self) -> None:
        """Start the workers."""
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether datasets may still come."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Stop all workers and wait for the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        self.backend.close()

    def step(self, timeout: float = 0.0) -> None:
        """One round: start missing workers, give out datasets, handle what the workers report."""
        while len(self._workers) < self.n_workers and not self._closing:
            self._workers.append(Worker(self.backend.spawn()))
        with self._changed:
            self._assign()
            idle = not any(worker.keys or worker.pid is None for worker in self._workers)
            if idle and timeout > 0.0 and not self._closing:
                self._changed.wait(1.0)
        for worker, message in self.backend.poll(self._workers, 0.0 if idle else timeout):
            self._handle(worker, message)

    def _run(self) -> None:
        try:
            while not self._closing:
                self.step(_POLL_SECONDS)
        except PresageError as error:
            self._fail(error)
        except Exception as error:
            self._fail(PresageError(f"the producers of training data stopped: {error!r}"))
        finally:
            for worker in self._workers:
                self.backend.stop(worker)
            self._workers.clear()

    def _assign(self) -> None:
        for load in range(_DATASETS_PER_WORKER):  # first one dataset for each worker, then a second one
            for worker in [worker for worker in self._workers if worker.pid is not None and len(worker.keys) <= load]:
                key = self._lost.popleft() if self._lost else self._next_key()
                if key is None:
                    return
                worker.keys.append(key)
                if not self.backend.submit(worker, key):
                    self._replace(worker)

    def _handle(self, worker: Worker, message: Message) -> None:
        if worker not in self._workers:
            return
        if message is None:
            self._replace(worker)
        elif isinstance(message, int):
            worker.pid = message
        elif isinstance(message, str):
            raise PresageError(f"a producer of training data failed: {message}")
        else:
            key, stored = message
            self._early_deaths = 0
            worker.keys.remove(key)
            with self._changed:
                self._deliver(key, stored)
                self._changed.notify_all()

    def _replace(self, worker: Worker) -> None:
        """Queue the datasets of a dead worker again; the next step starts another worker."""
        self._workers.remove(worker)
        self._lost.extend(worker.keys)
        self.backend.stop(worker)
        if self._closing:
            return
        self.restarts += 1
        self._early_deaths += 1
        if self._early_deaths >= _MAX_EARLY_DEATHS * self.n_workers:
            raise PresageError(
                f"{self._early_deaths} producers of training data in a row died before they delivered a dataset; "
                'check memory, and that your script trains under `if __name__ == "__main__":`, or use inline producers'
            )
        for key in worker.keys[:1]:
            self._deaths[key] += 1
            if self._deaths[key] >= _MAX_DEATHS_PER_DATASET:
                raise PresageError(
                    f"{_MAX_DEATHS_PER_DATASET} producers died while sampling dataset {key.number} of {key.d} variables"
                    "; check memory, or train on fewer variables or rows"
                )

    def _fail(self, error: PresageError) -> None:
        with self._changed:
            self.failure = error
            self._changed.notify_all()


class ProcessBackend(Backend):
    """Workers in processes of this machine, with one thread each. Each has its own pipe, so that no lock is shared."""

    def __init__(self, sampler: DatasetSampler, workers: int) -> None:
        try:
            self._sampler = pickle.dumps(sampler)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ConfigError(
                f"this domain cannot be sent to other processes ({error}); define its components at the top level of a "
                "module, or use inline producers"
            ) from error

    def spawn(self) -> ChildProcess:
        """Start a process."""
        return ChildProcess.call(_produce, self._sampler, threads=1, name="presage-producer")

    def submit(self, worker: Worker, key: DatasetKey) -> bool:
        """Send a key through the pipe."""
        try:
            worker.handle.connection.send(tuple(key))  # no timeout, unlike `send`
        except OSError:
            return False
        return True

    def poll(self, workers: Sequence[Worker], timeout: float) -> list[tuple[Worker, Message]]:
        """Read the pipes that have a message or are closed."""
        from multiprocessing.connection import wait

        pipes: dict[Any, Worker] = {worker.handle.connection: worker for worker in workers}
        messages: list[tuple[Worker, Message]] = []
        pipe: Any
        for pipe in wait(list(pipes), timeout):
            try:
                message = pipe.recv()
            except (EOFError, OSError, pickle.UnpicklingError):
                message = None
            if isinstance(message, tuple):
                message = (DatasetKey(*message[0]), StoredDataset(*message[1]))
            messages.append((pipes[pipe], message))
        return messages

    def stop(self, worker: Worker) -> None:
        """Kill the process."""
        worker.handle.stop()


def error_message(error: Exception) -> str:
    """An exception as a message to the trainer."""
    return "".join(traceback.format_exception_only(error)).strip()


def _produce(pipe: Any, pickled: bytes) -> None:
    """Main function of a worker process: sample what the pipe asks for until it closes."""
    try:
        sampler = pickle.loads(pickled)
        pipe.send(os.getpid())
        while True:
            key = DatasetKey(*pipe.recv())
            pipe.send((tuple(key), tuple(sampler.sample(key))))
    except (EOFError, OSError):  # the trainer is gone
        return
    except Exception as error:
        with contextlib.suppress(OSError):
            pipe.send(error_message(error))
