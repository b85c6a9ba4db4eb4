"""Producers in processes and Ray actors: the same batches as inline, balance, back-pressure, deaths."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import types
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from presage.data.buffer import Buffer, BufferConfig, RowsConfig, TrainBatch
from presage.data.producers import ProcessPool, Recipe, Stored, Task, Worker, WorkerPool, _single_threaded
from presage.data.ray_producers import RayPool
from presage.domain.catalog import _scm
from presage.domain.domain import Domain
from presage.errors import ConfigError, MissingExtraError, PresageError
from presage.rng import Stream

RFF = _scm("rff", frozenset())
ROWS = RowsConfig(n=(20, 40), missing_probability=0.5)
SIZES = {4: 3, 6: 2}


def wait_until(what: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            pytest.fail("waited too long")
        time.sleep(0.01)


def settled(buffer: Buffer) -> bool:
    """Whether the producers have made all they may make in advance."""
    return all(ring.arrived == buffer._limit(ring) for ring in buffer._buffers.values())


def same(a: TrainBatch, b: TrainBatch) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("x", "u", "graph")) and (
        (a.missing is None and b.missing is None) or np.array_equal(a.missing, b.missing)  # type: ignore[arg-type]
    )


def compare_with_inline(engine: Any, between: Callable[[Buffer, int], None] | None = None) -> dict[str, Any]:
    """Draw from an engine that is given the time to keep up, and from inline: the batches must agree."""
    order = [4, 6, 4, 4, 6, 4, 6, 6, 4, 4, 6, 4]
    inline = Buffer(RFF, ROWS, BufferConfig(capacity=5, reuse=1.5), sizes=SIZES, seed=2)
    config = BufferConfig(capacity=5, reuse=1.5, producers=engine, workers=2)
    with Buffer(RFF, ROWS, config, sizes=SIZES, seed=2) as buffer:
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


# The shared logic, with producers that live in this thread and do as they are told


class FakeCrew(WorkerPool):
    """Producers in memory: speed and deaths are set by the test; `turn` is one round of the thread's loop."""

    def __init__(self, *args: Any, **links: Any) -> None:
        super().__init__(*args, **links)
        self.born = 0
        self.deadly: Task | None = None

    def start(self) -> None: ...

    def close(self) -> None: ...

    def is_alive(self) -> bool:
        return True

    def _spawn(self) -> Any:
        self.born += 1
        return deque(["ready"])

    def _submit(self, worker: Worker, task: Task) -> bool:
        if worker.handle is None:
            return False
        worker.handle.append(task)
        return True

    def _poll(self, timeout: float) -> list[tuple[Worker, Any]]:
        heard: list[tuple[Worker, Any]] = []
        for worker in self._staff:
            if worker.handle is None:
                heard.append((worker, None))
            elif worker.handle:
                message = worker.handle.popleft()
                if message == self.deadly:
                    worker.handle = None
                    continue
                done = message if message == "ready" else (message, self.recipe.make(message))
                heard.append((worker, done))
        return heard

    def _stop(self, worker: Worker) -> None:
        worker.handle = None

    def turn(self) -> None:
        while len(self._staff) < self.workers:
            self._staff.append(Worker(self._spawn(), []))
        with self._changed:
            self._assign()
        for worker, message in self._poll(0.0):
            self._handle(worker, message)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Buffer, FakeCrew]]]:
    monkeypatch.setattr("presage.data.buffer.ProcessPool", FakeCrew)
    made: list[Buffer] = []

    def make(sizes: dict[int, int], turns: int = 40, **config: Any) -> tuple[Buffer, FakeCrew]:
        rows = RowsConfig(n=(10, 10), interventional_probability=0.0)
        buffer = Buffer(RFF, rows, BufferConfig(rows_factor=1.0, producers="processes", **config), sizes=sizes, seed=0)
        buffer._start(0, 1)
        made.append(buffer)
        crew = buffer._pool
        assert isinstance(crew, FakeCrew)
        for _ in range(turns):
            crew.turn()
        return buffer, crew

    yield make
    for buffer in made:
        buffer.close()


def test_back_pressure(fake: Any) -> None:
    buffer, crew = fake({3: 4, 5: 2}, turns=300, workers=2)
    made = {d: ring.arrived for d, ring in buffer._buffers.items()}
    assert made == {3: 4 + 4 * 4 + 2, 5: 2 + 4 * 2 + 2}  # a batch, four in advance, one for each producer
    assert all(not worker.tasks for worker in crew._staff)
    buffer.draw(5, 0)
    buffer.draw(5, 1)  # lets one more batch in
    for _ in range(50):
        crew.turn()
    assert {d: ring.arrived for d, ring in buffer._buffers.items()} == {3: made[3], 5: made[5] + 2}


