"""The buffer with inline producers: contents of a batch, determinism, resuming, data-parallel parts."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.data.buffer import BATCH_TAG, Buffer, BufferConfig, RowsConfig, TrainBatch
from presage.data.producers import DatasetKey, DatasetSampler
from presage.domain.catalog import _scm
from presage.domain.domain import Domain
from presage.errors import ConfigError, DataError, PresageError
from presage.rng import Stream, generator

LINEAR = _scm("linear", frozenset())
FEW = RowsConfig(n=(20, 40))


@dataclass(frozen=True, kw_only=True)
class Tagged(Domain):
    """Datasets with known contents: cells hold 1 + their row number, the graph holds the number of the dataset."""

    made: ClassVar[list[tuple[int, int]]] = []
    counts: bool = False

    @property
    def kind(self) -> Any:  # type: ignore[override]
        return "counts" if self.counts else "real"

    def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        key = rng.bit_generator.seed_seq.spawn_key  # type: ignore[attr-defined]
        assert key[:2] == (int(Stream.TRAIN), d)
        index = key[2]
        self.made.append((d, index))
        x = np.repeat(np.arange(1.0, n + 1.0)[:, None], d, axis=1)
        mask = np.zeros((n, d), dtype=bool)
        mask[n - n_interventional :, 0] = True
        # Seven bits per cell, so that the number can be read back from the int8 graph.
        graph = np.zeros((d, d), dtype=np.int8)
        graph[0, 1], graph[1, 0] = index % 100, index // 100
        return {"x": x, "interventions": mask, "graph": graph}


def numbers(batch: TrainBatch) -> list[int]:
    return (batch.graph[:, 0, 1] + 100 * batch.graph[:, 1, 0].astype(int)).tolist()


@pytest.fixture(autouse=True)
def _reset() -> None:
    Tagged.made.clear()


def tagged(sizes: dict[int, int], rows: RowsConfig = FEW, **config: Any) -> Buffer:
    return Buffer(Tagged(), rows, BufferConfig(**config), batch_sizes=sizes, seed=3)


def same(a: TrainBatch, b: TrainBatch) -> bool:
    if (a.missing is None) != (b.missing is None):
        return False
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("x", "u", "missing", "graph")
        if getattr(a, name) is not None
    )


# Contents of a batch


def test_a_batch_is_standardized_and_typed() -> None:
    rows = RowsConfig(n=(50, 50), interventional_probability=1.0, interventional_share=(0.2, 0.2))
    batch = Buffer(LINEAR, rows, BufferConfig(), batch_sizes={6: 5}, seed=0).draw(6, 0)
    assert batch.x.shape == batch.u.shape == (5, 50, 6)
    assert (batch.x.dtype, batch.u.dtype, batch.graph.dtype) == (np.float32, bool, np.int8)
    assert batch.missing is None
    assert batch.u.any(axis=2).sum(axis=1).tolist() == [10] * 5
    np.testing.assert_allclose(batch.x.mean(axis=1), 0.0, atol=1e-5)
    np.testing.assert_allclose(batch.x.std(axis=1), 1.0, atol=1e-4)
    assert set(np.unique(batch.graph)) == {0, 1}


def test_rows_and_masks_stay_together() -> None:
    """Intervened cells hold the values of the intervention, here 1000."""

    @dataclass(frozen=True, kw_only=True)
    class LargeInterventions(Domain):
        def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
            mask = np.zeros((n, d), dtype=bool)
            mask[np.arange(n - n_interventional, n), rng.integers(0, d, n_interventional)] = True
            x = np.where(mask, 1000.0, rng.normal(size=(n, d)))
            return {"x": x, "interventions": mask, "graph": np.zeros((d, d), dtype=np.int8)}

    rows = RowsConfig(n=(30, 90), interventional_probability=1.0, interventional_share=(0.1, 0.4))
    buffer = Buffer(LargeInterventions(), rows, BufferConfig(reuse=4.0, capacity=8), batch_sizes={4: 4}, seed=0)
    for step in range(6):
        batch = buffer.draw(4, step)
        intervened = batch.u.any(axis=1)  # [B, d]
        lowest = np.where(batch.u, batch.x, np.inf).min(axis=1)
        highest = np.where(batch.u, -np.inf, batch.x).max(axis=1)
        assert intervened.any()
        assert (lowest > highest)[intervened].all()


def test_rows_are_distinct_and_change_from_draw_to_draw() -> None:
    rows = RowsConfig(n=(30, 30), interventional_probability=0.0)
    buffer = tagged({3: 2}, rows, capacity=2, reuse=1e6)
    first, second = buffer.draw(3, 0), buffer.draw(3, 1)
    assert sorted(numbers(first)) == sorted(numbers(second)) == [0, 1]
    for batch in (first, second):
        assert all(len(np.unique(batch.x[b, :, 0])) == 30 for b in range(2))
    assert not np.array_equal(np.sort(first.x[0, :, 0]), np.sort(first.x[1, :, 0]))
    assert not np.array_equal(np.sort(first.x[0, :, 0]), np.sort(second.x[0, :, 0]))
    assert Tagged.made == [(3, 0), (3, 1)] or Tagged.made == [(3, 1), (3, 0)]


def test_all_stored_rows_are_sampled_in_the_long_run() -> None:
    rows = RowsConfig(n=(10, 10), interventional_probability=0.5, interventional_share=(0.5, 0.5))
    assert rows.stored(4.0) == (40, 20)
    buffer = tagged({2: 1}, rows, capacity=1, reuse=1e9)
    drawn_rows: Counter[int] = Counter()
    sampler = buffer.sampler
    for step in range(60):
        batch = buffer.draw(2, step)
        drawn = int(batch.u.any(axis=2).sum())
        assert drawn in (0, 5)
        rng = generator(3, Stream.TRAIN, BATCH_TAG, 2, step, 0)
        plain = rng.choice(sampler.n_observational, 10 - drawn, replace=False, shuffle=False)
        intervened = rng.choice(sampler.n_interventional, drawn, replace=False, shuffle=False) + sampler.n_observational
        expected = np.concatenate([plain, intervened]) + 1.0
        np.testing.assert_allclose(batch.x[0, :, 1], (expected - expected.mean()) / expected.std(), atol=1e-5)
        drawn_rows.update(expected.astype(int).tolist())
    assert len(drawn_rows) == 60


def test_missing_cells() -> None:
    rows = RowsConfig(n=(200, 200), missing_probability=1.0, missing_share=(0.25, 0.25))
    batch = Buffer(LINEAR, rows, BufferConfig(), batch_sizes={8: 4}, seed=0).draw(8, 0)
    assert batch.missing is not None
    assert batch.missing.mean() == pytest.approx(0.25, abs=0.02)  # 6400 cells: four standard errors
    assert (batch.x[batch.missing] == 0.0).all()
    assert not np.array_equal(batch.missing[0], batch.missing[1])
    seen = np.where(batch.missing, np.nan, batch.x)
    np.testing.assert_allclose(np.nanmean(seen, axis=1), 0.0, atol=1e-5)


def test_shares_of_batches() -> None:
    rows = RowsConfig(missing_probability=0.2)
    draws = [rows.draw(generator(0, Stream.TEST, k)) for k in range(4000)]
    n = np.array([draw[0] for draw in draws])
    intervened = np.array([draw[1] for draw in draws])
    missing = np.array([draw[2] for draw in draws])
    assert (intervened > 0).mean() == pytest.approx(0.5, abs=0.04)
    assert (missing > 0).mean() == pytest.approx(0.2, abs=0.03)
    assert (n.min(), n.max()) == (60, 600)
    assert np.median(n) == pytest.approx(math.sqrt(60 * 600), rel=0.08)
    share = (intervened / n)[intervened > 0]
    assert 0.04 < share.min() < 0.07
    assert 0.58 < share.max() < 0.61
    rows = RowsConfig(all_interventional=0.25)
    trials = [rows.draw(generator(0, Stream.TEST, k)) for k in range(4000)]
    assert np.mean([n == intervened for n, intervened, _ in trials]) == pytest.approx(0.125, abs=0.02)


@given(
    low=st.integers(1, 50),
    more=st.integers(0, 200),
    p=st.sampled_from([0.0, 0.3, 1.0]),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
    only=st.sampled_from([0.0, 0.4]),
    factor=st.floats(1, 8),
    seed=st.integers(0, 1000),
)
def test_stored_rows_suffice_for_every_batch(
    low: int, more: int, p: float, ends: list[float], only: float, factor: float, seed: int
) -> None:
    rows = RowsConfig(
        n=(low, low + more),
        interventional_probability=p,
        interventional_share=(ends[0], ends[1]),
        all_interventional=only,
    )
    observational, interventional = rows.stored(factor)
    for k in range(20):
        n, intervened, _ = rows.draw(generator(seed, Stream.TEST, k))
        assert low <= n <= low + more
        assert n - intervened <= observational
        assert intervened <= interventional


def test_paper_numbers() -> None:
    rows = RowsConfig(n=(200, 200), interventional_share=(0.25, 0.25))
    assert {rows.draw(generator(0, Stream.TEST, k))[:2] for k in range(50)} == {(200, 0), (200, 50)}
    assert rows.stored(4.0) == (800, 200)


def test_counts_are_standardized_as_counts() -> None:
    rows = RowsConfig(n=(30, 30), interventional_probability=0.0)
    batch = Buffer(Tagged(counts=True), rows, BufferConfig(), batch_sizes={4: 2}, seed=0).draw(4, 0)
    assert (batch.x == batch.x[0, 0, 0]).all()  # every row has four equal counts: the same log counts per million


# Which datasets are drawn


def test_batches_are_distinct_and_leave_first_in_first_out() -> None:
    buffer = tagged({3: 4}, capacity=10)
    for step in range(30):
        drawn = numbers(buffer.draw(3, step))
        assert len(set(drawn)) == 4
        newest = 4 * (step + 1)
        assert max(0, newest - 10) <= min(drawn)
        assert max(drawn) < newest


def test_a_small_buffer_without_reuse_is_fresh_data() -> None:
    buffer = tagged({3: 5}, capacity=1)
    drawn = [number for step in range(8) for number in numbers(buffer.draw(3, step))]
    assert sorted(drawn) == list(range(40))


@pytest.mark.parametrize("reuse", [1.0, 2.5, 8.0])
def test_the_sample_to_insert_ratio_is_the_same_for_every_d(reuse: float) -> None:
    buffer = tagged({3: 8, 5: 2}, capacity=30, reuse=reuse)
    for step in range(400):
        buffer.draw(5 if step % 4 else 3, step)
    for ratio in buffer.stats()["reuse"].values():
        assert ratio == pytest.approx(reuse, rel=0.1)  # the first batch is free


def test_only_datasets_that_are_drawn_are_simulated() -> None:
    buffer = tagged({3: 4}, capacity=50)
    drawn = set()
    for step in range(50):
        drawn.update(numbers(buffer.draw(3, step)))
    assert len(Tagged.made) == len(set(Tagged.made)) == len(drawn)  # each once
    assert len(drawn) < 0.75 * 200
    Tagged.made.clear()
    tagged({3: 4}, capacity=50).draw(3, 0)
    assert len(Tagged.made) == 4  # the first draw waits for its own datasets only


def test_uniform_picks() -> None:
    buffer = tagged({3: 2}, capacity=10, reuse=1e9)
    buffer.restore({"datasets": {"3": {"base": 0, "inserted": 10, "drawn": 0, "owed": 0.0}}})
    counts = Counter(number for step in range(1000) for number in numbers(buffer.draw(3, step)))
    assert sorted(counts) == list(range(10))
    assert all(abs(count - 200) < 60 for count in counts.values())  # over four standard deviations (12.6)


def test_datasets_are_determined_by_their_address() -> None:
    rows = RowsConfig(n=(25, 25), interventional_probability=0.0)
    buffer = Buffer(LINEAR, rows, BufferConfig(rows_factor=1.0, capacity=1), batch_sizes={4: 3}, seed=11)
    batch = buffer.draw(4, 0)
    graphs = {
        LINEAR.draw(generator(11, Stream.TRAIN, 4, k), d=4, n=25, n_interventional=0)["graph"].tobytes()
        for k in range(3)
    }
    assert {graph.tobytes() for graph in batch.graph} == graphs


def test_streams_and_seeds_differ() -> None:
    def first(seed: int, stream: Stream) -> TrainBatch:
        return Buffer(LINEAR, FEW, BufferConfig(), batch_sizes={6: 3}, seed=seed, stream=stream).draw(6, 0)

    reference = first(0, Stream.TRAIN)
    assert same(reference, first(0, Stream.TRAIN))
    assert not same(reference, first(1, Stream.TRAIN))
    assert not same(reference, first(0, Stream.VALIDATION))


# Resuming, and splitting among ranks


@pytest.mark.parametrize("reuse", [1.0, 3.0])
def test_continues_bit_for_bit(reuse: float) -> None:
    rows = RowsConfig(n=(20, 60), missing_probability=0.5)
    config = BufferConfig(capacity=7, reuse=reuse)
    sizes = {4: 3, 6: 2}
    order = [(4, 6)[(step * step) % 3 == 0] for step in range(24)]
    straight = Buffer(LINEAR, rows, config, batch_sizes=sizes, seed=5)
    expected = [straight.draw(d, step) for step, d in enumerate(order)]
    assert {batch.missing is None for batch in expected} == {True, False}
    broken = Buffer(LINEAR, rows, config, batch_sizes=sizes, seed=5)
    for stop in range(0, 24, 6):
        for step in range(stop, stop + 6):
            assert same(broken.draw(order[step], step), expected[step])
        state = json.loads(json.dumps(broken.state()))
        broken = Buffer(LINEAR, rows, config, batch_sizes=sizes, seed=5)
        broken.restore(state)
        assert broken.state() == state


def test_restore_with_a_larger_batch() -> None:
    buffer = tagged({3: 2})
    buffer.draw(3, 0)
    larger = tagged({3: 6})
    larger.restore(buffer.state())
    assert len(set(numbers(larger.draw(3, 1)))) == 6


def test_restore_refuses_bad_states_and_late_calls() -> None:
    buffer = tagged({3: 2})
    for state in ({}, {"datasets": {"3": {"inserted": 1}}}, {"datasets": [1]}):
        with pytest.raises(ConfigError, match="not the state of a buffer"):
            buffer.restore(state)
    buffer.draw(3, 0)
    with pytest.raises(PresageError, match="before its first draw"):
        buffer.restore(buffer.state())


@pytest.mark.parametrize(("shards", "size"), [(2, 6), (3, 7), (4, 4)])
def test_parts_of_all_ranks_make_the_whole_batch(shards: int, size: int) -> None:
    rows = RowsConfig(n=(20, 60), missing_probability=0.5)

    def make() -> Buffer:
        return Buffer(LINEAR, rows, BufferConfig(capacity=10, reuse=2.0), batch_sizes={5: size}, seed=1)

    whole, ranks = make(), [make() for _ in range(shards)]
    for step in range(8):
        expected = whole.draw(5, step)
        parts = [rank.draw(5, step, shard, shards) for shard, rank in enumerate(ranks)]
        missing = [part.missing for part in parts if part.missing is not None]
        union = TrainBatch(
            x=np.concatenate([part.x for part in parts]),
            u=np.concatenate([part.u for part in parts]),
            missing=np.concatenate(missing) if missing else None,
            graph=np.concatenate([part.graph for part in parts]),
        )
        assert same(union, expected)
    assert all(rank.state() == whole.state() for rank in ranks)


def test_ranks_share_the_work() -> None:
    for shard in range(2):
        buffer = tagged({3: 8}, capacity=8)
        for step in range(5):
            buffer.draw(3, step, shard, 2)
    assert len(Tagged.made) == 40  # not 80: each rank simulates its own part


# Bad input


@pytest.mark.parametrize(
    "bad",
    [
        {"n": (0, 5)},
        {"n": (10, 5)},
        {"n": 200},
        {"n": (10.5, 20)},
        {"interventional_probability": 1.5},
        {"interventional_share": (0.2, 1.2)},
        {"interventional_share": (0.5, 0.2)},
        {"missing_share": (0.2, 1.0)},
        {"missing_probability": float("nan")},
    ],
)
def test_rows_config_refuses(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        RowsConfig(**bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"capacity": -1},
        {"capacity": True},
        {"rows_factor": 0.5},
        {"reuse": 0.0},
        {"producers": "threads"},
        {"workers": 0},
    ],
)
def test_buffer_config_refuses(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        BufferConfig(**bad)


def test_rows_config_takes_lists_from_json() -> None:
    assert RowsConfig(n=[5, 9]) == RowsConfig(n=(5, 9))  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [{}, {0: 3}, {3: 0}, {3: 1.5}])
def test_bad_sizes(sizes: dict[int, Any]) -> None:
    with pytest.raises(ConfigError):
        tagged(sizes)


def test_bad_draws() -> None:
    buffer = tagged({3: 2})
    with pytest.raises(ConfigError, match="of 4 variables"):
        buffer.draw(4, 0)
    for shard, shards in ((2, 2), (0, 3), (-1, 2)):
        with pytest.raises(ConfigError, match="part"):
            buffer.draw(3, 0, shard, shards)
    with buffer:
        buffer.draw(3, 0)
    with pytest.raises(PresageError, match="closed"):
        buffer.draw(3, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros((9, 2))}, "was asked for 10 rows"),
        ({"x": np.full((10, 2), np.inf)}, "not finite"),
        ({"interventions": np.ones((10, 2), dtype=bool)}, "rows last"),
    ],
)
def test_a_broken_domain_is_named(change: dict[str, Any], message: str) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Broken(Domain):
        def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
            whole = {"x": np.zeros((n, d)), "interventions": np.zeros((n, d), dtype=bool), "graph": np.zeros((d, d))}
            return {**whole, **change}

    sampler = DatasetSampler(domain=Broken(), seed=0, stream=Stream.TRAIN, n_observational=8, n_interventional=2)
    with pytest.raises(DataError, match=f"Broken.*{message}"):
        sampler.sample(DatasetKey(2, 0))


def test_huge_values_stay_finite() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Huge(Domain):
        def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
            x = rng.normal(size=(n, d)) * 1e200
            return {"x": x, "interventions": np.zeros((n, d), dtype=bool), "graph": np.zeros((d, d))}

    batch = Buffer(Huge(), FEW, BufferConfig(), batch_sizes={3: 2}, seed=0).draw(3, 0)
    assert np.isfinite(batch.x).all()
