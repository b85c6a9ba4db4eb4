"""The most probable acyclic graph: maximum total weight without a directed cycle.

Edges of positive weight that lie on no cycle are always kept, so the problem falls apart into the strongly connected
components of those edges. Components of up to `EXACT_LIMIT` variables are solved exactly by dynamic programming over
sets of variables; larger ones by a heuristic: edges greedily by falling weight, then moving single variables within
the causal order as long as the total weight grows.
"""

from __future__ import annotations

import numpy as np

from presage.graphs.ops import project_to_dag, topological_order

__all__ = ["EXACT_LIMIT", "best_acyclic", "log_odds"]

EXACT_LIMIT = 16


def log_odds(probabilities: np.ndarray, threshold: float = 0.5) -> np.ndarray:
    """Weights [d, d] of edges: their log odds over those of the threshold. Certain edges outweigh all others.

    The graph of largest total weight is the most probable one when edges are independent and threshold is 0.5.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    d = len(p)
    inner = np.clip(p, 1e-15, 1.0 - 1e-15)
    limit = np.clip(threshold, 1e-15, 1.0 - 1e-15)
    weights = np.log(inner) - np.log1p(-inner) - (np.log(limit) - np.log1p(-limit))
    weights[p >= 1.0] = 80.0 * (d * d + 1)  # more than all uncertain edges together
    weights[p <= 0.0] = -np.inf
    np.fill_diagonal(weights, -np.inf)
    return weights


def best_acyclic(weights: np.ndarray) -> tuple[np.ndarray, bool]:
    """The acyclic graph (int8 [d, d]) of largest total weight, and whether it is proven to be the largest.

    >>> w = np.array([[0.0, 4.0, -1.0], [1.0, 0.0, 2.0], [2.5, -1.0, 0.0]])
    >>> graph, exact = best_acyclic(w)
    >>> [(int(i), int(j)) for i, j in np.argwhere(graph)], exact
    ([(0, 1), (2, 0)], True)
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    positive = np.where(weights > 0, weights, 0.0)
    np.fill_diagonal(positive, 0.0)
    count, component = connected_components(csr_matrix(positive > 0), directed=True, connection="strong")
    graph = (positive > 0).astype(np.int8)
    exact = True
    for k in range(count):
        members = np.flatnonzero(component == k)
        if len(members) == 1:
            continue
        inside = positive[np.ix_(members, members)]
        if len(members) <= EXACT_LIMIT:
            order = _exact_order(inside)
        else:
            order = _improved_order(inside, topological_order(project_to_dag(inside)))
            exact = False
        place = np.empty(len(members), dtype=np.int64)
        place[order] = np.arange(len(members))
        graph[np.ix_(members, members)] = (inside > 0) & (place[:, None] < place[None, :])
    return graph, exact


def _exact_order(weights: np.ndarray) -> np.ndarray:
    """The order of variables with the largest weight of forward edges; 2^s sets, so for small s only."""
    s = len(weights)
    sets = np.arange(1 << s, dtype=np.int64)
    gain = np.zeros((s, 1 << s))  # gain[v, S]: weight of the edges from S into v
    for v in range(s):
        for u in range(s):
            gain[v, 1 << u : 2 << u] = gain[v, : 1 << u] + weights[u, v]
    size = np.zeros(1 << s, dtype=np.int64)
    for u in range(s):
        size[1 << u : 2 << u] = size[: 1 << u] + 1
    best = np.zeros(1 << s)
    last = np.zeros(1 << s, dtype=np.int64)
    for level in range(1, s + 1):
        here = sets[size == level]
        value = np.full(len(here), -np.inf)
        choice = np.zeros(len(here), dtype=np.int64)
        for v in range(s):
            inside = (here >> v & 1).astype(bool)
            before = here[inside] ^ (1 << v)
            candidate = best[before] + gain[v, before]
            better = candidate > value[inside]
            where = np.flatnonzero(inside)[better]
            value[where], choice[where] = candidate[better], v
        best[here], last[here] = value, choice
    order, left = [], (1 << s) - 1
    while left:
        v = int(last[left])
        order.append(v)
        left ^= 1 << v
    return np.array(order[::-1], dtype=np.int64)


def _improved_order(weights: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Move single variables to their best place until no move helps; the total weight never falls."""
    order = order.copy()
    for _ in range(100):
        improved = False
        for v in order.copy():
            place = int(np.flatnonzero(order == v)[0])
            rest = np.delete(order, place)
            # Forward weight of v at each place: edges from those before it, edges to those after it.
            into = np.concatenate([[0.0], np.cumsum(weights[rest, v])])
            out = np.concatenate([np.cumsum(weights[v, rest][::-1])[::-1], [0.0]])
            total = into + out
            target = int(np.argmax(total))
            if total[target] > total[place] * (1 + 1e-12) + 1e-12:
                order = np.insert(rest, target, v)
                improved = True
        if not improved:
            break
    return order
