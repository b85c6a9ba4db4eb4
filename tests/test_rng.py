from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.domain.catalog import get_domain
from presage.errors import ConfigError
from presage.rng import Stream, check_seed, generator

keys = st.tuples(
    st.integers(0, 2**40), st.sampled_from(list(Stream)), st.lists(st.integers(0, 2**31), min_size=1, max_size=3)
)


@given(keys, keys)
def test_different_keys_give_different_states(first, second) -> None:
    states = [
        tuple(np.random.SeedSequence(seed, spawn_key=(int(stream), *path)).generate_state(4))
        for seed, stream, path in (first, second)
    ]
    draws = [
        generator(seed, stream, *path).bit_generator.state["state"]["state"] for seed, stream, path in (first, second)
    ]
    assert (states[0] == states[1]) == (first == second)
    assert (draws[0] == draws[1]) == (first == second)


def test_streams_never_overlap() -> None:
    """No starting state is shared between the streams of many seeds and datasets."""
    seen: dict[int, tuple[int, Stream, int]] = {}
    for seed in range(20):
        for stream in Stream:
            for k in range(50):
                state = generator(seed, stream, k).bit_generator.state["state"]["state"]
                assert state not in seen
                seen[state] = (seed, stream, k)
    assert len(seen) == 20 * len(Stream) * 50


def test_training_validation_and_test_datasets_differ() -> None:
    domain = get_domain("linear")
    values = [
        domain.sample(d=4, n=6, seed=3, size=5, stream=stream).x
        for stream in (Stream.TRAIN, Stream.VALIDATION, Stream.TEST)
    ]
    for a in range(3):
        for b in range(a):
            assert not np.isin(values[a], values[b]).any()


def test_the_global_generator_is_not_used() -> None:
    np.random.seed(5)  # noqa: NPY002 - this test is about the global generator
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    for name in ("scm", "rff-ood"):
        get_domain(name).sample(d=6, n=10, n_interventional=4, size=4)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@pytest.mark.parametrize("seed", [-1, 1.5, "0", None, True, float("nan")])
def test_invalid_seeds_raise(seed) -> None:
    with pytest.raises(ConfigError, match="seed must be a whole number"):
        check_seed(seed)


def test_indices_are_bounded() -> None:
    """Beyond these bounds NumPy maps different spawn keys to the same state."""
    states = [np.random.SeedSequence(0, spawn_key=key).generate_state(4) for key in ((1, 2**32), (1, 0, 1))]
    assert (states[0] == states[1]).all()
    for index in (2**32, -1):
        with pytest.raises(ConfigError, match="must lie between"):
            generator(0, Stream.TRAIN, index)
    with pytest.raises(ConfigError, match="below 2"):
        check_seed(2**128)
    generator(2**128 - 1, Stream.TRAIN, 2**32 - 1)


def test_numpy_integers_are_seeds() -> None:
    assert type(check_seed(np.int64(3))) is int
