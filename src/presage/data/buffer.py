"""The training buffer: producers fill it, the trainer draws batches from it.

For each number of variables d the buffer keeps the last `capacity` datasets, first in, first out. A draw picks a batch
of distinct datasets uniformly and samples some rows of each. New datasets enter at the pace of the draws: one for every
`reuse` datasets drawn, the same for every d.

Dataset `index` of d variables is a function of the seed, and so is everything random about the batch of a step.
- inline: datasets are simulated in the trainer when they are first picked. A batch depends on the seed, the step and
  the number of earlier draws of its d only. Runs therefore resume bit for bit, and data-parallel ranks agree without
  communication; each rank simulates its own part, and a dataset that is never picked is never simulated.
- processes, ray: datasets are simulated ahead of time. As long as the producers keep up, the batches are those of
  inline. When they fall behind, the trainer reuses the datasets it has instead of waiting; `stats()` counts this.
  Data-parallel ranks split the datasets among them, so that none is simulated twice. After `restore` the buffer starts
  with datasets that were never drawn before.
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

from presage.data.producers import Backend, DatasetKey, DatasetSampler, ProcessBackend, StoredDataset, WorkerPool
from presage.data.settings import BufferConfig, RowsConfig
from presage.data.standardize import standardize
from presage.domain.domain import Domain
from presage.errors import ConfigError, PresageError
from presage.rng import Stream, check_seed, generator

__all__ = ["BATCH_TAG", "Buffer", "BufferConfig", "RingBuffer", "RowsConfig", "TrainBatch"]

BATCH_TAG = 0xBA7C4
"""Replaces d in the random key of a batch. No dataset has this many variables."""

_AHEAD_BATCHES = 4  # how far producers work ahead, in batches of new datasets


@dataclass
class TrainBatch:
    """Input and target of a network.

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
    """Datasets of one d in ring arrays, with the counters that define the window of datasets to draw from.

    inserted: all datasets with a smaller index have entered the window, which holds the last `capacity` of them and
    none before `base`. owed: new datasets that are due: a fraction, or datasets that producers delivered late.
    requested, arrived: all datasets with a smaller index were given to producers, were delivered.
    """

    def __init__(self, d: int, batch: int, sampler: DatasetSampler, config: BufferConfig, ahead: int) -> None:
        self.d, self.batch, self.ahead = d, batch, ahead
        self.capacity = max(config.capacity, batch)
        self.pace = batch / config.reuse
        self.base = self.inserted = self.drawn = 0
        self.owed = 0.0
        self.arrived = self.requested = 0
        slots = self.capacity + ahead
        self.held = np.full(slots, -1, dtype=np.int64)
        self.x = np.empty((slots, sampler.n, d), dtype=np.float32)  # memory is taken as datasets come in
        self.u = np.empty((slots, sampler.n_interventional, d), dtype=bool)
        self.graph = np.empty((slots, d, d), dtype=np.int8)

    def restore(self, counters: Mapping[str, Any]) -> None:
        """Continue with the counters of `Buffer.state`."""
        for name, value in counters.items():
            setattr(self, name, value)

    def holds(self, index: int) -> bool:
        """Whether a dataset is stored."""
        return bool(self.held[index % len(self.held)] == index)

    def put(self, index: int, stored: StoredDataset) -> None:
        """Store a dataset in its slot."""
        slot = index % len(self.held)
        self.x[slot], self.u[slot], self.graph[slot] = stored
        self.held[slot] = index

    def insert(self, available: int | None) -> bool:
        """Insert the new datasets due with one more draw; False if fewer are available."""
        missing = self.batch - (self.inserted - self.base)  # at the start, or when the batch size has grown
        self.owed += max(self.pace, missing)
        due = math.floor(self.owed)
        new = due if available is None else min(due, available - self.inserted)
        self.inserted += new
        self.owed -= new
        if available is not None:  # producers can never catch up with more than they may sample ahead
            self.owed = min(self.owed, float(self.ahead))
        return new == due

    @property
    def oldest(self) -> int:
        """The smallest index in the window."""
        return max(self.base, self.inserted - self.capacity)

    @property
    def limit(self) -> int:
        """Producers may sample datasets with a smaller index."""
        return max(self.inserted, self.base + self.batch) + self.ahead

    @property
    def progress(self) -> float:
        """Datasets given to producers over datasets the draws call for; ideally the same for every d."""
        return (self.requested - self.base) / (self.batch + self.ahead + self.drawn * self.pace / self.batch)


