"""`Result`: edges, graphs, samples, exports; and the most probable acyclic graph against brute force."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presage.errors import ConfigError
from presage.graphs.acyclic import _improved_order, best_acyclic, log_odds
from presage.graphs.ops import is_acyclic, project_to_dag, topological_order
from presage.inference.result import Result

CYCLE = "the edges above 0.5 form a cycle; the most probable acyclic graph leaves some of them out"


def make(matrix: np.ndarray, **options: object) -> Result:
    names = tuple(f"v{j}" for j in range(len(matrix)))
    return Result(**{"unconstrained": matrix, "names": names, "model": "m", **options})  # type: ignore[arg-type]


def random_matrix(seed: int, d: int) -> np.ndarray:
    matrix = np.random.default_rng(seed).beta(0.6, 0.8, size=(d, d))
    np.fill_diagonal(matrix, 0.0)
    return matrix


@pytest.fixture
def result() -> Result:
    matrix = np.zeros((3, 3))
    matrix[0, 1], matrix[1, 0], matrix[1, 2], matrix[2, 0] = 0.9, 0.6, 0.8, 0.7
    return make(matrix, data_warnings=("suspicious <data>",), data={})


def test_edges_are_sorted_and_oriented(result: Result) -> None:
    edges = result.edges()
    assert list(edges.columns) == ["source", "target", "probability", "effect", "effect_low", "effect_high"]
    assert edges.iloc[:, :3].values.tolist() == [
        ["v0", "v1", 0.9],
        ["v1", "v2", 0.8],
        ["v2", "v0", 0.7],
        ["v1", "v0", 0.6],
    ]
    assert result.edges(0.75)["target"].tolist() == ["v1", "v2"]
    assert result.edges(1.0).empty
    assert result.top(2)["probability"].tolist() == [0.9, 0.8]
    assert len(result.top(100)) == 6


def test_probabilities_carry_names_and_are_a_copy(result: Result) -> None:
    frame = result.probabilities
    assert frame.loc["v0", "v1"] == 0.9
    frame.loc["v0", "v1"] = 0.0
    assert result.probabilities.loc["v0", "v1"] == 0.9
    with pytest.raises(ValueError, match="read-only"):
        result.matrix[0, 1] = 0.0


def test_graph_has_probabilities_and_all_nodes(result: Result) -> None:
    graph = result.graph(0.75)
    assert list(graph.nodes) == ["v0", "v1", "v2"]
    assert dict(graph.edges) == {("v0", "v1"): {"probability": 0.9}, ("v1", "v2"): {"probability": 0.8}}
    acyclic = result.graph()
    assert nx.is_directed_acyclic_graph(acyclic)
    assert set(acyclic.edges) == {("v0", "v1"), ("v1", "v2")}
    assert result.is_exact()
    assert result.graph(acyclic=False).number_of_edges() == 4


def brute_force(weights: np.ndarray) -> float:
    d = len(weights)
    best = 0.0
    for order in itertools.permutations(range(d)):
        best = max(best, sum(max(weights[a, b], 0.0) for a, b in itertools.combinations(order, 2)))
    return best


@given(seed=st.integers(0, 10_000), d=st.integers(1, 6), threshold=st.sampled_from([0.3, 0.5, 0.8]))
def test_best_acyclic_graph_equals_brute_force(seed: int, d: int, threshold: float) -> None:
    weights = log_odds(random_matrix(seed, d), threshold)
    graph, exact = best_acyclic(weights)
    assert exact
    assert is_acyclic(graph)
    assert np.isclose(weights[graph == 1].sum(), brute_force(weights))


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), d=st.integers(17, 26))
def test_heuristic_is_acyclic_maximal_and_no_worse_than_greedy(seed: int, d: int) -> None:
    matrix = np.random.default_rng(seed).uniform(0.3, 1.0, size=(d, d))  # dense: one large component
    np.fill_diagonal(matrix, 0.0)
    weights = log_odds(matrix)
    graph, exact = best_acyclic(weights)
    assert not exact
    assert is_acyclic(graph)
    greedy = project_to_dag(weights)
    assert weights[graph == 1].sum() >= weights[greedy == 1].sum() - 1e-9
    for i, j in np.argwhere((weights > 0) & (graph == 0))[:20]:  # nothing can be added
        more = graph.copy()
        more[i, j] = 1
        assert not is_acyclic(more)


def test_heuristic_finds_the_optimum_of_small_problems_most_of_the_time() -> None:
    found = 0
    for seed in range(40):
        weights = np.maximum(log_odds(random_matrix(seed, 7)), 0.0)
        np.fill_diagonal(weights, 0.0)
        order = _improved_order(weights, topological_order(project_to_dag(weights)))
        value = sum(weights[a, b] for a, b in itertools.combinations(order, 2))
        found += bool(np.isclose(value, weights[best_acyclic(weights)[0] == 1].sum()))
    assert found >= 32


def test_certain_edges_survive_every_acyclic_choice() -> None:
    matrix = random_matrix(1, 20)
    matrix[3, 4] = matrix[4, 5] = 1.0
    matrix[4, 3] = matrix[5, 4] = matrix[5, 3] = 0.0
    result = make(matrix)
    for graph in (result.adjacency(acyclic=True), *result.sample(5, acyclic=True)):
        assert graph[3, 4] == graph[4, 5] == 1
        assert is_acyclic(graph)


def test_samples_have_the_right_frequencies(result: Result) -> None:
    graphs = result.sample(4000, seed=1)
    assert graphs.shape == (4000, 3, 3)
    assert graphs.dtype == np.int8
    np.testing.assert_allclose(graphs.mean(axis=0), result.matrix, atol=4 * 0.5 / np.sqrt(4000))
    np.testing.assert_array_equal(graphs[:10], result.sample(10, seed=1))
    assert (result.sample(10, seed=2) != graphs[:10]).any()
    assert result.sample(0).shape == (0, 3, 3)


def test_acyclic_samples_follow_the_conditional_distribution() -> None:
    matrix = np.array([[0.0, 0.6], [0.5, 0.0]])
    graphs = make(matrix).sample(4000, acyclic=True, seed=0)
    assert not (graphs[:, 0, 1] & graphs[:, 1, 0]).any()
    # P(0->1 | not both) = 0.6 * 0.5 / (1 - 0.3), P(1->0 | not both) = 0.4 * 0.5 / 0.7
    assert abs(graphs[:, 0, 1].mean() - 0.3 / 0.7) < 0.035
    assert abs(graphs[:, 1, 0].mean() - 0.2 / 0.7) < 0.035


def test_dense_acyclic_samples_are_still_acyclic() -> None:
    matrix = np.full((12, 12), 0.9)
    np.fill_diagonal(matrix, 0.0)
    for graph in make(matrix).sample(3, acyclic=True):
        assert is_acyclic(graph)
        assert graph.sum() > 40


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), "half", True, None])
def test_bad_thresholds_are_refused(result: Result, threshold: object) -> None:
    with pytest.raises(ConfigError, match="from 0 to 1"):
        result.edges(threshold)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [-1, 1.5, True])
def test_bad_counts_are_refused(result: Result, k: object) -> None:
    with pytest.raises(ConfigError, match="whole number"):
        result.sample(k)  # type: ignore[arg-type]


def test_exports(result: Result) -> None:
    assert result.to_pgmpy() == [("v0", "v1"), ("v1", "v2")]
    assert result.to_dowhy() == 'digraph {"v0";"v1";"v2";"v0" -> "v1";"v1" -> "v2";}'
    dot = make(result.matrix, names=('a"b', "c\\", "d")).to_dot(0.85)
    assert '"a\\"b" -> "c\\\\" [probability=0.9, label="0.9"];' in dot


def test_save_writes_what_it_promises(result: Result, tmp_path: Path) -> None:
    out = result.save(tmp_path / "deep" / "out")
    assert {path.name for path in out.iterdir()} == {
        "probabilities.csv", "edges.csv", "graph.graphml", "graph.dot", "graph.png", "report.html", "result.json",
    }  # fmt: skip
    frame = pd.read_csv(out / "probabilities.csv", index_col=0)
    np.testing.assert_allclose(frame.to_numpy(), result.matrix)
    assert list(frame.columns) == list(frame.index) == ["v0", "v1", "v2"]
    pd.testing.assert_frame_equal(pd.read_csv(out / "edges.csv"), result.edges(), check_dtype=False)
    graph = nx.read_graphml(out / "graph.graphml")
    assert graph.edges["v0", "v1"]["probability"] == 0.9
    data = json.loads((out / "result.json").read_text())
    assert data["probabilities"][0][1] == 0.9
    assert data["warnings"] == ["suspicious <data>", CYCLE]
    assert data["most_probable_acyclic"] == {"edges": [["v0", "v1"], ["v1", "v2"]], "exact": True}
    assert (out / "graph.png").read_bytes().startswith(b"\x89PNG")


def test_save_refuses_a_file_as_folder(result: Result, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(ConfigError, match="it is a file"):
        result.save(tmp_path / "out")


@pytest.mark.parametrize("change", [{"probabilities": [[0, 10**400], [0, 0]]}, {"moments": {"n": float("inf")}}])
def test_saved_numbers_beyond_the_range_of_floats_are_refused_with_a_sentence(tmp_path: Path, change: dict) -> None:
    content = make(np.array([[0.0, 0.7], [0.1, 0.0]])).to_json()
    if "moments" in change:
        moments = {"correlation": [[1.0]], "scale": None, "pairs": None, "observational": True, "indicator_of": []}
        change = {"moments": {**moments, **change["moments"]}}
    file = tmp_path / "result.json"
    file.write_text(json.dumps({**content, **change}))
    with pytest.raises(ConfigError, match="is not a saved result"):
        Result.load(file)


@pytest.mark.parametrize("odd", [np.array([]), np.zeros((2, 2)), None, 3, ["a"], 1.5, b"a"])
def test_names_of_other_types_are_refused_with_a_sentence(result: Result, odd: object) -> None:
    calls = (lambda: result[odd, odd], lambda: result.parents(odd), lambda: result.total_effect(odd, odd))  # type: ignore[arg-type, index]
    for call in calls:
        with pytest.raises(ConfigError, match="must be a string"):
            call()
