"""Categories: shares against the softmax, tables against their rows."""

from __future__ import annotations

import numpy as np
import pytest

from presage.errors import ConfigError
from presage.simulators.categorical import LogitSampling, ParentInfo, ProbabilityTable, Switched

N = 40_000
everything = slice(None)


def parents_of(*levels: int) -> ParentInfo:
    return ParentInfo(list(levels), np.zeros(len(levels)), np.ones(len(levels)))


def shares(codes: np.ndarray, levels: int) -> np.ndarray:
    return np.bincount(codes.astype(int), minlength=levels) / len(codes)


@pytest.mark.parametrize("ordered", [False, True])
def test_logit_sampling_has_softmax_shares(ordered) -> None:
    """Log odds of two parent levels add up: they are additive in the parents, whatever the base."""
    rng = np.random.default_rng(0)
    mechanism = LogitSampling(strength=(1.0, 1.0), skew=(0.5, 0.5))
    node = mechanism.node(rng, parents_of(2, 2), 3, mechanism.noise(rng, 3, N), ordered=ordered)
    log_shares = {}
    for a in (0, 1):
        for b in (0, 1):
            values = np.array([[a], [b]]) * np.ones((1, N))
            log_shares[a, b] = np.log(shares(node.evaluate(values, everything), 3))
    mixed = log_shares[1, 1] - log_shares[0, 1] - log_shares[1, 0] + log_shares[0, 0]
    np.testing.assert_allclose(mixed - mixed[0], 0.0, atol=0.15)
    assert np.abs(log_shares[1, 1] - log_shares[0, 0]).max() > 0.1


def test_strong_logits_are_nearly_deterministic_and_weak_ones_are_not() -> None:
    rng = np.random.default_rng(1)
    codes = np.repeat([[0.0, 1.0, 2.0]], N // 3, axis=0).reshape(1, -1)
    found = {}
    for name, strength in (("weak", 0.3), ("strong", 50.0)):
        mechanism = LogitSampling(strength=(strength, strength), skew=(0.0, 0.0), rank_one=0.0)
        noise = mechanism.noise(rng, 3, codes.shape[1])
        result = mechanism.node(rng, parents_of(3), 3, noise).evaluate(codes, everything)
        found[name] = min(shares(result[codes[0] == level], 3).max() for level in range(3))
    assert found["weak"] < 0.7
    assert found["strong"] > 0.9


def test_ordered_levels_move_one_way_with_a_number() -> None:
    rng = np.random.default_rng(2)
    mechanism = LogitSampling(strength=(3.0, 3.0))
    for _ in range(20):
        node = mechanism.node(rng, parents_of(0), 5, mechanism.noise(rng, 5, 4000), ordered=True)
        means = [node.evaluate(np.full((1, 4000), x), everything).mean() for x in (-2.0, -1.0, 0.0, 1.0, 2.0)]
        steps = np.diff(means)
        assert (steps >= -1e-9).all() or (steps <= 1e-9).all()


def test_table_rows_are_sampled_exactly() -> None:
    rng = np.random.default_rng(3)
    mechanism = ProbabilityTable(concentration=(1.0, 1.0))
    noise = mechanism.noise(rng, 4, N)
    node = mechanism.node(rng, parents_of(3, 2), 4, noise)
    seen = []
    for a in range(3):
        for b in range(2):
            result = node.evaluate(np.array([[a], [b]]) * np.ones((1, N)), everything)
            again = node.evaluate(np.array([[a], [b]]) * np.ones((1, 100)), np.arange(100))
            np.testing.assert_array_equal(result[:100], again)  # the noise is kept
            seen.append(shares(result, 4))
    distances = [np.abs(seen[i] - seen[j]).sum() for i in range(6) for j in range(i)]
    assert min(distances) > 0.02  # every configuration has a row of its own
    assert min(row.min() for row in seen) > 0  # the floor keeps every level possible


@pytest.mark.parametrize(("concentration", "low", "high"), [(0.1, 0.75, 1.0), (20.0, 0.2, 0.6)])
def test_small_concentrations_give_nearly_deterministic_rows(concentration, low, high) -> None:
    rng = np.random.default_rng(4)
    mechanism = ProbabilityTable(concentration=(concentration, concentration), evenness=(4.0, 4.0))
    largest = []
    for _ in range(60):
        node = mechanism.node(rng, parents_of(2), 4, mechanism.noise(rng, 4, 2000))
        largest.append(shares(node.evaluate(np.zeros((1, 2000)), everything), 4).max())
    assert low < np.mean(largest) < high


def test_many_parents_still_all_act() -> None:
    """Far more configurations than the table has rows: merged and shared, but no parent is lost."""
    rng = np.random.default_rng(5)
    levels = (2,) * 12 + (5, 0, 0)
    mechanism = ProbabilityTable(concentration=(0.3, 0.3), max_configurations=64)
    node = mechanism.node(rng, parents_of(*levels), 3, mechanism.noise(rng, 3, 3000))
    values = np.stack([np.floor(rng.random(3000) * count) if count else rng.standard_normal(3000) for count in levels])
    base = node.evaluate(values, everything)
    for k in range(len(levels)):
        moved = values.copy()
        moved[k] = rng.permutation(moved[k])
        assert (node.evaluate(moved, everything) != base).mean() > 0.02


def test_a_root_has_its_base_shares() -> None:
    rng = np.random.default_rng(6)
    for mechanism in (LogitSampling(), ProbabilityTable()):
        node = mechanism.node(rng, parents_of(), 4, mechanism.noise(rng, 4, 1000))
        codes = node.evaluate(np.empty((0, 1000)), everything)
        assert set(np.unique(codes)) <= {0.0, 1.0, 2.0, 3.0}


def test_switched_nodes_differ_in_their_environments_only() -> None:
    rng = np.random.default_rng(7)
    mechanism = ProbabilityTable(concentration=(0.2, 0.2))
    noise = mechanism.noise(rng, 3, 2000)
    first, second = (mechanism.node(rng, parents_of(2), 3, noise) for _ in range(2))
    environment = np.arange(2000) % 3
    node = Switched(first, [(1, second)], environment)
    values = np.floor(rng.random((1, 2000)) * 2)
    result = node.evaluate(values, everything)
    expected = np.where(environment == 1, second.evaluate(values, everything), first.evaluate(values, everything))
    np.testing.assert_array_equal(result, expected)
    rows = rng.permutation(2000)[:70]
    np.testing.assert_array_equal(node.evaluate(values[:, rows], rows), expected[rows])


@pytest.mark.parametrize(
    "make",
    [
        lambda: LogitSampling(strength=(0.0, 1.0)),
        lambda: LogitSampling(rank_one=2.0),
        lambda: ProbabilityTable(concentration=(2.0, 1.0)),
        lambda: ProbabilityTable(evenness=(0.0, 1.0)),
        lambda: ProbabilityTable(floor=1.0),
        lambda: ProbabilityTable(max_configurations=1),
    ],
)
def test_bad_parameters_are_refused(make) -> None:
    with pytest.raises(ConfigError):
        make()
