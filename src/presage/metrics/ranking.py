"""Ranking metrics: AUROC and AUPRC of edge probabilities. NumPy only, so that training can call them often."""

from __future__ import annotations

import numpy as np

__all__ = ["auprc", "auprc_trapezoid", "auroc"]


def _steps(true_graph: np.ndarray, probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """True positives and predicted positives at each distinct threshold, highest first; number of true edges."""
    truth = np.asarray(true_graph).ravel() != 0
    score = np.asarray(probabilities, dtype=np.float64).ravel()
    order = np.argsort(-score, kind="stable")
    truth, score = truth[order], score[order]
    last = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)  # the last entry of every run of ties
    return np.cumsum(truth)[last], last + 1, int(truth.sum())


def auroc(true_graph: np.ndarray, probabilities: np.ndarray) -> float:
    """Probability that a true edge is ranked above an absent one (ties count half).

    If the graph is empty or complete, AUROC is undefined: the value is then 0.5, or 1 if an empty graph was predicted
    with certainty.
    """
    correct, predicted, present = _steps(true_graph, probabilities)
    absent = int(predicted[-1]) - present
    if present == 0 or absent == 0:
        return 1.0 if present == 0 and not np.any(probabilities) else 0.5
    true_positives = np.concatenate([[0], correct])
    false_positives = np.concatenate([[0], predicted - correct])
    area = float((np.diff(false_positives) * (true_positives[1:] + true_positives[:-1])).sum()) / 2.0
    return area / (present * absent)


def auprc(true_graph: np.ndarray, probabilities: np.ndarray) -> float:
    """Area under the precision-recall curve as average precision; a constant prediction scores the edge density.

    Without true edges it is 0, or 1 if an empty graph was predicted with certainty. An all-zero prediction of a graph
    with edges scores 0.
    """
    return _area(true_graph, probabilities, trapezoid=False)


def auprc_trapezoid(true_graph: np.ndarray, probabilities: np.ndarray) -> float:
    """Area under the precision-recall curve with linear interpolation, as in the paper's public code.

    It is close to `auprc` if probabilities have few ties and too optimistic otherwise: a constant prediction scores
    over one half.
    """
    return _area(true_graph, probabilities, trapezoid=True)


def _area(true_graph: np.ndarray, probabilities: np.ndarray, *, trapezoid: bool) -> float:
    correct, predicted, present = _steps(true_graph, probabilities)
    predicts_nothing = not np.any(probabilities)
    if present == 0 or predicts_nothing:
        return float(present == 0 and predicts_nothing)
    precision = correct / predicted
    gain = np.diff(np.concatenate([[0], correct])) / present
    if trapezoid:
        precision = (precision + np.concatenate([[1.0], precision[:-1]])) / 2.0
    return float((gain * precision).sum())
