"""The paper's network: its sizes, its symmetries, its chunked prediction, and that gradients reach every weight."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from presage.errors import ConfigError, DataError
from presage.networks.axial import AxialConfig, AxialNetwork
from presage.networks.network import NetConfig, build_network, network_config

SMALL = AxialConfig(layers=2, width=16, heads=2, key_size=8, hidden=32)
VARIANTS = [
    SMALL,
    dataclasses.replace(SMALL, axes="d"),
    dataclasses.replace(SMALL, axes="n"),
    dataclasses.replace(SMALL, head="relational"),
    dataclasses.replace(SMALL, out_width=24, missing_input=True),
]


def build(config, seed=0):
    """A network whose offsets and norms are not at their neutral start, so that mistakes in them show."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = AxialNetwork(config)
        with torch.no_grad():
            for weight in network.parameters():
                weight += 0.2 * torch.randn_like(weight)
    return network


def data(n, d, seed=0, size=None):
    generator = torch.Generator().manual_seed(seed)
    shape = (n, d) if size is None else (size, n, d)
    x = torch.randn(shape, generator=generator)
    u = torch.rand(shape, generator=generator) < 0.2
    missing = torch.rand(shape, generator=generator) < 0.15
    return x, u, missing


def close(a, b, tolerance=1e-5):
    torch.testing.assert_close(a, b, rtol=0.0, atol=tolerance)


def test_the_defaults_are_the_papers():
    config = AxialConfig()
    network = AxialNetwork(config)
    count = sum(weight.numel() for weight in network.parameters())
    # The public package counts 4,269,442 with two more layer norms (scale and offset) in each of 16 attention modules,
    # which compute the same values as the first.
    assert count == 4_269_442 - 16 * 2 * 2 * 128
    assert config.sublayer_axes == ("d", "n") * 8
    assert network.embed.in_features == 2
    assert network.head.bias.item() == -3.0
    assert network.head.log_scale.item() == 2.0
    assert network.blocks[0].feed[1].out_features == 512
    assert network.blocks[0].attention.qkv.out_features == 3 * 8 * 32


def test_kaiming_uniform_start():
    network = AxialNetwork(AxialConfig(layers=1))
    linears = {name: part for name, part in network.named_modules() if isinstance(part, torch.nn.Linear)}
    assert len(linears) == 1 + 2 * 4 + 2
    for name, layer in linears.items():
        bound = math.sqrt(6.0 / layer.in_features)
        assert layer.weight.abs().max().item() <= bound, name
        expected = bound / math.sqrt(3)
        assert layer.weight.std().item() == pytest.approx(expected, rel=0.15), name
        assert not layer.bias.any()


def test_first_logits_say_that_edges_are_rare():
    x, u, _ = data(50, 10)
    logits = AxialNetwork(AxialConfig()).predict(x, u)
    scale = math.exp(2.0)
    assert (logits >= -3.0 - scale - 1e-4).all()
    assert (logits <= -3.0 + scale + 1e-4).all()


@pytest.mark.parametrize("config", VARIANTS, ids=range(len(VARIANTS)))
@pytest.mark.parametrize("rows", [1, 3, 7, 1000, None])
@pytest.mark.parametrize("masked", [False, True])
def test_chunked_prediction_equals_the_forward_pass(config, rows, masked):
    network = build(config).eval()
    x, u, missing = data(23, 5)
    missing = missing if masked else None
    whole = network(x[None], u[None], None if missing is None else missing[None])[0].detach()
    close(network.predict(x, u, missing, rows=rows), whole)


def test_batches_hold_independent_datasets():
    network = build(SMALL).eval()
    x, u, missing = data(11, 4, size=3)
    together = network(x, u, missing).detach()
    for k in range(3):
        close(together[k], network(x[k : k + 1], u[k : k + 1], missing[k : k + 1])[0].detach())


