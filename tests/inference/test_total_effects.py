"""Total effects against closed forms of linear models."""

from __future__ import annotations

import json

import numpy as np
import pytest

from presage.columns import ColumnKind
from presage.domain.catalog import simulate
from presage.errors import ConfigError
from presage.graphs.ops import descendants
from presage.inference.moments import ENOUGH_ROWS, Moments
from presage.inference.total_effects import effect_frame, total_effect, total_effects
from presage.types import Dataset

NAMES = ("a", "b", "c", "d", "e")


def linear_model(seed: int, d: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Graph, weights and standard deviations of the noise of a random linear model; row causes column."""
    rng = np.random.default_rng(seed)
    graph = np.triu(rng.random((d, d)) < 0.6, 1)
    order = rng.permutation(d)
    graph = graph[order][:, order].astype(np.int8)
    weights = graph * rng.uniform(0.4, 1.5, size=(d, d)) * rng.choice([-1, 1], size=(d, d))
    return graph, weights, rng.uniform(0.5, 2.0, size=d)


def exact_moments(weights: np.ndarray, noise: np.ndarray, n: int = 10**9) -> Moments:
    """x = W^T x + e, so the covariance is (I - W^T)^-1 D (I - W^T)^-T."""
    mixing = np.linalg.inv(np.eye(len(weights)) - weights.T)
    covariance = mixing @ np.diag(noise**2) @ mixing.T
    scale = np.sqrt(np.diag(covariance))
    return Moments(correlation=covariance / np.outer(scale, scale), scale=scale, n=n)


def draw(weights: np.ndarray, noise: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    mixing = np.linalg.inv(np.eye(len(weights)) - weights.T)
    return (rng.normal(size=(n, len(weights))) * noise) @ mixing.T


@pytest.mark.parametrize("seed", range(8))
def test_effects_equal_the_closed_form_of_a_linear_model(seed: int) -> None:
    graph, weights, noise = linear_model(seed)
    closed = np.linalg.inv(np.eye(5) - weights)  # sum of products of weights over all directed paths
    moments = exact_moments(weights, noise)
    reach = descendants(graph)
    for i in range(5):
        for j in set(range(5)) - {i}:
            raw = total_effect(graph[None], moments, NAMES, i, j, units="raw")
            assert raw.effect == pytest.approx(closed[i, j], abs=1e-6)
            assert raw.probability == reach[i, j]
            standardized = total_effect(graph[None], moments, NAMES, i, j)
            assert standardized.effect * moments.scale[j] / moments.scale[i] == pytest.approx(closed[i, j], abs=1e-6)
            assert raw.high - raw.low < 1e-3  # a billion rows leave no sampling error


def test_the_mean_over_graphs_weighs_each_graph_by_its_share() -> None:
    _, weights, noise = linear_model(1)
    moments = exact_moments(weights, noise)
    empty, one = np.zeros((2, 5, 5), dtype=np.int8)
    one[0, 1] = 1
    slope = moments.correlation[0, 1]  # no parents: the regression of b on a alone
    found = total_effect(np.stack([one, empty, empty, one]), moments, NAMES, 0, 1)
    assert found.effect == pytest.approx(slope / 2, abs=1e-6)
    assert found.probability == 0.5
    assert sorted([found.low, found.high]) == pytest.approx(sorted([0.0, slope]), abs=1e-4)
    rare = total_effect(np.stack([one] + [empty] * 99), moments, NAMES, 0, 1)
    assert (rare.low, rare.high) == (0.0, 0.0)  # 1 % of the graphs lies outside a 90 % interval


def test_a_variable_has_no_effect_on_its_causes_and_non_descendants() -> None:
    chain = np.zeros((3, 3), dtype=np.int8)
    chain[0, 1] = 1
    moments = Moments(correlation=np.full((3, 3), 0.5) + 0.5 * np.eye(3), scale=np.ones(3), n=100)
    found = total_effects(chain[None], moments, 1, [0, 2])
    for part in found:
        np.testing.assert_array_equal(part, 0.0)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_cover_the_true_effect_as_often_as_they_say(level: float) -> None:
    graph, weights, noise = linear_model(5)
    closed = np.linalg.inv(np.eye(5) - weights)
    pairs = np.argwhere(descendants(graph))
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(300):
        moments = Moments.of(Dataset(x=draw(weights, noise, 40, rng)))
        i, j = pairs[len(covered) % len(pairs)]
        found = total_effect(graph[None], moments, NAMES, int(i), int(j), units="raw", level=level)
        covered.append(found.low <= closed[i, j] <= found.high)
    assert abs(np.mean(covered) - level) < 3.5 * np.sqrt(level * (1 - level) / 300)


def test_mixture_quantiles_equal_those_of_draws() -> None:
    rng = np.random.default_rng(2)
    _, weights, noise = linear_model(3)
    moments = exact_moments(weights, noise, n=30)
    graphs = np.triu(rng.random((40, 5, 5)) < 0.5, 1).astype(np.int8)
    found = total_effects(graphs, moments, 1, [3], level=0.8)
    draws = []
    for graph in graphs:
        parents = np.flatnonzero(graph[:, 1])
        inputs = [1, *parents]
        inverse = np.linalg.inv(moments.correlation[np.ix_(inputs, inputs)])
        slope = inverse @ moments.correlation[inputs, 3]
        error = np.sqrt((1 - slope @ moments.correlation[inputs, 3]) * inverse[0, 0] / (30 - len(inputs) - 1))
        size = 5000
        some = slope[0] + error * rng.standard_t(30 - len(inputs) - 1, size=size)
        draws.append(some if descendants(graph)[1, 3] else np.zeros(size))
    assert 0 < found.probability[0] < 1
    low, high = np.quantile(np.concatenate(draws), [0.1, 0.9])
    assert (found.low[0], found.high[0]) == pytest.approx((low, high), abs=0.01)


def test_moments_come_from_observational_rows_if_there_are_enough() -> None:
    dataset = simulate("linear", d=5, n=200, n_interventional=100, seed=1)
    moments = Moments.of(dataset)
    assert (moments.n, moments.observational, moments.pairs) == (100, True, None)
    np.testing.assert_allclose(moments.correlation, np.corrcoef(dataset.x[:100].T), atol=1e-9)
    np.testing.assert_allclose(moments.scale, dataset.x[:100].std(axis=0))
    few = Moments.of(dataset.take(np.arange(100 - ENOUGH_ROWS + 1, 200)))
    assert (few.n, few.observational) == (100 + ENOUGH_ROWS - 1, False)


def test_moments_of_long_tables_are_summed_over_blocks_of_rows() -> None:
    x = np.random.default_rng(0).normal(size=(40_000, 3)) @ np.array(
        [[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 5.0]]
    )
    moments = Moments.of(Dataset(x=x + 1e6))
    np.testing.assert_allclose(moments.correlation, np.corrcoef(x.T), atol=1e-8)
    np.testing.assert_allclose(moments.scale, x.std(axis=0), rtol=1e-6)


def test_moments_of_huge_values_stay_finite() -> None:
    huge = np.array([1.7e308, -1.7e308, 1.7e308, 1e-320])
    moments = Moments.of(Dataset(x=np.column_stack([huge, np.arange(4.0), 1e-310 * np.arange(4.0)])))
    expected = np.corrcoef(huge / 1e308, np.arange(4.0))
    np.testing.assert_allclose(moments.correlation[:2, :2], expected, atol=1e-9)
    assert np.isfinite(moments.correlation).all()


def test_missing_cells_are_left_out_pair_by_pair() -> None:
    rng = np.random.default_rng(0)
    _, weights, noise = linear_model(2)
    x = draw(weights, noise, 4000, rng)
    hidden = rng.random(x.shape) < 0.3
    moments = Moments.of(Dataset(x=np.where(hidden, np.nan, x)))
    assert moments.pairs is not None
    assert moments.pairs[1, 2] == (~hidden[:, 1] & ~hidden[:, 2]).sum()
    np.testing.assert_allclose(moments.correlation, np.corrcoef(x.T), atol=0.06)
    assert np.linalg.eigvalsh(moments.correlation)[0] >= -1e-9


def test_fewer_common_rows_widen_the_interval() -> None:
    graph, weights, noise = linear_model(0)
    i, j = np.argwhere(graph)[0]
    moments = exact_moments(weights, noise, n=1000)
    pairs = np.full((5, 5), 1000)
    pairs[i, j] = pairs[j, i] = 50
    fewer = Moments(correlation=moments.correlation, scale=moments.scale, n=1000, pairs=pairs)
    widths = [
        found.high - found.low
        for found in (total_effect(graph[None], some, NAMES, int(i), int(j)) for some in (moments, fewer))
    ]
    assert widths[1] > 3 * widths[0]


def test_collinear_causes_give_a_wide_interval_and_constants_no_effect() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    x = np.column_stack([a, 2 * a, a + rng.normal(size=200), np.ones(200)])
    moments = Moments.of(Dataset(x=x))
    graph = np.zeros((1, 4, 4), dtype=np.int8)
    graph[0, 0, 1] = graph[0, 1, 2] = graph[0, 3, 2] = 1
    names = ("a", "copy", "b", "constant")
    found = total_effect(graph, moments, names, 1, 2)
    assert found.high - found.low > 10
    assert total_effect(graph, moments, names, 3, 2, units="raw").effect == 0


def test_table_of_effects_holds_the_pairs_above_the_threshold() -> None:
    graph, weights, noise = linear_model(4)
    moments = exact_moments(weights, noise)
    other = graph.copy()
    i, j = np.argwhere(graph)[0]
    other[i, j] = 0
    graphs = np.stack([graph, graph, other])
    frame = effect_frame(graphs, moments, NAMES, threshold=0.5, units="raw")
    reach = descendants(graphs).mean(axis=0)
    assert set(zip(frame["source"], frame["target"], strict=True)) == {
        (NAMES[a], NAMES[b]) for a, b in np.argwhere(reach > 0.5)
    }
    assert frame["effect"].abs().is_monotonic_decreasing
    for row in frame.itertuples():
        one = total_effect(graphs, moments, NAMES, NAMES.index(row.source), NAMES.index(row.target), units="raw")
        assert (row.effect, row.low, row.high) == pytest.approx((one.effect, one.low, one.high))
        assert row.probability == pytest.approx(one.probability)
    assert effect_frame(np.zeros((2, 5, 5), dtype=np.int8), moments, NAMES).empty


def test_moments_survive_json() -> None:
    x = np.random.default_rng(0).normal(size=(60, 4))
    x[0, 1] = np.nan
    counts = np.random.default_rng(0).poisson(5.0, size=(60, 4))
    for dataset in (Dataset(x=x), Dataset(x=counts, kind="counts")):
        moments = Moments.of(dataset)
        again = Moments.from_json(json.loads(json.dumps(moments.to_json())))
        for name in ("correlation", "scale", "pairs", "n", "observational"):
            np.testing.assert_array_equal(getattr(again, name), getattr(moments, name))


def test_bad_requests_get_a_sentence() -> None:
    graph, weights, noise = linear_model(0)
    moments = exact_moments(weights, noise)
    counts = Moments(correlation=moments.correlation, scale=None, n=100)
    for options, sentence in (
        ({"cause": 1, "outcome": 1}, "both 'b'"),
        ({"units": "metres"}, "'standardized' or 'raw'"),
        ({"level": 1.5}, "between 0 and 1"),
        ({"moments": None}, "no moments"),
        ({"moments": counts, "units": "raw"}, "counts"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            total_effect(
                **{"graphs": graph[None], "moments": moments, "names": NAMES, "cause": 0, "outcome": 1} | options
            )


def test_an_effect_prints_as_a_sentence() -> None:
    graph = np.array([[[0, 1], [0, 0]]], dtype=np.int8)
    moments = Moments(correlation=np.array([[1.0, 0.5], [0.5, 1.0]]), scale=np.ones(2), n=100)
    text = repr(total_effect(graph, moments, ("dose", "size"), 0, 1))
    assert text.startswith("TotalEffect(dose on size: 0.5, 90% interval 0.35")
    assert text.endswith("(standardized); ancestor with probability 1.00)")


def nominal_confounder(n: int = 4000) -> Dataset:
    """A nominal cause with three unordered levels shifts a and b; b rises by 0.5 per unit of a."""
    rng = np.random.default_rng(0)
    level = rng.integers(3, size=n)
    shift = np.array([0.0, 3.0, 0.0])[level]  # not monotonic in the code
    a = shift + rng.normal(size=n)
    b = 0.5 * a + 2.0 * shift + rng.normal(size=n)
    kinds = np.array([ColumnKind.NOMINAL, ColumnKind.CONTINUOUS, ColumnKind.CONTINUOUS])
    return Dataset(x=np.column_stack([level, a, b]), names=("site", "a", "b"), column_kinds=kinds)


def test_nominal_causes_are_adjusted_for_by_their_levels() -> None:
    graph = np.zeros((1, 3, 3), dtype=np.int8)
    graph[0, 0, 1] = graph[0, 0, 2] = graph[0, 1, 2] = 1
    dataset = nominal_confounder()
    moments = Moments.of(dataset)
    found = total_effect(graph, moments, dataset.names, 1, 2, units="raw")
    assert found.low < 0.5 < found.high
    assert found.high - found.low < 0.1
    frame = effect_frame(graph, moments, dataset.names)
    assert frame[["source", "target"]].to_numpy().tolist() == [["a", "b"]]
    for pair in ((0, 1), (1, 0)):
        with pytest.raises(ConfigError, match="'site' have no order"):
            total_effect(graph, moments, dataset.names, *pair)
    again = Moments.from_json(json.loads(json.dumps(moments.to_json())))
    assert total_effect(graph, again, dataset.names, 1, 2, units="raw") == found


def test_rare_levels_of_a_nominal_variable_share_the_reference() -> None:
    level = np.arange(300) % 100
    kinds = np.array([ColumnKind.NOMINAL, ColumnKind.CONTINUOUS])
    x = np.column_stack([level, np.random.default_rng(0).normal(size=300)])
    moments = Moments.of(Dataset(x=x, column_kinds=kinds))
    assert moments.indicator_of == (0,) * 20
    assert moments.correlation.shape == (22, 22)
