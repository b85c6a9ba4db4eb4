"""The training buffer: producers fill it, the trainer draws; in-process, in worker processes, or in Ray actors.

For each number of variables d the buffer keeps the last `capacity` datasets, first in, first out. A draw picks a batch
of distinct datasets uniformly and shows a random part of the rows of each. New datasets come in at the pace at which
datasets are drawn: `reuse` draws for each new one, the same for every d.

Dataset `index` of size d is a function of the seed alone, and so is everything random about the batch of a step.
- inline: datasets are simulated when they are first picked. A batch depends on the seed, the step and the number of
  earlier draws of its d only, whence runs resume bit for bit and data-parallel ranks agree without talking; each rank
  simulates what it shows, and a dataset that is never picked is never simulated.
- processes, ray: datasets are made ahead of time. As long as the producers keep up the batches are those of inline;
  when they fall behind, the trainer does not wait but reuses what it has, which `stats()` counts. Data-parallel ranks
  split the datasets among them, so that none is made twice. After `restore` the buffer starts afresh with datasets
  never shown before.
"""

from __future__ import annotations

import atexit
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from presage.data.producers import ProcessPool, Recipe, Stored, Task, WorkerPool
from presage.data.settings import BufferConfig, RowsConfig
from presage.data.standardize import standardize
from presage.domain.domain import Domain
from presage.errors import ConfigError, PresageError
from presage.rng import Stream, check_seed, generator

__all__ = ["BATCH_TAG", "Buffer", "BufferConfig", "RowsConfig", "TrainBatch"]

BATCH_TAG = 0xBA7C4
"""Where other addresses hold d, the address of a batch holds this: no dataset has as many variables."""

_AHEAD_BATCHES = 4  # how much producers make in advance, in batches' worth of new datasets


@dataclass
class TrainBatch:
    """A batch as a network takes it.

    x: [B, n, d] float32, standardized; u: [B, n, d] bool, intervened on; missing: [B, n, d] bool or None;
    graph: [B, d, d] int8, row causes column.
    """

    x: np.ndarray
    u: np.ndarray
    missing: np.ndarray | None
    graph: np.ndarray
    columns: Mapping[str, np.ndarray] | None = None
    """Kinds [B, d], second scores [B, n, d] and associations [B, d, d, .] of domains with several kinds of columns."""
    confounded: np.ndarray | None = None
    """[B, d, d] bool: pairs with a hidden common cause."""
    effects: np.ndarray | None = None
    """[B, d, d] float32: signed standardized effects, NaN where undefined."""


class RingBuffer:
    """Datasets of one d in a ring of arrays, and the counters that say which of them are in the window.

    inserted: datasets numbered below are in, or were; the window is the last `capacity` of them, from `base` on.
    owed: new datasets due, a fraction or what late producers left open. arrived, requested: how far producers are.
    """

    def __init__(self, d: int, batch: int, recipe: Recipe, config: BufferConfig, ahead: int) -> None:
        self.d, self.batch, self.ahead = d, batch, ahead
        self.capacity = max(config.capacity, batch)
        self.pace = batch / config.reuse
        self.base = self.inserted = self.drawn = 0
        self.owed = 0.0
        self.arrived = self.requested = 0
        ring = self.capacity + ahead
        rows = recipe.observational + recipe.interventional
        self.held = np.full(ring, -1, dtype=np.int64)
        self.x = np.empty((ring, rows, d), dtype=np.float32)  # memory is taken as datasets come in
        self.u = np.empty((ring, recipe.interventional, d), dtype=bool)
        self.graph = np.empty((ring, d, d), dtype=np.int8)

    def resume(self, counters: Mapping[str, Any]) -> None:
        for name, value in counters.items():
            setattr(self, name, value)

    def put(self, index: int, stored: Stored) -> None:
        slot = index % len(self.held)
        self.x[slot], self.u[slot], self.graph[slot] = stored
        self.held[slot] = index

    def insert(self, available: int | None) -> bool:
        """Let in what one more draw is due; False if less than that is available."""
        missing = self.batch - (self.inserted - self.base)  # at the start, or when the batch size has grown
        self.owed += max(self.pace, missing)
        due = math.floor(self.owed)
        new = due if available is None else min(due, available - self.inserted)
        self.inserted += new
        self.owed -= new
        if available is not None:  # a debt beyond what producers may make in advance can never be caught up
            self.owed = min(self.owed, float(self.ahead))
        return new == due

    @property
    def oldest(self) -> int:
        return max(self.base, self.inserted - self.capacity)

    @property
    def progress(self) -> float:
        """Datasets asked of the producers over those the draws so far call for: the same for every d, ideally."""
        return (self.requested - self.base) / (self.batch + self.ahead + self.drawn * self.pace / self.batch)