def test_slow_producers_make_the_trainer_reuse_and_are_balanced(fake: Any) -> None:
    """Draws outrun producers by far: no draw waits, late ones are counted, and reuse grows equally for every d."""
    buffer, crew = fake({2: 12, 3: 4, 5: 2}, turns=120, workers=1, capacity=20)
    rng = np.random.default_rng(0)
    for step in range(3000):
        buffer.draw(int(rng.choice([2, 3, 5], p=[0.15, 0.25, 0.6])), step)  # 1.8, 1.0 and 1.2 datasets per step
        if step % 3:
            crew.turn()  # one dataset
    stats = buffer.stats()
    assert stats["late"] > 1500
    ratios = list(stats["reuse"].values())
    assert min(ratios) > 4.0  # 4 drawn to 2/3 made per step, or 6
    assert max(ratios) / min(ratios) < 1.1


def test_quick_producers_hold_the_ratio(fake: Any) -> None:
    buffer, crew = fake({3: 6, 5: 2}, turns=100, workers=2, capacity=20, reuse=2.0)
    for step in range(200):
        buffer.draw((3, 5)[step % 2], step)
        for _ in range(5):
            crew.turn()
    stats = buffer.stats()
    assert stats["late"] == 0
    for ratio in stats["reuse"].values():
        assert ratio == pytest.approx(2.0, rel=0.05)


def test_no_number_is_left_out_when_producers_die(fake: Any) -> None:
    buffer, crew = fake({3: 4}, turns=5, workers=3, capacity=4)
    seen: Counter[bytes] = Counter()
    for step in range(60):
        seen.update(graph.tobytes() for graph in buffer.draw(3, step).x[:, 0])
        if step % 3 == 0:
            crew._staff[step % len(crew._staff)].handle = None
        for _ in range(8):
            crew.turn()
    assert crew.replaced == crew.born - 3 == 20
    ring = buffer._buffers[3]
    assert ring.arrived == buffer._limit(ring)
    window = range(ring.oldest, ring.inserted)
    for index in window:  # what the window holds is what the numbers say
        stored = buffer._recipe.make(Task(3, index))
        np.testing.assert_array_equal(ring.x[index % len(ring.held)], stored.x)


def test_deaths_without_end_stop_the_run(fake: Any) -> None:
    _, crew = fake({3: 4}, turns=0, workers=1)

    def kill_all() -> None:
        for _ in range(10):
            crew.turn()
            for worker in crew._staff:
                worker.handle = None

    with pytest.raises(PresageError, match="3 producers of training data in a row died"):
        kill_all()


def test_a_dataset_that_kills_stops_the_run(fake: Any) -> None:
    _, crew = fake({3: 40}, turns=2, workers=2)
    crew.deadly = Task(3, 7)

    def work() -> None:
        for _ in range(50):
            crew.turn()

    with pytest.raises(PresageError, match="5 producers died over dataset 7 of 3 variables"):
        work()


def test_ranks_split_the_datasets(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Task] = []
    make = Recipe.make
    monkeypatch.setattr(Recipe, "make", lambda self, task: made.append(task) or make(self, task))
    rows = RowsConfig(n=(10, 20))
    config = BufferConfig(producers="processes", capacity=4)
    shapes = []
    for shard in range(2):
        buffer = Buffer(RFF, rows, config, sizes={3: 5}, seed=0)
        buffer._start(shard, 2)
        for step in range(6):
            for _ in range(20):
                buffer._pool.turn()  # type: ignore[union-attr]
            shapes.append(buffer.draw(3, step, shard, 2).x.shape)
        with pytest.raises(ConfigError, match="same part"):
            buffer.draw(3, 6, 1 - shard, 2)
        buffer.close()
        assert buffer.state()["datasets"]["3"]["inserted"] % 2 == 0
    assert max(Counter(made).values()) == 1  # no dataset is made twice
    assert {task.number % 2 for task in made} == {0, 1}
    assert [shape[0] for shape in shapes] == [3] * 6 + [2] * 6
    assert [shape[1] for shape in shapes[:6]] == [shape[1] for shape in shapes[6:]]  # ranks agree on the rows


