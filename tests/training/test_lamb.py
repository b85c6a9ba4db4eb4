"""LAMB against a re-derivation in numpy, on a regression, and through its state."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from presage.errors import ConfigError
from presage.training.lamb import Lamb, square_root_scaled


def reference(weight, gradients, lr, betas, eps, decay):
    """The update of the LAMB paper written with sums instead of moving averages, in float64."""
    weight = weight.copy()
    for t in range(1, len(gradients) + 1):
        past = np.stack(gradients[:t])
        age = np.arange(t)[::-1].reshape(-1, *[1] * weight.ndim)
        mean = (betas[0] ** age * past).sum(0) / (betas[0] ** age).sum(0)  # the bias correction is this normalisation
        square = (betas[1] ** age * past**2).sum(0) / (betas[1] ** age).sum(0)
        step = mean / (np.sqrt(square) + eps) + decay * weight
        size, length = np.sqrt((weight**2).sum()), np.sqrt((step**2).sum())
        ratio = size / length if size > 0 and length > 0 else 1.0
        weight = weight - lr * ratio * step
    return weight


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("shape", [(4, 3), (5,), ()])
def test_agrees_with_the_formula(decay, shape):
    rng = np.random.default_rng(0)
    weight = rng.normal(size=shape)
    gradients = [np.asarray(rng.normal(size=shape)) for _ in range(7)]
    ours = torch.nn.Parameter(torch.tensor(weight))
    optimiser = Lamb([ours], lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=decay)
    for gradient in gradients:
        ours.grad = torch.tensor(gradient)
        optimiser.step()
    expected = reference(np.asarray(weight), gradients, 0.05, (0.8, 0.95), 1e-4, decay)
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=1e-10)


def test_a_step_has_the_length_of_the_weights_times_the_rate():
    weight = torch.nn.Parameter(torch.randn(20, 30, generator=torch.Generator().manual_seed(0)))
    before = weight.detach().clone()
    weight.grad = 1e6 * torch.randn(20, 30, generator=torch.Generator().manual_seed(1))
    Lamb([weight], lr=0.01).step()
    assert torch.linalg.vector_norm(weight.detach() - before).item() == pytest.approx(
        0.01 * before.norm().item(), rel=1e-4
    )


def test_zero_weights_leave_zero_and_zero_gradients_do_nothing():
    zero, still = torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.ones(3))
    zero.grad, still.grad = torch.ones(3), torch.zeros(3)
    Lamb([zero, still], lr=0.01).step()
    np.testing.assert_allclose(zero.detach().numpy(), -0.01, rtol=1e-4)
    assert torch.equal(still.detach(), torch.ones(3))


def problem():
    rng = torch.Generator().manual_seed(3)
    x = torch.randn(256, 10, generator=rng)
    return x, x @ torch.randn(10, 2, generator=rng) + 0.5


def model():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))


def run(net, optimiser, steps):
    x, y = problem()
    for _ in range(steps):
        optimiser.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimiser.step()
    return loss.item()


def test_trains_a_regression():
    net = model()
    start = run(net, Lamb(net.parameters(), lr=0.0), 1)
    assert run(net, Lamb(net.parameters(), lr=0.02), 300) < 0.03 * start


def test_continues_from_its_state_bit_for_bit():
    straight = model()
    run(straight, Lamb(straight.parameters(), lr=0.01, weight_decay=0.01), 20)
    first = model()
    optimiser = Lamb(first.parameters(), lr=0.01, weight_decay=0.01)
    run(first, optimiser, 12)
    second = model()
    second.load_state_dict(first.state_dict())
    resumed = Lamb(second.parameters(), lr=0.5)
    resumed.load_state_dict(optimiser.state_dict())
    run(second, resumed, 8)
    for a, b in zip(straight.parameters(), second.parameters()):
        assert torch.equal(a, b)


def test_closure_and_groups():
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    optimiser = Lamb([{"params": [a]}, {"params": [b], "lr": 0.0}], lr=0.1)

    def closure():
        optimiser.zero_grad()
        loss = (a * a).sum() + (b * b).sum()
        loss.backward()
        return loss

    assert optimiser.step(closure).item() == 4.0
    assert (a < 1).all()
    assert torch.equal(b.detach(), torch.ones(2))


def test_square_root_scaling():
    assert square_root_scaled(3e-5, 216) == pytest.approx(4.409e-4, rel=1e-3)  # the footnote of the paper
    with pytest.raises(ConfigError, match="at least one"):
        square_root_scaled(3e-5, 0)


@pytest.mark.parametrize(
    "bad", [{"lr": -1.0}, {"lr": float("nan")}, {"betas": (0.9, 1.0)}, {"eps": 0.0}, {"weight_decay": -0.1}]
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(ConfigError):
        Lamb([torch.nn.Parameter(torch.ones(1))], **bad)
