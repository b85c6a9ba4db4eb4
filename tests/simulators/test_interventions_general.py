"""Targets, modes and labels of interventions; environments."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from presage.columns import ColumnKind
from presage.config import from_json, to_json
from presage.errors import ConfigError
from presage.simulators.environments import Environments
from presage.simulators.interventions_general import HARD_MODES, MODES, SOFT_MODES, MixedInterventions
from presage.simulators.mechanisms_general import WeightedSum

PLAIN = MixedInterventions(signed=0.0, single=0.0, factorial=0.0, two_targets=0.0, mislabelled=0.0)


def apply(mode: str, values: np.ndarray, *, kind: int = 0, levels: int = 0, seed: int = 0) -> np.ndarray:
    return PLAIN.apply(np.random.default_rng(seed), values, mode, kind=kind, levels=levels, mean=10.0, sd=2.0)


def test_plan_targets_candidates_in_the_last_rows_only() -> None:
    for seed in range(50):
        rng = np.random.default_rng(seed)
        candidates = np.array([1, 3, 4, 6])
        plan = PLAIN.plan(rng, candidates, n=40, m=8, n_interventional=15)
        assert not plan.done[:25].any()
        assert (plan.done[25:].sum(axis=1) == 1).all()
        assert set(np.flatnonzero(plan.done.any(axis=0))) <= set(plan.modes) <= set(candidates.tolist())
        assert plan.labels is plan.done


def test_share_of_targets_spans_its_range() -> None:
    counts = [
        len(PLAIN.plan(np.random.default_rng(seed), np.arange(20), n=200, m=20, n_interventional=200).modes)
        for seed in range(300)
    ]
    assert min(counts) <= 3
    assert max(counts) >= 19
    assert np.mean(counts) == pytest.approx(11.5, abs=1.0)


def test_some_rows_have_two_targets() -> None:
    interventions = dataclasses.replace(PLAIN, two_targets=1.0, share=(1.0, 1.0))
    plan = interventions.plan(np.random.default_rng(0), np.arange(10), n=300, m=10, n_interventional=300)
    assert set(plan.done.sum(axis=1).tolist()) == {1, 2}


def test_mislabelled_rows_are_few_and_still_name_a_candidate() -> None:
    interventions = dataclasses.replace(PLAIN, mislabelled=1.0, mislabelled_rows=(0.1, 0.1))
    plan = interventions.plan(np.random.default_rng(0), np.arange(2, 10), n=2000, m=10, n_interventional=1000)
    wrong = (plan.done != plan.labels).any(axis=1)
    assert not wrong[:1000].any()
    assert 0.05 < wrong[1000:].mean() < 0.12
    assert (plan.labels[1000:].sum(axis=1) == 1).all()
    assert not plan.labels[:, :2].any()


def test_modes_are_shared_by_a_dataset_or_not() -> None:
    number = []
    for seed in range(200):
        plan = dataclasses.replace(PLAIN, own_mode=0.5).plan(
            np.random.default_rng(seed), np.arange(12), n=50, m=12, n_interventional=50
        )
        number.append(len(set(plan.modes.values())))
    assert 60 < sum(count == 1 for count in number) < 160


def test_the_papers_interventions_are_signed_values() -> None:
    plans = [
        dataclasses.replace(PLAIN, signed=0.5, soft=1.0).plan(
            np.random.default_rng(seed), np.arange(6), n=30, m=6, n_interventional=30
        )
        for seed in range(200)
    ]
    signed = [set(plan.modes.values()) == {"signed"} for plan in plans]
    assert np.mean(signed) == pytest.approx(0.5, abs=0.1)


def test_hard_modes_ignore_the_value_and_soft_ones_do_not() -> None:
    values = np.random.default_rng(1).normal(10.0, 2.0, 500)
    other = values[::-1].copy()
    for mode in HARD_MODES:
        for seed in range(20):
            # Shuffled values depend on the order of rows and agree only when sorted.
            np.testing.assert_array_equal(
                np.sort(apply(mode, values, seed=seed)), np.sort(apply(mode, other, seed=seed))
            )
            assert mode == "constant" or abs(np.corrcoef(apply(mode, values, seed=seed), values)[0, 1]) < 0.2
    for mode in SOFT_MODES:
        result = apply(mode, values)
        assert np.corrcoef(result, values)[0, 1] == pytest.approx(1.0)
        assert np.abs(result - values).max() > 0.01


def test_numeric_modes_have_their_sizes() -> None:
    values = np.random.default_rng(2).normal(10.0, 2.0, 400)
    for seed in range(30):
        constant = apply("constant", values, seed=seed)
        assert (constant == constant[0]).all()
        assert 0.5 <= abs(constant[0] - 10.0) / 2.0 <= 3.0
        assert np.abs((apply("off_range", values, seed=seed) - 10.0) / 2.0).min() > 2.0
        signed = (apply("signed", values, seed=seed) - 10.0) / 2.0
        assert 0.25 <= np.abs(signed).min() <= np.abs(signed).max() <= 4.5
        assert 0.4 < (signed > 0).mean() < 0.6
        shift = (apply("shift", values, seed=seed) - values) / 2.0
        assert np.ptp(shift) < 1e-9
        assert 0.5 <= abs(shift[0]) <= 3.0


def test_randomized_values_are_doses_shuffled_or_new_ones() -> None:
    values = np.random.default_rng(2).normal(10.0, 2.0, 400)
    designs = set()
    for seed in range(60):
        result = apply("random", values, seed=seed)
        assert result.std() > 0
        distinct = len(np.unique(result))
        if np.array_equal(np.sort(result), np.sort(values)):
            designs.add("shuffled")
        elif distinct <= 5:
            designs.add("doses")
        else:
            assert distinct == 400
            designs.add("new")
    assert designs == {"shuffled", "doses", "new"}


def test_single_targets_are_randomized_trials_and_factorial_designs_set_several_targets() -> None:
    trials = dataclasses.replace(PLAIN, single=1.0)
    factorial = dataclasses.replace(PLAIN, factorial=1.0, share=(1.0, 1.0))
    randomized = together = 0
    for seed in range(60):
        plan = trials.plan(np.random.default_rng(seed), np.arange(8), n=100, m=8, n_interventional=60)
        assert (plan.done[40:].sum(axis=1) == 1).all()
        (mode,) = plan.modes.values()
        randomized += mode == "random"
        plan = factorial.plan(np.random.default_rng(seed), np.arange(8), n=100, m=8, n_interventional=60)
        assert set(plan.modes.values()) == {"random"}
        assert len(plan.modes) == 4
        assert not plan.done[:40].any()
        assert plan.done[40:].any(axis=1).all()
        together += bool((plan.done[40:].sum(axis=1) == 4).all())
    assert 0.5 < randomized / 60 < 0.9
    assert 0.4 < together / 60 < 0.8


@pytest.mark.parametrize("mode", MODES)
def test_discrete_targets_get_levels(mode) -> None:
    rng = np.random.default_rng(3)
    for seed in range(20):
        codes = np.floor(rng.random(300) * 4)
        result = apply(mode, codes, kind=ColumnKind.NOMINAL, levels=4, seed=seed)
        assert set(np.unique(result)) <= {0.0, 1.0, 2.0, 3.0}
        if mode in SOFT_MODES:
            changed = result != codes
            assert 0.1 < changed.mean() < 0.95
            assert len(np.unique(result[changed])) == 1


@pytest.mark.parametrize("mode", MODES)
def test_counts_stay_counts(mode) -> None:
    counts = np.random.default_rng(4).poisson(10.0, 300).astype(float)
    for seed in range(10):
        result = apply(mode, counts, kind=ColumnKind.COUNT, seed=seed)
        assert (result == np.rint(result)).all()
        assert result.min() >= 0


def test_environments_change_one_to_three_mechanisms_each() -> None:
    sizes = set()
    for seed in range(200):
        plan = Environments().plan(np.random.default_rng(seed), np.arange(3, 12), 400)
        groups = int(plan.codes.max()) + 1
        sizes.add(groups)
        per_group = np.zeros(groups, dtype=int)
        for j, codes in plan.changed.items():
            assert 3 <= j < 12
            assert len(set(codes)) == len(codes)
            for code in codes:
                per_group[code] += 1
        assert sorted(per_group)[0] == 0  # the reference
        assert all(1 <= count <= 3 for count in sorted(per_group)[1:])
    assert sizes == {2, 3, 4, 5, 6}


def test_changes_of_mechanisms_have_their_shares() -> None:
    rng = np.random.default_rng(5)
    changes = [Environments().change(rng, 1, WeightedSum(), 2) for _ in range(1000)]
    shares = [
        np.mean([change.function is not None for change in changes]),
        np.mean([change.shift != 0 for change in changes]),
        np.mean([change.factor != 1 for change in changes]),
        np.mean([change.noise_factor != 1 for change in changes]),
    ]
    np.testing.assert_allclose(shares, [0.2, 0.5, 0.15, 0.15], atol=0.05)
    assert all(
        change.function is None for change in (Environments().change(rng, 1, WeightedSum(), 0) for _ in range(50))
    )


def test_json_and_bad_parameters() -> None:
    for component in (MixedInterventions(soft=0.1), Environments(groups=(2, 3))):
        assert from_json(json.loads(json.dumps(to_json(component)))) == component
    for make in (
        lambda: MixedInterventions(soft=1.1),
        lambda: MixedInterventions(factorial=-0.1),
        lambda: MixedInterventions(share=(0.0, 1.0)),
        lambda: MixedInterventions(strength=(2.0, 1.0)),
        lambda: Environments(groups=(1, 3)),
        lambda: Environments(factor=(0.5, 2.0)),
    ):
        with pytest.raises(ConfigError):
            make()
