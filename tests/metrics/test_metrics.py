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
    probabilities = rng.random((d, d)).round(1)  # rounded: ties and bin edges are hit
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
    # Truth 0 -> 1 -> 2. Above one half: 0 -> 1 (right), 2 -> 1 (turned), 0 -> 2 (invented).
    guess = np.array([[0.3, 0.9, 0.6], [0.1, 0.9, 0.2], [0.0, 0.8, 0.0]])
    found = metrics.evaluate(CHAIN, guess)
    assert found["shd"] == 2
    assert (found["precision"], found["recall"], found["f1"]) == (1 / 3, 1 / 2, 0.4)
    assert (found["edges"], found["acyclic"]) == (3, True)
    # Ranked: 0.9 true, 0.8, 0.6, 0.2 true, then the rest: average precision (1/1 + 2/4) / 2.
    assert found["auprc"] == pytest.approx(0.75)
    # The 2 true edges beat 7 and 5 of the 7 others.
    assert found["auroc"] == pytest.approx(12 / 14)
    # Bins: {0 x5}, {0.1}, {0.2 true}, {0.6}, {0.8}, {0.9 true} over nine entries; 0.3 and 0.9 of the diagonal go.
    assert found["ece"] == pytest.approx((0.1 + 0.8 + 0.6 + 0.8 + 0.1) / 9)


def test_structural_intervention_distance_by_hand():
    # Truth 0 -> 1 -> 2, guess empty: (1, 0), (2, 0) and (2, 1) are confounded by a cause the guess leaves out.
    assert metrics.sid(CHAIN, np.zeros((3, 3))) == 3
    # A supergraph of the truth costs nothing (Prop. 8 of Peters and Buehlmann).
    assert metrics.sid(CHAIN, np.triu(np.ones((3, 3)), k=1)) == 0
    # Everything turned: the effect of a cause is denied and an effect is made up, for all six ordered pairs.
    assert metrics.sid(CHAIN, CHAIN.T) == 6


@settings(max_examples=60, deadline=None)
@given(cases)
def test_ranking_and_edges_agree_with_scikit_learn(case):
    seed, d = case
    rng = np.random.default_rng(seed)
    truth, guess = random_dag(rng, d), off_diagonal(rng, d)
    if not truth.any():
        truth[0, 1] = 1
    guess[0, 1] = 0.7  # at least one edge above the threshold
    found = metrics.evaluate(truth, guess)
    flat, score, hard = truth.ravel(), guess.ravel(), (guess > 0.5).ravel()
    assert found["auroc"] == pytest.approx(sk.roc_auc_score(flat, score))
    assert found["auprc"] == pytest.approx(sk.average_precision_score(flat, score))
    curve = sk.precision_recall_curve(flat, score)
    assert metrics.auprc_trapezoid(truth, guess) == pytest.approx(sk.auc(curve[1], curve[0]))
    assert found["f1"] == pytest.approx(sk.f1_score(flat, hard))
    assert found["precision"] == pytest.approx(sk.precision_score(flat, hard, zero_division=0))
    assert found["recall"] == pytest.approx(sk.recall_score(flat, hard))


@settings(max_examples=60, deadline=None)
@given(cases)
def test_distances_agree_with_gadjid_and_networkx(case):
    seed, d = case
    rng = np.random.default_rng(seed)
    truth, guess = random_dag(rng, d), random_dag(rng, d)
    assert metrics.shd(truth, guess) == gadjid.shd(truth, guess)[1]
    assert metrics.sid(truth, guess) == gadjid.sid(truth, guess, edge_direction="from row to column")[1]
    cyclic = (off_diagonal(rng, d) > 0.6).astype(float)
    found = metrics.evaluate(truth, cyclic)
    assert found["acyclic"] == nx.is_directed_acyclic_graph(nx.DiGraph(cyclic))


def brute_force_sid(truth, guess):
    """Pairs whose interventional distribution is wrong when adjusting for the guessed parents, by d-separation."""
    graph = nx.DiGraph(truth)
    wrong = 0
    for i, j in itertools.permutations(range(len(truth)), 2):
        parents = set(np.flatnonzero(guess[:, i]).tolist())
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
    truth, guess = random_dag(rng, d, 0.5), random_dag(rng, d, 0.5)
    assert metrics.sid(truth, guess) == brute_force_sid(truth, guess)


def test_cyclic_prediction_is_made_acyclic_for_sid_only():
    truth = np.array([[0, 1], [0, 0]])
    found = metrics.evaluate(truth, np.array([[0.0, 0.9], [0.8, 0.0]]))
    assert (found["sid"], found["shd"], found["edges"], found["acyclic"]) == (0, 1, 2, False)
    assert metrics.evaluate(truth, np.array([[0.0, 0.8], [0.9, 0.0]]))["sid"] == 2


