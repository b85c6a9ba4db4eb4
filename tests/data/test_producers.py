"""Producers in processes and Ray actors: the same batches as inline, balance, back-pressure, restarts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import types
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from presage.data.buffer import Buffer, BufferConfig, RowsConfig, TrainBatch
from presage.data.producers import (
    Backend,
    DatasetKey,
    DatasetSampler,
    Message,
    StoredDataset,
    Worker,
    WorkerPool,
)
from presage.data.ray_producers import RayBackend
from presage.domain.catalog import _scm
from presage.domain.domain import Domain
from presage.errors import ConfigError, MissingExtraError, PresageError
from presage.rng import Stream

RFF = _scm("rff", frozenset())
ROWS = RowsConfig(n=(20, 40), missing_probability=0.5)
BATCH_SIZES = {4: 3, 6: 2}
SAMPLER = DatasetSampler(domain=RFF, seed=0, stream=Stream.TRAIN, n_observational=6, n_interventional=2)


def wait_until(what: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            pytest.fail("waited too long")
        time.sleep(0.01)


def settled(buffer: Buffer) -> bool:
    """Whether the producers have sampled all datasets they may sample ahead."""
    return all(ring.arrived == ring.limit for ring in buffer.rings.values())


def same(a: TrainBatch, b: TrainBatch) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("x", "u", "graph")) and (
        (a.missing is None and b.missing is None) or np.array_equal(a.missing, b.missing)  # type: ignore[arg-type]
    )


def compare_with_inline(engine: Any, between: Callable[[Buffer, int], None] | None = None) -> dict[str, Any]:
    """Draw from an engine that is given the time to keep up, and from inline: the batches must agree."""
    order = [4, 6, 4, 4, 6, 4, 6, 6, 4, 4, 6, 4]
    inline = Buffer(RFF, ROWS, BufferConfig(capacity=5, reuse=1.5), batch_sizes=BATCH_SIZES, seed=2)
    config = BufferConfig(capacity=5, reuse=1.5, producers=engine, workers=2)
    with Buffer(RFF, ROWS, config, batch_sizes=BATCH_SIZES, seed=2) as buffer:
        for step, d in enumerate(order):
            assert same(buffer.draw(d, step), inline.draw(d, step))
            if between is not None:
                between(buffer, step)
            wait_until(lambda: settled(buffer))
        stats = buffer.stats()
        assert buffer.state() == inline.state()
    assert stats["late"] == 0
    assert stats["reuse"] == inline.stats()["reuse"]
    return stats


# The pool, with workers that live in this thread


class FakeBackend(Backend):
    """Workers in memory: a handle is a queue of messages to come, and a killed worker has none."""

    def __init__(self, sampler: DatasetSampler, workers: int) -> None:
        self.sampler = sampler
        self.spawned = 0
        self.deadly: DatasetKey | None = None
        self.alive: list[deque[Any]] = []

    def spawn(self) -> deque[Any]:
        self.spawned += 1
        self.alive.append(deque([self.spawned]))
        return self.alive[-1]

    def kill(self, place: int) -> None:
        self.alive.pop(place)

    def _is_alive(self, worker: Worker) -> bool:
        return any(worker.handle is handle for handle in self.alive)

    def submit(self, worker: Worker, key: DatasetKey) -> bool:
        worker.handle.append(key)
        return self._is_alive(worker)

    def poll(self, workers: Sequence[Worker], timeout: float) -> list[tuple[Worker, Message]]:
        messages: list[tuple[Worker, Message]] = []
        for worker in list(workers):
            if not self._is_alive(worker):
                messages.append((worker, None))
            elif worker.handle:
                message = worker.handle.popleft()
                if message == self.deadly:
                    self.stop(worker)
                    continue
                done = (message, self.sampler.sample(message)) if isinstance(message, DatasetKey) else message
                messages.append((worker, done))
        return messages

    def stop(self, worker: Worker) -> None:
        self.alive = [handle for handle in self.alive if handle is not worker.handle]


class ManualPool(WorkerPool):
    """Has no thread: tests call `step`."""

    backend: FakeBackend

    def start(self) -> None: ...

    def close(self) -> None: ...

    def is_alive(self) -> bool:
        return True

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()


def manual(buffer: Buffer) -> ManualPool:
    assert isinstance(buffer.pool, ManualPool)
    return buffer.pool


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Buffer, ManualPool]]]:
    monkeypatch.setattr("presage.data.buffer.ProcessBackend", FakeBackend)
    monkeypatch.setattr("presage.data.buffer.WorkerPool", ManualPool)
    made: list[Buffer] = []

    def make(batch_sizes: dict[int, int], steps: int = 40, **config: Any) -> tuple[Buffer, ManualPool]:
        rows = RowsConfig(n=(10, 10), interventional_probability=0.0)
        options = BufferConfig(rows_factor=1.0, producers="processes", **config)
        buffer = Buffer(RFF, rows, options, batch_sizes=batch_sizes, seed=0)
        buffer.start()
        made.append(buffer)
        manual(buffer).steps(steps)
        return buffer, manual(buffer)

    yield make
    for buffer in made:
        buffer.close()


def test_back_pressure(fake: Any) -> None:
    buffer, pool = fake({3: 4, 5: 2}, steps=300, workers=2)
    made = {d: ring.arrived for d, ring in buffer.rings.items()}
    assert made == {3: 4 + 4 * 4 + 2, 5: 2 + 4 * 2 + 2}  # a batch, four in advance, one for each producer
    assert pool.pending == 0
    buffer.draw(5, 0)
    buffer.draw(5, 1)  # lets one more batch in
    pool.steps(50)
    assert {d: ring.arrived for d, ring in buffer.rings.items()} == {3: made[3], 5: made[5] + 2}


def test_slow_producers_make_the_trainer_reuse_and_are_balanced(fake: Any) -> None:
    """Draws outrun producers by far: no draw waits, late ones are counted, and reuse grows equally for every d."""
    buffer, pool = fake({2: 12, 3: 4, 5: 2}, steps=120, workers=1, capacity=20)
    rng = np.random.default_rng(0)
    for step in range(3000):
        buffer.draw(int(rng.choice([2, 3, 5], p=[0.15, 0.25, 0.6])), step)  # 1.8, 1.0 and 1.2 datasets per step
        if step % 3:
            pool.step()  # one dataset
    stats = buffer.stats()
    assert stats["late"] > 1500
    ratios = list(stats["reuse"].values())
    assert min(ratios) > 4.0  # 4 drawn to 2/3 made per step, or 6
    assert max(ratios) / min(ratios) < 1.1


def test_quick_producers_hold_the_ratio(fake: Any) -> None:
    buffer, pool = fake({3: 6, 5: 2}, steps=100, workers=2, capacity=20, reuse=2.0)
    for step in range(200):
        buffer.draw((3, 5)[step % 2], step)
        pool.steps(5)
    stats = buffer.stats()
    assert stats["late"] == 0
    for ratio in stats["reuse"].values():
        assert ratio == pytest.approx(2.0, rel=0.05)


def test_no_dataset_is_left_out_when_workers_die(fake: Any) -> None:
    buffer, pool = fake({3: 4}, steps=5, workers=3, capacity=4)
    seen: Counter[bytes] = Counter()
    for step in range(60):
        seen.update(graph.tobytes() for graph in buffer.draw(3, step).x[:, 0])
        if step % 3 == 0:
            pool.backend.kill(step % len(pool.backend.alive))
        pool.steps(8)
    assert pool.restarts == pool.backend.spawned - 3 == 20
    ring = buffer.rings[3]
    assert ring.arrived == ring.limit
    window = range(ring.oldest, ring.inserted)
    for index in window:  # the window holds the datasets of its indices
        stored = buffer.sampler.sample(DatasetKey(3, index))
        np.testing.assert_array_equal(ring.x[index % len(ring.held)], stored.x)


def test_repeated_deaths_stop_the_run(fake: Any) -> None:
    _, pool = fake({3: 4}, steps=0, workers=1)

    def kill_all() -> None:
        for _ in range(10):
            pool.step()
            pool.backend.alive.clear()

    with pytest.raises(PresageError, match="3 producers of training data in a row died"):
        kill_all()


def test_a_dataset_that_kills_workers_stops_the_run(fake: Any) -> None:
    _, pool = fake({3: 40}, steps=2, workers=2)
    pool.backend.deadly = DatasetKey(3, 7)

    def work() -> None:
        pool.steps(50)

    with pytest.raises(PresageError, match="5 producers died while sampling dataset 7 of 3 variables"):
        work()


def test_ranks_split_the_datasets(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[DatasetKey] = []
    sample = DatasetSampler.sample
    monkeypatch.setattr(DatasetSampler, "sample", lambda self, key: made.append(key) or sample(self, key))
    rows = RowsConfig(n=(10, 20))
    config = BufferConfig(producers="processes", capacity=4)
    shapes = []
    for shard in range(2):
        buffer = Buffer(RFF, rows, config, batch_sizes={3: 5}, seed=0)
        buffer.start(shard, 2)
        for step in range(6):
            manual(buffer).steps(20)
            shapes.append(buffer.draw(3, step, shard, 2).x.shape)
        with pytest.raises(ConfigError, match="same part"):
            buffer.draw(3, 6, 1 - shard, 2)
        buffer.close()
        assert buffer.state()["datasets"]["3"]["inserted"] % 2 == 0
    assert max(Counter(made).values()) == 1  # no dataset is made twice
    assert {key.number % 2 for key in made} == {0, 1}
    assert [shape[0] for shape in shapes] == [3] * 6 + [2] * 6
    assert [shape[1] for shape in shapes[:6]] == [shape[1] for shape in shapes[6:]]  # ranks agree on the rows


def test_after_restore_datasets_are_new(fake: Any) -> None:
    buffer, _ = fake({3: 4}, steps=60)
    for step in range(3):
        buffer.draw(3, step)
    state = buffer.state()
    assert state["datasets"]["3"]["inserted"] == 12
    again = Buffer(RFF, buffer.rows, buffer.config, batch_sizes={3: 4}, seed=0)
    again.restore(state)
    again.start()
    manual(again).steps(60)
    again.draw(3, 3)
    assert (again.rings[3].oldest, again.rings[3].inserted) == (12, 16)
    again.close()


# Processes


def kill_workers(buffer: Buffer, count: int, killed: list[int]) -> None:
    """Kill workers of this machine, and wait until others have taken their place."""
    pool = buffer.pool
    assert pool is not None
    wait_until(lambda: len(pool.pids) == 2)
    for pid in pool.pids[:count]:
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)
    wait_until(lambda: pool.restarts >= len(killed) and not set(pool.pids) & set(killed))


def test_processes_give_the_batches_of_inline_even_when_killed() -> None:
    killed: list[int] = []

    def between(buffer: Buffer, step: int) -> None:
        if step in (1, 6):
            kill_workers(buffer, 1 + (step == 6), killed)

    assert compare_with_inline("processes", between)["restarts"] == len(killed) == 3


@dataclass(frozen=True, kw_only=True)
class Threads(Domain):
    """Values hold the number of threads that libraries may use; or it fails."""

    fail: bool = False

    def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        if self.fail:
            raise RuntimeError("broken on purpose")
        x = np.full((n, d), float(os.environ["OMP_NUM_THREADS"]))
        x[0] = 3.0
        return {"x": x, "interventions": np.zeros((n, d), dtype=bool), "graph": np.zeros((d, d), dtype=np.int8)}


def test_producers_use_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with Buffer(Threads(), ROWS, BufferConfig(producers="processes"), batch_sizes={2: 1}, seed=0) as buffer:
        buffer.draw(2, 0)
        assert buffer.rings[2].x[0, 1, 0] == 1.0
        assert buffer.pool is not None
        pids = buffer.pool.pids
    assert len(pids) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_failing_domain_is_reported() -> None:
    config = BufferConfig(producers="processes")
    with (
        Buffer(Threads(fail=True), ROWS, config, batch_sizes={2: 1}, seed=0) as buffer,
        pytest.raises(PresageError, match="broken on purpose"),
    ):
        buffer.draw(2, 0)


def test_a_domain_that_cannot_be_pickled_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Local(Domain):
        def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
            return {}

    buffer = Buffer(Local(), ROWS, BufferConfig(producers="processes"), batch_sizes={2: 1}, seed=0)
    with pytest.raises(ConfigError, match="cannot be sent to other processes"):
        buffer.draw(2, 0)


SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background was started with Ctrl-C ignored
import sys, time
from presage.data.buffer import Buffer, BufferConfig, RowsConfig
from presage.domain.catalog import _scm

def main():
    config = BufferConfig(producers="processes", workers=2)
    buffer = Buffer(_scm("linear", frozenset()), RowsConfig(n=(20, 20)), config, batch_sizes={3: 2}, seed=0)
    buffer.draw(3, 0)
    while len(buffer.pool.pids) < 2:
        time.sleep(0.01)
    print(*buffer.pool.pids, flush=True)
    if sys.argv[1] != "leave":
        time.sleep(60)

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("end", ["leave", "kill", "interrupt"])
def test_producers_end_with_the_trainer(end: str, tmp_path: Any) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    trainer = subprocess.Popen(
        [sys.executable, str(script), end],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert trainer.stdout is not None
    pids = [int(pid) for pid in trainer.stdout.readline().split()]
    assert len(pids) == 2
    if end == "kill":
        trainer.kill()
    elif end == "interrupt":
        os.killpg(trainer.pid, signal.SIGINT)  # as Ctrl-C does: to the whole group
    _, errors = trainer.communicate(timeout=60)
    assert trainer.returncode == {"leave": 0, "kill": -signal.SIGKILL, "interrupt": -signal.SIGINT}[end]
    assert errors.count("Traceback") == (end == "interrupt")  # the trainer's own KeyboardInterrupt, nothing else
    wait_until(lambda: not any(_running(pid) for pid in pids))


def _running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:  # orphans stay as zombies where nobody collects them
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


# Ray


@pytest.mark.filterwarnings("ignore::FutureWarning:ray")
def test_ray_gives_the_batches_of_inline_even_when_killed() -> None:
    ray = pytest.importorskip("ray")

    killed: list[int] = []

    def between(buffer: Buffer, step: int) -> None:
        if step == 2:
            kill_workers(buffer, 1, killed)

    assert compare_with_inline("ray", between)["restarts"] == len(killed) == 1
    assert not ray.is_initialized()


def test_ray_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    buffer = Buffer(RFF, ROWS, BufferConfig(producers="ray"), batch_sizes=BATCH_SIZES, seed=0)
    with pytest.raises(MissingExtraError, match=r"presage\[ray\]"):
        buffer.draw(4, 0)
    buffer.close()


@pytest.mark.parametrize(
    ("running", "address", "started"),
    [
        (True, None, []),
        (False, "10.0.0.1:6379", [{"address": "auto", "log_to_driver": False}]),
        (False, None, [{"num_cpus": 64, "include_dashboard": False, "log_to_driver": False}]),
    ],
)
def test_ray_joins_a_running_cluster(
    running: bool, address: str | None, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    ends: list[bool] = []
    ray = types.SimpleNamespace(
        is_initialized=lambda: running,
        init=lambda **options: calls.append(options),
        remote=lambda **options: lambda cls: cls,
        put=lambda value: value,
        shutdown=lambda: ends.append(True),
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if address is not None:
        monkeypatch.setenv("RAY_ADDRESS", address)
    backend = RayBackend(SAMPLER, 64)
    backend.close()
    assert calls == started
    assert len(ends) == len(started)  # a cluster that was running before stays


def test_a_stored_dataset_has_few_bytes() -> None:
    stored = SAMPLER.sample(DatasetKey(3, 7))
    assert isinstance(stored, StoredDataset)
    assert [array.shape for array in stored] == [(8, 3), (2, 3), (3, 3)]
    assert [array.dtype for array in stored] == [np.float32, bool, np.int8]
    assert stored.u.sum() == 2
