"""Adapters on problems they must solve, orientation, child processes, bootstrap."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from presage.baselines import BASELINES, Baseline, Estimate, Problem, get_baseline, run_isolated
from presage.baselines import orientation as turn
from presage.baselines.bootstrap import edge_probabilities, resamples
from presage.baselines.environments import ENVIRONMENTS, Environment, environment_python, home
from presage.baselines.methods.igsp import IndependenceTests
from presage.baselines.methods.pruning import neighbourhoods, prune
from presage.baselines.methods.trivial import r2_scores
from presage.errors import ConfigError, InternalError
from presage.metrics import evaluate
from presage.processes import ProcessLimits
from presage.types import Dataset


def chain(n=1000, noise="uniform", interventions=False, seed=0):
    """x0 -> x1 -> x2 and x3 apart, linear; with interventions on x1 in the second half of the rows."""
    rng = np.random.default_rng(seed)
    draw = (lambda: rng.uniform(-1.0, 1.0, n)) if noise == "uniform" else (lambda: rng.standard_normal(n))
    mask = np.zeros((n, 4), dtype=bool)
    mask[n // 2 :, 1] = interventions
    x0 = draw()
    x1 = np.where(mask[:, 1], 3.0 * rng.standard_normal(n), 1.2 * x0 + draw())
    x2 = -1.1 * x1 + draw()
    x = np.stack([x0, x1, x2, draw()], axis=1)
    graph = np.zeros((4, 4), dtype=int)
    graph[0, 1] = graph[1, 2] = 1
    return Dataset(x=x, interventions=mask, graph=graph)


def collider(n=2000, seed=0):
    """x0 -> x2 <- x1: an equivalence class of one member."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    x[:, 2] += x[:, 0] - x[:, 1]
    return Dataset(x=x, graph=np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]]))


def pair(forward=True, n=1500, seed=0):
    """A cause and its effect, non-Gaussian and nonlinear, with interventions on the cause in half of the rows."""
    rng = np.random.default_rng(seed)
    cause = rng.uniform(-2.0, 2.0, n)
    mask = np.zeros((n, 2), dtype=bool)
    half = n // 2
    cause[half:] = rng.uniform(1.0, 4.0, n - half)
    effect = cause + 0.3 * cause**3 / 4.0 + 0.6 * rng.standard_normal(n)
    mask[half:, 0] = True
    x = np.stack([cause, effect], axis=1)
    graph = np.array([[0, 1], [0, 0]])
    if not forward:
        x, mask, graph = x[:, ::-1], mask[:, ::-1], graph.T
    return Dataset(x=x, interventions=mask, graph=graph)


def fit(name, data, **settings):
    estimate = get_baseline(name).fit(data, **settings)
    return evaluate(data.graph, estimate.matrix, equivalence_class=estimate.kind == "cpdag"), estimate


causal_learn = pytest.importorskip("causallearn", reason="the extra `baselines` is not installed")


@pytest.mark.parametrize("name", ["ges", "pc", "grasp", "boss", "lingam", "direct-lingam"])
def test_libraries_recover_a_chain(name):
    found, _ = fit(name, chain())
    assert found["f1"] == 1.0


@pytest.mark.parametrize("name", ["ges", "pc", "grasp", "boss"])
def test_equivalence_classes_orient_a_collider(name):
    data = collider()
    _, estimate = fit(name, data)
    assert estimate.kind == "cpdag"
    assert (estimate.matrix == data.graph).all()
    _, loose = fit(name, chain(noise="gaussian"))
    assert loose.matrix[0, 1] == loose.matrix[1, 0] == 1


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("name", ["lingam", "direct-lingam"])
def test_lingam_orients_two_variables(name, forward):
    rng = np.random.default_rng(1)
    cause = rng.uniform(-1.0, 1.0, 2000)
    effect = cause + rng.uniform(-1.0, 1.0, 2000)
    x = np.stack([cause, effect] if forward else [effect, cause], axis=1)
    _, estimate = fit(name, Dataset(x=x, graph=np.array([[0, 1], [0, 0]])))
    assert estimate.matrix.tolist() == ([[0, 1], [0, 0]] if forward else [[0, 0], [1, 0]])


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("name", ["gies", "igsp"])
def test_interventional_searches_orient_two_variables(name, forward):
    pytest.importorskip("gies")
    data = pair(forward)
    _, estimate = fit(name, data)
    assert (estimate.matrix == data.graph).all()


