"""GraphML files can be read by networkx, whatever the names."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from presage.graphs.graphml import graphml

GRAPH = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
VALUES = np.linspace(0.1, 0.9, 9).reshape(3, 3)


def parsed(names: list[str]) -> nx.DiGraph:
    text = graphml(names, GRAPH, {"probability": VALUES, "effect": -VALUES}, {"model": "a <model> & more"})
    return nx.parse_graphml(text.encode().decode("utf-8"))


@pytest.mark.parametrize(
    "names",
    [["a", "b", "c"], ['x"y', "x'y", "<&>"], ["tab\there", "line\nbreak", "\r"], ["ä", "蛋白", "🧬"], ["", " ", "  "]],
    ids=str,
)
def test_names_edges_and_numbers_come_back(names: list[str]) -> None:
    graph = parsed(names)
    assert graph.is_directed()
    assert set(graph.nodes) == set(names)
    assert set(graph.edges) == {(names[0], names[1]), (names[1], names[2])}
    assert graph.edges[names[0], names[1]] == {"probability": VALUES[0, 1], "effect": -VALUES[0, 1]}
    assert graph.graph["model"] == "a <model> & more"


def test_characters_that_xml_cannot_hold_become_escapes() -> None:
    graph = parsed(["nul\x00", "bell\x07", "half\ud800\uffff"])
    assert set(graph.nodes) == {r"nul\x00", r"bell\x07", r"half\ud800\uffff"}


def test_numbers_that_are_not_finite_are_left_out() -> None:
    values = np.full((3, 3), np.nan)
    values[0, 1] = 0.5
    graph = nx.parse_graphml(graphml(["a", "b", "c"], GRAPH, {"effect": values}, {}))
    assert graph.edges["a", "b"] == {"effect": 0.5}
    assert graph.edges["b", "c"] == {}
