"""Mechanisms for standardized parents: properties that every one of them has, and shapes of single ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

from presage.config import from_json, to_json
from presage.domain.general_defaults import MECHANISMS
from presage.errors import ConfigError
from presage.graphs.random import ErdosRenyi
from presage.simulators import mechanisms_general
from presage.simulators.mechanisms_steps import SoftTree, Thresholds
from presage.simulators.noise import Homoscedastic
from presage.simulators.regulation import Regulation
from presage.simulators.scm import sample_scm

each = pytest.mark.parametrize("mechanism", [*MECHANISMS, Regulation()], ids=lambda mechanism: type(mechanism).__name__)


@each
@pytest.mark.parametrize("p", [1, 2, 5, 30])
def test_functions_are_pure_and_of_roughly_unit_scale(mechanism, p) -> None:
    rng = np.random.default_rng(p)
    parents = rng.standard_normal((400, p))
    before = parents.copy()
    spreads = []
    for _ in range(60):
        function = mechanism.function(rng, p)
        first = function(parents)
        assert first.shape == (400,)
        assert first.dtype == np.float64
        np.testing.assert_allclose(function(parents[::-1])[::-1], first, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(parents, before)
        spreads.append(first.std())
    assert 0.15 < np.median(spreads) < 3.0


@each
def test_every_parent_acts(mechanism) -> None:
    rng = np.random.default_rng(1)
    p, parents = 4, rng.standard_normal((300, 4))
    for _ in range(40):
        function = mechanism.function(rng, p)
        base = function(parents)
        for k in range(p):
            moved = parents.copy()
            moved[:, k] = rng.permutation(moved[:, k])
            assert np.abs(function(moved) - base).mean() > 1e-4 * base.std()


@each
def test_without_parents_the_function_is_constant(mechanism) -> None:
    values = mechanism.function(np.random.default_rng(0), 0)(np.empty((5, 0)))
    assert values.shape == (5,)
    assert (values == values[0]).all()


@each
def test_large_inputs_stay_finite(mechanism) -> None:
    rng = np.random.default_rng(2)
    function = mechanism.function(rng, 3)
    assert np.isfinite(function(rng.standard_cauchy((500, 3)) * 1e3)).all()


@each
def test_mechanisms_work_in_an_ordinary_scm_and_round_trip(mechanism) -> None:
    assert from_json(json.loads(json.dumps(to_json(mechanism)))) == mechanism
    rng = np.random.default_rng(3)
    graph = ErdosRenyi(edges_per_node=(2.0,)).sample(rng, 6)
    mask = np.zeros((50, 6), dtype=bool)
    x = sample_scm(rng, graph, mechanism, Homoscedastic(), mask, np.zeros((50, 6)))
    assert np.isfinite(x).all()


def test_weighted_sum_is_linear_with_weights_in_range() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        function = mechanisms_general.WeightedSum(weights=(0.5, 2.0)).function(rng, 4)
        weights = function(np.eye(4)) - function(np.zeros((4, 4)))
        assert ((np.abs(weights) >= 0.25) & (np.abs(weights) <= 1.0)).all()  # divided by the root of 4
        point = rng.standard_normal((7, 4))
        np.testing.assert_allclose(function(point), point @ weights)


def test_monotone_sums_are_monotone_in_each_parent() -> None:
    rng = np.random.default_rng(5)
    grid = np.linspace(-4, 4, 200)
    for _ in range(100):
        function = mechanisms_general.MonotoneSum().function(rng, 3)
        for k in range(3):
            parents = np.zeros((200, 3))
            parents[:, k] = grid
            steps = np.diff(function(parents))
            assert (steps >= -1e-12).all() or (steps <= 1e-12).all()


def test_length_scales_are_log_uniform() -> None:
    """Draws are smoother for longer length scales; the covariance of one length scale is the squared exponential."""
    rng = np.random.default_rng(6)
    mechanism = mechanisms_general.FourierFeatures(length_scale=(1.0, 1.0), spread=0.0)
    points = np.array([[0.0], [1.0]])
    values = np.stack([mechanism.function(rng, 1)(points) for _ in range(6000)])
    assert values.std() == pytest.approx(1.0, rel=0.05)
    assert np.corrcoef(values.T)[0, 1] == pytest.approx(np.exp(-0.5), abs=0.03)


def test_polynomials_have_products_of_parents() -> None:
    """The mixed difference of a sum of functions of single parents is 0; that of a product is not."""
    rng = np.random.default_rng(7)
    corners = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    mixed = [mechanisms_general.Polynomial(products=1.0).function(rng, 2)(corners) @ [1, -1, -1, 1] for _ in range(30)]
    assert np.abs(mixed).min() > 1e-3
    plain = [mechanisms_general.Polynomial(products=0.0).function(rng, 2)(corners) @ [1, -1, -1, 1] for _ in range(30)]
    np.testing.assert_allclose(plain, 0.0, atol=1e-12)


def test_saturating_functions_are_bounded() -> None:
    rng = np.random.default_rng(8)
    far = np.concatenate([np.full((1, 3), 1e3), np.full((1, 3), 1e6)])
    for _ in range(50):
        low, high = mechanisms_general.Saturating().function(rng, 3)(far)
        assert low == pytest.approx(high)
        assert abs(high) < 20


@pytest.mark.parametrize("mechanism", [Thresholds(), SoftTree(softness=0.0)], ids=["thresholds", "trees"])
def test_steps_take_few_values(mechanism) -> None:
    rng = np.random.default_rng(9)
    values = mechanism.function(rng, 2)(rng.standard_normal((2000, 2)))
    assert 2 <= len(np.unique(values.round(9))) <= 2**4


def test_soft_trees_approach_hard_ones() -> None:
    differences = []
    for seed in range(20):
        parents = np.random.default_rng(100).standard_normal((500, 3))
        hard = SoftTree(softness=0.0).function(np.random.default_rng(seed), 3)(parents)
        soft = SoftTree(softness=1e-4).function(np.random.default_rng(seed), 3)(parents)
        differences.append(np.median(np.abs(hard - soft)))
    assert max(differences) < 1e-9


@pytest.mark.parametrize(
    "make",
    [
        lambda: mechanisms_general.WeightedSum(weights=(2.0, 1.0)),
        lambda: mechanisms_general.FourierFeatures(length_scale=(0.0, 1.0)),
        lambda: mechanisms_general.FourierFeatures(features=0),
        lambda: mechanisms_general.RandomMLP(hidden=(0, 4)),
        lambda: mechanisms_general.MonotoneSum(sharpness=(0.0, 1.0)),
        lambda: mechanisms_general.Polynomial(linear=-1.0),
        lambda: mechanisms_general.Polynomial(linear=0.0, squares=0.0, products=0.0),
        lambda: mechanisms_general.Saturating(steepness=(3.0, 1.0)),
        lambda: SoftTree(depth=0),
    ],
)
def test_bad_parameters_are_refused(make) -> None:
    with pytest.raises(ConfigError):
        make()