@pytest.mark.parametrize("name", ["gies", "igsp"])
def test_interventional_searches_recover_a_chain(name):
    pytest.importorskip("gies")
    found, _ = fit(name, chain(n=2000, noise="gaussian", interventions=True))
    assert found["f1"] == 1.0


def test_igsp_recovers_larger_linear_graphs():
    rng = np.random.default_rng(3)
    d, n = 8, 4000
    graph = np.triu(rng.random((d, d)) < 0.3, k=1).astype(int)
    weights = graph * rng.uniform(0.8, 1.5, (d, d)) * rng.choice([-1, 1], (d, d))
    mask = np.zeros((n, d), dtype=bool)
    mask[np.arange(n // 2, n), rng.integers(d, size=n - n // 2)] = True
    x = np.zeros((n, d))
    for j in range(d):
        x[:, j] = np.where(mask[:, j], rng.normal(4.0, 1.0, n), x @ weights[:, j] + rng.standard_normal(n))
    order = rng.permutation(d)
    data = Dataset(x=x[:, order], interventions=mask[:, order], graph=graph[np.ix_(order, order)])
    found, _ = fit("igsp", data)
    assert found["f1"] > 0.9


def test_gaussian_tests_know_dependence():
    problem = Problem.of(chain(n=3000, noise="gaussian", interventions=True), 0)
    tests = IndependenceTests(problem, 1e-3, 1e-3, "gaussian")
    assert not tests.independent(0, 1, frozenset())
    assert not tests.independent(0, 2, frozenset())
    assert tests.independent(0, 2, frozenset({1}))
    assert tests.changed(1, 2)
    assert not tests.changed(1, 0)


def test_sortability_baselines_expose_easy_data():
    rng = np.random.default_rng(0)
    x = np.zeros((1000, 5))
    graph = np.triu(np.ones((5, 5)), k=1).astype(int) * (rng.random((5, 5)) < 0.7)
    for j in range(5):
        x[:, j] = x @ (2.0 * graph[:, j]) + rng.standard_normal(1000)
    data = Dataset(x=x, graph=graph)
    assert fit("var-sort", data)[0]["f1"] == 1.0
    scaled = Dataset(x=x / x.std(axis=0), graph=graph)
    found = [fit("var-sort", scaled, seed=seed)[0]["f1"] for seed in range(3)]
    assert min(found) < 1.0  # standardized data has no variances to sort by: ties break at random
    assert fit("r2-sort", data)[0]["f1"] > 0.5


def test_r2_scores_agree_with_regression():
    from sklearn.linear_model import LinearRegression

    x = np.random.default_rng(0).standard_normal((300, 4)) @ np.random.default_rng(1).standard_normal((4, 4))
    others = np.delete(x, 2, axis=1)
    assert r2_scores(x)[2] == pytest.approx(LinearRegression().fit(others, x[:, 2]).score(others, x[:, 2]))


def test_empty_and_random():
    data = chain()
    assert not fit("empty", data)[1].matrix.any()
    graphs = [fit("random", data, seed=seed)[1].matrix for seed in (0, 0, 1)]
    assert (graphs[0] == graphs[1]).all()
    assert (graphs[0] != graphs[2]).any()


def test_pruning_keeps_true_causes_and_drops_others():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((800, 4))
    x[:, 3] = np.sin(2.0 * x[:, 0]) + x[:, 1] ** 2 + 0.3 * x[:, 3]
    graph = np.zeros((4, 4), dtype=int)
    graph[:3, 3] = 1
    assert prune(x, graph, 1e-3)[:, 3].tolist() == [True, True, False, False]
    candidates = neighbourhoods(x, 0.3, seed=0)
    assert candidates[0, 3]
    assert candidates[1, 3]
    assert not candidates[2, 3]


def bowl(forward=True, n=1500, seed=0):
    """The effect is the square of its cause: it follows from the cause, the cause does not follow from it."""
    rng = np.random.default_rng(seed)
    cause = rng.uniform(-2.0, 2.0, n)
    x = np.stack([cause, cause**2 + 0.3 * rng.standard_normal(n)], axis=1)
    graph = np.array([[0, 1], [0, 0]])
    return Dataset(x=x if forward else x[:, ::-1], graph=graph if forward else graph.T)


@pytest.mark.slow
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize(("name", "case"), [("dcdi", pair), ("gran-dag", bowl)])
def test_neural_methods_orient_two_variables(name, case, forward):
    data = case(forward)
    _, estimate = fit(name, data, steps=3000)
    assert (estimate.matrix == data.graph).all()


@pytest.mark.slow
def test_constant_columns_and_single_variables_are_no_trouble():
    rng = np.random.default_rng(0)
    constant = rng.standard_normal((100, 3))
    constant[:, 1] = 5.0
    for name, baseline in BASELINES.items():
        if baseline.environment != "ours" or name == "presage":
            continue
        steps = {"steps": 20} if "steps" in baseline.defaults else {}
        for x in (constant, rng.standard_normal((50, 1))):
            estimate = baseline.fit(Dataset(x=x), **steps)
            assert estimate.matrix.shape == (x.shape[1], x.shape[1]), name


# Orientation, in its one place.


def test_conversions():
    tail_at_0 = np.array([[0, -1], [1, 0]])
    assert turn.from_endpoints(tail_at_0).matrix.tolist() == [[0, 1], [0, 0]]
    assert turn.from_endpoints(np.array([[0, -1], [-1, 0]])).matrix.tolist() == [[0, 1], [1, 0]]
    # x0 o-> x1 <-> x2 <- x3, and x0 o-o x4; 2 is a circle.
    marks = np.zeros((5, 5), dtype=int)
    for i, j, at_i, at_j in [(0, 1, 2, 1), (1, 2, 1, 1), (3, 2, -1, 1), (0, 4, 2, 2)]:
        marks[i, j], marks[j, i] = at_i, at_j
    pag = turn.from_pag(marks)
    assert sorted(zip(*np.nonzero(pag.matrix), strict=True)) == [(0, 1), (0, 4), (3, 2), (4, 0)]
    hidden = {(0, 1): 0.5, (1, 2): 1.0, (2, 3): 0.0, (0, 4): 0.5, (1, 3): 0.0}
    assert all(pag.confounded[i, j] == pag.confounded[j, i] == value for (i, j), value in hidden.items())
    child_by_parent = np.array([[0.0, 0.0], [0.8, 0.0]])
    assert turn.weights_child_by_parent(child_by_parent).matrix.tolist() == [[0, 1], [0, 0]]
    assert turn.graph_row_to_column(np.array([[0, -0.5], [0.1, 0]]), 0.3).matrix.tolist() == [[0, 1], [0, 0]]
    samples = np.array([[[0, 1], [0, 0]], [[0, 0], [0, 0]]])
    assert turn.probabilities(samples).matrix.tolist() == [[0, 0.5], [0, 0]]


def test_estimates_are_checked():
    assert Estimate(matrix=np.eye(2), kind="graph").matrix.sum() == 0
    with pytest.raises(InternalError, match="square"):
        Estimate(matrix=np.zeros((2, 3)), kind="graph")
    with pytest.raises(InternalError, match="between"):
        Estimate(matrix=np.full((2, 2), 2.0), kind="probabilities")
    with pytest.raises(InternalError, match="only 0 and 1"):
        Estimate(matrix=np.full((2, 2), 0.5), kind="cpdag")
    with pytest.raises(InternalError, match="symmetric"):
        Estimate(matrix=np.zeros((2, 2)), kind="graph", confounded=np.array([[0, 1], [0, 0]]))


# Manifests.


@pytest.mark.parametrize("baseline", BASELINES.values(), ids=list(BASELINES))
def test_manifests_hold_together(baseline):
    assert set(baseline.grid) <= set(baseline.defaults)
    assert baseline.environment == "ours" or baseline.environment in ENVIRONMENTS
    assert bool(baseline.grid) == (baseline.selection is not None)
    assert callable(baseline.function())  # adapters import without their libraries
    json.dumps(dict(baseline.defaults))


def test_unknown_settings_and_methods_are_refused_by_name():
    with pytest.raises(ConfigError, match="no setting 'aplha'"):
        get_baseline("pc").settings({"aplha": 1})
    with pytest.raises(ConfigError, match="no method 'nope'"):
        get_baseline("nope")


def test_methods_without_interventions_do_not_see_targets(monkeypatch):
    seen = []

    def spy(problem):
        seen.append(problem.mask.any())
        return Estimate(matrix=np.zeros((problem.d, problem.d)), kind="graph")

    for uses in (False, True):
        baseline = Baseline(name="spy", title="Spy", entry="", reference="", interventions=uses)
        monkeypatch.setattr(Baseline, "function", lambda self: spy)
        baseline.fit(chain(interventions=True))
    assert seen == [False, True]


def test_environments_of_a_problem():
    problem = Problem.of(chain(n=10, interventions=True), 0)
    rows, targets = problem.environments()
    assert targets == [[], [1]]
    assert [len(group) for group in rows] == [5, 5]


# Child processes.


def test_an_isolated_run_agrees_with_one_in_this_process():
    data = chain(n=300)
    outcome = run_isolated(get_baseline("random"), data, seed=4)
    assert outcome.status == "ok"
    assert outcome.peak_memory > 10 << 20
    assert (outcome.matrices[0] == get_baseline("random").fit(data, seed=4).matrix).all()


def _replace_worker(monkeypatch, tmp_path, body):
    """Run this script instead of the worker."""
    script = tmp_path / "worker.py"
    script.write_text(body)
    monkeypatch.setattr("presage.baselines.run.WORKER", script)


def test_a_time_out_is_a_recorded_result(monkeypatch, tmp_path):
    _replace_worker(monkeypatch, tmp_path, "import time; time.sleep(600)")
    outcome = run_isolated(get_baseline("empty"), chain(n=10), limits=ProcessLimits(seconds=1.0))
    assert outcome.status == "time-out"
    assert "1 seconds" in outcome.message
    assert outcome.seconds >= 1.0


def test_processor_time_can_be_limited():
    rng = np.random.default_rng(0)
    data = Dataset(x=rng.standard_normal((400, 8)))
    limits = ProcessLimits(seconds=3.0, clock="cpu")
    slow = run_isolated(get_baseline("dcdi"), data, settings={"steps": 10**6}, limits=limits)
    assert slow.status == "time-out"
    assert "processor time" in slow.message


def test_too_much_memory_is_a_recorded_result(monkeypatch, tmp_path):
    _replace_worker(monkeypatch, tmp_path, "import time; block = bytearray(400 << 20); time.sleep(600)")
    outcome = run_isolated(get_baseline("empty"), chain(n=10), limits=ProcessLimits(memory=200 << 20))
    assert outcome.status == "memory"
    assert outcome.peak_memory > 200 << 20
    _replace_worker(monkeypatch, tmp_path, "raise MemoryError")
    assert run_isolated(get_baseline("empty"), chain(n=10)).status == "memory"


def test_a_crash_is_a_recorded_result(monkeypatch, tmp_path):
    _replace_worker(monkeypatch, tmp_path, "raise RuntimeError('broken on purpose')")
    outcome = run_isolated(get_baseline("empty"), chain(n=10))
    assert outcome.status == "crash"
    assert "broken on purpose" in outcome.message
    _replace_worker(monkeypatch, tmp_path, "import os; os.kill(os.getpid(), 11)")
    assert "signal 11" in run_isolated(get_baseline("empty"), chain(n=10)).message
    _replace_worker(monkeypatch, tmp_path, "")
    assert "without a result" in run_isolated(get_baseline("empty"), chain(n=10)).message


def test_missing_model_in_the_worker_is_one_sentence():
    outcome = run_isolated(get_baseline("presage"), chain(n=10), settings={"model": "no-such-model"})
    assert outcome.status == "crash"
    assert "no model 'no-such-model'" in outcome.message


def test_environment_that_is_not_built(monkeypatch, tmp_path):
    monkeypatch.setenv("PRESAGE_HOME", str(tmp_path))
    assert home() == tmp_path
    assert environment_python("dibs") is None
    outcome = run_isolated(get_baseline("dibs"), chain(n=10))
    assert outcome.status == "not installed"
    assert "presage baselines install dibs" in outcome.message
    with pytest.raises(ConfigError, match="no environment"):
        environment_python("nope")


def test_environment_with_other_pins_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv("PRESAGE_HOME", str(tmp_path))
    folder = tmp_path / "environments" / "sdcd"
    folder.mkdir(parents=True)
    (folder / "presage-pins").write_text("0000")
    assert environment_python("sdcd") is None
    (folder / "presage-pins").write_text(ENVIRONMENTS["sdcd"].digest)
    assert environment_python("sdcd") is not None
    assert Environment(packages=("a==1",)).digest != Environment(packages=("a==2",)).digest


@pytest.mark.parametrize("name", [name for name, environment in ENVIRONMENTS.items() if environment.lock])
def test_locked_environments_have_a_hash_for_every_package(name):
    environment = ENVIRONMENTS[name]
    (*options, path), *others = environment.pip_arguments()
    assert others == ([list(environment.unlocked)] if environment.unlocked else [])
    assert "--require-hashes" in options
    text = Path(path).read_text(encoding="utf-8")
    blocks = [block for block in re.split(r"\n(?=\S)", text) if block.strip()]
    assert len(blocks) > 20
    assert all(re.match(r"[\w.-]+==\S+", block) and "--hash=sha256:" in block for block in blocks)
    locked = {block.split("==")[0] for block in blocks}
    assert not locked & {pin.split("==")[0] for pin in environment.unlocked}
    assert not any(name.startswith(("cuda-", "nvidia-", "triton")) for name in locked)
    pins = {pin for pin in (*environment.packages, *environment.bare) if "==" in pin} - set(environment.unlocked)
    assert pins <= {block.split()[0] for block in blocks}  # scripts/lock_environments.py was run
    assert "://" not in text


def test_pip_refuses_a_package_with_another_hash(tmp_path, monkeypatch):
    (tmp_path / "wrong.txt").write_text(f"tqdm==4.67.1 --hash=sha256:{'0' * 64}\n")
    (tmp_path / "tqdm-4.67.1-py3-none-any.whl").write_bytes(b"another file")
    monkeypatch.setattr("presage.baselines.environments.LOCKS", tmp_path)
    (arguments,) = Environment(packages=("tqdm==4.67.1",), lock="wrong.txt").pip_arguments()
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--find-links", str(tmp_path), "--dry-run"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "HASHES" in done.stderr


def test_a_negative_number_of_resamples_is_refused():
    with pytest.raises(ConfigError, match="resamples"):
        run_isolated(get_baseline("empty"), chain(n=10), bootstrap=-1)


# Bootstrap.


def test_resamples_draw_rows_with_their_targets():
    data = chain(n=40, interventions=True)
    drawn = list(resamples(data, 3, seed=1))
    assert len(drawn) == 3
    assert all(part.n == 40 for part in drawn)
    assert len({part.x.tobytes() for part in drawn}) == 3
    known = {row.tobytes(): mask.tobytes() for row, mask in zip(data.x, data.interventions)}
    assert all(known[row.tobytes()] == mask.tobytes() for row, mask in zip(drawn[0].x, drawn[0].interventions))
    assert (drawn[0].x == next(iter(resamples(data, 1, seed=1))).x).all()


def test_bootstrap_of_a_strong_edge_is_certain_and_runs_isolated():
    data = chain(n=400)
    outcome = run_isolated(get_baseline("ges"), data, bootstrap=3)
    assert outcome.matrices.shape == (3, 4, 4)
    share = edge_probabilities(outcome.matrices, outcome.kind, data.graph)
    assert share[0, 1] == share[1, 2] == 1.0
    assert share[3].max() < 1.0


def test_edge_probabilities_favour_each_resample():
    truth = np.array([[0, 1], [0, 0]])
    loose, wrong = [[0, 1], [1, 0]], [[0, 0], [1, 0]]
    assert edge_probabilities(np.array([loose, wrong]), "cpdag", truth).tolist() == [[0, 0.5], [0.5, 0]]
    assert edge_probabilities(np.array([loose, wrong]), "graph", truth).tolist() == [[0, 0.5], [1, 0]]
