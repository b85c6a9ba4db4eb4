"""CPDAGs against brute force over all acyclic graphs of up to five variables."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest

from presage.errors import DataError
from presage.graphs.cpdag import cpdag
from presage.graphs.ops import descendants, is_acyclic, relabel
from presage.graphs.random import ErdosRenyi


def all_dags(d: int) -> list[np.ndarray]:
    """Every acyclic graph of d variables: each pair has no edge or one of two."""
    pairs = list(itertools.combinations(range(d), 2))
    found = []
    for states in itertools.product(range(3), repeat=len(pairs)):
        graph = np.zeros((d, d), dtype=np.int8)
        for (i, j), state in zip(pairs, states, strict=True):
            if state:
                graph[(i, j) if state == 1 else (j, i)] = 1
        if is_acyclic(graph):
            found.append(graph)
    return found


def independence_key(graph: np.ndarray) -> tuple[bytes, frozenset[tuple[int, int, int]]]:
    """Skeleton and v-structures, which decide the equivalence class."""
    skeleton = graph | graph.T
    colliders = frozenset(
        (i, j, k)
        for j in range(len(graph))
        for i, k in itertools.combinations(np.flatnonzero(graph[:, j]).tolist(), 2)
        if not skeleton[i, k]
    )
    return skeleton.tobytes(), colliders


@pytest.mark.parametrize(("d", "dags", "classes"), [(2, 3, 2), (3, 25, 11), (4, 543, 185), (5, 29281, 8782)])
def test_cpdags_equal_the_union_of_their_equivalence_class(d: int, dags: int, classes: int) -> None:
    groups = defaultdict(list)
    graphs = all_dags(d)
    for graph in graphs:
        groups[independence_key(graph)].append(graph)
    assert (len(graphs), len(groups)) == (dags, classes)  # known numbers of graphs and classes
    for members in groups.values():
        union = np.maximum.reduce(members)
        for graph in (members[0], members[-1]):
            np.testing.assert_array_equal(cpdag(graph), union)


def test_relabelling_variables_relabels_the_cpdag() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        graph = relabel(rng, ErdosRenyi(edges_per_node=(2.0,)).sample(rng, 12))
        order = rng.permutation(12)
        permuted = cpdag(graph[order][:, order])
        np.testing.assert_array_equal(permuted, cpdag(graph)[order][:, order])
        assert ((permuted | permuted.T) == (graph | graph.T)[order][:, order]).all()


def test_cycles_are_refused() -> None:
    with pytest.raises(DataError, match="cycle"):
        cpdag(np.array([[0, 1], [1, 0]]))


def test_descendants_equal_a_search_along_edges() -> None:
    rng = np.random.default_rng(1)
    graphs = (rng.random((30, 9, 9)) < 0.15).astype(np.int8)
    expected = np.zeros(graphs.shape, dtype=bool)
    for graph, reach in zip(graphs, expected, strict=True):
        for start in range(9):
            waiting = [start]
            while waiting:
                for j in np.flatnonzero(graph[waiting.pop()] & ~reach[start]):
                    reach[start, j] = True
                    waiting.append(int(j))
    np.testing.assert_array_equal(descendants(graphs), expected)
