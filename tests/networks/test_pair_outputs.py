"""The pair network with kinds of columns and three outputs: shapes, symmetries, streaming, degenerate tables."""

import dataclasses

import numpy as np
import pytest
import torch

from presage.columns import ColumnKind
from presage.data.encode import encode
from presage.data.row_statistics import Columns, pair_features
from presage.domain.general import GeneralDomain
from presage.errors import ConfigError
from presage.networks.network import Network, Prediction, build_network
from presage.networks.pair import PairConfig, PairNetwork
from presage.rng import Stream, generator

CONFIG = PairConfig(
    width=16,
    cell_width=8,
    rounds=2,
    blocks=1,
    outer=4,
    outer_intervened=4,
    triangle=8,
    heads=2,
    pair_z_scores=True,
    row_clip_sd=2.0,
    add_row_scaled_view=True,
    column_kinds=True,
    hidden_causes=True,
    effects=True,
)


def _network(config: PairConfig = CONFIG) -> Network:
    network = build_network(config, seed=0)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return network.eval()


def _inputs(k: int, stratum: str = "mixed", d: int = 6, n: int = 70):  # type: ignore[no-untyped-def]
    item = GeneralDomain.stratum(stratum).draw(generator(3, Stream.VALIDATION, k), d=d, n=n, n_interventional=20)
    return item["x"], item["column_kinds"], item["interventions"], item["missing"]


def _predict(network: Network, x, kinds, u, missing, rows: int | None = None) -> Prediction:  # type: ignore[no-untyped-def]
    encoded = encode(x, kinds, missing)
    columns = Columns(*(torch.from_numpy(part) for part in (kinds, encoded.second, encoded.association)))
    values, mask, hidden = (torch.from_numpy(part) for part in (encoded.x, u, missing))
    return network.predict_outputs(values, mask, hidden, columns, rows)


def _close(one: Prediction, two: Prediction, order: np.ndarray | None = None) -> None:
    for a, b in zip(one, two, strict=True):
        assert a is not None
        assert b is not None
        torch.testing.assert_close(a if order is None else a[order][:, order], b, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize("stratum", ["mixed", "discrete"])
def test_rows_variables_and_levels_have_no_order(stratum: str, k: int) -> None:
    network, rng = _network(), np.random.default_rng(k)
    x, kinds, u, missing = _inputs(k, stratum)
    before = _predict(network, x, kinds, u, missing)
    rows, order = rng.permutation(len(x)), rng.permutation(len(kinds))
    _close(before, _predict(network, x[rows], kinds, u[rows], missing[rows]))
    moved = _predict(network, x[:, order].copy(), kinds[order], u[:, order].copy(), missing[:, order].copy())
    _close(before, moved, order)
    renamed = x.copy()
    for j in np.flatnonzero(kinds >= ColumnKind.NOMINAL):
        renamed[:, j] = rng.permutation(30)[x[:, j].astype(int)]
    _close(before, _predict(network, renamed, kinds, u, missing))


@pytest.mark.parametrize("rows", [1, 7, 69])
def test_streaming_changes_nothing(rows: int) -> None:
    network, inputs = _network(), _inputs(1)
    _close(_predict(network, *inputs), _predict(network, *inputs, rows=rows))


def test_hidden_causes_are_symmetric() -> None:
    found = _predict(_network(), *_inputs(2))
    assert found.confounded is not None
    torch.testing.assert_close(found.confounded, found.confounded.T)
    assert found.effect is not None
    assert not torch.allclose(found.effect, found.effect.T)


@pytest.mark.parametrize(("d", "n"), [(1, 1), (2, 1), (2, 5), (9, 3)])
def test_small_tables_are_finite(d: int, n: int) -> None:
    x = np.random.default_rng(0).integers(0, 3, (n, d)).astype(float)
    kinds = np.arange(d, dtype=np.int8) % len(ColumnKind)
    found = _predict(_network(), x, kinds, np.zeros((n, d), dtype=bool), np.zeros((n, d), dtype=bool))
    assert all(part is not None and bool(torch.isfinite(part).all()) for part in found)


def test_without_kinds_all_columns_are_continuous() -> None:
    network = _network()
    x = np.random.default_rng(1).normal(size=(50, 5))
    kinds, no = np.zeros(5, dtype=np.int8), np.zeros(x.shape, dtype=bool)
    explicit = _predict(network, x, kinds, no, no)
    values = torch.from_numpy(encode(x, kinds).x)
    _close(explicit, network.predict_outputs(values, torch.from_numpy(no)))


def test_a_network_grows_without_another_answer() -> None:
    small = dataclasses.replace(CONFIG, rounds=1, pair_z_scores=False, add_row_scaled_view=False, row_clip_sd=0.0)
    before = _network(small)
    grown = build_network(dataclasses.replace(small, rounds=3, blocks=2, pair_z_scores=True), seed=1).eval()
    grown.warm_start(before)
    inputs = _inputs(3)
    _close(_predict(before, *inputs), _predict(grown, *inputs))


def test_a_third_view_is_gained_and_dropped_again_without_another_answer() -> None:
    two = dataclasses.replace(CONFIG, pair_z_scores=True, add_row_scaled_view=False, row_clip_sd=0.0)
    before = _network(two)
    three = build_network(dataclasses.replace(two, add_row_scaled_view=True, row_clip_sd=2.0), seed=1).eval()
    three.warm_start(before)
    after = build_network(two, seed=2).eval()
    after.warm_start(three)
    inputs = _inputs(4)
    _close(_predict(before, *inputs), _predict(after, *inputs))


def test_a_network_of_edges_alone_starts_from_one_with_all_answers() -> None:
    """On continuous columns without associations, whose weights are set to 0 here, it gives the same edges."""
    before = _network()
    assert isinstance(before, PairNetwork)
    with torch.no_grad():
        width = pair_features(False, 0, True) - pair_features(False, 0)
        before.pair_in.weight[:, -width : 2 * -len(ColumnKind)] = 0.0
    edges = dataclasses.replace(CONFIG, column_kinds=False, hidden_causes=False, effects=False)
    after = build_network(edges, seed=1).eval()
    after.warm_start(before)
    x = torch.from_numpy(np.random.default_rng(2).normal(size=(80, 6)).astype(np.float32))
    u = torch.zeros_like(x, dtype=torch.bool)
    u[60:, 2] = True
    found = after.predict_outputs(x, u)
    torch.testing.assert_close(found.edge, before.predict_outputs(x, u).edge, atol=1e-5, rtol=1e-5)
    assert found.confounded is None
    assert found.effect is None
    with pytest.raises(ConfigError, match="its network differs"):
        before.warm_start(after)