class Buffer:
    """Draws training batches of any d in `sizes`, which maps d to its (global) batch size. Close it after use.

    >>> from presage.domain.catalog import _scm
    >>> with Buffer(_scm("linear", frozenset()), RowsConfig(), BufferConfig(), sizes={5: 4}, seed=0) as buffer:
    ...     batch = buffer.draw(5, step=0)
    >>> batch.graph.shape, batch.x.shape == batch.u.shape
    ((4, 5, 5), True)
    """

    def __init__(
        self,
        domain: Domain,
        rows: RowsConfig,
        config: BufferConfig,
        *,
        sizes: Mapping[int, int],
        seed: int,
        stream: Stream = Stream.TRAIN,
    ) -> None:
        if not sizes:
            raise ConfigError("a buffer needs at least one number of variables with its batch size, such as {10: 16}")
        for d, size in sizes.items():
            if not (_is_whole(d) and 1 <= d < BATCH_TAG and _is_whole(size) and size >= 1):
                raise ConfigError(f"numbers of variables and batch sizes must be whole and at least 1, not {d}: {size}")
        self.domain, self.rows, self.config = domain, rows, config
        self.sizes = {int(d): int(size) for d, size in sizes.items()}
        observational, interventional = rows.stored(config.rows_factor)
        self._recipe = Recipe(
            domain=domain,
            seed=check_seed(seed),
            stream=stream,
            observational=observational,
            interventional=interventional,
        )
        self._restored: dict[int, dict[str, Any]] = {}
        self._buffers: dict[int, RingBuffer] = {}
        self._shard: tuple[int, int] | None = None  # processes and Ray: which part of the datasets is ours
        self._pool: WorkerPool | None = None
        self._changed = threading.Condition()
        self._urgent: int | None = None
        self._late = 0
        self._closed = False
        self._batches = 0

    def draw(self, d: int, step: int, shard: int = 0, shards: int = 1) -> TrainBatch:
        """The batch of a training step, or one rank's part of it; parts differ by at most one dataset in size."""
        if self._closed:
            raise PresageError("this buffer is closed")
        if d not in self.sizes:
            raise ConfigError(f"this buffer holds no datasets of {d} variables, only of {sorted(self.sizes)}")
        if not 0 <= shard < shards <= self.sizes[d]:
            raise ConfigError(
                f"a batch of {self.sizes[d]} datasets (d = {d}) cannot give part {shard} of {shards}; every "
                "data-parallel process needs at least one dataset"
            )
        rng = self._random(d, step)
        n, n_interventional, missing_share = self.rows.draw(rng, d)
        positions = np.array_split(np.arange(self.sizes[d]), shards)[shard]
        self._batches += 1
        if self.config.producers == "inline":
            ring, indices = self._pick_inline(d, rng, positions)
        else:
            ring, indices = self._pick_made(d, rng, positions, shard, shards)
        return self._show(ring, indices, positions, step, n, n_interventional, missing_share)

    def _random(self, *address: int) -> np.random.Generator:
        return generator(self._recipe.seed, self._recipe.stream, BATCH_TAG, *address)

    def _pick_inline(self, d: int, rng: np.random.Generator, positions: np.ndarray) -> tuple[RingBuffer, np.ndarray]:
        if d not in self._buffers:
            self._buffers[d] = RingBuffer(d, self.sizes[d], self._recipe, self.config, ahead=0)
            self._buffers[d].resume(self._restored.get(d, {}))
        ring = self._buffers[d]
        ring.insert(None)
        ring.drawn += ring.batch
        picks = rng.choice(ring.inserted - ring.oldest, ring.batch, replace=False)
        indices = ring.oldest + picks[positions]
        for index in indices:
            if ring.held[index % len(ring.held)] != index:
                ring.put(index, self._recipe.make(Task(d, int(index))))
        return ring, indices

    def _pick_made(
        self, d: int, rng: np.random.Generator, positions: np.ndarray, shard: int, shards: int
    ) -> tuple[RingBuffer, np.ndarray]:
        if self._shard is None:
            self._start(shard, shards)
        if self._shard != (shard, shards):
            raise ConfigError(f"this buffer's producers serve part {self._shard}; draw the same part at every step")
        ring = self._buffers[d]
        with self._changed:
            least = ring.base + ring.batch
            while ring.arrived < least:  # only the first draw of a d can wait here
                if self._pool is None or self._pool.failure is not None or not self._pool.is_alive():
                    break
                self._urgent = d
                self._changed.notify_all()
                self._changed.wait(1.0)
            self._urgent = None
            if self._pool is not None and self._pool.failure is not None:
                raise self._pool.failure
            if ring.arrived < least:
                raise PresageError("the producers of training data have stopped")
            self._late += not ring.insert(ring.arrived)
            ring.drawn += ring.batch
            self._changed.notify_all()
        return ring, ring.oldest + rng.choice(ring.inserted - ring.oldest, len(positions), replace=False)

    def _show(
        self,
        ring: RingBuffer,
        indices: np.ndarray,
        positions: np.ndarray,
        step: int,
        n: int,
        n_interventional: int,
        missing_share: float,
    ) -> TrainBatch:
        """Some rows of the datasets with these numbers, standardized."""
        size, d, n_plain = len(indices), ring.d, n - n_interventional
        rows = np.empty((size, n), dtype=np.intp)
        missing = np.empty((size, n, d), dtype=bool) if missing_share > 0.0 else None
        for b, position in enumerate(positions):
            rng = self._random(d, step, position)
            rows[b, :n_plain] = rng.choice(self._recipe.observational, n_plain, replace=False, shuffle=False)
            rows[b, n_plain:] = rng.choice(self._recipe.interventional, n_interventional, replace=False, shuffle=False)
            if missing is not None:
                missing[b] = rng.random((n, d), dtype=np.float32) < missing_share
        slots = (indices % len(ring.held))[:, None]  # [B, 1]
        u = np.zeros((size, n, d), dtype=bool)
        u[:, n_plain:] = ring.u[slots, rows[:, n_plain:]]  # [B, n_interventional, d]
        rows[:, n_plain:] += self._recipe.observational
        x = standardize(ring.x[slots, rows], self.domain.kind, missing)  # [B, n, d]
        return TrainBatch(x=x, u=u, missing=missing, graph=ring.graph[slots[:, 0]])

    def _start(self, shard: int, shards: int) -> None:
        """Processes and Ray: lay out the rings of our part of the datasets and start the producers."""
        links: dict[str, Any] = {
            "changed": self._changed,
            "next_task": self._next_task,
            "deliver": self._deliver,
        }
        if self.config.producers == "processes":
            self._pool = ProcessPool(self._recipe, self.config.workers, **links)
        else:
            from presage.data.ray_producers import RayPool

            self._pool = RayPool(self._recipe, self.config.workers, **links)
        self._shard = (shard, shards)
        for d, size in self.sizes.items():
            batch = len(np.array_split(np.arange(size), shards)[shard])
            ahead = _AHEAD_BATCHES * math.ceil(batch / self.config.reuse) + self.config.workers
            ring = RingBuffer(d, batch, self._recipe, self.config, ahead)
            start = -(-self._restored.get(d, {}).get("inserted", 0) // shards)
            ring.base = ring.inserted = ring.arrived = ring.requested = start
            self._buffers[d] = ring
        atexit.register(self.close)  # runs before multiprocessing ends its children, so none is replaced then
        self._pool.start()

    def _next_task(self) -> Task | None:
        """What producers should make next: what a draw waits for, else the d most behind its share of new datasets."""
        shard, shards = self._shard or (0, 1)
        open_ = [ring for ring in self._buffers.values() if ring.requested < self._limit(ring)]
        if not open_:
            return None
        ring = min(open_, key=lambda ring: (ring.d != self._urgent, ring.progress))
        ring.requested += 1
        return Task(ring.d, shard + shards * (ring.requested - 1))

    @staticmethod
    def _limit(ring: RingBuffer) -> int:
        return max(ring.inserted, ring.base + ring.batch) + ring.ahead

    def _deliver(self, task: Task, stored: Stored) -> None:
        ring, index = self._buffers[task.d], task.number // (self._shard or (0, 1))[1]
        if index >= ring.arrived:
            ring.put(index, stored)
        while ring.held[ring.arrived % len(ring.held)] == ring.arrived:  # let in by number, without gaps
            ring.arrived += 1

    def stats(self) -> dict[str, Any]:
        """How the buffer is doing.

        batches: drawn so far; late: those that came with fewer new datasets than `reuse` asks for, because producers
        fell behind; reuse: draws over datasets, for each d; replaced: producers that died and were replaced.
        """
        reuse = {d: ring.drawn / (ring.inserted - ring.base) for d, ring in self._buffers.items() if ring.drawn}
        replaced = self._pool.replaced if self._pool is not None else 0
        return {"batches": self._batches, "late": self._late, "reuse": reuse, "replaced": replaced}

    def state(self) -> dict[str, Any]:
        """Counters from which `restore` continues, as plain JSON data; the datasets themselves are made again."""
        shards = (self._shard or (0, 1))[1]
        counters = {str(d): dict(before) for d, before in self._restored.items()}
        for d, ring in self._buffers.items():
            counters[str(d)] = {
                "base": ring.base * shards,
                "inserted": ring.inserted * shards,
                "drawn": ring.drawn * shards,
                "owed": ring.owed,
            }
        return {"datasets": counters}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`: inline bit for bit, otherwise with datasets not shown before."""
        if self._buffers:
            raise PresageError("restore a buffer before its first draw")
        try:
            self._restored = {
                int(d): {
                    **{name: int(entry[name]) for name in ("base", "inserted", "drawn")},
                    "owed": float(entry["owed"]),
                }
                for d, entry in state["datasets"].items()
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"this is not the state of a buffer: {error!r}") from error

    def close(self) -> None:
        """End the producers; the buffer cannot be drawn from afterwards."""
        self._closed = True
        if self._pool is not None:
            self._pool.close()
            self._pool = None
            atexit.unregister(self.close)

    def __enter__(self) -> Buffer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
