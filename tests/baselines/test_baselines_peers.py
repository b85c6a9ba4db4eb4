"""Peers in environments of their own, on cases they must solve; skipped where the environment is not built."""

import os

import numpy as np
import pytest

from presage.baselines import get_baseline, run_isolated
from presage.baselines.environments import environment_python
from presage.columns import ColumnKind
from presage.metrics import evaluate
from presage.processes import ProcessLimits
from presage.types import Dataset

pytestmark = pytest.mark.slow
TIME_LIMIT = 1800.0


def installed(name):
    baseline = get_baseline(name)
    if environment_python(baseline.environment) is None:
        pytest.skip(f"build it with: presage baselines install {baseline.environment}")
    return baseline


def sachs():
    if not os.environ.get("PRESAGE_DATA"):
        pytest.skip("set PRESAGE_DATA to a folder that holds the Sachs data")
    from presage.data.examples import load_sachs

    return load_sachs()


def answer(name, data, **settings):
    baseline = installed(name)
    outcome = run_isolated(baseline, data, settings=settings, limits=ProcessLimits(seconds=TIME_LIMIT))
    assert outcome.status == "ok", outcome.message
    return outcome.matrices[0], outcome.scores[0]


def equal_noise(forward, n=800):
    """A cause of variance 1 and its effect with noise of variance 1: least squares can tell which is which."""
    rng = np.random.default_rng(0)
    cause = rng.standard_normal(n)
    effect = 2.0 * cause + rng.standard_normal(n)
    graph = np.array([[0, 1], [0, 0]])
    x = np.stack([cause, effect], axis=1)
    return Dataset(x=x if forward else x[:, ::-1], graph=graph if forward else graph.T)


