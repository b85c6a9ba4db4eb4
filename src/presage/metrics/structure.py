"""Distances and edge accuracy of one predicted graph. Matrices are [d, d], row causes column."""

from __future__ import annotations

import numpy as np

from presage.graphs.ops import project_to_dag, topological_order

__all__ = ["acyclic_guess", "f1", "favour", "precision_recall_f1", "shd", "sid"]


def shd(true_graph: np.ndarray, guess: np.ndarray) -> int:
    """Structural Hamming distance: edges to add, remove or turn; a turned edge counts once.

    The paper counts so too: its LiNGAM row on Sachs has 7 edges and F1 0.083, hence 1 right, 6 wrong and 16 missing
    edges, and SHD 18 only if the 4 turned ones count once.

    >>> shd(np.array([[0, 1], [0, 0]]), np.array([[0, 0], [1, 0]]))
    1
    """
    differs = np.asarray(true_graph) != np.asarray(guess)
    return int(np.triu(differs | differs.T, k=1).sum())


def acyclic_guess(probabilities: np.ndarray, threshold: float = 0.5) -> np.ndarray:
    """The thresholded graph made acyclic: edges by falling probability, each kept unless it closes a cycle.

    This is `presage.graphs.ops.project_to_dag`; a graph that is acyclic already comes back unchanged. int8 [d, d].
    """
    return project_to_dag(np.asarray(probabilities, dtype=np.float64), threshold)


def sid(true_graph: np.ndarray, probabilities: np.ndarray, threshold: float = 0.5) -> int:
    """Structural intervention distance of the thresholded prediction to the truth, computed by gadjid.

    The number of ordered pairs whose interventional distribution is wrong when one adjusts for the parents in the
    guess. Defined for acyclic graphs only: a cyclic prediction is first made acyclic by `acyclic_guess`. A true graph
    with a cycle has none, and gives a `DataError`.

    >>> truth = np.array([[0, 1], [0, 0]])
    >>> sid(truth, truth), sid(truth, np.zeros((2, 2))), sid(truth, truth.T)
    (0, 1, 2)
    """
    topological_order(true_graph)  # gadjid dies on a cycle in a way that cannot be caught: refuse it here
    if len(true_graph) == 1:  # no pairs; gadjid divides by their number
        return 0
    import gadjid

    truth = np.ascontiguousarray(true_graph, dtype=np.int8)
    guess = np.ascontiguousarray(acyclic_guess(probabilities, threshold), dtype=np.int8)
    return int(gadjid.sid(truth, guess, edge_direction="from row to column")[1])


def precision_recall_f1(true_graph: np.ndarray, guess: np.ndarray) -> tuple[float, float, float]:
    """Edge precision, recall and their harmonic mean.

    0/0 counts as 0, except that an empty prediction of an empty graph is perfect: (1, 1, 1).

    >>> precision_recall_f1(np.array([[0, 1], [0, 0]]), np.array([[0, 1], [1, 0]]))
    (0.5, 1.0, 0.6666666666666666)
    """
    truth, guess = np.asarray(true_graph) != 0, np.asarray(guess) != 0
    right, guessed, present = int((truth & guess).sum()), int(guess.sum()), int(truth.sum())
    if guessed == 0 and present == 0:
        return 1.0, 1.0, 1.0
    precision = right / guessed if guessed else 0.0
    recall = right / present if present else 0.0
    return precision, recall, 2.0 * right / (guessed + present)


def f1(true_graph: np.ndarray, guess: np.ndarray) -> float:
    """Harmonic mean of edge precision and recall."""
    return precision_recall_f1(true_graph, guess)[2]


def favour(true_graph: np.ndarray, equivalence_class: np.ndarray) -> np.ndarray:
    """The member of an equivalence class that looks best beside the truth, as the paper grants such methods.

    equivalence_class: [d, d]; i - j is undirected where both entries are 1. An undirected edge is oriented as in the
    truth if the truth has it in either direction. The others are wrong however they are turned; they follow the
    causal order of what is oriented already, so that they close no further cycle.

    >>> favour(np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]), np.array([[0, 1, 0], [1, 0, 1], [0, 0, 0]]))
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=int8)
    """
    truth, answer = np.asarray(true_graph) != 0, np.asarray(equivalence_class) != 0
    undirected = answer & answer.T
    graph = (answer & ~undirected) | (undirected & truth)
    loose = undirected & ~truth & ~truth.T
    if loose.any():
        place = np.empty(len(graph), dtype=np.int64)
        place[topological_order(project_to_dag(graph.astype(float)))] = np.arange(len(graph))
        graph |= loose & (place[:, None] < place[None, :])
    return graph.astype(np.int8)
