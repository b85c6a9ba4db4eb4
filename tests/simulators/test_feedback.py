"""Cyclic systems at equilibrium against the closed form."""

from __future__ import annotations

import json

import numpy as np
import pytest

from presage.config import from_json, to_json
from presage.errors import ConfigError
from presage.graphs.ops import is_acyclic
from presage.graphs.random import ErdosRenyi
from presage.simulators.feedback import Feedback, close_cycles, equilibrium
from presage.simulators.interventions_general import MixedInterventions

LINEAR = Feedback(saturating=0.0)
HARD = MixedInterventions(soft=0.0, two_targets=0.0, mislabelled=0.0)


def system(feedback: Feedback, seed: int, n_interventional: int = 0, m: int = 7, n: int = 120):
    rng = np.random.default_rng(seed)
    graph = feedback.graph(rng, ErdosRenyi(edges_per_node=(1.5,)).sample(rng, m))
    noise = rng.standard_normal((m, n))
    plan = HARD.plan(rng, np.arange(m), n=n, m=m, n_interventional=n_interventional)
    return graph, plan, feedback.sample(rng, graph, noise, n - n_interventional, HARD, plan), noise


def test_closing_cycles_adds_edges_from_descendants_to_ancestors() -> None:
    chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
    for seed in range(10):
        graph = close_cycles(np.random.default_rng(seed), chain, 1)
        assert (graph >= chain).all()
        assert graph.sum() == 3
        assert not is_acyclic(graph)
        assert np.tril(graph).sum() == 1
    assert not close_cycles(np.random.default_rng(0), np.zeros((4, 4), dtype=np.int8), 3).any()


def test_linear_equilibria_equal_the_closed_form() -> None:
    rng = np.random.default_rng(0)
    weights = rng.uniform(-0.3, 0.3, (5, 5))
    noise = rng.standard_normal((5, 40))
    expected = np.linalg.solve(np.eye(5) - weights.T, noise)
    np.testing.assert_allclose(equilibrium(weights, noise, saturating=False), expected, atol=1e-7)


def test_held_variables_are_set_and_the_others_settle() -> None:
    rng = np.random.default_rng(1)
    weights = rng.uniform(-0.3, 0.3, (4, 4))
    np.fill_diagonal(weights, 0.0)
    noise = rng.standard_normal((4, 30))
    held = np.zeros((4, 30), dtype=bool)
    held[2] = True
    x = equilibrium(weights, noise, saturating=True, held=held, values=np.full((4, 30), 2.5))
    assert (x[2] == 2.5).all()
    right = weights.T @ np.tanh(x) + noise
    rest = [0, 1, 3]
    np.testing.assert_allclose(x[rest], right[rest], atol=1e-7)


@pytest.mark.parametrize("saturating", [0.0, 1.0])
def test_systems_are_at_equilibrium_with_effects_of_their_weights(saturating) -> None:
    for seed in range(20):
        graph, _, done, _ = system(Feedback(saturating=saturating), seed)
        assert ((done.weights != 0) == (graph == 1)).all()
        assert (np.isfinite(done.effects) == (graph == 1)).all()
        sd = done.columns.std(axis=1)
        acting = np.tanh(done.columns) if saturating else done.columns
        moved = np.tanh(done.columns + sd[:, None]) if saturating else done.columns + sd[:, None]
        rise = (moved - acting).mean(axis=1)
        expected = done.weights * rise[:, None] / sd
        np.testing.assert_allclose(done.effects[graph == 1], expected[graph == 1], rtol=1e-6)
        assert np.abs(np.linalg.eigvals(np.abs(done.weights))).max() < 0.91


def test_interventions_reach_around_cycles() -> None:
    for seed in range(20):
        _, plan, done, _ = system(LINEAR, seed, n_interventional=60)
        again, _, free, _ = system(LINEAR, seed, n_interventional=60)
        np.testing.assert_array_equal(done.columns, free.columns)  # exact for a seed
        residual = done.columns - done.weights.T @ done.columns  # the noise, but for targets
        observational = residual[:, :60].std(axis=1)
        for row in range(60, 120):
            others = ~plan.done[row]
            assert (np.abs(residual[others, row]) < 6 * observational[others]).all()
        assert again.any()


def test_json_and_bad_parameters() -> None:
    assert from_json(json.loads(json.dumps(to_json(LINEAR)))) == LINEAR
    for make in (lambda: Feedback(radius=(0.5, 1.0)), lambda: Feedback(weights=(0.0, 1.0))):
        with pytest.raises(ConfigError):
            make()
