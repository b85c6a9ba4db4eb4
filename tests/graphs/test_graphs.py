from __future__ import annotations

import math
import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from presage.errors import ConfigError, DataError
from presage.graphs.ops import break_cycles, is_acyclic, project_to_dag, relabel, topological_order
from presage.graphs.random import (
    ErdosRenyi,
    Geometric,
    ScaleFreeIn,
    ScaleFreeOut,
    StochasticBlock,
    WattsStrogatz,
)

FAMILIES = [ErdosRenyi, ScaleFreeIn, ScaleFreeOut, WattsStrogatz, StochasticBlock, Geometric]
MANY = 2000

matrices = st.integers(1, 9).flatmap(lambda d: hnp.arrays(np.int8, (d, d), elements=st.integers(0, 1)))


def draws(model, d: int, count: int = MANY, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([model.sample(rng, d) for _ in range(count)])  # [count, d, d]


def assert_mean(values: np.ndarray, expected: float, label: str = "") -> None:
    """Within 4 standard errors, which a correct simulator exceeds for one in 16,000 seeds."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - expected) <= 4 * error + 1e-9, (label, values.mean(), expected, error)


# Random models


@pytest.mark.parametrize("family", FAMILIES)
@given(d=st.integers(1, 45), seed=st.integers(0, 2**32))
def test_every_graph_is_acyclic_and_of_the_right_size(family, d, seed) -> None:
    graph = family().sample(np.random.default_rng(seed), d)
    assert graph.shape == (d, d)
    assert graph.dtype == np.int8
    assert np.isin(graph, (0, 1)).all()
    assert nx.is_directed_acyclic_graph(nx.from_numpy_array(graph, create_using=nx.DiGraph))


@pytest.mark.parametrize("family", FAMILIES)
def test_graphs_need_a_variable(family) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        family().sample(np.random.default_rng(0), 0)


@pytest.mark.parametrize("edges", [0.5, 1.0, 2.0, 3.0])
def test_erdos_renyi_has_the_expected_edges(edges) -> None:
    graphs = draws(ErdosRenyi(edges_per_node=(edges,)), 30)
    assert_mean(graphs.sum(axis=(1, 2)) / 30, edges)
    # Edges are independent, so their number is binomial.
    pairs = 30 * 29 / 2
    p = 30 * edges / pairs
    assert graphs.sum(axis=(1, 2)).var() == pytest.approx(pairs * p * (1 - p), rel=0.15)


def test_dense_requests_on_few_variables_saturate() -> None:
    graphs = draws(ErdosRenyi(edges_per_node=(3.0,)), 3, 500)
    assert graphs.sum(axis=(1, 2)).max() == 3
    assert_mean(graphs.sum(axis=(1, 2)), 3 * 0.99)


@pytest.mark.parametrize("family", [ScaleFreeIn, ScaleFreeOut])
@pytest.mark.parametrize("edges", [1, 2, 3])
def test_scale_free_graphs_have_exactly_their_edges(family, edges) -> None:
    graphs = draws(family(edges_per_node=(edges,)), 30)
    assert (graphs.sum(axis=(1, 2)) == 30 * edges - edges * (edges + 1) // 2).all()
    # New nodes attach to `edges` older ones; the first few attach to all older ones.
    new = np.sort(graphs.sum(axis=2 if family is ScaleFreeIn else 1), axis=1)
    assert (new == np.sort(np.minimum(np.arange(30), edges))).all()


@pytest.mark.parametrize(("family", "heavy", "light"), [(ScaleFreeIn, 1, 2), (ScaleFreeOut, 2, 1)])
def test_scale_free_degrees_are_heavy_on_one_side_only(family, heavy, light) -> None:
    graphs = draws(family(edges_per_node=(2,)), 100, 300)
    assert graphs.sum(axis=light).max() == 2
    top = graphs.sum(axis=heavy).max(axis=1)
    uniform = draws(ErdosRenyi(edges_per_node=(2.0,)), 100, 300).sum(axis=heavy).max(axis=1)
    assert top.mean() > 3 * uniform.mean()


def test_the_tail_of_scale_free_degrees_follows_a_power_law() -> None:
    """With one edge per node and weights degree + 1, P(degree >= k) falls as k^-2."""
    degree = draws(ScaleFreeIn(edges_per_node=(1,)), 600, 60).sum(axis=1).ravel()
    k = np.array([2, 4, 8, 16])
    survival = np.array([(degree >= value).mean() for value in k])
    # The exact law of this process: P(degree >= k) = prod_{j < k} (j + 1) / (j + 3) = 2 / ((k + 1) (k + 2)).
    np.testing.assert_allclose(survival, 2 / ((k + 1) * (k + 2)), rtol=0.15)


@pytest.mark.parametrize(("power", "edges"), [(0.5, 1), (1.0, 2), (1.5, 3)])
def test_scale_free_degrees_agree_with_igraph(power, edges) -> None:
    """The paper's scale-free graphs come from igraph; ranked degrees must have the same means."""
    igraph = pytest.importorskip("igraph")
    igraph.set_random_number_generator(random.Random(1))
    theirs = np.array(
        [
            sorted(igraph.Graph.Barabasi(n=30, m=edges, directed=True, power=power).indegree(), reverse=True)
            for _ in range(MANY)
        ]
    )
    igraph.set_random_number_generator(random)
    ours = -np.sort(-draws(ScaleFreeIn(edges_per_node=(edges,), power=(power,)), 30).sum(axis=1), axis=1)
    error = np.sqrt((theirs.var(axis=0) + ours.var(axis=0)) / MANY)
    assert (np.abs(theirs.mean(axis=0) - ours.mean(axis=0)) <= 4.5 * error + 1e-9).all()


def test_higher_powers_make_larger_hubs() -> None:
    tops = [
        draws(ScaleFreeOut(edges_per_node=(2,), power=(power,)), 30, 500).sum(axis=2).max(axis=1).mean()
        for power in (0.0, 0.5, 1.0, 1.5)
    ]
    assert tops == sorted(tops)
    assert tops[3] > 2 * tops[0]


@pytest.mark.parametrize(("dimension", "side"), [(1, 30), (2, 5), (2, 6), (3, 3), (3, 4)])
def test_watts_strogatz_keeps_the_edges_of_the_lattice(dimension, side) -> None:
    d = side**dimension
    for rewire in (0.0, 0.3, 1.0):
        graphs = draws(WattsStrogatz(dimension=(dimension,), rewire=(rewire,)), d, 50)
        assert (graphs.sum(axis=(1, 2)) == dimension * d).all()
    degree = draws(WattsStrogatz(dimension=(dimension,), rewire=(0.0,)), d, 1)
    assert ((degree.sum(axis=1) + degree.sum(axis=2)) == 2 * dimension).all()


@pytest.mark.parametrize(("dimension", "side"), [(2, 6), (3, 4)])
def test_watts_strogatz_drops_excess_nodes_at_random(dimension, side) -> None:
    nodes = side**dimension
    graphs = draws(WattsStrogatz(dimension=(dimension,), rewire=(0.3,)), 30)
    assert_mean(graphs.sum(axis=(1, 2)), dimension * nodes * (30 * 29) / (nodes * (nodes - 1)))


def test_watts_strogatz_agrees_with_networkx_on_a_ring() -> None:
    rng = np.random.default_rng(0)
    count = 1000
    model = WattsStrogatz(dimension=(1,), rewire=(0.3,))
    ours = np.array([np.sort((g | g.T).sum(axis=0)) for g in (model.ordered(rng, 30) for _ in range(count))])
    theirs = np.array(
        [np.sort([k for _, k in nx.watts_strogatz_graph(30, 2, 0.3, seed=s).degree]) for s in range(count)]
    )
    error = np.sqrt((theirs.var(axis=0) + ours.var(axis=0)) / count)
    assert (np.abs(theirs.mean(axis=0) - ours.mean(axis=0)) <= 4.5 * error + 1e-9).all()


@pytest.mark.parametrize(("dimension", "side", "edges"), [(2, 6, 2 * 36), (3, 4, 3 * 64)])
def test_watts_strogatz_has_as_many_edges_as_igraph(dimension, side, edges) -> None:
    igraph = pytest.importorskip("igraph")
    igraph.set_random_number_generator(random.Random(1))
    assert igraph.Graph.Watts_Strogatz(dim=dimension, size=side, nei=1, p=0.3).ecount() == edges
    igraph.set_random_number_generator(random)
    assert draws(WattsStrogatz(dimension=(dimension,)), side**dimension, 1).sum() == edges


def test_rewiring_moves_the_stated_fraction() -> None:
    rng = np.random.default_rng(0)
    lattice = WattsStrogatz(dimension=(2,), rewire=(0.0,)).ordered(rng, 36)
    moved = np.array(
        [1 - (WattsStrogatz(dimension=(2,), rewire=(0.3,)).ordered(rng, 36) & lattice).sum() / 72 for _ in range(MANY)]
    )
    assert 0.28 < moved.mean() < 0.301  # some moved edges land on removed lattice edges


@pytest.mark.parametrize("blocks", [1, 5, 10])
def test_stochastic_block_has_the_expected_edges(blocks) -> None:
    graphs = draws(StochasticBlock(edges_per_node=(2.0,), blocks=(blocks,)), 60)
    assert_mean(graphs.sum(axis=(1, 2)) / 60, 2.0)


def test_blocks_are_denser_inside() -> None:
    """Without edges between blocks, a graph has at least as many components as blocks."""
    rng = np.random.default_rng(0)
    model = StochasticBlock(edges_per_node=(2.0,), blocks=(5,), damping=(0.0,))
    for _ in range(50):
        graph = nx.from_numpy_array(model.sample(rng, 40))
        assert nx.number_connected_components(graph) >= 5
    damped, even = (
        np.mean(
            [
                nx.transitivity(nx.from_numpy_array(g | g.T))
                for g in draws(StochasticBlock(blocks=(5,), damping=(damping,)), 40, 200)
            ]
        )
        for damping in (0.1, 1.0)
    )
    assert damped > 1.5 * even


@pytest.mark.parametrize("radius", [0.1, 0.2])
def test_geometric_graphs_have_the_expected_edges(radius) -> None:
    probability = math.pi * radius**2 - 8 / 3 * radius**3 + radius**4 / 2  # two random points of the unit square
    graphs = draws(Geometric(radius=(radius,)), 30)
    assert_mean(graphs.sum(axis=(1, 2)), probability * 30 * 29 / 2)


@pytest.mark.parametrize(
    "model", [ErdosRenyi(), ScaleFreeIn(), ScaleFreeOut(), StochasticBlock(), WattsStrogatz(), Geometric(radius=(0.3,))]
)
def test_labels_carry_no_information(model) -> None:
    """Each variable is equally often first in the order, and edges point to higher and lower labels equally often."""
    graphs = draws(model, 8)
    to_higher, to_lower = np.triu(graphs).sum(), np.tril(graphs).sum()
    per_graph = (np.triu(graphs) - np.tril(graphs)).sum(axis=(1, 2))
    assert abs(int(to_higher) - int(to_lower)) < 4 * per_graph.std() * math.sqrt(MANY)
    hubs = np.bincount((graphs.sum(axis=2) + np.random.default_rng(1).random((MANY, 8))).argmax(axis=1), minlength=8)
    assert ((hubs - MANY / 8) ** 2 / (MANY / 8)).sum() < 29.9  # chi-square, 7 degrees of freedom, p = 1e-4


# Operations


@given(matrices)
def test_acyclicity_agrees_with_networkx(graph) -> None:
    expected = nx.is_directed_acyclic_graph(nx.from_numpy_array(graph, create_using=nx.DiGraph))
    assert is_acyclic(graph) == expected
    if expected:
        position = np.argsort(topological_order(graph))
        sources, targets = np.nonzero(graph)
        assert (position[sources] < position[targets]).all()
    else:
        with pytest.raises(DataError, match="cycle"):
            topological_order(graph)


@given(matrices, st.integers(0, 2**32))
def test_breaking_cycles_keeps_acyclic_graphs(graph, seed) -> None:
    before = graph.copy()
    broken = break_cycles(np.random.default_rng(seed), graph)
    assert (graph == before).all()
    assert is_acyclic(broken)
    assert (broken <= graph).all()
    if is_acyclic(graph):
        assert (broken == graph).all()


@given(st.integers(1, 8).flatmap(lambda d: hnp.arrays(float, (d, d), elements=st.floats(0, 1))), st.floats(0, 0.9))
def test_projection_is_a_maximal_acyclic_subgraph(weights, threshold) -> None:
    graph = project_to_dag(weights, threshold)
    assert is_acyclic(graph)
    above = weights > threshold
    assert (above | (graph == 0)).all()
    if is_acyclic(above):
        assert (graph == above).all()
    for i, j in zip(*np.nonzero(above & (graph == 0)), strict=True):  # every edge left out would close a cycle
        more = graph.copy()
        more[i, j] = 1
        assert not is_acyclic(more)


@given(matrices, st.integers(0, 2**32))
def test_relabelling_gives_an_isomorphic_graph(graph, seed) -> None:
    other = relabel(np.random.default_rng(seed), graph)
    signature = [sorted(zip(g.sum(0), g.sum(1), np.diag(g), strict=True)) for g in (graph, other)]
    assert signature[0] == signature[1]
