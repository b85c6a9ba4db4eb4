"""Encoding of columns: scores of nominal levels and associations between whole columns."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from presage.columns import ColumnKind
from presage.data.encode import encode
from presage.domain.general import GeneralDomain
from presage.rng import Stream, generator

MIXED = np.array([ColumnKind.CONTINUOUS, ColumnKind.NOMINAL, ColumnKind.BINARY, ColumnKind.NOMINAL, ColumnKind.ORDINAL])


def _table(n: int = 400, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 4, n)
    value = np.array([0.0, 2.0, -1.0, 0.5])[level] + rng.normal(size=n)
    other = np.where(rng.random(n) < 0.7, np.array([2, 0, 1, 1])[level], rng.integers(0, 3, n))
    binary = rng.random(n) < 0.3
    return np.stack([value, level, binary, other, rng.integers(0, 5, n)], axis=1).astype(float)


def test_scores_have_mean_0_and_variance_1() -> None:
    encoded = encode(_table(), MIXED)
    np.testing.assert_allclose(encoded.x.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(encoded.x.std(axis=0), 1.0, atol=1e-4)
    assert not encoded.second[:, [0, 2, 4]].any()
    assert np.abs(np.corrcoef(encoded.x[:, 1], encoded.second[:, 1])[0, 1]) < 1e-4


def test_scores_order_levels_by_what_they_do() -> None:
    table = _table()
    correlation = np.corrcoef(encode(table[:, :2], MIXED[:2]).x.T)[0, 1]
    between = sum((table[:, 1] == k).mean() * table[table[:, 1] == k, 0].mean() ** 2 for k in range(4))
    eta = np.sqrt((between - table[:, 0].mean() ** 2) / table[:, 0].var())
    assert abs(correlation) == pytest.approx(eta, abs=1e-3)  # no scores of levels can correlate more


@pytest.mark.parametrize("seed", range(5))
def test_neither_levels_nor_rows_have_an_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = _table(seed=seed)
    renamed = table.copy()
    renamed[:, 1], renamed[:, 3] = (
        rng.permutation(9)[table[:, 1].astype(int)],
        rng.permutation(9)[table[:, 3].astype(int)],
    )
    rows = rng.permutation(len(table))
    before = encode(table, MIXED)
    for after, order in ((encode(renamed, MIXED), slice(None)), (encode(table[rows], MIXED), rows)):
        np.testing.assert_allclose(after.x, before.x[order], atol=2e-4)
        np.testing.assert_allclose(after.second, before.second[order], atol=2e-4)
        np.testing.assert_allclose(after.association, before.association, atol=2e-4)


def test_columns_may_be_permuted() -> None:
    table, order = _table(), np.array([3, 0, 4, 1, 2])
    before, after = encode(table, MIXED), encode(table[:, order], MIXED[order])
    np.testing.assert_allclose(after.x, before.x[:, order], atol=2e-4)
    np.testing.assert_allclose(after.association, before.association[np.ix_(order, order)], atol=2e-4)


def test_marginal_association_is_chi_squared_and_correlation() -> None:
    table = _table()
    association = encode(table, MIXED).association
    counts = np.zeros((4, 3))
    np.add.at(counts, (table[:, 1].astype(int), table[:, 3].astype(int)), 1)
    chi = chi2_contingency(counts, correction=False).statistic
    assert association[1, 3, 0] == pytest.approx(np.sqrt(chi / len(table) / 2), abs=1e-4)  # Cramer's V
    numbers = table[:, [0, 2]]
    assert association[0, 2, 0] == pytest.approx(abs(np.corrcoef(numbers.T)[0, 1]), abs=2e-2)
    assert (association[..., :4] == association[..., :4].transpose(1, 0, 2)).all()


def test_conditional_association_vanishes_given_the_cause_between() -> None:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 3, 4000)
    middle = np.where(rng.random(4000) < 0.8, first, rng.integers(0, 3, 4000))
    last = np.where(rng.random(4000) < 0.8, middle, rng.integers(0, 3, 4000))
    association = encode(
        np.stack([first, middle, last], axis=1).astype(float), np.full(3, ColumnKind.NOMINAL)
    ).association
    assert association[0, 2, 0] > 0.4
    assert association[0, 2, 2] < 0.06
    assert association[0, 1, 2] > 0.4


def test_degenerate_columns_stay_finite() -> None:
    kinds = np.array([ColumnKind.NOMINAL, ColumnKind.CONTINUOUS, ColumnKind.NOMINAL])
    for table in (np.zeros((5, 3)), np.array([[1.0, 2.0, 3.0]]), np.arange(120.0).reshape(40, 3)):
        for missing in (None, np.ones(table.shape, dtype=bool)):
            encoded = encode(table, kinds, missing)
            assert all(np.isfinite(part).all() for part in encoded)


def test_missing_cells_do_not_count() -> None:
    table, rng = _table(), np.random.default_rng(1)
    missing = rng.random(table.shape) < 0.2
    scrambled = np.where(missing, rng.permuted(table, axis=0), table)
    before, after = encode(table, MIXED, missing), encode(scrambled, MIXED, missing)
    assert not before.x[missing].any()
    np.testing.assert_allclose(after.x, before.x, atol=1e-4)
    np.testing.assert_allclose(after.association, before.association, atol=1e-4)


def test_tables_of_the_domain_are_encoded() -> None:
    for k in range(30):
        item = GeneralDomain().draw(generator(5, Stream.VALIDATION, k), d=2 + k % 9, n=20 + 10 * k, n_interventional=0)
        encoded = encode(item["x"], item["column_kinds"], item["missing"])
        assert all(np.isfinite(part).all() for part in encoded)
