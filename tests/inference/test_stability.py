"""Bootstrap: rows are drawn within groups of interventions, and the spread is that of the predictions."""

from __future__ import annotations

import numpy as np
import pytest

from presage.errors import ConfigError
from presage.inference.stability import check_bootstrap, resample_rows, row_groups, spread


def mask(seed: int = 0, n: int = 40, d: int = 12) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = np.zeros((n, d), dtype=bool)
    rows = np.arange(n // 2, n)
    found[rows, rng.integers(3, size=len(rows))] = True
    found[-3:, 5] = True  # a second target
    return found


def test_groups_are_the_distinct_sets_of_targets() -> None:
    interventions = mask()
    groups = row_groups(interventions)
    assert sorted(np.concatenate(groups).tolist()) == list(range(40))
    patterns = [{tuple(row) for row in interventions[group].tolist()} for group in groups]
    assert all(len(pattern) == 1 for pattern in patterns)
    assert len(set.union(*patterns)) == len(groups)


def test_environments_divide_groups() -> None:
    environments = np.arange(40)[:, None] % 2
    groups = row_groups(mask(), environments)
    assert all(len(set(environments[group, 0])) == 1 for group in groups)
    assert len(groups) > len(row_groups(mask()))


def test_resampling_keeps_the_number_of_rows_of_every_intervention() -> None:
    interventions = mask()
    rows = resample_rows(np.random.default_rng(0), row_groups(interventions))
    assert len(set(rows.tolist())) < 40
    order = np.lexsort(interventions.T)
    again = interventions[rows]
    np.testing.assert_array_equal(again[np.lexsort(again.T)], interventions[order])


def test_spread_of_a_mean_equals_the_theory() -> None:
    x = np.random.default_rng(0).normal(size=400)

    def predict(rows: np.ndarray) -> np.ndarray:
        return np.array([[0.0, x[rows].mean()], [0.3, 0.0]])

    groups = [np.arange(400)]
    found = spread(predict, groups, 300)
    assert found[0, 1] == pytest.approx(x.std() / 20, rel=0.15)
    assert found[1, 0] == 0.0
    np.testing.assert_array_equal(found, spread(predict, groups, 300))
    assert (found != spread(predict, groups, 300, seed=1)).any()


def test_spread_equals_numpy() -> None:
    seen: list[np.ndarray] = []

    def predict(rows: np.ndarray) -> np.ndarray:
        seen.append(np.outer(rows[:3], rows[-3:]) / 1600)
        return seen[-1]

    np.testing.assert_allclose(spread(predict, row_groups(mask()), 7), np.std(seen, axis=0, ddof=1), atol=1e-12)


@pytest.mark.parametrize("bootstrap", [-1, 1, 2.0, True, "many", None])
def test_bad_numbers_of_resamples_get_a_sentence(bootstrap: object) -> None:
    with pytest.raises(ConfigError, match="0 \\(off\\)"):
        check_bootstrap(bootstrap)  # type: ignore[arg-type]
