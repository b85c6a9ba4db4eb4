"""Producers: who simulates the datasets of the training buffer ahead of time, and how they are kept at work.

Dataset `index` of size d is drawn from the generator at the address (seed, stream, d, index), so it is the same
whoever makes it, and a dataset lost with its producer is simply made again by another one. A `WorkerPool` is a thread
of the trainer that keeps its producers alive and busy: it asks the buffer what to make next, hands out at most two
tasks to each producer (one in the making, one waiting), delivers what comes back and replaces producers that die.
Processes of this machine are here, Ray actors in `presage.data.ray_producers`.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
import traceback
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from presage.domain.domain import Domain
from presage.errors import ConfigError, DataError, PresageError
from presage.rng import Stream, generator

__all__ = ["ProcessPool", "Recipe", "Stored", "Task", "Worker", "WorkerPool", "describe"]

_TASKS_EACH = 2
_POLL_SECONDS = 0.1  # how long news from the buffer may wait while producers are at work
_STILLBORN = 3  # per producer: deaths in a row without a single dataset, before the run gives up
_FATAL = 5  # deaths over one and the same dataset, before the run gives up
_LARGEST = np.float64(np.finfo(np.float32).max)
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
_environment = threading.Lock()


class Task(NamedTuple):
    """Which dataset to make."""

    d: int
    number: int


class Stored(NamedTuple):
    """A dataset as the buffer keeps it: observational rows first; only interventional rows carry a mask."""

    x: np.ndarray  # [observational + interventional, d] float32
    u: np.ndarray  # [interventional, d] bool
    graph: np.ndarray  # [d, d] int8


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All that is needed to make any dataset of a buffer, in any process."""

    domain: Domain
    seed: int
    stream: Stream
    observational: int
    interventional: int

    def make(self, task: Task) -> Stored:
        """Simulate one dataset."""
        d, index = task
        n = self.observational + self.interventional
        rng = generator(self.seed, self.stream, d, index)
        raw = self.domain.draw(rng, d=d, n=n, n_interventional=self.interventional)
        x, u, graph = (np.asarray(raw[key]) for key in ("x", "interventions", "graph"))
        name = type(self.domain).__name__
        if x.shape != (n, d) or u.shape != (n, d) or graph.shape != (d, d):
            raise DataError(
                f"{name}.draw was asked for {n} rows of {d} variables but gave values {x.shape}, "
                f"interventions {u.shape} and a graph {graph.shape}"
            )
        if not np.isfinite(x).all():
            raise DataError(f"{name}.draw gave a value that is not finite (d = {d}, dataset {index}); mend the domain")
        if u[: self.observational].any():
            raise DataError(f"{name}.draw must put its {self.interventional} interventional rows last")
        return Stored(
            np.clip(x, -_LARGEST, _LARGEST).astype(np.float32),
            u[self.observational :].astype(bool),
            graph.astype(np.int8),
        )


@dataclass(eq=False)
class Worker:
    """A producer as its crew sees it: a handle, the tasks it has, and whether it has answered yet."""

    handle: Any
    tasks: list[Task]
    ready: bool = False


class WorkerPool(ABC):
    """Keeps producers alive and busy, in a daemon thread of the trainer.

    changed: the buffer's condition, held while `next_task` and `deliver` are called and notified after a delivery.
    """

    def __init__(
        self,
        recipe: Recipe,
        workers: int,
        *,
        changed: threading.Condition,
        next_task: Callable[[], Task | None],
        deliver: Callable[[Task, Stored], None],
    ) -> None:
        self._thread = threading.Thread(target=self._run, name="presage-producers", daemon=True)
        self.recipe = recipe
        self.workers = workers
        self.replaced = 0
        self.failure: PresageError | None = None
        self._changed = changed
        self._next_task = next_task
        self._deliver = deliver
        self._closing = False
        self._staff: list[Worker] = []
        self._again: deque[Task] = deque()
        self._stillborn = 0
        self._deadly: Counter[Task] = Counter()

    @abstractmethod
    def _spawn(self) -> Any:
        """Start one producer; it announces itself by a message `ready`."""

    @abstractmethod
    def _submit(self, worker: Worker, task: Task) -> bool:
        """Hand over a task; False if the producer turns out to be dead."""

    @abstractmethod
    def _poll(self, timeout: float) -> list[tuple[Worker, Any]]:
        """Messages that came: "ready", (task, Stored), an error text after "error: ", or None for a death."""

    @abstractmethod
    def _stop(self, worker: Worker) -> None:
        """End a producer, dead or alive, and free what it held."""

    def start(self) -> None:
        """Hire the producers and set them to work."""
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether datasets may still come."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._prepare()
            while not self._closing:
                while len(self._staff) < self.workers and not self._closing:
                    self._staff.append(Worker(self._spawn(), []))
                with self._changed:
                    self._assign()
                    idle = not any(worker.tasks or not worker.ready for worker in self._staff)
                    if idle and not self._closing:
                        self._changed.wait(1.0)
                for worker, message in self._poll(0.0 if idle else _POLL_SECONDS):
                    self._handle(worker, message)
        except PresageError as error:
            self._fail(error)
        except Exception as error:
            self._fail(PresageError(f"the producers of training data stopped: {error!r}"))
        finally:
            for worker in self._staff:
                self._stop(worker)
            self._staff.clear()

    def close(self) -> None:
        """End all producers and wait for the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def _prepare(self) -> None:  # noqa: B027 - most crews have nothing to prepare
        """What the thread does once before it hires."""

    def _assign(self) -> None:
        for load in range(_TASKS_EACH):  # first one task for everyone, then a second one
            for worker in [worker for worker in self._staff if worker.ready and len(worker.tasks) <= load]:
                task = self._again.popleft() if self._again else self._next_task()
                if task is None:
                    return
                worker.tasks.append(task)
                if not self._submit(worker, task):
                    self._lose(worker)

    def _handle(self, worker: Worker, message: Any) -> None:
        if worker not in self._staff:
            return
        if message is None:
            self._lose(worker)
        elif message == "ready":
            worker.ready = True
        elif isinstance(message, str):
            raise PresageError(f"a producer of training data failed with {message}")
        else:
            task, stored = message
            self._stillborn = 0
            worker.tasks.remove(task)
            with self._changed:
                self._deliver(task, stored)
                self._changed.notify_all()

    def _lose(self, worker: Worker) -> None:
        """Put a dead producer's tasks back; the main loop hires another one."""
        self._staff.remove(worker)
        self._again.extend(worker.tasks)
        self._stop(worker)
        if self._closing:
            return
        self.replaced += 1
        self._stillborn += 1
        if self._stillborn >= _STILLBORN * self.workers:
            raise PresageError(
                f"{self._stillborn} producers of training data in a row died before they made a dataset; check memory, "
                'and that a script of yours starts training under `if __name__ == "__main__":`, or use inline producers'
            )
        for task in worker.tasks[:1]:
            self._deadly[task] += 1
            if self._deadly[task] >= _FATAL:
                raise PresageError(
                    f"{_FATAL} producers died over dataset {task.number} of {task.d} variables; check memory, or train "
                    "on fewer variables or rows"
                )

    def _fail(self, error: PresageError) -> None:
        with self._changed:
            self.failure = error
            self._changed.notify_all()