def test_equivalence_class_is_favoured():
    # 0 - 1 undirected (truth 0 -> 1: right), 1 - 2 undirected but absent in the truth: one wrong edge.
    truth = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    answer = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    found = metrics.evaluate(truth, answer, equivalence_class=True)
    assert (found["edges"], found["precision"], found["recall"], found["shd"]) == (2, 0.5, 1.0, 1)
    assert found["acyclic"]
    assert metrics.evaluate(truth, answer)["edges"] == 4
    turned = metrics.favour(truth.T, answer)
    assert turned[1, 0] == 1
    assert turned[0, 1] == 0


@settings(max_examples=60, deadline=None)
@given(cases)
def test_favouring_keeps_the_skeleton_and_closes_no_cycle_of_its_own(case):
    seed, d = case
    rng = np.random.default_rng(seed)
    truth = random_dag(rng, d)
    answer = random_dag(rng, d, 0.5)
    loose = rng.random((d, d)) < 0.5
    answer = answer | (answer.T & (loose | loose.T))
    oriented = metrics.favour(truth, answer)
    assert (((oriented + oriented.T) > 0) == ((answer + answer.T) > 0)).all()
    assert not (oriented & oriented.T).any()
    all_loose = metrics.favour(truth, answer | answer.T)
    assert is_acyclic(all_loose)
    assert (all_loose[truth > 0] == (answer | answer.T)[truth > 0]).all()


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


def test_constant_guess_gets_the_share_of_edges():
    guess = np.full((3, 3), 0.4)
    assert metrics.auprc(CHAIN, guess) == pytest.approx(2 / 9)
    assert metrics.auroc(CHAIN, guess) == 0.5


def test_cyclic_truth_has_no_sid():
    loop = np.array([[0, 1], [1, 0]])
    found = metrics.evaluate(loop, loop)
    assert math.isnan(found["sid"])
    assert found["f1"] == 1.0
    with pytest.raises(DataError, match="cycle"):
        metrics.sid(loop, loop)


@pytest.mark.parametrize(
    ("truth", "guess", "sentence"),
    [
        (np.zeros((2, 3)), np.zeros((2, 3)), "square"),
        (np.full((2, 2), 0.5), np.zeros((2, 2)), "0 and 1"),
        (np.eye(2), np.zeros((2, 2)), "causes itself"),
        (np.zeros((2, 2)), np.zeros((3, 3)), "2 variables"),
        (np.zeros((2, 2)), np.full((2, 2), np.nan), "between 0 and 1"),
        (np.zeros((2, 2)), np.full((2, 2), 1.5), "between 0 and 1"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(truth, guess, sentence):
    with pytest.raises(DataError, match=sentence):
        metrics.evaluate(truth, guess)


def test_bad_threshold_is_refused():
    with pytest.raises(ConfigError, match="threshold"):
        metrics.evaluate(CHAIN, CHAIN, threshold=1.0)


def test_input_is_not_changed():
    guess = np.full((3, 3), 0.4)
    metrics.evaluate(CHAIN, guess)
    assert (guess == 0.4).all()


def test_calibration_bins():
    truth = np.array([0, 0, 1, 1, 1, 0])
    guess = np.array([0.0, 0.1, 0.1, 0.3, 1.0, 0.95])
    curve = metrics.calibration_curve(truth, guess)
    assert curve.count.tolist() == [1, 2, 0, 1, 0, 0, 0, 0, 0, 2]
    assert curve.empirical[1] == 0.5
    assert curve.empirical[9] == 0.5
    assert np.isnan(curve.predicted[2])
    assert curve.ece == pytest.approx((0 + 2 * 0.4 + 0.7 + 2 * 0.475) / 6)
    with pytest.raises(DataError, match="bins"):
        metrics.calibration_curve(truth, guess, bins=0)


def test_calibrated_predictions_have_little_error_and_graphs_of_several_sizes_are_pooled():
    rng = np.random.default_rng(0)
    guesses = [rng.random((d, d)) for d in (40, 60, 80)]
    truths = [(rng.random(guess.shape) < guess).astype(int) for guess in guesses]
    curve = metrics.calibration_curve(truths, guesses)
    assert curve.count.sum() == 40**2 + 60**2 + 80**2
    assert curve.ece < 0.03
    assert metrics.calibration_curve(truths, [1 - guess for guess in guesses]).ece > 0.3


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
