"""Structural distances and edge accuracy of one predicted graph. Matrices are [d, d], row causes column."""

from __future__ import annotations

import numpy as np

from presage.graphs.ops import project_to_dag, topological_order

__all__ = ["acyclic_projection", "f1", "orient_favourably", "precision_recall_f1", "shd", "sid"]


def shd(true_graph: np.ndarray, predicted_graph: np.ndarray) -> int:
    """Structural Hamming distance: edges to add, remove or reverse; a reversed edge counts once.

    This is the paper's convention: its LiNGAM result on Sachs has 7 edges, F1 0.083 and hence 1 true positive, 6 false
    positives and 16 false negatives. The reported SHD of 18 results only if the 4 reversed edges count once.

    >>> shd(np.array([[0, 1], [0, 0]]), np.array([[0, 0], [1, 0]]))
    1
    """
    differs = np.asarray(true_graph) != np.asarray(predicted_graph)
    return int(np.triu(differs | differs.T, k=1).sum())


def acyclic_projection(probabilities: np.ndarray, threshold: float = 0.5) -> np.ndarray:
    """The thresholded graph made acyclic, int8 [d, d]: edges by decreasing probability unless they close a cycle.

    This is `presage.graphs.ops.project_to_dag`. A graph that is already acyclic is returned unchanged.
    """
    return project_to_dag(np.asarray(probabilities, dtype=np.float64), threshold)


def sid(true_graph: np.ndarray, probabilities: np.ndarray, threshold: float = 0.5) -> int:
    """Structural intervention distance of the thresholded prediction to the true graph, computed by gadjid.

    The number of ordered pairs whose interventional distribution is wrong after adjusting for the predicted parents.
    SID is defined for acyclic graphs only: a cyclic prediction is first made acyclic by `acyclic_projection`, and a
    cyclic true graph raises `DataError`.

    >>> truth = np.array([[0, 1], [0, 0]])
    >>> sid(truth, truth), sid(truth, np.zeros((2, 2))), sid(truth, truth.T)
    (0, 1, 2)
    """
    topological_order(true_graph)  # gadjid aborts the process on a cycle: raise here
    if len(true_graph) == 1:  # no pairs; gadjid would divide by zero
        return 0
    import gadjid

    truth = np.ascontiguousarray(true_graph, dtype=np.int8)
    predicted = np.ascontiguousarray(acyclic_projection(probabilities, threshold), dtype=np.int8)
    return int(gadjid.sid(truth, predicted, edge_direction="from row to column")[1])


def precision_recall_f1(true_graph: np.ndarray, predicted_graph: np.ndarray) -> tuple[float, float, float]:
    """Edge precision, recall and their harmonic mean.

    0/0 counts as 0, except that an empty prediction of an empty graph is perfect: (1, 1, 1).

    >>> precision_recall_f1(np.array([[0, 1], [0, 0]]), np.array([[0, 1], [1, 0]]))
    (0.5, 1.0, 0.6666666666666666)
    """
    truth, graph = np.asarray(true_graph) != 0, np.asarray(predicted_graph) != 0
    correct, predicted, present = int((truth & graph).sum()), int(graph.sum()), int(truth.sum())
    if predicted == 0 and present == 0:
        return 1.0, 1.0, 1.0
    precision = correct / predicted if predicted else 0.0
    recall = correct / present if present else 0.0
    return precision, recall, 2.0 * correct / (predicted + present)


def f1(true_graph: np.ndarray, predicted_graph: np.ndarray) -> float:
    """Harmonic mean of edge precision and recall."""
    return precision_recall_f1(true_graph, predicted_graph)[2]


def orient_favourably(true_graph: np.ndarray, equivalence_class: np.ndarray) -> np.ndarray:
    """Orient an equivalence class as favourably as possible for comparison with the true graph, as the paper does.

    equivalence_class: [d, d]; i - j is undirected where both entries are 1. An undirected edge takes its direction in
    the true graph if it exists there. The remaining ones are wrong in either direction; they follow the causal order of
    the directed edges, so that they close no further cycle.

    >>> orient_favourably(np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]), np.array([[0, 1, 0], [1, 0, 1], [0, 0, 0]]))
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=int8)
    """
    truth, predicted = np.asarray(true_graph) != 0, np.asarray(equivalence_class) != 0
    undirected = predicted & predicted.T
    graph: np.ndarray = (predicted & ~undirected) | (undirected & truth)
    wrong = undirected & ~truth & ~truth.T
    if wrong.any():
        position = np.empty(len(graph), dtype=np.int64)
        position[topological_order(project_to_dag(graph.astype(float)))] = np.arange(len(graph))
        graph |= wrong & (position[:, None] < position[None, :])
    return graph.astype(np.int8)
