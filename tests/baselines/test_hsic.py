"""HSIC-gamma: p-values that mean what they say, and searches that see curved relations."""

from __future__ import annotations

import numpy as np
import pytest

from presage.baselines import get_baseline
from presage.baselines.methods.hsic import HsicTests
from presage.errors import ConfigError
from presage.types import Dataset


def _curved(n: int = 400) -> Dataset:
    """A collider 0 -> 1 <- 2 of squares, which no correlation shows, with interventions on 0."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 3))
    mask = np.zeros((n, 3), dtype=bool)
    mask[: n // 4, 0] = True
    x[: n // 4, 0] += 3.0
    x[:, 1] = 0.3 * x[:, 1] + x[:, 0] ** 2 + x[:, 2] ** 2
    return Dataset(x=x, interventions=mask, graph=np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]]))


def _p_value(a: np.ndarray, b: np.ndarray) -> float:
    return HsicTests(np.column_stack([a, b])).p_value(0, 1, frozenset())


def test_p_values_are_uniform_under_independence_and_small_otherwise():
    rng = np.random.default_rng(0)
    values = [_p_value(rng.standard_normal(100), rng.uniform(size=100)) for _ in range(200)]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(values) < level) == pytest.approx(level, abs=4.0 * np.sqrt(level * (1 - level) / 200))
    a = rng.standard_normal(200)
    assert _p_value(a, a**2 + 0.3 * rng.standard_normal(200)) < 1e-6


def test_what_the_given_variables_explain_is_taken_away():
    rng = np.random.default_rng(1)
    cause = rng.standard_normal(400)
    noise = 0.3 * rng.standard_normal((2, 400))
    tests = HsicTests(np.stack([np.sin(2.0 * cause) + noise[0], cause**2 + noise[1], cause], axis=1))
    assert tests.p_value(0, 1, frozenset()) < 1e-4
    assert tests.p_value(0, 1, frozenset({2})) > 0.01


def test_constant_columns_and_few_rows_are_independent():
    assert HsicTests(np.ones((50, 2))).p_value(0, 1, frozenset()) == 1.0
    assert HsicTests(np.eye(4)).p_value(0, 1, frozenset()) == 1.0


def test_pc_sees_curved_colliders_with_hsic_only():
    pytest.importorskip("causallearn")
    data = _curved()
    observed = Dataset(x=data.x[100:], graph=data.graph)
    assert (get_baseline("pc").fit(observed, test="hsic").matrix == data.graph).all()
    assert not (get_baseline("pc").fit(observed).matrix == data.graph).all()


def test_igsp_sees_curved_relations_with_hsic():
    data = _curved()
    found = get_baseline("igsp").fit(data, test="hsic", alpha=1e-2).matrix
    assert found[0, 1]
    assert found[2, 1] or found[1, 2]
    with pytest.raises(ConfigError, match="gaussian, hsic"):
        get_baseline("igsp").fit(data, test="other")
