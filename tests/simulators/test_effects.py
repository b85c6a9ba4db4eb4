"""Signed effects against closed forms and against naive finite differences of a whole simulation."""

from __future__ import annotations

import numpy as np
import pytest

from presage.columns import ColumnKind
from presage.graphs.latent import latent_projection
from presage.graphs.random import ErdosRenyi
from presage.simulators.categorical import LogitSampling, ProbabilityTable
from presage.simulators.columns import ColumnKinds
from presage.simulators.effects import direct_effects
from presage.simulators.environments import Environments
from presage.simulators.general_scm import MechanismStyle, Sampled, sample_general
from presage.simulators.interventions_general import MixedInterventions
from presage.simulators.mechanisms import Linear
from presage.simulators.mechanisms_general import FourierFeatures, Polynomial, RandomMLP, WeightedSum
from presage.simulators.mechanisms_steps import SoftTree
from presage.simulators.noise_general import GaussianNoise, LaplaceNoise
from presage.simulators.structure import Structure


def simulate(
    rng: np.random.Generator,
    graph: np.ndarray,
    style: MechanismStyle,
    kinds: np.ndarray | None = None,
    levels: list[int] | None = None,
    n: int = 200,
) -> tuple[Structure, Sampled]:
    m = len(graph)
    kinds = np.zeros(m, dtype=np.int8) if kinds is None else kinds
    levels = [0] * m if levels is None else levels
    structure = Structure(graph, kinds, levels, np.zeros(m, dtype=bool), kinds, levels)
    interventions = MixedInterventions()
    plan = interventions.plan(rng, np.arange(m), n=n, m=m, n_interventional=0)
    sampled = sample_general(
        rng,
        structure,
        style,
        ColumnKinds(),
        n=n,
        fit=n,
        interventions=interventions,
        plan=plan,
        environments=Environments(),
    )
    return structure, sampled


def effects_of(structure: Structure, sampled: Sampled, hidden: np.ndarray, rows: np.ndarray) -> np.ndarray:
    simulated = (sampled.order, sampled.parents, sampled.nodes, sampled.columns)
    nominal = structure.kinds == ColumnKind.NOMINAL
    return direct_effects(
        structure.graph, hidden, *simulated, rows, levels=structure.levels, nominal=nominal, sd=sampled.sd
    )


def slopes(structure: Structure, sampled: Sampled) -> np.ndarray:
    """Coefficients [m, m] of linear assignments, by least squares on noise-free evaluations."""
    m = len(structure.graph)
    coefficients = np.zeros((m, m))
    rows = np.zeros(1, dtype=np.intp)
    for j in range(m):
        node, parents = sampled.nodes[j], sampled.parents[j]
        assert node is not None
        for q, i in enumerate(parents):
            low = np.zeros((len(parents), 1))
            high = low.copy()
            high[q] = 1.0
            coefficients[i, j] = (node.evaluate(high, rows) - node.evaluate(low, rows))[0]
    return coefficients


STYLES = [
    MechanismStyle(mechanisms=(WeightedSum(),), families=(GaussianNoise(),)),
    MechanismStyle(mechanisms=(Linear(),), families=(LaplaceNoise(),), explained=None),
]


@pytest.mark.parametrize("style", STYLES, ids=["standardized", "raw"])
@pytest.mark.parametrize("n_hidden", [0, 3])
def test_linear_effects_equal_the_closed_form(style, n_hidden) -> None:
    """w_ij sd_i / sd_j, summed over paths through hidden variables."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        graph = ErdosRenyi(edges_per_node=(2.0,)).sample(rng, 9)
        hidden = np.zeros(9, dtype=bool)
        hidden[rng.permutation(9)[:n_hidden]] = True
        structure, sampled = simulate(rng, graph, style)
        effects = effects_of(structure, sampled, hidden, np.arange(64))
        weights = slopes(structure, sampled)
        o, h = np.flatnonzero(~hidden), np.flatnonzero(hidden)
        inner = np.linalg.inv(np.eye(len(h)) - weights[np.ix_(h, h)])
        direct = weights[np.ix_(o, o)] + weights[np.ix_(o, h)] @ inner @ weights[np.ix_(h, o)]
        expected = direct * sampled.sd[o][:, None] / sampled.sd[o][None, :]
        directed, _ = latent_projection(graph, hidden)
        found = effects[np.ix_(o, o)]
        assert (np.isfinite(found) == (directed == 1)).all()
        np.testing.assert_allclose(found[directed == 1], expected[directed == 1], rtol=1e-6, atol=1e-9)
        assert np.isnan(effects[h]).all()
        assert np.isnan(effects[:, h]).all()


def naive_effect(structure: Structure, sampled: Sampled, hidden: np.ndarray, rows: np.ndarray, i: int, j: int) -> float:
    """Two full passes over all variables with every observed variable but j held."""
    means = []
    base = sampled.columns[:, rows]
    levels = structure.levels[i]
    low = np.minimum(base[i], levels - 2) if levels else base[i]
    high = low + 1 if levels else base[i] + sampled.sd[i]
    for state in (low, high):
        values = base.copy()
        values[i] = state
        for k in sampled.order:
            if hidden[k] or k == j:
                values[k] = sampled.nodes[k].evaluate(values[sampled.parents[k]], rows)
        means.append(values[j].mean())
    return (means[1] - means[0]) * (sampled.sd[i] if levels else 1.0) / sampled.sd[j]


@pytest.mark.parametrize("form", ["additive", "multiplicative", "heteroscedastic"])
def test_effects_equal_naive_finite_differences(form) -> None:
    checked = 0
    for seed in range(12):
        rng = np.random.default_rng(100 + seed)
        graph = ErdosRenyi(edges_per_node=(1.5,)).sample(rng, 9)
        kinds = rng.integers(0, 5, 9).astype(np.int8)
        levels = [{0: 0, 1: 0, 2: 2}.get(int(kind), 4) for kind in kinds]
        hidden = rng.random(9) < 0.3
        style = MechanismStyle(
            mechanisms=(FourierFeatures(), RandomMLP(), Polynomial(), SoftTree()),
            families=(GaussianNoise(),),
            multiplicative=float(form == "multiplicative"),
            heteroscedastic=float(form == "heteroscedastic"),
            categorical=(ProbabilityTable(), LogitSampling()),
            latent_share=0.5,
        )
        structure, sampled = simulate(rng, graph, style, kinds, levels)
        rows = np.arange(5, 60)
        effects = effects_of(structure, sampled, hidden, rows)
        for i, j in np.argwhere(np.isfinite(effects)):
            assert effects[i, j] == pytest.approx(
                naive_effect(structure, sampled, hidden, rows, i, j), rel=1e-5, abs=1e-6
            )
            checked += 1
        nominal = kinds == ColumnKind.NOMINAL
        assert np.isnan(effects[nominal]).all()
        assert np.isnan(effects[:, nominal]).all()
    assert checked > 40
