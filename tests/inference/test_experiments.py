"""The next experiment: entropies of descendant sets against enumeration of all small graphs."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from presage.graphs.ops import descendants, is_acyclic
from presage.inference.experiments import descendant_entropy, experiment_frame, settled_pairs

NAMES = ("a", "b", "c")


def enumerate_graphs(quarters: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """All acyclic graphs of 3 variables with integer weights, for edge probabilities given in quarters [3, 3]."""
    cells = [(i, j) for i in range(3) for j in range(3) if i != j]
    graphs, weights = [], []
    for bits in itertools.product((0, 1), repeat=6):
        graph = np.zeros((3, 3), dtype=np.int8)
        for cell, bit in zip(cells, bits, strict=True):
            graph[cell] = bit
        weight = math.prod(
            int(quarters[cell]) if bit else 4 - int(quarters[cell]) for cell, bit in zip(cells, bits, strict=True)
        )
        if is_acyclic(graph) and weight:
            graphs.append(graph)
            weights.append(weight)
    return np.stack(graphs), weights


def descendants_by_search(graph: np.ndarray, v: int) -> frozenset[int]:
    """Descendants of v by a search along edges."""
    found: set[int] = set()
    waiting = [v]
    while waiting:
        new = set(np.flatnonzero(graph[waiting.pop()]).tolist()) - found
        found |= new
        waiting += new
    return frozenset(found)


def entropy(weights: list[float]) -> float:
    total = sum(weights)
    return -sum(w / total * math.log2(w / total) for w in weights if w)


@pytest.mark.parametrize("seed", range(4))
def test_entropies_equal_enumeration(seed: int) -> None:
    quarters = np.random.default_rng(seed).integers(0, 5, size=(3, 3))
    graphs, weights = enumerate_graphs(np.minimum(quarters, 3))
    expected = []
    for v in range(3):
        mass: Counter[frozenset[int]] = Counter()
        for graph, weight in zip(graphs, weights, strict=True):
            mass[descendants_by_search(graph, v)] += weight
        expected.append(entropy(list(mass.values())))
    samples = np.repeat(graphs, weights, axis=0)  # each graph as often as its weight: no sampling error
    np.testing.assert_allclose(descendant_entropy(descendants(samples)), expected, atol=1e-12)
    frame = experiment_frame(samples, NAMES, 3)
    assert frame["information"].tolist() == pytest.approx(sorted(expected, reverse=True))
    assert frame["information"].tolist() == pytest.approx([expected[NAMES.index(name)] for name in frame["variable"]])


def test_a_variable_whose_direction_is_unknown_comes_before_certain_ones() -> None:
    forward, backward = np.zeros((2, 4, 4), dtype=np.int8)
    forward[0, 1] = backward[1, 0] = forward[2, 3] = backward[2, 3] = 1
    frame = experiment_frame(np.stack([forward, backward]), ("a", "b", "c", "d"), 4)
    assert set(frame["variable"][:2]) == {"a", "b"}
    assert frame["information"].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert sorted(frame["settles"][0]) == [("a", "b")] if frame["variable"][0] == "a" else [("b", "a")]
    assert "settles a - b" in frame.set_index("variable").loc["a", "reason"]
    assert frame["reason"][3].endswith("would add little information.")


def test_settled_pairs_equal_their_mutual_information_by_hand() -> None:
    # Pair (a, b): a -> b in half of the graphs, none in the others. c is a child of a in all graphs.
    one, two = np.zeros((2, 3, 3), dtype=np.int8)
    one[0, 1] = one[0, 2] = two[0, 2] = 1
    graphs = np.stack([one, two])
    assert settled_pairs(graphs, descendants(graphs), 0) == [(1, 1.0)]
    # With a path a -> c -> b in every graph, b changes in any case, and the intervention does not tell the edge.
    graphs[:, 2, 1] = 1
    assert settled_pairs(graphs, descendants(graphs), 0) == []


def test_excluded_variables_and_short_lists() -> None:
    graphs = np.triu(np.random.default_rng(0).random((50, 5, 5)) < 0.5, 1).astype(np.int8)
    names = tuple("abcde")
    full = experiment_frame(graphs, names, 10)
    assert len(full) == 5
    best = names.index(full["variable"][0])
    rest = experiment_frame(graphs, names, 2, exclude=[best])
    assert rest["variable"].tolist() == full["variable"].tolist()[1:3]
    assert experiment_frame(graphs, names, 0).columns.tolist() == ["variable", "information", "settles", "reason"]


def test_equal_joint_entropies_are_ordered_by_single_answers() -> None:
    # With 4 samples of distinct sets both entropies are 2 bits; a has more single answers in doubt.
    reach_a, reach_b = ["0000", "1100", "0011", "1111"], ["0000", "1000", "0100", "1100"]
    graphs = np.zeros((4, 6, 6), dtype=np.int8)
    for number, (row_a, row_b) in enumerate(zip(reach_a, reach_b, strict=True)):
        graphs[number, 0, 2:] = [int(bit) for bit in row_a]
        graphs[number, 1, 2:] = [int(bit) for bit in row_b]
    assert experiment_frame(graphs, tuple("abcdef"), 2)["variable"].tolist() == ["a", "b"]