class ProcessPool(WorkerPool):
    """Producers in processes of this machine, one thread each; each has a pipe of its own, so that no lock is shared.

    A producer ends when its pipe closes, which also happens when the trainer is killed. Ctrl-C is left to the trainer.
    """

    def __init__(self, recipe: Recipe, workers: int, **links: Any) -> None:
        # Imported whole and here: its handler at exit must be registered before the buffer's, which then runs first.
        import multiprocessing.util

        super().__init__(recipe, workers, **links)
        self._context = multiprocessing.get_context("spawn")
        try:
            self._blob = pickle.dumps(recipe)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ConfigError(
                f"this domain cannot be sent to other processes ({error}); define its parts at the top level of a "
                "module, or use inline producers"
            ) from error

    def pids(self) -> list[int]:
        """Process numbers of the producers that are ready to work."""
        return [worker.handle[0].pid for worker in list(self._staff) if worker.ready]

    def _prepare(self) -> None:
        from multiprocessing import resource_tracker

        # The tracker unblocks SIGINT when it starts, so it goes first; producers inherit the blocked signal from here.
        if hasattr(signal, "pthread_sigmask"):
            resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def _spawn(self) -> Any:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_produce, args=(theirs, self._blob), name="presage-producer", daemon=True
        )
        with _single_threaded():
            process.start()
        theirs.close()  # so that a death shows as the end of the pipe
        return process, ours

    def _submit(self, worker: Worker, task: Task) -> bool:
        try:
            worker.handle[1].send(tuple(task))
        except OSError:
            return False
        return True

    def _poll(self, timeout: float) -> list[tuple[Worker, Any]]:
        from multiprocessing.connection import wait

        pipes: dict[Any, Worker] = {worker.handle[1]: worker for worker in self._staff}
        heard: list[tuple[Worker, Any]] = []
        pipe: Any
        for pipe in wait(list(pipes), timeout):
            try:
                message = pipe.recv()
            except (EOFError, OSError, pickle.UnpicklingError):
                message = None
            if isinstance(message, tuple):
                message = (Task(*message[0]), Stored(*message[1]))
            heard.append((pipes[pipe], message))
        return heard

    def _stop(self, worker: Worker) -> None:
        process, pipe = worker.handle
        pipe.close()
        process.terminate()
        process.join(2.0)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()


@contextlib.contextmanager
def _single_threaded() -> Iterator[None]:
    """Processes started in here use one thread each: libraries read these variables when they are loaded."""
    with _environment:
        before = {name: os.environ.get(name) for name in _ONE_THREAD}
        os.environ.update(_ONE_THREAD)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def describe(error: Exception) -> str:
    """An exception as a message to the trainer."""
    return f"error: {''.join(traceback.format_exception_only(error)).strip()}"


def _produce(pipe: Any, blob: bytes) -> None:
    """Life of a producer process: make what the pipe asks for until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        recipe = pickle.loads(blob)
        pipe.send("ready")
        while True:
            task = Task(*pipe.recv())
            stored = recipe.make(task)
            pipe.send((tuple(task), tuple(stored)))
    except (EOFError, OSError):  # the trainer is gone
        return
    except Exception as error:
        with contextlib.suppress(OSError):
            pipe.send(describe(error))
