"""How well edge probabilities rank true edges above absent ones. NumPy only, so that training can call them often."""

from __future__ import annotations

import numpy as np

__all__ = ["auprc", "auprc_trapezoid", "auroc"]


def _steps(true_graph: np.ndarray, probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Right and guessed edges at each distinct threshold, highest first, and the number of true edges."""
    truth = np.asarray(true_graph).ravel() != 0
    score = np.asarray(probabilities, dtype=np.float64).ravel()
    order = np.argsort(-score, kind="stable")
    truth, score = truth[order], score[order]
    last = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)  # the last entry of every run of ties
    return np.cumsum(truth)[last], last + 1, int(truth.sum())


def auroc(true_graph: np.ndarray, probabilities: np.ndarray) -> float:
    """Probability that a true edge is ranked above an absent one (ties count half).

    Without true edges or without absent ones nothing can be ranked; then it is 0.5, or 1 if an empty graph was
    predicted with certainty.
    """
    right, guessed, present = _steps(true_graph, probabilities)
    absent = int(guessed[-1]) - present
    if present == 0 or absent == 0:
        return 1.0 if present == 0 and not np.any(probabilities) else 0.5
    hits = np.concatenate([[0], right])
    misses = np.concatenate([[0], guessed - right])
    area = float((np.diff(misses) * (hits[1:] + hits[:-1])).sum()) / 2.0
    return area / (present * absent)


def auprc(true_graph: np.ndarray, probabilities: np.ndarray) -> float:
    """Area under the precision-recall curve by steps (average precision): a constant guess gets the share of edges.

    Without true edges it is 0, or 1 if an empty graph was predicted with certainty. An all-zero prediction of a graph
    with edges ranks nothing and gets 0.
    """
    return _area(true_graph, probabilities, trapezoid=False)


def auprc_trapezoid(true_graph: np.ndarray, probabilities: np.ndarray) -> float:
    """Area under the precision-recall curve with straight lines between its points.

    Never far from `auprc` for fine probabilities, but too kind to coarse ones: a constant guess gets over one half.
    It is the variant in the public software of the paper, kept for comparison.
    """
    return _area(true_graph, probabilities, trapezoid=True)


def _area(true_graph: np.ndarray, probabilities: np.ndarray, *, trapezoid: bool) -> float:
    right, guessed, present = _steps(true_graph, probabilities)
    empty_guess = not np.any(probabilities)
    if present == 0 or empty_guess:
        return float(present == 0 and empty_guess)
    precision = right / guessed
    gain = np.diff(np.concatenate([[0], right])) / present
    if trapezoid:
        precision = (precision + np.concatenate([[1.0], precision[:-1]])) / 2.0
    return float((gain * precision).sum())