def intervened(forward, n=600):
    """A cause, its effect, and rows in which either was set: the direction is plain."""
    rng = np.random.default_rng(1)
    mask = np.zeros((n, 2), dtype=bool)
    mask[n // 3 : 2 * n // 3, 0] = True
    mask[2 * n // 3 :, 1] = True
    cause = np.where(mask[:, 0], rng.normal(2.0, 2.0, n), rng.standard_normal(n))
    effect = np.where(mask[:, 1], rng.normal(2.0, 2.0, n), 1.5 * cause + 0.5 * rng.standard_normal(n))
    x, graph = np.stack([cause, effect], axis=1), np.array([[0, 1], [0, 0]])
    if not forward:
        x, mask, graph = x[:, ::-1], mask[:, ::-1], graph.T
    return Dataset(x=x, interventions=mask, graph=graph)


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize(("name", "settings"), [("notears", {}), ("dagma", {}), ("dag-gnn", {})])
def test_least_squares_peers_orient_two_variables_of_equal_noise(name, settings, forward):
    data = equal_noise(forward)
    found, _ = answer(name, data, standardize=False, **settings)
    assert (found == data.graph).all()


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize(("name", "settings"), [("dibs", {"steps": 1500, "dimensions": 16}), ("sdcd", {"epochs": 600})])
def test_interventional_peers_orient_two_variables(name, settings, forward):
    data = intervened(forward)
    found, _ = answer(name, data, **settings)
    assert ((found > 0.5) == data.graph).all()


@pytest.mark.parametrize(("name", "settings"), [("dag-gnn", {"steps": 50}), ("dibs", {"steps": 20})])
def test_held_out_scores_are_finite(name, settings):
    _, score = answer(name, intervened(True, n=150), holdout=True, **settings)
    assert np.isfinite(score)


@pytest.mark.parametrize(("name", "least"), [("dcdi", 0.7), ("gran-dag", 0.4)])
def test_neural_baselines_recover_most_of_nonlinear_graphs(name, least):
    # GraN-DAG: 0.48 here; the paper prints 0.477 for it on this domain with d = 30.
    import presage

    baseline = get_baseline(name)
    found = []
    for seed in range(3):
        data = presage.simulate("rff", d=10, n=1000, n_interventional=500 * baseline.interventions, seed=seed)
        found.append(evaluate(data.graph, baseline.fit(data).matrix)["f1"])
    assert np.mean(found) > least


def collider(kinds, n=2000, seed=0):
    """x0 -> x2 <- x1 with columns of these kinds: binary codes or continuous values."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n, 3))
    for j, kind in enumerate(kinds):
        drive = 1.5 * (x[:, 0] + x[:, 1] - x[:, 0].mean() - x[:, 1].mean()) if j == 2 else np.zeros(n)
        noisy = drive + rng.standard_normal(n)
        x[:, j] = noisy > 0.0 if kind == ColumnKind.BINARY else noisy
    graph = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    return Dataset(x=x, graph=graph, column_kinds=np.array(kinds, dtype=np.int8))


BINARY, CONTINUOUS = ColumnKind.BINARY, ColumnKind.CONTINUOUS


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("ges-bdeu", (BINARY, BINARY, BINARY)),
        ("ges-cg", (BINARY, CONTINUOUS, CONTINUOUS)),
        ("ges-cg", (CONTINUOUS, CONTINUOUS, CONTINUOUS)),
        ("fci", (BINARY, BINARY, BINARY)),
        ("fci", (CONTINUOUS, CONTINUOUS, CONTINUOUS)),
    ],
)
def test_scores_and_tests_for_the_kinds_of_columns_orient_a_collider(name, kinds):
    data = collider(kinds)
    found, _ = answer(name, data)
    assert (found == data.graph).all()


def test_bdeu_is_not_applicable_to_continuous_columns():
    outcome = run_isolated(installed("ges-bdeu"), collider((BINARY, CONTINUOUS, BINARY)))
    assert outcome.status == "not applicable"
    assert "1 of 3 columns" in outcome.message


def test_fci_finds_a_hidden_common_cause():
    rng = np.random.default_rng(0)
    hidden, first, last, a, b = rng.standard_normal((5, 3000))
    x1, x2 = first + hidden + 0.5 * a, last + hidden + 0.5 * b
    data = Dataset(x=np.stack([first, x1, x2, last], axis=1))  # x0 -> x1 <-> x2 <- x3
    outcome = run_isolated(installed("fci"), data)
    assert outcome.status == "ok", outcome.message
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[3, 2] = 1.0
    assert (outcome.matrices[0] == expected).all()
    assert outcome.confounded[0][1, 2] == 1.0
    assert outcome.confounded[0][0, 3] == 0.0


def test_dag_gnn_recovers_most_of_a_linear_graph_with_equal_noise():
    found = []
    for seed in range(10, 20):  # others than those the method was adjusted on
        rng = np.random.default_rng(seed)
        graph = np.triu(rng.random((10, 10)) < 0.3, k=1).astype(int)
        weights = graph * rng.uniform(0.6, 1.5, (10, 10)) * rng.choice([-1, 1], (10, 10))
        x = np.zeros((1000, 10))
        for j in range(10):
            x[:, j] = x @ weights[:, j] + rng.standard_normal(1000)
        order = rng.permutation(10)
        data = Dataset(x=x[:, order], graph=graph[np.ix_(order, order)])
        found.append(evaluate(data.graph, get_baseline("dag-gnn").fit(data, standardize=False).matrix)["f1"])
    assert np.mean(found) > 0.5  # 0.63 ± 0.07: single graphs range from 0.3 to 0.9, and processors differ


def test_lingam_on_sachs_is_as_sparse_as_in_the_paper():
    data = sachs()
    for seed in range(3):  # the paper prints SHD 18, SID 58 and 7 edges; the lasso leaves over 40
        found = evaluate(data.graph, get_baseline("lingam").fit(data, seed=seed).matrix)
        assert abs(found["shd"] - 18) <= 3
        assert found["edges"] <= 12
    assert evaluate(data.graph, get_baseline("lingam").fit(data, pruning="lasso").matrix)["edges"] > 35


def test_gies_on_sachs_gives_the_numbers_of_the_paper():
    pytest.importorskip("gies")
    from presage.bench.paper import paper_value

    data = sachs()
    found = evaluate(data.graph, get_baseline("gies").fit(data).matrix, equivalence_class=True)
    for metric in ("shd", "sid", "f1", "edges"):
        printed = paper_value("tab:sachs", "interventional", "gies", "sachs", metric)
        assert found[metric] == pytest.approx(printed.mean, abs=5e-4)


def test_ges_on_sachs_is_as_dense_as_in_the_paper():
    pytest.importorskip("causallearn")
    data = sachs()
    found = evaluate(data.graph, get_baseline("ges").fit(data).matrix, equivalence_class=True)
    assert abs(found["edges"] - 40) <= 2
    assert abs(found["shd"] - 35) <= 3
