"""Metrics against hand-worked examples, scikit-learn, gadjid, networkx and brute force."""

import itertools
import math

import gadjid
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from presage import metrics
from presage.errors import ConfigError, DataError
from presage.graphs.ops import is_acyclic

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
KEYS = {"shd", "sid", "f1", "precision", "recall", "auroc", "auprc", "ece", "acyclic", "edges"}


def random_dag(rng, d, p=0.3):
    graph = np.triu(rng.random((d, d)) < p, k=1)
    order = rng.permutation(d)
    return graph[np.ix_(order, order)].astype(np.int8)


def off_diagonal(rng, d):
    probabilities = rng.random((d, d)).round(1)  # rounded, so that ties and bin edges occur
    np.fill_diagonal(probabilities, 0.0)
    return probabilities


cases = st.tuples(st.integers(0, 2**32 - 1), st.integers(2, 9))


def test_evaluate_has_exactly_the_documented_keys():
    assert set(metrics.evaluate(CHAIN, CHAIN)) == KEYS


def test_perfect_prediction():
    found = metrics.evaluate(CHAIN, CHAIN)
    assert found == {
        "shd": 0,
        "sid": 0,
        "f1": 1.0,
        "precision": 1.0,
        "recall": 1.0,
        "auroc": 1.0,
        "auprc": 1.0,
        "ece": 0.0,
        "acyclic": True,
        "edges": 2,
    }


def test_hand_worked_example():
    # Truth 0 -> 1 -> 2. Above one half: 0 -> 1 (correct), 2 -> 1 (reversed), 0 -> 2 (false positive).
    prediction = np.array([[0.3, 0.9, 0.6], [0.1, 0.9, 0.2], [0.0, 0.8, 0.0]])
    found = metrics.evaluate(CHAIN, prediction)
    assert found["shd"] == 2
    assert (found["precision"], found["recall"], found["f1"]) == (1 / 3, 1 / 2, 0.4)
    assert (found["edges"], found["acyclic"]) == (3, True)
    # Ranked: 0.9 true, 0.8, 0.6, 0.2 true, then the rest: average precision (1/1 + 2/4) / 2.
    assert found["auprc"] == pytest.approx(0.75)
    # The 2 true edges rank above 7 and 5 of the 7 absent ones.
    assert found["auroc"] == pytest.approx(12 / 14)
    # Bins: {0 x5}, {0.1}, {0.2 true}, {0.6}, {0.8}, {0.9 true} over nine entries; the diagonal is ignored.
    assert found["ece"] == pytest.approx((0.1 + 0.8 + 0.6 + 0.8 + 0.1) / 9)


def test_structural_intervention_distance_by_hand():
    # Truth 0 -> 1 -> 2, empty prediction: (1, 0), (2, 0) and (2, 1) are confounded by a missing parent.
    assert metrics.sid(CHAIN, np.zeros((3, 3))) == 3
    # A supergraph of the truth has distance 0 (Prop. 8 of Peters and Buehlmann).
    assert metrics.sid(CHAIN, np.triu(np.ones((3, 3)), k=1)) == 0
    # All edges reversed: all six ordered pairs are wrong.
    assert metrics.sid(CHAIN, CHAIN.T) == 6


@settings(max_examples=60, deadline=None)
@given(cases)
def test_ranking_and_edges_agree_with_scikit_learn(case):
    seed, d = case
    rng = np.random.default_rng(seed)
    truth, prediction = random_dag(rng, d), off_diagonal(rng, d)
    if not truth.any():
        truth[0, 1] = 1
    prediction[0, 1] = 0.7  # at least one edge above the threshold
    found = metrics.evaluate(truth, prediction)
    flat, score, hard = truth.ravel(), prediction.ravel(), (prediction > 0.5).ravel()
    assert found["auroc"] == pytest.approx(sk.roc_auc_score(flat, score))
    assert found["auprc"] == pytest.approx(sk.average_precision_score(flat, score))
    curve = sk.precision_recall_curve(flat, score)
    assert metrics.auprc_trapezoid(truth, prediction) == pytest.approx(sk.auc(curve[1], curve[0]))
    assert found["f1"] == pytest.approx(sk.f1_score(flat, hard))
    assert found["precision"] == pytest.approx(sk.precision_score(flat, hard, zero_division=0))
    assert found["recall"] == pytest.approx(sk.recall_score(flat, hard))


@settings(max_examples=60, deadline=None)
@given(cases)
def test_distances_agree_with_gadjid_and_networkx(case):
    seed, d = case
    rng = np.random.default_rng(seed)
    truth, prediction = random_dag(rng, d), random_dag(rng, d)
    assert metrics.shd(truth, prediction) == gadjid.shd(truth, prediction)[1]
    assert metrics.sid(truth, prediction) == gadjid.sid(truth, prediction, edge_direction="from row to column")[1]
    cyclic = (off_diagonal(rng, d) > 0.6).astype(float)
    found = metrics.evaluate(truth, cyclic)
    assert found["acyclic"] == nx.is_directed_acyclic_graph(nx.DiGraph(cyclic))