@settings(max_examples=25, deadline=None)
@given(st.integers(0, len(VARIANTS) - 1), st.integers(1, 20), st.integers(1, 6), st.integers(0, 10**6))
def test_row_order_never_matters_and_variables_permute_the_answer(variant, n, d, seed):
    network = build(VARIANTS[variant]).eval()
    x, u, missing = data(n, d, seed)
    rng = np.random.default_rng(seed)
    rows, columns = torch.from_numpy(rng.permutation(n)), torch.from_numpy(rng.permutation(d))
    answer = network.predict(x, u, missing)
    close(network.predict(x[rows], u[rows], missing[rows]), answer, 1e-4)
    moved = network.predict(x[:, columns], u[:, columns], missing[:, columns])
    close(moved, answer[columns][:, columns], 1e-4)


@pytest.mark.parametrize("config", VARIANTS, ids=range(len(VARIANTS)))
@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 4), (9, 1), (9, 2), (2, 8)])
def test_degenerate_sizes_give_finite_answers(config, n, d):
    network = build(config)
    x, u, missing = data(n, d)
    for values in (x, torch.zeros_like(x), 6.0 * torch.ones_like(x)):
        for hidden in (None, missing, torch.ones_like(missing)):
            logits = network.predict(values, u, hidden)
            assert logits.shape == (d, d)
            assert torch.isfinite(logits).all()


@pytest.mark.parametrize("config", VARIANTS, ids=range(len(VARIANTS)))
def test_gradients_reach_every_weight_and_every_cell(config):
    network = build(config)
    x, u, missing = data(12, 4, size=2)
    x.requires_grad_()
    network(x, u, missing).square().sum().backward()
    for name, weight in network.named_parameters():
        assert weight.grad is not None, name
        assert torch.isfinite(weight.grad).all(), name
        if "qkv.bias" not in name:  # an offset of the keys shifts all scores alike and cancels
            assert weight.grad.abs().max() > 0, name
    touched = x.grad.abs() > 0
    assert not (touched & missing).any()
    if config.axes == "both":
        assert (touched | missing).all()


def test_the_first_sublayer_looks_at_variables_and_the_second_at_rows():
    """With one axis only, information stays within rows (before pooling) or within variables."""
    x, u, _ = data(6, 3, size=1)
    for axes, spread in (("d", (False, True)), ("n", (True, False)), ("both", (True, True))):
        network = build(dataclasses.replace(SMALL, axes=axes)).eval()
        network.head = torch.nn.Identity()
        network.norm = torch.nn.Identity()
        leaf = x.clone().requires_grad_()
        pooled = network(leaf, u)[0]  # [d, k]: max over rows
        # The pooled vector of variable 0 reads other variables only if variables attend to each other.
        pooled[0].sum().backward()
        assert bool((leaf.grad[0, :, 1:] != 0).any()) == spread[1]
        # One channel of one variable comes from one row, unless rows attend to each other.
        leaf.grad = None
        network(leaf, u)[0, 0, 0].backward()
        assert ((leaf.grad[0] != 0).any(dim=1).sum().item() > 1) == spread[0]


def test_missing_cells_are_zero_unless_the_network_is_told():
    x, u, missing = data(14, 4)
    plain = build(SMALL)
    nan = x.masked_fill(missing, float("nan"))
    close(plain.predict(nan, u, missing), plain.predict(x.masked_fill(missing, 0.0), u))
    told = build(dataclasses.replace(SMALL, missing_input=True))
    difference = told.predict(nan, u, missing) - told.predict(x.masked_fill(missing, 0.0), u)
    assert difference.abs().max() > 1e-4


def test_dropout_acts_in_training_only_and_predict_restores_the_mode():
    network = build(dataclasses.replace(SMALL, dropout=0.4))
    x, u, _ = data(8, 3)
    network.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        noisy = [network(x[None], u[None]).detach() for _ in range(2)]
    assert not torch.allclose(noisy[0], noisy[1])
    assert torch.equal(network.predict(x, u), network.predict(x, u))
    assert network.training
    network.eval().predict(x, u)
    assert not network.training


