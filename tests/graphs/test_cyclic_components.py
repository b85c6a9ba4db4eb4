"""Strongly connected components agree with those of scipy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from presage.graphs.ops import cyclic_components


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 14), st.sampled_from([0.05, 0.1, 0.2, 0.5, 1.0]))
def test_components_are_those_of_scipy(seed: int, d: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    graph = rng.random((d, d)) < density
    np.fill_diagonal(graph, rng.random(d) < 0.2)  # loops at single variables are no components
    found = [members.tolist() for members in cyclic_components(graph)]
    expected = []
    if d:
        count, component = connected_components(csr_matrix(graph), directed=True, connection="strong")
        groups = [np.flatnonzero(component == k).tolist() for k in range(count)]
        expected = sorted(group for group in groups if len(group) > 1)
    assert found == expected


def test_a_long_cycle_beside_a_long_path() -> None:
    d = 600
    graph = np.zeros((d, d), dtype=np.int8)
    graph[np.arange(299), np.arange(1, 300)] = 1
    graph[299, 0] = 1
    graph[np.arange(299, 599), np.arange(300, 600)] = 1
    (members,) = cyclic_components(graph)
    np.testing.assert_array_equal(members, np.arange(300))
    assert graph[299, 0] == 1  # the input is left as it was
