"""From model variables to a table."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.columns import ColumnKind
from presage.config import from_json, to_json
from presage.errors import ConfigError
from presage.simulators.measurement import DISTORTIONS, Measurement, distort, round_significant

NOTHING = dict.fromkeys(("clean", "rounding", "distortion", "noise", "outliers", "missing", "zeros", "censoring"), 0.0)


def only(**changes: object) -> Measurement:
    return Measurement(**{**NOTHING, **changes})


def numbers(seed: int = 0, d: int = 8, n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(seed).standard_normal((d, n)), np.zeros(d, dtype=np.int8)


@pytest.mark.parametrize("name", DISTORTIONS)
@given(st.floats(0.2, 2.0))
def test_distortions_increase_and_stay_finite(name, strength) -> None:
    values = np.linspace(-8, 8, 500)
    distorted = distort(values, name, strength)
    assert (np.diff(distorted) >= 0).all()
    assert len(np.unique(distorted)) > 400
    assert np.isfinite(distort(np.array([-1e6, 1e6]), name, strength)).all()


def test_unknown_distortions_are_refused() -> None:
    with pytest.raises(ConfigError, match="sigmoid"):
        distort(np.zeros(2), "cube", 1.0)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20), st.integers(1, 5))
def test_rounding_agrees_with_python(values, digits) -> None:
    array = np.array([value if abs(value) > 1e-9 else 0.0 for value in values])
    before = array.copy()
    rounded = round_significant(array, digits)
    np.testing.assert_array_equal(array, before)
    for value, result in zip(array.tolist(), rounded.tolist(), strict=True):
        expected = float(f"{value:.{digits - 1}e}")
        # Ties may go either way.
        unit = 10.0 ** (np.floor(np.log10(abs(value))) - digits + 1) if value else 0.0
        assert (
            result == pytest.approx(expected, rel=1e-9, abs=1e-9) or abs(abs(value - result) - unit / 2) < 1e-6 * unit
        )


def test_a_clean_measurement_changes_nothing() -> None:
    columns, kinds = numbers()
    x, missing = only(clean=1.0, rounding=1.0, missing=1.0).apply(np.random.default_rng(0), columns, kinds)
    np.testing.assert_array_equal(x, columns)
    assert not missing.any()


@pytest.mark.parametrize("effect", ["rounding", "distortion", "censoring"])
def test_monotone_effects_keep_the_order_of_rows(effect) -> None:
    for seed in range(30):
        columns, kinds = numbers(seed)
        x, missing = only(**{effect: 1.0}).apply(np.random.default_rng(seed), columns, kinds)
        assert not missing.any()
        for before, after in zip(columns, x, strict=True):
            assert (np.diff(after[np.argsort(before)]) >= 0).all()
            assert len(np.unique(after)) > 1


def test_rounding_makes_ties_in_most_tables() -> None:
    tied = 0
    for seed in range(60):
        columns, kinds = numbers(seed, n=500)
        x, _ = only(rounding=1.0).apply(np.random.default_rng(seed), columns, kinds)
        distinct = [len(np.unique(column)) for column in x]
        assert min(distinct) >= 2
        tied += np.median(distinct) < 450
    assert tied > 40


def test_censored_columns_pile_up_at_a_limit() -> None:
    columns, kinds = numbers(1, d=20)
    x, _ = only(censoring=1.0).apply(np.random.default_rng(2), columns, kinds)
    piles = [max(np.mean(column == column.min()), np.mean(column == column.max())) for column in x]
    assert 0.02 < max(piles) < 0.55
    assert sum(pile > 0.02 for pile in piles) >= 2


def test_zero_inflated_columns_are_positive_with_zeros() -> None:
    columns, kinds = numbers(1, d=20)
    x, _ = only(zeros=1.0).apply(np.random.default_rng(3), columns, kinds)
    inflated = [column for column in x if (column == 0).mean() > 0.05]
    assert len(inflated) >= 3
    assert all(column.min() == 0 for column in inflated)


def test_noise_and_outliers_have_their_size() -> None:
    columns, kinds = numbers(2, n=4000)
    noisy, _ = only(noise=1.0, proportional=0.0, noise_level=(0.3, 0.3)).apply(np.random.default_rng(4), columns, kinds)
    standard = (columns - columns.mean(axis=1, keepdims=True)) / columns.std(axis=1, keepdims=True)
    assert (noisy - standard).std() == pytest.approx(0.3, rel=0.03)
    far, _ = only(outliers=1.0, outlier_share=(0.01, 0.01)).apply(np.random.default_rng(5), columns, kinds)
    changed = np.abs(far - standard) > 1e-9
    assert changed.mean() == pytest.approx(0.01, abs=0.002)
    assert np.abs((far - standard)[changed]).min() > 3.9


def test_proportional_noise_grows_with_the_value() -> None:
    columns, kinds = numbers(2, n=4000)
    standard = (columns - columns.mean(axis=1, keepdims=True)) / columns.std(axis=1, keepdims=True)
    measurement = only(noise=1.0, proportional=1.0, noise_level=(0.1, 0.1))
    noisy, _ = measurement.apply(np.random.default_rng(4), columns, kinds)
    above = standard - standard.min(axis=1, keepdims=True)
    relative = (noisy - standard) / np.where(above > 0, above, np.inf) * above.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(relative.std(axis=1), 0.1, rtol=0.05)


def test_missing_cells_hold_zero_and_have_their_share() -> None:
    rates = []
    for seed in range(80):
        columns, kinds = numbers(seed)
        kinds[0] = ColumnKind.ENVIRONMENT
        x, missing = only(missing=1.0, missing_share=(0.1, 0.1)).apply(np.random.default_rng(seed), columns, kinds)
        assert (x[missing] == 0).all()
        np.testing.assert_array_equal(x[~missing], columns[~missing])
        assert not missing[0].any()
        assert ((~missing).sum(axis=1) >= 2).all()
        rates.append(missing[1:].mean())
    assert 0.05 < np.mean(rates) < 0.2


def test_missing_cells_depend_on_other_columns_sometimes() -> None:
    """The largest correlation of a missing mask with some other column, over datasets: near 0 or far from it."""
    largest = []
    for seed in range(60):
        columns, kinds = numbers(seed, d=3, n=3000)
        _, missing = only(missing=1.0, missing_share=(0.2, 0.2)).apply(np.random.default_rng(seed), columns, kinds)
        found = [
            abs(np.corrcoef(missing[i], columns[j])[0, 1])
            for i in range(3)
            for j in range(3)
            if i != j and missing[i].any()
        ]
        largest.append(max(found, default=0.0))
    assert 10 < sum(value > 0.2 for value in largest) < 45
    assert sum(value < 0.08 for value in largest) > 10


def test_codes_are_left_alone_and_counts_stay_whole() -> None:
    rng = np.random.default_rng(6)
    columns = np.stack([np.floor(rng.random(500) * 4), rng.poisson(6.0, 500).astype(float), rng.standard_normal(500)])
    kinds = np.array([ColumnKind.NOMINAL, ColumnKind.COUNT, ColumnKind.CONTINUOUS], dtype=np.int8)
    everything = {name: 1.0 for name in NOTHING if name not in ("clean", "missing")}
    for seed in range(20):
        x, _ = only(**everything).apply(np.random.default_rng(seed), columns, kinds)
        np.testing.assert_array_equal(x[0], columns[0])
        assert (x[1] == np.rint(x[1])).all()
        assert x[1].min() >= 0
        assert np.isfinite(x).all()


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_tiny_tables(n) -> None:
    for seed in range(50):
        columns, kinds = numbers(seed, d=2, n=n)
        everything = dict.fromkeys(NOTHING, 1.0) | {"clean": 0.0}
        x, missing = only(**everything).apply(np.random.default_rng(seed), columns, kinds)
        assert np.isfinite(x).all()
        assert n > 2 or not missing.any()


def test_constant_columns_stay_finite() -> None:
    everything = dict.fromkeys(NOTHING, 1.0) | {"clean": 0.0}
    x, _ = only(**everything).apply(np.random.default_rng(0), np.ones((2, 30)), np.zeros(2, dtype=np.int8))
    assert np.isfinite(x).all()


def test_json_and_bad_parameters() -> None:
    measurement = only(rounding=0.3, digits=(2, 3))
    assert from_json(json.loads(json.dumps(to_json(measurement)))) == measurement
    for make in (
        lambda: only(rounding=1.5),
        lambda: only(noise_level=(0.0, 1.0)),
        lambda: only(missing_share=(0.1, 0.9)),
        lambda: only(digits=(0, 2)),
    ):
        with pytest.raises(ConfigError):
            make()
