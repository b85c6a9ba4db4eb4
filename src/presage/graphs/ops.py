"""Order, acyclicity, cycle breaking and projection to a DAG. Adjacency matrices are [d, d], row causes column."""

from __future__ import annotations

import numpy as np

from presage.errors import DataError

__all__ = [
    "break_cycles",
    "cyclic_components",
    "descendants",
    "is_acyclic",
    "project_to_dag",
    "relabel",
    "topological_order",
]


def topological_order(graph: np.ndarray) -> np.ndarray:
    """Variables with every cause before its effects; raises `DataError` on a cycle.

    >>> topological_order(np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]])).tolist()
    [2, 1, 0]
    """
    order = _kahn(graph)
    if len(order) < len(graph):
        raise DataError("the graph has a cycle, so its variables have no causal order")
    return np.array(order, dtype=np.int64)


def is_acyclic(graph: np.ndarray) -> bool:
    """Whether no directed cycle (self-loops included) exists."""
    return len(_kahn(graph)) == len(graph)


def _kahn(graph: np.ndarray) -> list[int]:
    d = len(graph)
    children: list[list[int]] = [[] for _ in range(d)]
    waiting = [0] * d  # number of causes not yet placed
    sources, targets = np.nonzero(graph)
    for i, j in zip(sources.tolist(), targets.tolist(), strict=True):
        children[i].append(j)
        waiting[j] += 1
    ready = [j for j, causes in enumerate(waiting) if causes == 0]
    order: list[int] = []
    while ready:
        i = ready.pop()
        order.append(i)
        for j in children[i]:
            waiting[j] -= 1
            if waiting[j] == 0:
                ready.append(j)
    return order


def descendants(graphs: np.ndarray) -> np.ndarray:
    """Whether a path of at least one edge leads from row to column: bool [..., d, d] of graphs [..., d, d].

    >>> descendants(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])).astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    edges = (np.asarray(graphs) != 0).astype(np.float32)  # float products use fast matrix multiplication
    reach = edges
    length = 1
    while length < edges.shape[-1]:  # paths of up to `length` edges are known
        longer = ((reach + reach @ reach) > 0).astype(np.float32)
        if np.array_equal(longer, reach):
            break
        reach, length = longer, 2 * length
    found: np.ndarray = reach > 0
    return found


def cyclic_components(graph: np.ndarray) -> list[np.ndarray]:
    """Strongly connected components of two or more variables, each as sorted indices, ordered by their first.

    >>> graph = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    >>> [members.tolist() for members in cyclic_components(graph)]
    [[0, 1]]
    """
    graph = np.asarray(graph) != 0
    left = np.ones(len(graph), dtype=bool)
    found: list[np.ndarray] = []
    while True:
        _drop_ends(graph, left)
        if not left.any():
            return sorted(found, key=lambda members: int(members[0]))
        start = int(np.argmax(left))
        members = _reachable(graph, start, left) & _reachable(graph.T, start, left)
        if members.sum() > 1:
            found.append(np.flatnonzero(members))
        left &= ~members


def _drop_ends(graph: np.ndarray, left: np.ndarray) -> None:
    """Unmark in `left`, step by step, variables without a cause or without an effect among those left."""
    causes, effects = (graph[left].sum(axis=0), graph[:, left].sum(axis=1)) if left.any() else (left, left)
    while (ends := np.flatnonzero(left & ((causes == 0) | (effects == 0)))).size:
        left[ends] = False
        causes = causes - graph[ends].sum(axis=0)
        effects = effects - graph[:, ends].sum(axis=1)


def _reachable(graph: np.ndarray, start: int, within: np.ndarray) -> np.ndarray:
    """Variables [d] of `within` that a directed path within it joins to `start`, which is one of them."""
    reached = np.zeros(len(graph), dtype=bool)
    reached[start] = True
    frontier = np.array([start])
    while frontier.size:
        frontier = np.flatnonzero(graph[frontier].any(axis=0) & within & ~reached)
        reached[frontier] = True
    return reached


def relabel(rng: np.random.Generator, graph: np.ndarray) -> np.ndarray:
    """The same graph with its variables in random order."""
    order = rng.permutation(len(graph))
    return graph[order][:, order]


def break_cycles(rng: np.random.Generator, graph: np.ndarray) -> np.ndarray:
    """An acyclic copy: self-loops are removed, then one random edge of each cycle until none is left."""
    graph = np.array(graph, copy=True)
    np.fill_diagonal(graph, 0)
    while (cycle := _find_cycle(graph)) is not None:
        k = int(rng.integers(len(cycle)))
        graph[cycle[k], cycle[(k + 1) % len(cycle)]] = 0
    return graph


def _find_cycle(graph: np.ndarray) -> list[int] | None:
    """Some directed cycle as a list of variables, or None."""
    placed = np.zeros(len(graph), dtype=bool)
    placed[_kahn(graph)] = True
    rest = np.flatnonzero(~placed)
    if len(rest) == 0:
        return None
    # Every remaining variable has a remaining cause, so following causes closes a cycle.
    path: list[int] = []
    seen: dict[int, int] = {}
    j = int(rest[0])
    while j not in seen:
        seen[j] = len(path)
        path.append(j)
        j = int(next(i for i in np.flatnonzero(graph[:, j]) if not placed[i]))
    return path[seen[j] :][::-1]


def project_to_dag(weights: np.ndarray, threshold: float = 0.0) -> np.ndarray:
    """Greedy maximum-weight acyclic subgraph: edges by decreasing weight, each kept unless it closes a cycle.

    weights: [d, d], only entries above `threshold` are considered. Returns int8 [d, d]. A heuristic (the exact
    problem is NP-hard); it is exact whenever the edges above the threshold have no cycle.
    """
    d = len(weights)
    graph = np.zeros((d, d), dtype=np.int8)
    reach = np.eye(d, dtype=bool)  # reach[i, j]: a path from i to j, or i = j
    sources, targets = np.nonzero(weights > threshold)
    order = np.argsort(-weights[sources, targets], kind="stable")
    for i, j in zip(sources[order], targets[order], strict=True):
        if not reach[j, i]:
            graph[i, j] = 1
            reach[reach[:, i]] |= reach[j]
    return graph
