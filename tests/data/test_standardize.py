from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from presage.data.standardize import standardize, standardize_counts, standardize_dataset, standardize_real
from presage.types import Dataset

tables = hnp.arrays(float, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=st.floats(-1e6, 1e6))


@given(tables)
def test_real_values_get_mean_zero_and_variance_one(x) -> None:
    z = standardize_real(x)
    assert z.dtype == np.float32
    assert z.shape == x.shape
    spread = x.std(axis=0) > 1e-6 * np.abs(x).max(axis=0, initial=1.0)
    np.testing.assert_allclose(z[:, spread].mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(z[:, spread].std(axis=0), 1, atol=1e-3)


@given(tables, st.floats(-1e3, 1e3), st.floats(0.01, 1e3))
def test_shift_and_scale_do_not_matter(x, shift, scale) -> None:
    x = np.round(x, 2)
    fine = x.std(axis=0) > 0.01 * (np.abs(x).max(axis=0) + abs(shift) / scale)
    np.testing.assert_allclose(standardize_real(x * scale + shift)[:, fine], standardize_real(x)[:, fine], atol=1e-4)


@pytest.mark.parametrize("value", [0.0, 5.0, 0.1, -1e200, 1e-200, 123456.789])
def test_constant_columns_become_zero(value) -> None:
    x = np.column_stack([np.full(7, value), np.arange(7.0)])
    z = standardize_real(x)
    assert (z[:, 0] == 0).all()
    assert z[:, 1].std() == pytest.approx(1)


def test_huge_values_stay_finite() -> None:
    z = standardize_real(np.array([[1e300], [-1e300], [0.0]]))
    np.testing.assert_allclose(z[:, 0], [np.sqrt(1.5), -np.sqrt(1.5), 0], rtol=1e-6)


@given(tables, st.data())
def test_missing_cells_are_left_out_and_become_zero(x, data) -> None:
    missing = data.draw(hnp.arrays(bool, x.shape))
    z = standardize_real(x, missing)
    assert (z[missing] == 0).all()
    with_nan = np.where(missing, np.nan, x)
    np.testing.assert_array_equal(standardize_real(with_nan), z)
    for j in range(x.shape[1]):
        seen = ~missing[:, j]
        if seen.any():
            np.testing.assert_allclose(z[seen, j], standardize_real(x[seen, j : j + 1])[:, 0], atol=1e-5)


def test_no_rows_and_all_missing() -> None:
    assert standardize_real(np.empty((0, 3))).shape == (0, 3)
    assert standardize_counts(np.empty((0, 3))).shape == (0, 3)
    assert (standardize_real(np.full((4, 2), np.nan)) == 0).all()
    assert (standardize_counts(np.zeros((4, 2))) == 0).all()


def test_batches_are_standardized_one_by_one() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 8, 4)) * 10 + 5
    counts = rng.poisson(3, size=(3, 8, 4))
    for k in range(3):
        np.testing.assert_allclose(standardize_real(x)[k], standardize_real(x[k]), atol=1e-6)
        np.testing.assert_allclose(standardize_counts(counts)[k], standardize_counts(counts[k]), atol=1e-6)


def test_counts_by_hand() -> None:
    """log2 CPM; zeros stay zero; the others minus the overall minimum, over the overall deviation."""
    x = np.array([[10, 30, 0], [5, 0, 15]])
    logs = np.log2([10 / 40 * 1e6, 30 / 40 * 1e6, 5 / 20 * 1e6, 15 / 20 * 1e6])
    z = standardize_counts(x)
    assert z[0, 2] == z[1, 1] == 0
    expected = (logs - logs.min()) / logs.std()
    np.testing.assert_allclose([z[0, 0], z[0, 1], z[1, 0], z[1, 2]], expected, rtol=1e-6)


@given(hnp.arrays(np.int64, st.tuples(st.integers(2, 8), st.integers(2, 5)), elements=st.integers(0, 50)), st.data())
def test_counts_keep_zeros_and_ignore_missing_cells(x, data) -> None:
    z = standardize_counts(x)
    assert (z[x == 0] == 0).all()
    assert (z >= 0).all()
    assert np.isfinite(z).all()
    missing = data.draw(hnp.arrays(bool, x.shape))
    np.testing.assert_array_equal(standardize_counts(x, missing), standardize_counts(np.where(missing, 0, x)))
    # Twice as many reads in a cell change nothing.
    np.testing.assert_allclose(standardize_counts(x * 2), z, atol=1e-4)


def test_equal_counts_have_no_spread() -> None:
    assert (standardize_counts(np.full((3, 2), 4)) == 0).all()


def test_the_callers_values_are_left_alone() -> None:
    x = np.array([[1.0, np.nan], [2.0, 3.0]])
    before = x.copy()
    standardize_real(x)
    standardize_counts(x)
    np.testing.assert_array_equal(x, before)


def test_kind_decides() -> None:
    x = np.array([[1.0, 4.0], [2.0, 2.0], [0.0, 3.0]])
    real, counts = (Dataset(x=x, kind=kind) for kind in ("real", "counts"))
    np.testing.assert_array_equal(standardize_dataset(real), standardize_real(x))
    np.testing.assert_array_equal(standardize_dataset(counts), standardize_counts(x))
    np.testing.assert_array_equal(standardize(x, "counts"), standardize_counts(x))
    hidden = Dataset(x=np.where(x == 2, np.nan, x))
    np.testing.assert_array_equal(standardize_dataset(hidden), standardize_real(np.where(x == 2, np.nan, x)))


def test_large_tables_are_standardized_in_pieces_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_cauchy((40, 7))
    missing = rng.random(x.shape) < 0.2
    expected = [standardize_real(x), standardize_real(x, missing)]
    monkeypatch.setattr("presage.data.standardize._AT_ONCE", 100)  # two columns at a time
    for whole, mask in zip(expected, (None, missing)):
        np.testing.assert_array_equal(standardize_real(x, mask), whole)