def brute_force_sid(truth, prediction):
    """Pairs whose interventional distribution is wrong after adjusting for the predicted parents, by d-separation."""
    graph = nx.DiGraph(truth)
    wrong = 0
    for i, j in itertools.permutations(range(len(truth)), 2):
        parents = set(np.flatnonzero(prediction[:, i]).tolist())
        below = nx.descendants(graph, i)
        if j in parents:
            wrong += j in below
            continue
        # Valid: no parent lies below a variable on a directed path from i to j, and no back-door path is open.
        path = {v for v in below if v == j or j in nx.descendants(graph, v)}
        spoiled = set().union(*(nx.descendants(graph, v) | {v} for v in path)) if path else set()
        proper = graph.copy()
        proper.remove_edges_from([(i, v) for v in path if truth[i, v]])
        wrong += bool(parents & spoiled) or not nx.is_d_separator(proper, {i}, {j}, parents)
    return wrong


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_structural_intervention_distance_agrees_with_brute_force(seed, d):
    rng = np.random.default_rng(seed)
    truth, prediction = random_dag(rng, d, 0.5), random_dag(rng, d, 0.5)
    assert metrics.sid(truth, prediction) == brute_force_sid(truth, prediction)


def test_cyclic_prediction_is_made_acyclic_for_sid_only():
    truth = np.array([[0, 1], [0, 0]])
    found = metrics.evaluate(truth, np.array([[0.0, 0.9], [0.8, 0.0]]))
    assert (found["sid"], found["shd"], found["edges"], found["acyclic"]) == (0, 1, 2, False)
    assert metrics.evaluate(truth, np.array([[0.0, 0.8], [0.9, 0.0]]))["sid"] == 2


def test_graphs_are_scored_as_the_most_probable_acyclic_graph_on_request():
    truth = np.array([[0, 1], [0, 0]])
    found = metrics.evaluate(truth, np.array([[0.0, 0.9], [0.8, 0.0]]), acyclic=True)
    assert (found["sid"], found["shd"], found["f1"], found["edges"], found["acyclic"]) == (0, 0, 1.0, 1, False)


def test_equivalence_class_is_oriented_favourably():
    # 0 - 1 undirected (truth 0 -> 1: correct), 1 - 2 undirected but absent in the truth: one wrong edge.
    truth = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    predicted = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    found = metrics.evaluate(truth, predicted, equivalence_class=True)
    assert (found["edges"], found["precision"], found["recall"], found["shd"]) == (2, 0.5, 1.0, 1)
    assert found["acyclic"]
    assert metrics.evaluate(truth, predicted)["edges"] == 4
    reversed_ = metrics.orient_favourably(truth.T, predicted)
    assert reversed_[1, 0] == 1
    assert reversed_[0, 1] == 0


@settings(max_examples=60, deadline=None)
@given(cases)
def test_favourable_orientation_keeps_the_skeleton_and_adds_no_cycle(case):
    seed, d = case
    rng = np.random.default_rng(seed)
    truth = random_dag(rng, d)
    predicted = random_dag(rng, d, 0.5)
    undirected = rng.random((d, d)) < 0.5
    predicted = predicted | (predicted.T & (undirected | undirected.T))
    oriented = metrics.orient_favourably(truth, predicted)
    assert (((oriented + oriented.T) > 0) == ((predicted + predicted.T) > 0)).all()
    assert not (oriented & oriented.T).any()
    all_undirected = metrics.orient_favourably(truth, predicted | predicted.T)
    assert is_acyclic(all_undirected)
    assert (all_undirected[truth > 0] == (predicted | predicted.T)[truth > 0]).all()


@pytest.mark.parametrize("d", [1, 4])
def test_empty_truth_and_empty_prediction(d):
    empty = np.zeros((d, d))
    found = metrics.evaluate(empty, empty)
    assert (found["shd"], found["sid"], found["f1"], found["auroc"], found["auprc"], found["ece"]) == (0, 0, 1, 1, 1, 0)


def test_empty_prediction_of_a_graph_with_edges():
    found = metrics.evaluate(CHAIN, np.zeros((3, 3)))
    assert (found["f1"], found["precision"], found["recall"], found["auroc"], found["auprc"]) == (0, 0, 0, 0.5, 0)
    assert (found["shd"], found["edges"]) == (2, 0)


def test_prediction_of_edges_where_there_are_none():
    found = metrics.evaluate(np.zeros((3, 3)), CHAIN)
    assert (found["f1"], found["auroc"], found["auprc"], found["shd"]) == (0, 0.5, 0, 2)