def test_after_restore_datasets_are_new(fake: Any) -> None:
    buffer, _ = fake({3: 4}, turns=60)
    for step in range(3):
        buffer.draw(3, step)
    state = buffer.state()
    assert state["datasets"]["3"]["inserted"] == 12
    again = Buffer(RFF, buffer.rows, buffer.config, sizes={3: 4}, seed=0)
    again.restore(state)
    again._start(0, 1)
    for _ in range(60):
        again._pool.turn()  # type: ignore[union-attr]
    again.draw(3, 3)
    assert (again._buffers[3].oldest, again._buffers[3].inserted) == (12, 16)
    again.close()


# Processes


def test_processes_give_the_batches_of_inline_even_when_killed() -> None:
    killed: list[int] = []

    def between(buffer: Buffer, step: int) -> None:
        crew = buffer._pool
        assert isinstance(crew, ProcessPool)
        if step in (1, 6):
            wait_until(lambda: len(crew.pids()) == 2)
            for pid in crew.pids()[: 1 + (step == 6)]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        if killed:
            wait_until(lambda: crew.replaced >= len(killed) and not set(crew.pids()) & set(killed))

    assert compare_with_inline("processes", between)["replaced"] == len(killed) == 3


@dataclass(frozen=True, kw_only=True)
class Threads(Domain):
    """Says how many threads libraries may use, or fails on request."""

    fail: bool = False

    def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        if self.fail:
            raise RuntimeError("the cells are off")
        x = np.full((n, d), float(os.environ["OMP_NUM_THREADS"]))
        x[0] = 3.0
        return {"x": x, "interventions": np.zeros((n, d), dtype=bool), "graph": np.zeros((d, d), dtype=np.int8)}


def test_producers_use_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with _single_threaded():
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "2"
    assert "MKL_NUM_THREADS" not in os.environ
    with Buffer(Threads(), ROWS, BufferConfig(producers="processes"), sizes={2: 1}, seed=0) as buffer:
        buffer.draw(2, 0)
        assert buffer._buffers[2].x[0, 1, 0] == 1.0
        pids = buffer._pool.pids()  # type: ignore[union-attr]
    assert len(pids) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_failing_domain_is_reported() -> None:
    config = BufferConfig(producers="processes")
    with (
        Buffer(Threads(fail=True), ROWS, config, sizes={2: 1}, seed=0) as buffer,
        pytest.raises(PresageError, match="the cells are off"),
    ):
        buffer.draw(2, 0)


def test_a_domain_that_cannot_travel_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Local(Domain):
        def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
            return {}

    buffer = Buffer(Local(), ROWS, BufferConfig(producers="processes"), sizes={2: 1}, seed=0)
    with pytest.raises(ConfigError, match="cannot be sent to other processes"):
        buffer.draw(2, 0)


SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background was started with Ctrl-C ignored
import sys, time
from presage.data.buffer import Buffer, BufferConfig, RowsConfig
from presage.data.ray_producers import RayPool
from presage.domain.catalog import _scm

def main():
    config = BufferConfig(producers="processes", workers=2)
    buffer = Buffer(_scm("linear", frozenset()), RowsConfig(n=(20, 20)), config, sizes={3: 2}, seed=0)
    buffer.draw(3, 0)
    while len(buffer._pool.pids()) < 2:
        time.sleep(0.01)
    print(*buffer._pool.pids(), flush=True)
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

    def between(buffer: Buffer, step: int) -> None:
        crew = buffer._pool
        assert crew is not None
        if step == 2:
            ray.kill(crew._staff[0].handle)
            wait_until(lambda: crew.replaced == 1 or settled(buffer))

    assert compare_with_inline("ray", between)["replaced"] == 1
    assert not ray.is_initialized()


def test_ray_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    buffer = Buffer(RFF, ROWS, BufferConfig(producers="ray"), sizes=SIZES, seed=0)
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
def test_ray_joins_what_is_there(
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
    recipe = Recipe(domain=RFF, seed=0, stream=Stream.TRAIN, observational=6, interventional=2)
    crew = RayPool(recipe, 64, changed=threading.Condition(), next_task=lambda: None, deliver=lambda *_: None)
    crew.close()
    assert calls == started
    assert len(ends) == len(started)  # what was running before stays


def test_stored_is_what_producers_send() -> None:
    recipe = Recipe(domain=RFF, seed=0, stream=Stream.TRAIN, observational=6, interventional=2)
    stored = recipe.make(Task(3, 7))
    assert isinstance(stored, Stored)
    assert [array.shape for array in stored] == [(8, 3), (2, 3), (3, 3)]
    assert [array.dtype for array in stored] == [np.float32, bool, np.int8]
    assert stored.u.sum() == 2
