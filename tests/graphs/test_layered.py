from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.errors import ConfigError
from presage.graphs.layered import Empty, Layered, UniformDensity
from presage.graphs.limits import limit_density, limit_parents
from presage.graphs.ops import is_acyclic
from presage.graphs.random import ErdosRenyi, ScaleFreeIn

MODELS = (Empty(), Layered(), UniformDensity())


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("d", [1, 2, 3, 17, 60])
def test_graphs_are_acyclic_and_repeat_for_a_seed(model, d) -> None:
    for seed in range(5):
        graph = model.sample(np.random.default_rng(seed), d)
        assert graph.shape == (d, d)
        assert graph.dtype == np.int8
        assert is_acyclic(graph)
        assert (graph == model.sample(np.random.default_rng(seed), d)).all()


def longest_path(graph: np.ndarray) -> int:
    """Number of edges on the longest directed path."""
    length, power = 0, graph.astype(np.int64)
    while power.any():
        length, power = length + 1, np.minimum(power @ graph, 1)
    return length


@pytest.mark.parametrize("tiers", [2, 3, 4])
def test_layered_graphs_have_no_longer_paths_than_tiers_allow(tiers) -> None:
    model = Layered(tiers=(tiers,), edges_per_node=(2.0,), skip=(0.3,))
    longest = [longest_path(model.sample(np.random.default_rng(seed), 30)) for seed in range(40)]
    assert max(longest) == tiers - 1


def test_layered_graphs_have_the_expected_number_of_edges() -> None:
    model = Layered(tiers=(3,), edges_per_node=(1.5,), skip=(1.0,))
    edges = [int(model.sample(np.random.default_rng(seed), 40).sum()) for seed in range(300)]
    # Partitions with tiny tiers have too few pairs for 60 edges, so the mean is a little lower.
    assert 53 < np.mean(edges) <= 60.5


def test_without_skips_edges_join_adjacent_tiers_only() -> None:
    graph = Layered(tiers=(4,), edges_per_node=(2.0,), skip=(0.0,)).ordered(np.random.default_rng(0), 24)
    for i, j in np.argwhere(graph):  # a longer path between the ends of an edge would be a skipped tier
        rest = graph.copy()
        rest[i, j] = False
        reach = np.linalg.matrix_power(np.eye(24) + rest, 24) > 0
        assert not reach[i, j]


def test_density_is_uniform_on_its_range() -> None:
    model = UniformDensity(density=((0.1, 0.5),))
    density = [model.sample(np.random.default_rng(seed), 40).sum() / (40 * 39 / 2) for seed in range(400)]
    assert np.mean(density) == pytest.approx(0.3, abs=0.02)
    assert np.std(density) == pytest.approx(0.4 / np.sqrt(12), abs=0.015)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 4))
def test_limits_drop_edges_and_add_none(seed, m, most) -> None:
    rng = np.random.default_rng(seed)
    graph = ErdosRenyi(edges_per_node=(3.0,)).sample(rng, m)
    few = limit_parents(rng, graph, most)
    assert (few <= graph).all()
    assert (few.sum(axis=0) == np.minimum(graph.sum(axis=0), most)).all()
    thin = limit_density(rng, graph, 0.3)
    assert (thin <= graph).all()
    if graph.sum() <= 0.3 * m * (m - 1) / 2:
        assert (thin == graph).all()


def test_density_is_limited_on_average() -> None:
    rng = np.random.default_rng(0)
    graph = ScaleFreeIn(edges_per_node=(8,)).sample(rng, 20)
    assert graph.sum() > 0.5 * 190
    kept = [limit_density(rng, graph, 0.4).sum() / 190 for _ in range(200)]
    assert np.mean(kept) == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Layered(tiers=(0,)),
        lambda: Layered(tiers=(2.5,)),
        lambda: Layered(skip=(1.5,)),
        lambda: Layered(edges_per_node=(0.0,)),
        lambda: UniformDensity(density=((0.5, 0.2),)),
        lambda: UniformDensity(density=((0.5, 1.2),)),
    ],
)
def test_bad_parameters_are_refused(make) -> None:
    with pytest.raises(ConfigError):
        make()