class Buffer:
    """Draws training batches of any d in `batch_sizes`, which maps d to its (global) batch size. Close it after use.

    >>> from presage.domain.catalog import _scm
    >>> with Buffer(_scm("linear", frozenset()), RowsConfig(), BufferConfig(), batch_sizes={5: 4}, seed=0) as buffer:
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
        batch_sizes: Mapping[int, int],
        seed: int,
        stream: Stream = Stream.TRAIN,
    ) -> None:
        if not batch_sizes:
            raise ConfigError("a buffer needs at least one number of variables with its batch size, such as {10: 16}")
        for d, size in batch_sizes.items():
            if not (_is_whole(d) and 1 <= d < BATCH_TAG and _is_whole(size) and size >= 1):
                raise ConfigError(f"numbers of variables and batch sizes must be whole and at least 1, not {d}: {size}")
        self.domain, self.rows, self.config = domain, rows, config
        self.batch_sizes = {int(d): int(size) for d, size in batch_sizes.items()}
        n_observational, n_interventional = rows.stored(config.rows_factor)
        self.sampler = DatasetSampler(
            domain=domain,
            seed=check_seed(seed),
            stream=stream,
            n_observational=n_observational,
            n_interventional=n_interventional,
        )
        self.rings: dict[int, RingBuffer] = {}
        self.pool: WorkerPool | None = None
        """The producers, once `start` was called; None with inline producers."""
        self._restored: dict[int, dict[str, Any]] = {}
        self._shard: tuple[int, int] | None = None  # the part of the datasets that our producers sample
        self._changed = threading.Condition()
        self._urgent: int | None = None
        self._late = 0
        self._closed = False
        self._batches = 0

    def draw(self, d: int, step: int, shard: int = 0, shards: int = 1) -> TrainBatch:
        """The batch of a training step, or one rank's part of it; parts differ by at most one dataset in size."""
        if self._closed:
            raise PresageError("this buffer is closed")
        if d not in self.batch_sizes:
            raise ConfigError(f"this buffer holds no datasets of {d} variables, only of {sorted(self.batch_sizes)}")
        if not 0 <= shard < shards <= self.batch_sizes[d]:
            raise ConfigError(
                f"a batch of {self.batch_sizes[d]} datasets (d = {d}) cannot give part {shard} of {shards}; every "
                "data-parallel process needs at least one dataset"
            )
        rng = self._random(d, step)
        n, n_interventional, missing_share = self.rows.draw(rng, d)
        positions = np.array_split(np.arange(self.batch_sizes[d]), shards)[shard]
        self._batches += 1
        if self.config.producers == "inline":
            ring, indices = self._pick_inline(d, rng, positions)
        else:
            ring, indices = self._pick_produced(d, rng, positions, shard, shards)
        return self._assemble(ring, indices, positions, step, n, n_interventional, missing_share)

    def _random(self, *address: int) -> np.random.Generator:
        return generator(self.sampler.seed, self.sampler.stream, BATCH_TAG, *address)

    def _pick_inline(self, d: int, rng: np.random.Generator, positions: np.ndarray) -> tuple[RingBuffer, np.ndarray]:
        if d not in self.rings:
            self.rings[d] = RingBuffer(d, self.batch_sizes[d], self.sampler, self.config, ahead=0)
            self.rings[d].restore(self._restored.get(d, {}))
        ring = self.rings[d]
        ring.insert(None)
        ring.drawn += ring.batch
        picks = rng.choice(ring.inserted - ring.oldest, ring.batch, replace=False)
        indices = ring.oldest + picks[positions]
        for index in indices:
            if not ring.holds(index):
                ring.put(index, self.sampler.sample(DatasetKey(d, int(index))))
        return ring, indices

    def _pick_produced(
        self, d: int, rng: np.random.Generator, positions: np.ndarray, shard: int, shards: int
    ) -> tuple[RingBuffer, np.ndarray]:
        if self._shard is None:
            self.start(shard, shards)
        if self._shard != (shard, shards):
            raise ConfigError(
                f"the producers of this buffer serve part {self._shard}; draw the same part at every step"
            )
        ring = self.rings[d]
        with self._changed:
            needed = ring.base + ring.batch
            while ring.arrived < needed:  # only the first draw of a d can wait here
                if self.pool is None or self.pool.failure is not None or not self.pool.is_alive():
                    break
                self._urgent = d
                self._changed.notify_all()
                self._changed.wait(1.0)
            self._urgent = None
            if self.pool is not None and self.pool.failure is not None:
                raise self.pool.failure
            if ring.arrived < needed:
                raise PresageError("the producers of training data have stopped")
            self._late += not ring.insert(ring.arrived)
            ring.drawn += ring.batch
            self._changed.notify_all()
        return ring, ring.oldest + rng.choice(ring.inserted - ring.oldest, len(positions), replace=False)

    def _assemble(
        self,
        ring: RingBuffer,
        indices: np.ndarray,
        positions: np.ndarray,
        step: int,
        n: int,
        n_interventional: int,
        missing_share: float,
    ) -> TrainBatch:
        """Sample rows of the datasets with these indices and standardize them."""
        size, d, n_observational = len(indices), ring.d, n - n_interventional
        rows = np.empty((size, n), dtype=np.intp)
        missing = np.empty((size, n, d), dtype=bool) if missing_share > 0.0 else None
        for b, position in enumerate(positions):
            rng = self._random(d, step, position)
            rows[b, :n_observational] = rng.choice(
                self.sampler.n_observational, n_observational, replace=False, shuffle=False
            )
            rows[b, n_observational:] = rng.choice(
                self.sampler.n_interventional, n_interventional, replace=False, shuffle=False
            )
            if missing is not None:
                missing[b] = rng.random((n, d), dtype=np.float32) < missing_share
        slots = (indices % len(ring.held))[:, None]  # [B, 1]
        u = np.zeros((size, n, d), dtype=bool)
        u[:, n_observational:] = ring.u[slots, rows[:, n_observational:]]  # [B, n_interventional, d]
        rows[:, n_observational:] += self.sampler.n_observational
        x = standardize(ring.x[slots, rows], self.domain.kind, missing)  # [B, n, d]
        return TrainBatch(x=x, u=u, missing=missing, graph=ring.graph[slots[:, 0]])

    def start(self, shard: int = 0, shards: int = 1) -> None:
        """Start the producers of one rank's part of the datasets. The first draw does this."""
        backend: Backend
        if self.config.producers == "processes":
            backend = ProcessBackend(self.sampler, self.config.workers)
        else:
            from presage.data.ray_producers import RayBackend

            backend = RayBackend(self.sampler, self.config.workers)
        self.pool = WorkerPool(
            backend,
            self.config.workers,
            changed=self._changed,
            next_key=self._next_key,
            deliver=self._deliver,
        )
        self._shard = (shard, shards)
        for d, size in self.batch_sizes.items():
            batch = len(np.array_split(np.arange(size), shards)[shard])
            ahead = _AHEAD_BATCHES * math.ceil(batch / self.config.reuse) + self.config.workers
            ring = RingBuffer(d, batch, self.sampler, self.config, ahead)
            start = -(-self._restored.get(d, {}).get("inserted", 0) // shards)
            ring.base = ring.inserted = ring.arrived = ring.requested = start
            self.rings[d] = ring
        atexit.register(self.close)  # runs before multiprocessing ends its children, so none is restarted then
        self.pool.start()

    def _next_key(self) -> DatasetKey | None:
        """The dataset to sample next: of the d a draw waits for, else of the d that is furthest behind."""
        shard, shards = self._shard or (0, 1)
        open_ = [ring for ring in self.rings.values() if ring.requested < ring.limit]
        if not open_:
            return None
        ring = min(open_, key=lambda ring: (ring.d != self._urgent, ring.progress))
        ring.requested += 1
        return DatasetKey(ring.d, shard + shards * (ring.requested - 1))

    def _deliver(self, key: DatasetKey, stored: StoredDataset) -> None:
        ring, index = self.rings[key.d], key.number // (self._shard or (0, 1))[1]
        if index >= ring.arrived:
            ring.put(index, stored)
        while ring.holds(ring.arrived):  # in the order of the index, without gaps
            ring.arrived += 1

    def stats(self) -> dict[str, Any]:
        """Counts since the start.

        batches: drawn; late: batches with fewer new datasets than `reuse` asks for, because producers fell behind;
        reuse: datasets drawn over datasets inserted, for each d; restarts: producers that died and were replaced.
        """
        reuse = {d: ring.drawn / (ring.inserted - ring.base) for d, ring in self.rings.items() if ring.drawn}
        restarts = self.pool.restarts if self.pool is not None else 0
        return {"batches": self._batches, "late": self._late, "reuse": reuse, "restarts": restarts}

    def state(self) -> dict[str, Any]:
        """Counters from which `restore` continues, as JSON data; the datasets themselves are simulated again."""
        shards = (self._shard or (0, 1))[1]
        counters = {str(d): dict(before) for d, before in self._restored.items()}
        for d, ring in self.rings.items():
            counters[str(d)] = {
                "base": ring.base * shards,
                "inserted": ring.inserted * shards,
                "drawn": ring.drawn * shards,
                "owed": ring.owed,
            }
        return {"datasets": counters}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`: inline bit for bit, otherwise with datasets not drawn before."""
        if self.rings:
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
        """Stop the producers; no batch can be drawn afterwards."""
        self._closed = True
        if self.pool is not None:
            self.pool.close()
            self.pool = None
            atexit.unregister(self.close)

    def __enter__(self) -> Buffer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