def test_the_formula_of_the_head():
    """sigmoid(tau u_i . v_j + b) with unit vectors, and the relational variant, written out in numpy."""
    for kind in ("inner", "relational"):
        head = build(dataclasses.replace(SMALL, head=kind)).head
        z = torch.randn(1, 4, 16, generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            u, v = head.cause(z)[0].numpy(), head.effect(z)[0].numpy()
            logits = head(z)[0].numpy()
        u, v = u / np.linalg.norm(u, axis=1, keepdims=True), v / np.linalg.norm(v, axis=1, keepdims=True)
        bias = head.bias.item()
        for i in range(4):
            for j in range(4):
                if kind == "inner":
                    expected = math.exp(head.log_scale.item()) * float(u[i] @ v[j]) + bias
                else:
                    first = head.from_cause.weight.detach().numpy() @ u[i]
                    second = head.from_effect.weight.detach().numpy() @ v[j]
                    expected = float(head.score.weight.detach().numpy()[0] @ np.tanh(first + second)) + bias
                assert logits[i, j] == pytest.approx(expected, abs=1e-4)


def test_attention_is_the_textbook_one():
    network = build(SMALL)
    attention = network.blocks[0].attention
    z = torch.randn(3, 5, 16, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        q, k, v = attention.qkv(attention.norm(z)).chunk(3, dim=-1)  # 3 x [B, T, heads * key]
        parts = []
        for h in range(2):
            piece = slice(8 * h, 8 * h + 8)
            scores = q[..., piece] @ k[..., piece].transpose(1, 2) / math.sqrt(8)
            parts.append(scores.softmax(dim=-1) @ v[..., piece])
        close(attention(z), attention.out(torch.cat(parts, dim=-1)))


@pytest.mark.parametrize(
    "bad",
    [
        {"layers": 0},
        {"width": 12.5},
        {"heads": True},
        {"out_width": 0},
        {"dropout": 1.0},
        {"axes": "x"},
        {"head": "mlp"},
        {"bias_start": math.inf},
    ],
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(ConfigError, match=next(iter(bad))):
        AxialConfig(**bad)


def test_known_by_name_and_through_json():
    config = VARIANTS[-1]
    assert NetConfig.from_json(config.to_json()) == config
    assert network_config("axial") is AxialConfig
    with pytest.raises(ConfigError, match="choose one of: axial"):
        network_config("transformer")
    first, second, other = build_network(config, 1), build_network(config, 1), build_network(config, 2)
    assert isinstance(first, AxialNetwork)
    assert torch.equal(first.embed.weight, second.embed.weight)
    assert not torch.equal(first.embed.weight, other.embed.weight)


def test_empty_tables_are_refused():
    network = build(SMALL)
    empty = torch.zeros(0, 3)
    with pytest.raises(DataError, match="at least 1"):
        network.predict(empty, empty)
    with pytest.raises(DataError, match="at least 1"):
        network(empty[None], empty[None])


def peak_mib(n):
    """Peak growth of resident memory while predicting on n rows, in a process of its own."""
    import subprocess
    import sys

    script = f"""
import resource, torch
from presage.networks.axial import AxialConfig, AxialNetwork
torch.set_num_threads(1)
network = AxialNetwork(AxialConfig(layers=1, width=16, heads=2, key_size=8, hidden=32))
network.predict(torch.zeros(10, 3), torch.zeros(10, 3))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
network.predict(torch.zeros({n}, 3), torch.zeros({n}, 3))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    return float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


def test_prediction_memory_is_far_below_quadratic():
    """At n = 20000 one head's attention scores of one variable alone would take 1.5 GiB."""
    assert peak_mib(20_000) < 100


def test_the_embedding_and_the_head_are_the_input_and_output_layers():
    network = build_network(AxialConfig(layers=1, width=8, heads=2, key_size=4, hidden=16))
    outer = {id(p) for layer in network.io_layers() for p in layer.parameters()}
    names = {name.split(".")[0] for name, p in network.named_parameters() if id(p) in outer}
    assert names == {"embed", "head"}
