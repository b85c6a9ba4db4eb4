"""Kinds of columns, cut points and counts."""

from __future__ import annotations

import json

import numpy as np
import pytest

from presage.columns import ColumnKind
from presage.config import from_json, to_json
from presage.errors import ConfigError
from presage.simulators.columns import ColumnKinds
from presage.simulators.nodes import Counts, Cuts, Encoding, moments, poisson_quantile

everything = slice(None)


def test_shares_of_datasets() -> None:
    rng = np.random.default_rng(0)
    plans = [ColumnKinds().sample(rng, 12) for _ in range(2000)]
    assert np.mean([plan.continuous for plan in plans]) == pytest.approx(0.5, abs=0.04)
    discrete = np.mean([(plan.kinds != ColumnKind.CONTINUOUS).all() for plan in plans])
    assert 0.16 < discrete < 0.26
    assert {int(kind) for plan in plans for kind in plan.kinds} == {0, 1, 2, 3, 4}


def test_levels_fit_their_kinds() -> None:
    rng = np.random.default_rng(1)
    seen: dict[int, set[int]] = {kind: set() for kind in range(5)}
    for _ in range(2000):
        plan = ColumnKinds(continuous=0.0, discrete=0.5).sample(rng, 10)
        for kind, levels in zip(plan.kinds.tolist(), plan.levels.tolist(), strict=True):
            seen[kind].add(levels)
    assert seen[ColumnKind.CONTINUOUS] == seen[ColumnKind.COUNT] == {0}
    assert seen[ColumnKind.BINARY] == {2}
    assert seen[ColumnKind.ORDINAL] == set(range(3, 8))
    assert seen[ColumnKind.NOMINAL] == set(range(3, 11))


def test_all_discrete_datasets_have_few_levels_mostly() -> None:
    rng = np.random.default_rng(2)
    levels = np.concatenate([ColumnKinds(continuous=0.0, discrete=1.0).sample(rng, 20).levels for _ in range(400)])
    levels = levels[levels > 0]
    assert (levels <= 4).mean() > 0.7
    assert (levels > 4).mean() > 0.08


def test_cuts_give_their_shares_and_keep_order() -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal(5000)
    cuts = Cuts(np.array([0.2, 0.5, 0.9]))
    codes = cuts(values, everything, 5000)
    np.testing.assert_allclose(np.bincount(codes.astype(int)) / 5000, [0.2, 0.3, 0.4, 0.1], atol=0.001)
    assert (np.diff(codes[np.argsort(values)]) >= 0).all()
    np.testing.assert_array_equal(cuts(values[:7], everything), codes[:7])  # points are kept


def test_nominal_cuts_permute_codes() -> None:
    values = np.linspace(-1, 1, 400)
    order = np.array([2, 0, 1])
    codes = Cuts(np.array([0.3, 0.6]), order)(values, everything, 400)
    assert codes[0] == 2
    assert codes[200] == 0
    assert codes[-1] == 1


@pytest.mark.parametrize("rate", [0.05, 0.7, 3.0, 7.9, 9.0, 40.0, 2000.0])
def test_counts_are_poisson(rate) -> None:
    rng = np.random.default_rng(4)
    n = 60_000
    counts = poisson_quantile(np.full(n, rate), rng.standard_normal(n))
    assert (counts == np.rint(counts)).all()
    assert counts.min() >= 0
    assert counts.mean() == pytest.approx(rate, abs=5 * np.sqrt(rate / n) + 0.004 * rate)
    assert counts.var() == pytest.approx(rate, rel=0.05)
    assert (counts == 0).mean() == pytest.approx(np.exp(-rate), abs=0.01)


def test_counts_rise_with_the_value_and_overdispersion_adds_variance() -> None:
    rng = np.random.default_rng(5)
    n = 20_000
    normal = rng.standard_normal(n)
    plain = Counts(np.log(5.0), 0.5, normal, None)
    over = Counts(np.log(5.0), 0.5, normal, rng.standard_gamma(2.0, n) / 2.0)
    low, high = plain(np.zeros(n), everything), plain(np.ones(n), everything)
    assert (high >= low).all()
    assert high.mean() / low.mean() == pytest.approx(np.exp(0.5), rel=0.03)
    assert over(np.zeros(n), everything).var() == pytest.approx(5.0 + 25.0 / 2.0, rel=0.08)
    assert np.isfinite(plain(np.full(n, 1e6), everything)).all()


def test_nominal_parents_act_through_a_value_per_level() -> None:
    encode = Encoding(np.array([[1.0], [0.0]]), np.array([[0.5], [1.0]]), [(1, np.array([7.0, -3.0]))])
    values = np.array([[3.0, 1.0], [0.0, 1.0]])
    before = values.copy()
    np.testing.assert_array_equal(encode(values), [[1.0, 0.0], [7.0, -3.0]])
    np.testing.assert_array_equal(values, before)
    np.testing.assert_array_equal(Encoding(None, None, [(1, np.array([7.0, -3.0]))])(values)[1], [7.0, -3.0])
    np.testing.assert_array_equal(values, before)


def test_moments_are_those_of_numpy() -> None:
    values = np.random.default_rng(6).standard_normal(100) * 3 + 50
    assert moments(values) == pytest.approx((values.mean(), values.std()))


def test_json_and_bad_parameters() -> None:
    kinds = ColumnKinds(continuous=0.1, nominal_levels=(3, 5))
    assert from_json(json.loads(json.dumps(to_json(kinds)))) == kinds
    for make in (
        lambda: ColumnKinds(continuous=0.8, discrete=0.4),
        lambda: ColumnKinds(inside=1.5),
        lambda: ColumnKinds(ordinal_levels=(2, 5)),
    ):
        with pytest.raises(ConfigError):
            make()
