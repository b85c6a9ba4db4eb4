"""Published regulatory networks, modular subgraphs and effect signs."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presage.config import from_json, to_json
from presage.errors import ConfigError
from presage.graphs.ops import is_acyclic
from presage.graphs.regulatory import (
    NETWORKS,
    BetaSigns,
    NetworkSigns,
    RegulatorySubgraph,
    Subgraph,
    extract_module,
    load_network,
    modularity,
)

ROOT = Path(__file__).parents[2]


def skeleton(name: str) -> np.ndarray:
    network = load_network(name)
    adjacent = np.zeros((len(network.genes), len(network.genes)), dtype=bool)
    adjacent[network.edges[0], network.edges[1]] = True
    adjacent |= adjacent.T
    np.fill_diagonal(adjacent, False)
    return adjacent


@pytest.mark.parametrize(("name", "genes", "edges"), [("ecoli", 1565, 3758), ("yeast", 4441, 12873)])
def test_size_of_the_networks(name: str, genes: int, edges: int) -> None:
    network = load_network(name)
    assert len(network.genes) == len(set(network.genes)) == genes
    assert network.edges.shape == (2, edges)
    assert len(np.unique(network.edges, axis=1).T) == edges


def test_signs_of_the_networks() -> None:
    ecoli, yeast = load_network("ecoli"), load_network("yeast")
    assert [(ecoli.signs == sign).sum() for sign in (1, -1, 0)] == [1993, 1541, 209 + 15]
    assert ecoli.positive_share == pytest.approx(1993 / 3534)
    assert not yeast.signs.any()
    number = {gene: k for k, gene in enumerate(ecoli.genes)}
    (edge,) = np.flatnonzero((ecoli.edges[0] == number["acrR"]) & (ecoli.edges[1] == number["acrA"]))
    assert ecoli.signs[edge] == -1  # AcrR represses acrA


def test_networks_are_read_only_and_unknown_names_raise() -> None:
    with pytest.raises(ValueError, match="read-only"):
        load_network("ecoli").edges[0, 0] = 1
    with pytest.raises(ConfigError, match="ecoli, yeast"):
        load_network("human")


def test_skeleton_and_components_agree_with_networkx() -> None:
    import networkx as nx

    for name in NETWORKS:
        network, graph = load_network(name), nx.from_numpy_array(skeleton(name))
        assert network.degree.tolist() == [degree for _, degree in graph.degree()]
        sizes = np.zeros(len(network.genes), dtype=int)
        for members in nx.connected_components(graph):
            sizes[list(members)] = len(members)
        assert np.array_equal(network.component, sizes)


def test_modularity_is_that_of_the_definition() -> None:
    adjacent = skeleton("ecoli").astype(float)
    network = load_network("ecoli")
    degree, total = adjacent.sum(axis=0), adjacent.sum()
    matrix = adjacent - np.outer(degree, degree) / total
    chosen = np.random.default_rng(0).permutation(len(adjacent))[:50]
    side = np.full(len(adjacent), -1.0)
    side[chosen] = 1.0
    assert modularity(network, chosen) == pytest.approx(side @ matrix @ side / (2 * total), abs=1e-12)


@pytest.mark.parametrize("name", NETWORKS)
def test_modules_are_connected_and_more_modular_than_random_sets(name: str) -> None:
    import networkx as nx

    network, graph = load_network(name), nx.from_numpy_array(skeleton(name))
    rng = np.random.default_rng(1)
    for d in (2, 20, 60):
        chosen = extract_module(rng, network, d)
        assert len(set(chosen.tolist())) == d
        assert nx.is_connected(graph.subgraph(chosen.tolist()))
    grown, spread, walked = [], [], []
    for _ in range(10):
        grown.append(modularity(network, extract_module(rng, network, 50)))
        spread.append(modularity(network, rng.permutation(len(network.genes))[:50]))
        walked.append(modularity(network, extract_module(rng, network, 50, top=1.0)))  # connected, any neighbour
    assert np.mean(grown) > np.mean(walked)
    assert np.mean(grown) > np.mean(spread) + 4 * np.std(spread)


def test_each_step_draws_among_the_most_modular_neighbours() -> None:
    """Incremental gains against modularity computed from scratch."""
    network = load_network("ecoli")
    adjacent = skeleton("ecoli")
    chosen = extract_module(np.random.default_rng(2), network, 25)
    for size in range(1, 25):
        now = chosen[:size]
        near = np.setdiff1d(np.flatnonzero(adjacent[now].any(axis=0)), now)
        score = {int(v): modularity(network, np.append(now, v)) for v in near}
        limit = sorted(score.values(), reverse=True)[int(np.ceil(0.2 * len(near))) - 1]
        assert score[int(chosen[size])] >= limit - 1e-12


def test_seeds_outside_large_components_are_never_used() -> None:
    network = load_network("ecoli")
    for seed in range(20):
        assert len(extract_module(np.random.default_rng(seed), network, 100)) == 100
    with pytest.raises(ConfigError, match="1477"):
        extract_module(np.random.default_rng(0), network, 1500)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 40), name=st.sampled_from(NETWORKS))
def test_subgraphs_are_acyclic_subgraphs_of_the_network(seed: int, d: int, name: str) -> None:
    model = RegulatorySubgraph(network=(name,))
    drawn, again = (model.extract(np.random.default_rng(seed), d) for _ in range(2))
    assert np.array_equal(drawn.graph, again.graph)
    assert drawn.names == again.names
    assert is_acyclic(drawn.graph)
    network = load_network(name)
    number = {gene: k for k, gene in enumerate(network.genes)}
    published = {(int(i), int(j)): int(sign) for i, j, sign in zip(*network.edges, network.signs, strict=True)}
    for i, j in zip(*np.nonzero(drawn.graph), strict=True):
        edge = number[drawn.names[i]], number[drawn.names[j]]
        assert drawn.signs is not None
        assert published[edge] == drawn.signs[i, j]
    inside = {number[name] for name in drawn.names}
    loops = sum(i == j for i, j in published if i in inside and j in inside)
    total = sum(i in inside and j in inside for i, j in published)
    assert drawn.graph.sum() <= total - loops


def test_cycles_are_broken_by_a_seeded_choice() -> None:
    """The full E. coli network has cycles; which edges are removed depends on the seed only."""
    from presage.graphs.ops import break_cycles

    network = load_network("ecoli")
    graph, _ = network.subgraph(np.arange(len(network.genes)))
    assert not is_acyclic(graph)
    one, two, three = (break_cycles(np.random.default_rng(seed), graph) for seed in (0, 0, 1))
    assert is_acyclic(one)
    assert np.array_equal(one, two)
    assert not np.array_equal(one, three)


def test_network_signs_keep_known_signs_and_impute_the_rest_by_frequency() -> None:
    known = np.zeros((200, 200), dtype=np.int8)
    known[:50] = 1
    known[50:100] = -1
    subgraph = Subgraph(np.zeros((200, 200)), (), known, 0.7)
    signs = NetworkSigns().sample(np.random.default_rng(0), subgraph)
    assert (signs[:50] == 1).all()
    assert (signs[50:100] == -1).all()
    assert np.mean(signs[100:] == 1) == pytest.approx(0.7, abs=4 * np.sqrt(0.21 / 20_000))


@pytest.mark.parametrize("rule", [BetaSigns(a=1.0, b=1.0), BetaSigns(a=0.5, b=0.5), NetworkSigns()])
def test_beta_signs_follow_their_beta_distribution(rule: BetaSigns) -> None:
    subgraph = Subgraph(np.zeros((2000, 2000)), ())  # no published signs, as in yeast
    share = (rule.sample(np.random.default_rng(0), subgraph) == 1).mean(axis=1)  # per regulator
    mean = rule.a / (rule.a + rule.b)
    variance = mean * (1 - mean) / (rule.a + rule.b + 1)
    assert share.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / 2000))
    assert share.var() == pytest.approx(variance, rel=0.1)


def test_invalid_parameters_raise() -> None:
    with pytest.raises(ConfigError, match="above 0"):
        BetaSigns(a=0.0)
    with pytest.raises(ConfigError, match="human"):
        RegulatorySubgraph(network=("human",))
    with pytest.raises(ConfigError, match="top"):
        RegulatorySubgraph(top=(0.0,))


def test_components_round_trip_through_json() -> None:
    for model in (RegulatorySubgraph(network=("yeast",)), NetworkSigns(), BetaSigns(a=0.5, b=0.5)):
        assert from_json(to_json(model)) == model


def test_builder_reads_the_published_format() -> None:
    spec = importlib.util.spec_from_file_location("build_regulatory", ROOT / "scripts" / "build_regulatory.py")
    assert spec is not None
    assert spec.loader is not None
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    names, edges, signs = builder.read("b\ta\t+\nb\tc\t-\nc\tc\t+-\nb\tc\t+\n")
    assert names == ["a", "b", "c"]
    assert edges.tolist() == [[1, 1, 2], [0, 2, 2]]
    assert signs.tolist() == [1, 0, 0]  # listed with both signs: unknown
