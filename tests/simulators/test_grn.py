"""Gene expression dynamics against theory and against the public implementation."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from presage.errors import ConfigError, DataError
from presage.graphs.regulatory import Subgraph
from presage.simulators import grn
from presage.simulators.grn import CellDesign, Dynamics, Kinetics, design_cells, simulate_expression

HERE = Path(__file__).parents[1]
DECAY, DT = 0.8, 0.01


def wild_type(types: int, cells: int) -> CellDesign:
    return CellDesign(target=np.full(types * cells, -1), cell_type=np.arange(types * cells) % types)


def chain(strength: float, b: float, types: int, **rates) -> tuple[np.ndarray, Kinetics]:
    """Gene 0 acts on gene 1."""
    graph = np.array([[0, 1], [0, 0]])
    kinetics = Kinetics(strength=strength * graph, basal=np.full((2, types), b), decay=DECAY, **rates)
    return graph, kinetics


def by_target(x: np.ndarray, design: CellDesign, target: int) -> np.ndarray:
    return x[design.target == target]


def test_vector_arithmetic_is_accurate() -> None:
    from presage.simulators.vectors import compiled, exp2, log2

    @compiled
    def both(x, y, logs, powers):
        for k in range(x.size):
            logs[k] = log2(x[k])
            powers[k] = exp2(y[k])

    rng = np.random.default_rng(0)
    x = np.exp2(rng.uniform(-60, 60, 20_000)).astype(np.float32)
    x[:3] = 1.0, 2.0, 0.5
    y = rng.uniform(-100, 100, 20_000).astype(np.float32)
    logs, powers = np.empty_like(x), np.empty_like(y)
    both(x, y, logs, powers)
    assert np.abs(logs - np.log2(x.astype(np.float64))).max() < 8e-6  # values up to 60: float32 rounding
    assert np.abs(powers / np.exp2(y.astype(np.float64)) - 1).max() < 5e-7
    assert logs[:3].tolist() == [0.0, 1.0, -1.0]


def test_compilation_works_without_a_writable_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    from presage.simulators import vectors

    def refuse(function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(vectors, "_cached", refuse)
    assert vectors.compiled(lambda x: x + 1)(1) == 2


def test_normals_are_normal_and_independent() -> None:
    from presage.simulators.vectors import STREAMS, standard_normals

    state = np.random.default_rng(0).integers(0, 2**64, size=(2, STREAMS), dtype=np.uint64)
    draws = np.empty(2**20, dtype=np.float32)
    standard_normals(state, draws)
    z = draws.astype(np.float64)
    root = np.sqrt(z.size)
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - moment) < 4 * np.sqrt(variance) / root
    assert stats.kstest(z, "norm").pvalue > 1e-3
    for lag in (1, 2, STREAMS, 2 * STREAMS, 2048, 4096):  # neighbours, same stream, Box-Muller partner, next chunk
        assert abs((z[:-lag] * z[lag:]).mean()) < 4 / root
        assert abs(((z[:-lag] ** 2 - 1) * (z[lag:] ** 2 - 1)).mean()) < 4 * 2 / root
    again = np.empty_like(draws)
    standard_normals(state, again)
    assert abs((z * again).mean()) < 4 / root


@pytest.mark.parametrize(("b", "noise"), [(40.0, 1.0), (20.0, 0.5)])
def test_master_regulator_has_the_theoretical_mean_and_variance(b: float, noise: float) -> None:
    types, cells = 500, 40
    kinetics = Kinetics(strength=np.zeros((1, 1)), basal=np.full((1, types), b), decay=DECAY, noise=noise)
    rng = np.random.default_rng(1)
    x = simulate_expression(rng, np.zeros((1, 1)), kinetics, wild_type(types, cells)).astype(np.float64)
    assert x.mean() == pytest.approx(b / DECAY, rel=0.003)
    # Linear noise, steps of dt: v(t) = v (1 - (1 - l dt)^2t) from a fixed initial state, v = z^2 2b / (l (2 - l dt)).
    steady = noise**2 * 2 * b / (DECAY * (2 - DECAY * DT))
    time = np.arange(15 * cells)
    expected = steady * np.mean(1 - (1 - DECAY * DT) ** (2 * time))
    between = ((x - b / DECAY) ** 2).reshape(cells, types).mean(axis=0)  # independent across types
    assert abs(between.mean() - expected) < 4 * between.std() / np.sqrt(types)
    assert between.std() / np.sqrt(types) < 0.04 * expected


def test_mean_of_a_chain_by_quadrature() -> None:
    """The steady state of a master regulator is x + b/l ~ Gamma(4b / (l z^2), scale z^2 / 2)."""
    b, strength, hill, types, cells = 8.0, 6.0, 2.5, 1000, 100
    graph, kinetics = chain(strength, b, types, hill=hill, noise=np.array([1.0, 0.05]))  # the child never touches 0
    x = simulate_expression(np.random.default_rng(2), graph, kinetics, wild_type(types, cells)).astype(np.float64)
    half = b / DECAY
    law = stats.gamma(4 * b / DECAY, loc=-half, scale=0.5)

    def response(value: float) -> float:
        return value**hill / (half**hill + value**hill) * law.pdf(value)

    expected = strength / DECAY * integrate.quad(response, 0, 40)[0]
    per_type = x[:, 1].reshape(cells, types).mean(axis=0)
    error = per_type.std() / np.sqrt(types)
    assert abs(per_type.mean() - expected) < 4 * error
    # The test has power: the response at the mean differs.
    assert abs(per_type.mean() - strength / DECAY * 0.5) > 8 * error


@pytest.mark.parametrize("half_response", ["experiment", "wild_type"])
@pytest.mark.parametrize(("strength", "direction"), [(4.0, -1), (-4.0, 1)])
def test_knockout_is_exactly_zero_and_moves_the_child(half_response, strength: float, direction: int) -> None:
    graph, kinetics = chain(strength, 2.0, 10, noise=0.5)
    design = design_cells(np.random.default_rng(0), d=2, cell_types=10, n=1000, n_perturbed=800)
    x = simulate_expression(np.random.default_rng(3), graph, kinetics, design, half_response=half_response)
    assert (x >= 0).all()
    for gene in (0, 1):
        assert (by_target(x, design, gene)[:, gene] == 0).all()
    plain, knocked = by_target(x, design, -1), by_target(x, design, 0)
    assert np.sign(knocked[:, 1].mean() - plain[:, 1].mean()) == direction
    full = 0.0 if strength > 0 else 4.0 / DECAY  # A(0) is 0 or 1
    assert knocked[:, 1].mean() == pytest.approx(full, abs=0.3)
    # Knocking out the child does not change its regulator.
    assert by_target(x, design, 1)[:, 0].mean() == pytest.approx(2.0 / DECAY, abs=0.3)


def test_half_response_per_experiment_removes_indirect_effects() -> None:
    graph = np.zeros((4, 4), dtype=int)
    strength = np.zeros((4, 4))
    strength[0, 1], strength[3, 1], strength[1, 2] = -6.0, 3.0, 5.0  # 0 represses 1, which activates 2
    graph[strength != 0] = 1
    kinetics = Kinetics(strength=strength, basal=np.full((4, 5), 3.0), decay=DECAY, noise=0.3)
    design = CellDesign(target=np.repeat([-1, 0], 500), cell_type=np.arange(1000) % 5)
    shift = {}
    for half_response in ("experiment", "wild_type"):
        x = simulate_expression(np.random.default_rng(4), graph, kinetics, design, half_response=half_response)
        gap = by_target(x, design, 0).mean(axis=0) - by_target(x, design, -1).mean(axis=0)
        assert gap[1] > 2.0  # both definitions show the direct effect
        shift[half_response] = gap[2]
    assert abs(shift["experiment"]) < 0.1
    assert shift["wild_type"] > 0.5


def test_knockdown_halves_production() -> None:
    graph, kinetics = chain(4.0, 30.0, 5)
    design = CellDesign(target=np.repeat([-1, 0, 1], 500), cell_type=np.arange(1500) % 5)
    x = simulate_expression(
        np.random.default_rng(5), graph, kinetics, design, perturbation="knockdown", half_response="wild_type"
    )
    plain = by_target(x, design, -1).mean(axis=0)
    assert by_target(x, design, 0)[:, 0].mean() / plain[0] == pytest.approx(0.5, rel=0.05)
    assert by_target(x, design, 1)[:, 1].mean() / plain[1] == pytest.approx(0.5, rel=0.15)
    # Half the regulator at g = 2 gives 1/5 instead of 1/2 of the strength.
    assert by_target(x, design, 0)[:, 1].mean() / plain[1] == pytest.approx(0.4, rel=0.2)


def test_simulating_all_genes_together_agrees_with_one_at_a_time() -> None:
    rng, types, cells = np.random.default_rng(6), 150, 150
    graph = np.triu(rng.random((6, 6)) < 0.5, k=1).astype(int)
    strength = rng.uniform(2, 5, (6, 6)) * rng.choice([-1, 1], (6, 6))
    kinetics = Kinetics(strength=strength, basal=np.repeat(rng.uniform(4, 8, (6, 1)), types, axis=1), decay=DECAY)
    design = CellDesign(target=np.repeat([-1, 1], types * cells), cell_type=np.arange(2 * types * cells) % types)
    one, two = (
        simulate_expression(np.random.default_rng(7), graph, kinetics, design, cyclic=cyclic).astype(np.float64)
        for cyclic in (False, True)
    )
    for target in (-1, 1):
        left = by_target(one, design, target).reshape(cells, types, 6).mean(axis=0)  # [types, genes]
        right = by_target(two, design, target).reshape(cells, types, 6).mean(axis=0)
        error = np.sqrt((left.var(axis=0) + right.var(axis=0)) / types)
        assert (np.abs(left.mean(axis=0) - right.mean(axis=0)) < 4.5 * error + 1e-9).all()
        ratio = by_target(one, design, target).std(axis=0) / np.maximum(
            by_target(two, design, target).std(axis=0), 1e-9
        )
        moving = np.arange(6) != target
        assert (np.abs(ratio[moving] - 1) < 0.1).all()  # some 2000 independent states: 2 % error


def test_cyclic_graphs_need_the_option_and_reach_a_steady_state() -> None:
    graph = np.array([[0, 1], [1, 0]])
    kinetics = Kinetics(strength=np.array([[0.0, 5.0], [-5.0, 0.0]]), basal=np.ones((2, 4)), decay=DECAY, noise=0.2)
    design = CellDesign(target=np.repeat([-1, 1], 200), cell_type=np.arange(400) % 4)
    with pytest.raises(DataError, match="cycle"):
        simulate_expression(np.random.default_rng(0), graph, kinetics, design)
    x = simulate_expression(np.random.default_rng(0), graph, kinetics, design, cyclic=True)
    # With h equal to the mean, both genes of a negative feedback loop reach A = 1/2.
    assert by_target(x, design, -1).mean(axis=0) == pytest.approx(2.5 / DECAY, rel=0.06)
    assert (by_target(x, design, 1)[:, 1] == 0).all()
    assert by_target(x, design, 1)[:, 0].mean() == pytest.approx(5.0 / DECAY, rel=0.06)  # its repressor is gone


def test_same_generator_same_cells_and_no_global_state() -> None:
    graph, kinetics = chain(3.0, 2.0, 3)
    design = design_cells(np.random.default_rng(0), d=2, cell_types=3, n=30, n_perturbed=10)
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - this test is about the global state
    one, two, other = (simulate_expression(np.random.default_rng(seed), graph, kinetics, design) for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_large_requests_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, kinetics = chain(3.0, 20.0, 3)
    design = design_cells(np.random.default_rng(0), d=2, cell_types=3, n=900, n_perturbed=300)
    whole = simulate_expression(np.random.default_rng(1), graph, kinetics, design)
    monkeypatch.setattr(grn, "MAX_CELLS_PER_TRAJECTORY", 50)
    monkeypatch.setattr(grn, "CACHE_BYTES", 1)
    monkeypatch.setattr(grn, "MIN_LANES", 1)
    split = simulate_expression(np.random.default_rng(1), graph, kinetics, design)
    assert not np.array_equal(whole, split)
    for target in (-1, 0, 1):
        left, right = by_target(whole, design, target), by_target(split, design, target)
        assert right.mean(axis=0) == pytest.approx(left.mean(axis=0), rel=0.08, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(d=st.integers(1, 12), types=st.integers(1, 6), plain=st.integers(0, 60), perturbed=st.integers(0, 90))
def test_designs_are_balanced(d: int, types: int, plain: int, perturbed: int) -> None:
    design = design_cells(np.random.default_rng(0), d=d, cell_types=types, n=plain + perturbed, n_perturbed=perturbed)
    assert (design.target[:plain] == -1).all()
    targets, kinds = design.target[plain:], design.cell_type[plain:]
    assert (targets >= 0).all()
    for counts in (
        np.bincount(targets, minlength=d),
        np.bincount(design.cell_type[:plain], minlength=types),
        *(np.bincount(kinds[targets == gene], minlength=types) for gene in range(d)),
    ):
        assert counts.max() - counts.min() <= 1


def test_kinetics_follow_the_options() -> None:
    dynamics = Dynamics(
        cell_types=(4,), basal=((1.0, 2.0),), strength=((3.0, 7.0),), decay=(0.5,), noise=(1.5,), hill=(2.5,)
    )
    drawn = dynamics.kinetics(np.random.default_rng(0), Subgraph(np.zeros((30, 30)), ()))
    assert drawn.basal.shape == (30, 4)
    assert 1.0 <= drawn.basal.min() < 1.1
    assert 1.9 < drawn.basal.max() <= 2.0
    size = np.abs(drawn.strength)
    assert 3.0 <= size.min() < 3.1
    assert 6.9 < size.max() <= 7.0
    assert (drawn.decay, drawn.noise, drawn.hill) == (0.5, 1.5, 2.5)
    assert set(np.sign(drawn.strength).ravel()) == {-1.0, 1.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cell_types": (0,)}, "cell_types"),
        ({"decay": (0.0,)}, "decay"),
        ({"strength": ((3.0, 1.0),)}, "low <= high"),
        ({"half_response": "sometimes"}, "half_response"),
        ({"perturbation": "knockup"}, "perturbation"),
        ({"signs": (1.0,)}, "SignRule"),
    ],
)
def test_invalid_dynamics_raise(change: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Dynamics(**change)


@pytest.mark.parametrize(
    "change", [{"decay": 0.0}, {"decay": 200.0}, {"noise": -1.0}, {"basal": np.zeros(2)}, {"hill": np.nan}]
)
def test_invalid_kinetics_raise(change: dict) -> None:
    with pytest.raises(ConfigError):
        Kinetics(**{"strength": np.zeros((2, 2)), "basal": np.ones((2, 3)), **change})


def test_design_must_match_the_kinetics() -> None:
    graph, kinetics = chain(1.0, 1.0, 2)
    with pytest.raises(ConfigError, match="cell types"):
        simulate_expression(np.random.default_rng(0), graph, kinetics, wild_type(3, 2))
    with pytest.raises(ConfigError, match="shape"):
        simulate_expression(np.random.default_rng(0), np.zeros((3, 3)), kinetics, wild_type(2, 2))


def test_agrees_with_the_public_implementation() -> None:
    """Stored averages over 200 datasets of the public package; benchmarks/compare_grn_avici.py regenerates them."""
    path = HERE.parent / "benchmarks" / "compare_grn_avici.py"
    spec = importlib.util.spec_from_file_location("compare_grn_avici", path)
    assert spec is not None
    assert spec.loader is not None
    compare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compare)
    stored = json.loads((HERE / "fixtures" / "grn_avici.json").read_text())
    assert stored["datasets"] == 200
    scores, along_edges = [], []
    for name, case in compare.CASES.items():
        mine = compare.ours(case, compare.MEASURED[name], 500, seed=1)
        for key, public in stored["cases"][name].items():
            mean, error = compare.mean_and_error(mine[key])
            z = compare.z_scores(np.array(public["mean"]), np.array(public["error"]), mean, error)
            assert np.abs(z).max() < 5, (name, key)
            scores.append(z)
            if key == "wild type":  # correlations of regulators with their targets: sensitive to the delay of effects
                indices = [compare.labels(case["d"]).index(f"correlation {i} {j}") for i, j in case["edges"]]
                along_edges.append(z[indices])
    for z, limit in ((scores, 1.2), (along_edges, 1.4)):
        assert np.sqrt(np.mean(np.concatenate(z) ** 2)) < limit
