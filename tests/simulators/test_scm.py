"""Simulated data against closed forms. Tolerances are a few standard errors at fixed seeds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.config import Range, options
from presage.graphs.random import ErdosRenyi
from presage.simulators.draws import signed_uniform
from presage.simulators.interventions import Interventions, assign_targets
from presage.simulators.mechanisms import Linear, Mechanism, RandomFourier, random_fourier_functions
from presage.simulators.noise import Heteroscedastic, Homoscedastic, Noise
from presage.simulators.scm import sample_scm

N = 100_000


def no_interventions(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((n, d), dtype=bool), np.zeros((n, d))


@dataclass(frozen=True, kw_only=True)
class Known(Mechanism):
    """Linear functions with the same weight everywhere, so that the closed form is known."""

    weight: float = 0.7
    level: float = 1.5

    def function(self, rng, n_parents):
        return lambda parents: self.weight * parents.sum(axis=1) + self.level


def test_linear_gaussian_covariance_and_mean_match_the_algebra() -> None:
    rng = np.random.default_rng(0)
    graph = ErdosRenyi(edges_per_node=(2.0,)).sample(rng, 8)
    x = sample_scm(rng, graph, Known(), Homoscedastic(scale=((0.8, 0.8),)), *no_interventions(N, 8))
    total = np.linalg.inv(np.eye(8) - 0.7 * graph)  # x = b (I - W)^-1 + e (I - W)^-1 for rows x
    covariance = total.T @ total * 0.8**2
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(x.mean(axis=0), np.full(8, 1.5) @ total, atol=5 * scale.max() / math.sqrt(N))
    error = np.abs(np.cov(x.T) - covariance) / np.outer(scale, scale)
    assert error.max() < 5 * math.sqrt(2 / N)


def test_interventional_means_match_the_algebra() -> None:
    rng = np.random.default_rng(1)
    graph = ErdosRenyi(edges_per_node=(2.0,)).sample(rng, 6)
    for target in range(6):
        mask, values = no_interventions(N // 4, 6)
        mask[:, target], values[:, target] = True, 2.5
        x = sample_scm(rng, graph, Known(), Homoscedastic(scale=((0.5, 0.5),)), mask, values)
        cut = 0.7 * graph.astype(float)
        cut[:, target] = 0.0  # the target no longer depends on its parents
        total = np.linalg.inv(np.eye(6) - cut)
        level = np.full(6, 1.5)
        level[target] = 2.5
        assert (x[:, target] == 2.5).all()
        noise = np.full(6, 0.5)
        noise[target] = 0.0
        spread = np.sqrt(np.diag((noise[:, None] * total).T @ (noise[:, None] * total)))
        assert (np.abs(x.mean(axis=0) - level @ total) <= 5 * spread / math.sqrt(N // 4) + 1e-9).all()


def test_linear_functions_have_their_weights_and_bias() -> None:
    rng = np.random.default_rng(2)
    functions = Linear(weights=((1.0, 3.0),), bias=((-3.0, 3.0),)).functions(rng, [2] * 5000)
    probe = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])
    outputs = np.stack([function(probe) for function in functions])  # [5000, 4]
    bias, weights = outputs[:, 0], outputs[:, 1:3] - outputs[:, :1]
    np.testing.assert_allclose(outputs[:, 3], bias + 2 * weights[:, 0] - weights[:, 1], atol=1e-12)
    assert (np.abs(bias) <= 3).all()
    assert np.var(bias) == pytest.approx(3.0, rel=0.08)
    assert ((np.abs(weights) >= 1) & (np.abs(weights) <= 3)).all()
    assert np.abs(weights).mean() == pytest.approx(2.0, abs=0.04)
    assert (weights > 0).mean() == pytest.approx(0.5, abs=0.03)
    assert abs(np.corrcoef(weights.T)[0, 1]) < 0.06


@pytest.mark.parametrize("p", [1, 3])
def test_random_fourier_draws_match_the_squared_exponential_kernel(p) -> None:
    rng = np.random.default_rng(p)
    length, output, count = 2.0, 3.0, 6000
    points = rng.normal(size=(7, p)) * 2
    functions = random_fourier_functions(
        rng, [p] * count, np.full(count, length), np.full(count, output), np.full(count, 1.25)
    )
    values = np.stack([function(points) for function in functions])  # [count, 7]
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=-1)
    kernel = output**2 * np.exp(-squared / (2 * length**2))
    error = output / math.sqrt(count)
    np.testing.assert_allclose(values.mean(axis=0), np.full(7, 1.25), atol=5 * error)
    np.testing.assert_allclose(np.cov(values.T), kernel, atol=5 * output * math.sqrt(2) * error)
    # A sum of M terms is near-Gaussian: its excess kurtosis is of order 1 / M.
    standard = (values - values.mean(axis=0)) / values.std(axis=0)
    assert np.abs((standard**4).mean(axis=0) - 3).max() < 0.4


def test_functions_of_roots_are_constants_of_the_same_process() -> None:
    rng = np.random.default_rng(3)
    mechanism = RandomFourier(output_scale=((4.0, 4.0),), bias=((2.0, 2.0),))
    outputs = np.stack([function(np.empty((3, 0))) for function in mechanism.functions(rng, [0] * 4000)])
    assert (outputs == outputs[:, :1]).all()
    assert outputs[:, 0].mean() == pytest.approx(2.0, abs=5 * 4 / math.sqrt(4000))
    assert outputs[:, 0].std() == pytest.approx(4.0, rel=0.06)


def test_random_fourier_scales_come_from_their_ranges() -> None:
    """Over draws, the variance at a point is E[c^2] + Var[b], and nearby points correlate as the length scale says."""
    rng = np.random.default_rng(4)
    mechanism = RandomFourier(length_scale=((7.0, 10.0),), output_scale=((10.0, 20.0),), bias=((-3.0, 3.0),))
    points = np.array([[0.0], [8.0]])
    values = np.stack([function(points) for function in mechanism.functions(rng, [1] * 8000)])
    second_moment = (20**3 - 10**3) / 30
    assert values.var() == pytest.approx(second_moment + 3.0, rel=0.06)
    lengths = np.linspace(7, 10, 1001)
    expected = (second_moment * np.exp(-64 / (2 * lengths**2)).mean() + 3) / (second_moment + 3)
    assert np.corrcoef(values.T)[0, 1] == pytest.approx(expected, abs=0.04)


@given(st.integers(0, 2**32), st.integers(0, 4))
def test_functions_are_deterministic_and_do_not_modify_their_inputs(seed, p) -> None:
    rng = np.random.default_rng(seed)
    parents = rng.standard_cauchy((9, p)) * 100
    before = parents.copy()
    for mechanism in (Linear(), RandomFourier()):
        function = mechanism.function(rng, p)
        first = function(parents)
        np.testing.assert_allclose(function(parents[::-1])[::-1], first, rtol=1e-4, atol=1e-4)
        assert (parents == before).all()
        assert first.dtype == np.float64


@pytest.mark.parametrize("size", [1.0, 1e3, 1e5, 1e9])
def test_random_fourier_is_accurate_for_large_inputs(size) -> None:
    """Single precision alone loses the phase from about 1e5; compare with double precision from the same draws."""
    rng = np.random.default_rng(5)
    (function,) = random_fourier_functions(rng, [2], np.array([7.0]), np.array([1.0]), np.array([0.0]))
    same = np.random.default_rng(5).standard_normal((3, 100), dtype=np.float32)
    rng = np.random.default_rng(5)
    rng.standard_normal((3, 100), dtype=np.float32)
    delta = rng.random((1, 100), dtype=np.float32).astype(float) * 2 * math.pi
    parents = np.random.default_rng(6).normal(size=(50, 2)) * size
    omega = (same[:2] * np.float32(1 / 7.0)).astype(float)
    expected = np.cos(parents @ omega + delta) @ same[2].astype(float) * math.sqrt(2 / 100)
    np.testing.assert_allclose(function(parents), expected, atol=5e-3 if size < 1e9 else 5e-2)


@pytest.mark.parametrize(("family", "quantile"), [("gaussian", 0.67449), ("laplace", math.log(2)), ("cauchy", 1.0)])
def test_noise_families_have_their_scale(family, quantile) -> None:
    """The third quartile of the standard law, times the scale; quartiles exist for Cauchy too."""
    rng = np.random.default_rng(6)
    noise = Homoscedastic(family=(family,), scale=((1.7, 1.7),)).sampler(rng, 0)(rng, np.empty((N, 0)))
    assert np.quantile(noise, 0.75) == pytest.approx(1.7 * quantile, rel=0.025)
    assert np.quantile(noise, 0.25) == pytest.approx(-1.7 * quantile, rel=0.025)


def test_noise_scales_differ_between_variables_and_fill_their_range() -> None:
    rng = np.random.default_rng(7)
    samplers = Homoscedastic(scale=((0.2, 2.0),)).samplers(rng, [0] * 600)
    scales = np.array([draw(rng, np.empty((1000, 0))).std() for draw in samplers])
    assert scales.min() == pytest.approx(0.2, abs=0.05)
    assert scales.max() == pytest.approx(2.0, abs=0.2)
    assert scales.mean() == pytest.approx(1.1, abs=5 * 0.52 / math.sqrt(600))


def test_heteroscedastic_noise_follows_the_parents() -> None:
    """The squared scale is softplus of a zero-mean process: log 2 where it is 0, of mean E[softplus(2 z)] overall."""
    rng = np.random.default_rng(8)
    model = Heteroscedastic(family=("gaussian",))
    point = np.array([[3.0, -2.0]])
    variances, changes = [], []
    for draw in model.samplers(rng, [2] * 400):
        here = draw(rng, np.repeat(point, 2000, axis=0)).var()
        there = draw(rng, np.repeat(point + 40.0, 2000, axis=0)).var()
        variances.append(here)
        changes.append(abs(math.log(here / there)))
    z = np.random.default_rng(0).standard_normal(200_000)
    expected = np.logaddexp(0, 2 * z)
    assert np.mean(variances) == pytest.approx(expected.mean(), abs=5 * expected.std() / math.sqrt(400))
    assert np.median(changes) > 0.5


def test_signed_uniform_has_a_random_sign() -> None:
    values = signed_uniform(np.random.default_rng(9), (1.0, 3.0), N)
    assert ((np.abs(values) >= 1) & (np.abs(values) < 3)).all()
    assert (values > 0).mean() == pytest.approx(0.5, abs=0.01)
    for sign in (-1, 1):
        side = np.abs(values[np.sign(values) == sign])
        assert np.quantile(side, [0.25, 0.5, 0.75]) == pytest.approx([1.5, 2.0, 2.5], abs=0.03)


# Interventions


def test_soft_interventions_keep_a_fraction_of_the_unperturbed_value() -> None:
    soft = Interventions(share=1.0, values=((2.0, 2.0),), softness=((0.25, 0.75),))
    mask, values, softness = soft.sample(np.random.default_rng(3), d=4, n=400, n_interventional=200)
    assert ((softness >= 0.25) & (softness <= 0.75)).all()
    assert len(set(softness)) == 4
    graph = np.zeros((4, 4), dtype=np.int8)
    graph[0, 1] = 1
    draws = [
        sample_scm(np.random.default_rng(5), graph, Linear().resolve(np.random.default_rng(1)), Homoscedastic(), *plan)
        for plan in ((np.zeros_like(mask), values), (mask, values, softness))
    ]
    unperturbed, perturbed = draws
    roots = mask.copy()
    roots[:, 1] = False  # its unperturbed value changes when its parent 0 is a target
    expected = (softness * unperturbed + values)[roots]
    np.testing.assert_allclose(perturbed[roots], expected, rtol=1e-12)
    np.testing.assert_array_equal(perturbed[:200], unperturbed[:200])


@given(
    d=st.integers(1, 25), n=st.integers(1, 60), share=st.floats(0.05, 1.0), seed=st.integers(0, 2**32), data=st.data()
)
def test_intervention_rows_shares_and_values(d, n, share, seed, data) -> None:
    k = data.draw(st.integers(0, n))
    interventions = Interventions(share=share, values=((1.0, 3.0),))
    mask, values, softness = interventions.sample(np.random.default_rng(seed), d=d, n=n, n_interventional=k)
    assert not mask[: n - k].any()
    assert (mask[n - k :].sum(axis=1) == 1).all()  # one target in each interventional row
    targets = mask.sum(axis=0)
    counts = targets[targets > 0]
    assert len(counts) == min(k, math.ceil(round(share * d, 9)))
    if k:
        assert counts.max() - counts.min() <= 1
    assert ((np.abs(values[mask]) >= 1) & (np.abs(values[mask]) <= 3)).all()
    assert (values[~mask] == 0).all()
    assert not softness.any()  # hard by default


@pytest.mark.parametrize(
    ("share", "d", "targets"), [(0.5, 30, 15), (0.5, 7, 4), (0.1, 30, 3), (0.01, 5, 1), (1.0, 6, 6)]
)
def test_the_number_of_targets(share, d, targets) -> None:
    mask, _, _ = Interventions(share=share).sample(np.random.default_rng(0), d=d, n=200, n_interventional=200)
    assert mask.any(axis=0).sum() == targets


def test_targets_are_a_random_half() -> None:
    rng = np.random.default_rng(10)
    times = np.zeros(10)
    for _ in range(2000):
        times += Interventions().sample(rng, d=10, n=50, n_interventional=50)[0].any(axis=0)
    assert (np.abs(times - 1000) < 5 * math.sqrt(500)).all()


def test_target_rows_are_shuffled() -> None:
    rng = np.random.default_rng(11)
    first = Counter(int(assign_targets(rng, np.arange(4), 6)[0]) for _ in range(4000))
    assert all(abs(count - 1000) < 5 * math.sqrt(750) for count in first.values())


def test_interventions_set_values_and_move_descendants_only() -> None:
    graph = np.zeros((4, 4), dtype=np.int8)
    graph[0, 1] = graph[1, 2] = 1  # 0 -> 1 -> 2, and 3 isolated
    mask, values = no_interventions(40, 4)
    mask[20:, 1], values[20:, 1] = True, 3.0
    pair = [
        sample_scm(np.random.default_rng(12), graph, Known(), Homoscedastic(), *what)
        for what in ((mask, values), no_interventions(40, 4))
    ]
    changed = pair[0] != pair[1]
    assert not changed[:20].any()
    assert not changed[:, [0, 3]].any()
    assert (pair[0][20:, 1] == 3.0).all()
    assert changed[20:, 2].all()


# Custom components


@dataclass(frozen=True, kw_only=True)
class Sine(Mechanism):
    amplitude: tuple[Range, ...] = options((1.0, 2.0))

    def function(self, rng, n_parents):
        amplitude = rng.uniform(*self.only("amplitude"))
        return lambda parents: amplitude * np.sin(parents).sum(axis=1)


@dataclass(frozen=True, kw_only=True)
class Coin(Noise):
    def sampler(self, rng, n_parents):
        return lambda noise_rng, parents: noise_rng.choice([-0.1, 0.1], len(parents))


def test_a_custom_mechanism_and_noise_model() -> None:
    rng = np.random.default_rng(13)
    graph = np.array([[0, 1], [0, 0]], dtype=np.int8)
    x = sample_scm(rng, graph, Sine().resolve(rng), Coin(), *no_interventions(500, 2))
    assert set(np.round(x[:, 0], 12)) == {-0.1, 0.1}
    amplitude = (x[:, 1].max() - 0.1) / math.sin(0.1)
    assert 1.0 <= amplitude <= 2.0
    expected = {sign * amplitude * math.sin(0.1) + coin for sign in (-1, 1) for coin in (-0.1, 0.1)}
    np.testing.assert_allclose(np.unique(np.round(x[:, 1], 12)), sorted(expected), atol=1e-10)