def test_a_constant_prediction_scores_the_edge_density():
    prediction = np.full((3, 3), 0.4)
    assert metrics.auprc(CHAIN, prediction) == pytest.approx(2 / 9)
    assert metrics.auroc(CHAIN, prediction) == 0.5


def test_cyclic_truth_has_no_sid():
    loop = np.array([[0, 1], [1, 0]])
    found = metrics.evaluate(loop, loop)
    assert math.isnan(found["sid"])
    assert found["f1"] == 1.0
    with pytest.raises(DataError, match="cycle"):
        metrics.sid(loop, loop)


@pytest.mark.parametrize(
    ("truth", "prediction", "message"),
    [
        (np.zeros((2, 3)), np.zeros((2, 3)), "square"),
        (np.full((2, 2), 0.5), np.zeros((2, 2)), "0 and 1"),
        (np.eye(2), np.zeros((2, 2)), "causes itself"),
        (np.zeros((2, 2)), np.zeros((3, 3)), "2 variables"),
        (np.zeros((2, 2)), np.full((2, 2), np.nan), "between 0 and 1"),
        (np.zeros((2, 2)), np.full((2, 2), 1.5), "between 0 and 1"),
    ],
)
def test_invalid_input_raises_one_sentence(truth, prediction, message):
    with pytest.raises(DataError, match=message):
        metrics.evaluate(truth, prediction)


def test_invalid_threshold_raises():
    with pytest.raises(ConfigError, match="threshold"):
        metrics.evaluate(CHAIN, CHAIN, threshold=1.0)


def test_input_is_not_changed():
    prediction = np.full((3, 3), 0.4)
    metrics.evaluate(CHAIN, prediction)
    assert (prediction == 0.4).all()


def test_calibration_bins():
    truth = np.array([0, 0, 1, 1, 1, 0])
    prediction = np.array([0.0, 0.1, 0.1, 0.3, 1.0, 0.95])
    curve = metrics.calibration_curve(truth, prediction)
    assert curve.count.tolist() == [1, 2, 0, 1, 0, 0, 0, 0, 0, 2]
    assert curve.empirical[1] == 0.5
    assert curve.empirical[9] == 0.5
    assert np.isnan(curve.predicted[2])
    assert curve.ece == pytest.approx((0 + 2 * 0.4 + 0.7 + 2 * 0.475) / 6)
    with pytest.raises(DataError, match="bins"):
        metrics.calibration_curve(truth, prediction, bins=0)


def test_calibrated_predictions_have_little_error_and_graphs_of_several_sizes_are_pooled():
    rng = np.random.default_rng(0)
    predictions = [rng.random((d, d)) for d in (40, 60, 80)]
    truths = [(rng.random(prediction.shape) < prediction).astype(int) for prediction in predictions]
    curve = metrics.calibration_curve(truths, predictions)
    assert curve.count.sum() == 40**2 + 60**2 + 80**2
    assert curve.ece < 0.03
    assert metrics.calibration_curve(truths, [1 - prediction for prediction in predictions]).ece > 0.3


def test_means_with_standard_errors():
    found = metrics.mean_and_error([1.0, 2.0, 3.0, 4.0, math.nan])
    assert (found.mean, found.count) == (2.5, 4)
    assert found.error == pytest.approx(math.sqrt(5 / 3) / 2)
    assert math.isnan(metrics.mean_and_error([1.0]).error)
    assert math.isnan(metrics.mean_and_error([]).mean)


def test_welch_agrees_with_scipy():
    from scipy import stats

    rng = np.random.default_rng(1)
    for sizes, spread, shift in [((5, 9), 3.0, 0.5), ((30, 30), 1.0, 0.0), ((2, 3), 0.1, 2.0)]:
        a, b = rng.normal(size=sizes[0]), rng.normal(shift, spread, size=sizes[1])
        expected = stats.ttest_ind(a, b, equal_var=False).pvalue
        assert metrics.welch_p_value(a, b) == pytest.approx(expected)
    assert metrics.welch_p_value([1, 1], [1, 1, 1]) == 1.0
    assert metrics.welch_p_value([1, 1], [2, 2]) == 0.0
    assert math.isnan(metrics.welch_p_value([1], [2, 3]))


def test_highlighting():
    samples = {"good": [0.8, 0.9, 0.85], "same": [0.7, 0.95, 0.8], "bad": [0.1, 0.2, 0.15], "none": [math.nan]}
    assert metrics.highlight(samples, higher_is_better=True) == {"good", "same"}
    assert metrics.highlight(samples, higher_is_better=False) == {"bad"}
    assert metrics.highlight({"a": [1.0], "b": [1.0], "c": [2.0]}, higher_is_better=False) == {"a", "b"}
    assert metrics.highlight({"a": []}, higher_is_better=False) == set()


def test_metrics_import_light():
    import subprocess
    import sys

    code = (
        "import sys, presage.metrics; print([m for m in ('torch', 'scipy', 'sklearn', 'gadjid') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
