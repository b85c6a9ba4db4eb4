"""The most probable acyclic graph: maximum total weight without a directed cycle.

Edges of positive weight that lie on no cycle are always kept, so the problem decomposes into the strongly connected
components of those edges. Components of up to `EXACT_LIMIT` variables are solved exactly by dynamic programming over
sets of variables. Larger ones are solved heuristically: add edges greedily by decreasing weight, then move single
variables within the causal order while the total weight grows.
"""

from __future__ import annotations

import numpy as np

from presage.graphs.ops import cyclic_components, project_to_dag, topological_order

__all__ = ["EXACT_LIMIT", "best_acyclic", "log_odds"]

EXACT_LIMIT = 16


def log_odds(probabilities: np.ndarray, threshold: float = 0.5) -> np.ndarray:
    """Edge weights [d, d]: log odds relative to the threshold. Edges of probability 1 outweigh all others.

    The graph of largest total weight is the most probable one when edges are independent and threshold is 0.5.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    d = len(p)
    inner = np.clip(p, 1e-15, 1.0 - 1e-15)
    limit = np.clip(threshold, 1e-15, 1.0 - 1e-15)
    weights: np.ndarray = np.log(inner) - np.log1p(-inner) - (np.log(limit) - np.log1p(-limit))
    weights[p >= 1.0] = 80.0 * (d * d + 1)  # more than all uncertain edges together
    weights[p <= 0.0] = -np.inf
    np.fill_diagonal(weights, -np.inf)
    return weights


def best_acyclic(weights: np.ndarray) -> tuple[np.ndarray, bool]:
    """The acyclic graph (int8 [d, d]) of largest total weight, and whether it is provably optimal.

    >>> w = np.array([[0.0, 4.0, -1.0], [1.0, 0.0, 2.0], [2.5, -1.0, 0.0]])
    >>> graph, exact = best_acyclic(w)
    >>> [(int(i), int(j)) for i, j in np.argwhere(graph)], exact
    ([(0, 1), (2, 0)], True)
    """
    positive = np.where(weights > 0, weights, 0.0)
    np.fill_diagonal(positive, 0.0)
    graph = (positive > 0).astype(np.int8)
    exact = True
    for members in cyclic_components(positive > 0):
        inside = positive[np.ix_(members, members)]
        if len(members) <= EXACT_LIMIT:
            order = _exact_order(inside)
        else:
            order = _improved_order(inside, topological_order(project_to_dag(inside)))
            exact = False
        position = np.empty(len(members), dtype=np.int64)
        position[order] = np.arange(len(members))
        graph[np.ix_(members, members)] = (inside > 0) & (position[:, None] < position[None, :])
    return graph, exact


def _exact_order(weights: np.ndarray) -> np.ndarray:
    """The variable order that maximises the weight of forward edges. Visits 2^s sets, so s must be small."""
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
    order, remaining = [], (1 << s) - 1
    while remaining:
        v = int(last[remaining])
        order.append(v)
        remaining ^= 1 << v
    return np.array(order[::-1], dtype=np.int64)


def _improved_order(weights: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Local search: move single variables to their best position until no move increases the total weight."""
    order = order.copy()
    for _ in range(100):
        improved = False
        for v in order.copy():
            position = int(np.flatnonzero(order == v)[0])
            rest = np.delete(order, position)
            # Forward weight of v at each position: edges from earlier variables plus edges to later ones.
            into = np.concatenate([[0.0], np.cumsum(weights[rest, v])])
            out = np.concatenate([np.cumsum(weights[v, rest][::-1])[::-1], [0.0]])
            total = into + out
            target = int(np.argmax(total))
            if total[target] > total[position] * (1 + 1e-12) + 1e-12:
                order = np.insert(rest, target, v)
                improved = True
        if not improved:
            break
    return order
