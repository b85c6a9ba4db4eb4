"""What must stay true of the pair network, whatever its weights."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from presage.data.row_statistics import (
    RowStatistics,
    cell_features,
    pair_features,
    rank_normal,
    rescale_rows,
    winsorize,
)
from presage.errors import ConfigError
from presage.networks.network import NetConfig, build_network
from presage.networks.pair import PairConfig, PairNetwork

SMALL = PairConfig(width=16, cell_width=8, rounds=3, blocks=1, outer=4, outer_intervened=4, triangle=8, heads=2)
SHRUNK = dataclasses.replace(SMALL, row_clip_sd=1.0)
BESIDE = dataclasses.replace(SMALL, row_clip_sd=1.0, add_row_scaled_view=True, pair_z_scores=True)
every_reading = pytest.mark.parametrize(
    "config", [SMALL, SHRUNK, BESIDE], ids=["plain", "shrunk", "add_row_scaled_view"]
)


def _network(config: PairConfig = SMALL, seed: int = 0) -> PairNetwork:
    """A network whose silent branches speak, so that every part matters."""
    network = build_network(config, seed)
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in network.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=random))
    assert isinstance(network, PairNetwork)
    return network.eval()


def _data(seed: int, n: int, d: int, *, n_intervened: bool = True, missing: bool = False):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=random)
    u = (torch.rand(n, d, generator=random) < 0.2) if n_intervened else torch.zeros(n, d, dtype=torch.bool)
    hidden = (torch.rand(n, d, generator=random) < 0.15) if missing else None
    return x, u, hidden


@every_reading
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(2, 30),
    d=st.integers(2, 6),
    n_intervened=st.booleans(),
    missing=st.booleans(),
)
def test_row_order_changes_nothing_and_variables_permute_the_answer(config, seed, n, d, n_intervened, missing):
    network = _network(config)
    x, u, hidden = _data(seed, n, d, n_intervened=n_intervened, missing=missing)
    answer = network.predict(x, u, hidden)
    rows = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    columns = torch.randperm(d, generator=torch.Generator().manual_seed(seed + 1))
    shuffled = network.predict(x[rows], u[rows], None if hidden is None else hidden[rows])
    torch.testing.assert_close(shuffled, answer, rtol=1e-3, atol=1e-3)
    turned = network.predict(x[:, columns], u[:, columns], None if hidden is None else hidden[:, columns])
    torch.testing.assert_close(turned, answer[columns][:, columns], rtol=1e-3, atol=1e-3)


@every_reading
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("rows", [1, 7, 64, 100])
def test_streaming_gives_the_answer_of_one_pass(config, rows, missing):
    network = _network(config)
    x, u, hidden = _data(3, 100, 5, missing=missing)
    with torch.no_grad():
        whole = network(x[None], u[None], None if hidden is None else hidden[None])[0]
    torch.testing.assert_close(network.predict(x, u, hidden, rows=rows), whole, rtol=1e-4, atol=1e-4)


@every_reading
@pytest.mark.parametrize(
    ("name", "n", "d"), [("one row", 1, 4), ("two variables", 50, 2), ("one variable", 20, 1), ("n < d", 3, 12)]
)
def test_finite_in_degenerate_cases(config, name, n, d):
    x, u, hidden = _data(1, n, d, missing=n > 1)
    for mask in (None, hidden):
        assert torch.isfinite(_network(config).predict(x, u, mask)).all(), name


@every_reading
def test_finite_for_constant_columns_and_everything_missing_or_intervened(config):
    network = _network(config)
    x, u, _ = _data(1, 20, 4)
    constant = x.clone()
    constant[:, 2] = 0.0
    assert torch.isfinite(network.predict(constant, u)).all()
    twins = x.clone()
    twins[:, 1] = twins[:, 0]
    assert torch.isfinite(network.predict(twins, u)).all()
    hidden = torch.zeros(20, 4, dtype=torch.bool)
    hidden[:, 1] = True
    assert torch.isfinite(network.predict(x, u, hidden)).all()
    assert torch.isfinite(network.predict(x, torch.ones_like(u))).all()
    huge = x * 1e15
    assert torch.isfinite(network.predict(huge, u)).all()


@every_reading
def test_missing_cells_do_not_matter_but_their_absence_does(config):
    network = _network(config)
    x, u, hidden = _data(5, 60, 4, missing=True)
    other = torch.where(hidden, torch.full_like(x, 3.0), x)
    torch.testing.assert_close(network.predict(other, u, hidden), network.predict(x, u, hidden))
    assert not torch.allclose(network.predict(x, u), network.predict(x, u, hidden), atol=1e-3)


def test_interventions_matter():
    network = _network()
    x, u, _ = _data(6, 60, 4)
    assert not torch.allclose(network.predict(x, u), network.predict(x, torch.zeros_like(u)), atol=1e-3)


@every_reading
def test_batches_do_not_mix_and_gradients_reach_every_weight(config):
    network = _network(config)
    x = torch.randn(3, 40, 5, generator=torch.Generator().manual_seed(0))
    u = torch.zeros(3, 40, 5)
    u[:, 30:, 1] = 1.0
    together = network(x, u)
    torch.testing.assert_close(together[1], network(x[1:2], u[1:2])[0], rtol=1e-4, atol=1e-4)
    together.square().sum().backward()
    silent = [name for name, p in network.named_parameters() if p.grad is None or p.grad.abs().max() == 0]
    assert silent == []


def test_a_fresh_network_expects_few_edges():
    x, u, _ = _data(0, 100, 8)
    logits = build_network(PairConfig(), 0).predict(x, u)
    assert -4.0 < logits.mean() < -2.0


def test_scores_are_normal_scores_with_averaged_ties():
    x = torch.tensor([[3.0, 0.0], [1.0, 0.0], [2.0, 5.0], [2.0, 7.0]])
    expected = norm.ppf((rankdata(x.numpy(), axis=0) - 0.5) / 4)
    torch.testing.assert_close(rank_normal(x[None])[0], torch.tensor(expected, dtype=torch.float32), rtol=0, atol=1e-5)
    hidden = torch.tensor([[False, False], [True, False], [False, False], [False, False]])
    pair_z_scores = rank_normal(x[None], hidden[None])[0]
    expected = norm.ppf((rankdata([3.0, 2.0, 2.0]) - 0.5) / 3)
    torch.testing.assert_close(
        pair_z_scores[[0, 2, 3], 0], torch.tensor(expected, dtype=torch.float32), rtol=0, atol=1e-5
    )
    assert pair_z_scores[1, 0] == 0.0


def test_ranks_of_large_tables_are_found_by_few_columns_without_a_difference(monkeypatch):
    x = torch.randn(2, 40, 7, generator=torch.Generator().manual_seed(0)).round(decimals=1)
    hidden = torch.rand(2, 40, 7, generator=torch.Generator().manual_seed(1)) < 0.1
    whole = rank_normal(x), rank_normal(x, hidden)
    monkeypatch.setattr("presage.data.row_statistics.RANKED_AT_ONCE", 160)  # two columns
    assert torch.equal(rank_normal(x), whole[0])
    assert torch.equal(rank_normal(x, hidden), whole[1])


def test_fixed_statistics_are_what_they_say():
    random = torch.Generator().manual_seed(2)
    x = torch.randn(1, 500, 3, generator=random)
    x[..., 2] += 2.0 * x[..., 0]
    x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True, unbiased=False)
    u = torch.zeros(1, 500, 3)
    u[0, 400:, 1] = 1.0
    statistics = RowStatistics(x, u)
    features = statistics.pair_features()
    assert features.shape == (1, 3, 3, pair_features(False))
    torch.testing.assert_close(features[0, ..., 0], torch.corrcoef(x[0].T), rtol=0, atol=1e-4)
    torch.testing.assert_close(statistics.n_intervened[0, 1], torch.full((3,), 100.0))
    torch.testing.assert_close(statistics.moments[0][1][0, 1], x[0, 400:].mean(0), rtol=0, atol=1e-4)
    sure = statistics.pair_features(pair_z_scores=True)
    assert sure.shape == (1, 3, 3, pair_features(True))
    plain = features.shape[-1] // 2 - 2
    torch.testing.assert_close(sure[..., :plain], features[..., :plain])
    shift = (x[0, 400:].mean(0) * 10.0).asinh()  # 100 rows: a standard error of a tenth
    torch.testing.assert_close(sure[0, 1, :, plain + 1], shift, rtol=0, atol=1e-3)
    cells = statistics.features(slice(None))
    assert cells.shape == (1, 500, 3, cell_features())
    # The residual of a variable given all others has unit variance and is uncorrelated with the others.
    residual = cells[0, :, :, 3]
    assert abs(float(residual[:, 2].std()) - 1.0) < 0.02
    assert abs(float(torch.corrcoef(torch.stack([residual[:, 2], x[0, :, 0]]))[0, 1])) < 0.05


def test_config_travels_as_json_and_refuses_nonsense():
    assert NetConfig.from_json(SMALL.to_json()) == SMALL
    with pytest.raises(ConfigError, match="no field 'depth'"):
        PairConfig.from_json({"depth": 3})
    with pytest.raises(ConfigError, match="width"):
        PairConfig(width=0)
    with pytest.raises(ConfigError, match="true or false"):
        PairConfig(pair_z_scores=1)
    with pytest.raises(ConfigError, match="winsorize_sd"):
        PairConfig(winsorize_sd=-1.0)
    with pytest.raises(ConfigError, match="set winsorize_sd"):
        PairConfig(winsorize_sd=0.0, row_clip_sd=2.0)
    with pytest.raises(ConfigError, match="row_clip_sd above 0"):
        PairConfig(add_row_scaled_view=True)
    with pytest.raises(ConfigError, match="multiple of 4"):
        PairConfig(triangle=6)


@pytest.mark.parametrize("missing", [False, True])
def test_a_few_enormous_values_do_not_set_the_scale(missing):
    random = torch.Generator().manual_seed(3)
    calm = torch.randn(1, 400, 2, generator=random)
    wild = calm.clone()
    wild[0, :4, 0] = 1e4
    hidden = torch.zeros_like(wild, dtype=torch.bool)
    hidden[0, 50:90, 1] = True
    wild[hidden] = -1e6
    drawn = winsorize(wild, hidden if missing else None, 3.0)
    inside = calm[0, 10:50, 0] - wild[0, :, 0].median()
    torch.testing.assert_close(drawn[0, 10:50, 0], inside.clamp(drawn[0, :, 0].min(), drawn[0, :, 0].max()))
    assert drawn[0, 0, 0] < 10.0
    if missing:
        assert not drawn[hidden].any()
        assert drawn[0, :, 1].abs().max() < 4.0


def test_heavy_tails_are_drawn_in_before_moments_are_taken_and_counts_are_left():
    random = torch.Generator().manual_seed(4)
    x = torch.randn(1, 500, 2, generator=random)
    x[..., 1] += x[..., 0]
    wild = x.clone()
    wild[0, 0] = torch.tensor([1e5, -1e5])  # one row turns the correlation round
    none = torch.zeros_like(x)

    def correlation(values: torch.Tensor, winsorize_sd: float) -> float:
        return float(RowStatistics(values, none, winsorize_sd=winsorize_sd).moments[0][0][0, 0, 1])

    assert correlation(wild, 0.0) < -0.9
    assert correlation(wild, 3.0) == pytest.approx(correlation(x, 3.0), abs=0.05)


@pytest.mark.parametrize("missing", [False, True])
def test_rows_that_reach_far_are_scaled_down_as_a_whole(missing):
    random = torch.Generator().manual_seed(5)
    x = torch.randn(1, 400, 3, generator=random)
    x[..., 1] = 2.0 * x[..., 0]
    x[0, :4] *= 1e4
    x -= x.median(1, keepdim=True).values
    hidden = torch.zeros_like(x, dtype=torch.bool)
    if missing:
        hidden[0, 100:140, 2] = True
    shrunk = rescale_rows(x, hidden if missing else None, 3.0, 2.0)
    assert float(shrunk.abs().max()) == pytest.approx(2.0, rel=1e-4)
    torch.testing.assert_close(shrunk[0, :, 1], shrunk[0, :, 0], rtol=1e-4, atol=1e-5)  # in deviations they are one
    near = (x[0].abs().amax(1) < 1.0) & (x[0, :, 0].abs() > 0.01)
    left = (shrunk[0, :, 0] / x[0, :, 0])[near]  # those rows are as they were, in deviations
    assert len(left) > 50
    assert float(left.max()) == pytest.approx(float(left.min()), rel=1e-4)
    assert not shrunk[hidden].any()


def test_a_linear_effect_is_read_through_heavy_tails_once_rows_are_shrunk():
    """x2 = x0 + x1 and a little noise, all Cauchy: where single values are drawn in, much of it seems to be noise."""
    random = torch.Generator().manual_seed(6)
    x = torch.empty(1, 4000, 3).cauchy_(generator=random)
    x[..., 2] = x[..., 0] + x[..., 1] + 0.1 * x[..., 2]
    none = torch.zeros_like(x)

    def unexplained(**how: float) -> float:
        cross = RowStatistics(x, none, winsorize_sd=3.0, **how).moments[0][0][0]
        return float(1.0 - cross[2, :2] @ torch.linalg.solve(cross[:2, :2], cross[2, :2]))

    assert unexplained(row_clip_sd=2.0) < 0.6 * unexplained()


def test_large_graphs_are_answered_in_pieces(monkeypatch):
    network = _network()
    x, u, _ = _data(1, 40, 9)
    whole = network.predict(x, u)
    monkeypatch.setattr("presage.networks.pair_layers.AT_ONCE", 64)
    torch.testing.assert_close(network.predict(x, u), whole, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("hidden_width", [0, 2])
@pytest.mark.parametrize("missing", [False, True])
def test_rows_are_grouped_by_target_without_another_answer(hidden_width, missing):
    """Few targets in each row, in any order, several in some rows and none in others."""
    network = _network(dataclasses.replace(SMALL, outer_hidden=hidden_width))
    x, _, hidden = _data(7, 90, 6, missing=missing)
    u = torch.zeros(90, 6, dtype=torch.bool)
    u[torch.arange(60), torch.arange(60) % 5] = True
    u[:10, 4] = True
    with torch.no_grad():
        whole = network(x[None], u[None], None if hidden is None else hidden[None])[0]
    for rows in (4, 16):
        torch.testing.assert_close(network.predict(x, u, hidden, rows=rows), whole, rtol=1e-4, atol=1e-4)


def test_chunks_hold_each_row_once_and_rows_with_the_same_target_together():
    x, _, _ = _data(8, 60, 4)
    u = torch.zeros(60, 4, dtype=torch.bool)
    u[torch.arange(40), torch.arange(40) % 4] = True
    statistics = RowStatistics(x[None], u[None], rows=10)
    chunks = statistics.chunks(10)
    assert torch.cat(chunks).sort().values.tolist() == list(range(60))
    assert all(len(u[chunk].any(0).nonzero()) <= 1 for chunk in chunks)


def test_computing_cells_again_gives_the_answer_of_kept_cells(monkeypatch):
    network = _network()
    x, u, _ = _data(9, 80, 5)
    kept = network.predict(x, u, rows=16)
    monkeypatch.setattr("presage.networks.pair.KEPT_CELLS", 0)
    torch.testing.assert_close(network.predict(x, u, rows=16), kept, rtol=0, atol=0)


def test_threads_give_the_same_answer_every_time():
    network = _network()
    x, u, _ = _data(10, 400, 5)
    before, answers = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 2, 2, 3):
            torch.set_num_threads(threads)
            answers.append(network.predict(x, u, rows=4))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert torch.equal(answers[1], answers[2])
    assert torch.equal(answers[1], answers[3])
    for other in answers[1:]:  # products of the trunk are rounded differently with several threads
        torch.testing.assert_close(other, answers[0], rtol=0, atol=1e-5)
