"""Latent projection against enumeration of all paths."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from presage.graphs.latent import hidden_reach, latent_projection
from presage.graphs.ops import is_acyclic


def paths(graph: np.ndarray, i: int, j: int) -> list[list[int]]:
    """All directed paths from i to j without repeated inner variables."""
    found = []
    stack = [[i]]
    while stack:
        path = stack.pop()
        for k in np.flatnonzero(graph[path[-1]]).tolist():
            if k == j:
                found.append([*path, k])
            elif k not in path:
                stack.append([*path, k])
    return found


def reaches(graph: np.ndarray, hidden: np.ndarray, i: int, j: int) -> bool:
    return any(all(hidden[k] for k in path[1:-1]) for path in paths(graph, i, j))


@st.composite
def cases(draw, acyclic: bool = True):
    m = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    graph = (rng.random((m, m)) < draw(st.floats(0.05, 0.7))).astype(np.int8)
    np.fill_diagonal(graph, 0)
    if acyclic:
        order = rng.permutation(m)
        graph = np.triu(graph)[order][:, order]
    return graph, rng.random(m) < draw(st.floats(0, 1))


def check(graph: np.ndarray, hidden: np.ndarray) -> None:
    directed, confounded = latent_projection(graph, hidden)
    observed = np.flatnonzero(~hidden)
    assert directed.dtype == np.int8
    assert confounded.dtype == bool
    for a, i in enumerate(observed):
        for b, j in enumerate(observed):
            if i == j:
                assert not directed[a, b]
                assert not confounded[a, b]
                continue
            assert directed[a, b] == reaches(graph, hidden, i, j)
            common = any(reaches(graph, hidden, k, i) and reaches(graph, hidden, k, j) for k in np.flatnonzero(hidden))
            assert confounded[a, b] == common


@given(cases())
def test_projection_of_acyclic_graphs_matches_path_enumeration(case) -> None:
    graph, hidden = case
    check(graph, hidden)
    assert is_acyclic(latent_projection(graph, hidden)[0])


@given(cases(acyclic=False))
def test_projection_of_cyclic_graphs_matches_path_enumeration(case) -> None:
    check(*case)


@given(cases())
def test_nothing_changes_without_hidden_variables(case) -> None:
    graph, _ = case
    directed, confounded = latent_projection(graph, np.zeros(len(graph), dtype=bool))
    assert (directed == graph).all()
    assert not confounded.any()


def test_reach_includes_hidden_ends() -> None:
    graph = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    reach = hidden_reach(graph, np.array([False, True, False]))
    assert reach.tolist() == [[False, True, True], [False, False, True], [False, False, False]]
