"""The spectral radius by power iteration against dense eigenvalues, and its gradient numerically."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from presage.errors import ConfigError, DataError
from presage.training.spectral_radius import spectral_radius


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def positive(size, d, seed=0, dtype=torch.float64):
    return torch.rand(size, d, d, generator=rng(seed), dtype=dtype) * 0.9 + 0.05


def dense(w):
    return torch.linalg.eigvals(w).abs().amax(dim=-1)


def without_diagonal(w):
    return w * (1 - torch.eye(w.shape[-1], dtype=w.dtype))


@pytest.mark.parametrize("d", [3, 10, 30])
@pytest.mark.parametrize("start", ["normal", "positive"])
@pytest.mark.parametrize("mask", [True, False])
def test_equals_the_dense_radius_once_converged(d, start, mask):
    w = positive(16, d)
    ours = spectral_radius(w, rng(), steps=400, mask_diagonal=mask, start=start)
    torch.testing.assert_close(ours, dense(without_diagonal(w) if mask else w), rtol=1e-9, atol=0.0)


def test_ten_steps_come_close_on_dense_probabilities():
    w = positive(64, 30, dtype=torch.float32)
    ours = spectral_radius(w, rng())
    torch.testing.assert_close(ours, dense(without_diagonal(w)), rtol=1e-4, atol=0.0)


def test_gradient_is_the_analytic_derivative_of_the_eigenvalue():
    w = positive(4, 6).requires_grad_()
    spectral_radius(w, rng(), steps=400).sum().backward()
    for k in range(4):
        matrix = without_diagonal(w.detach()[k])
        values, right = torch.linalg.eig(matrix)
        left_values, left = torch.linalg.eig(matrix.T)
        b = right[:, values.abs().argmax()].real
        a = left[:, left_values.abs().argmax()].real
        expected = without_diagonal(torch.outer(a, b) / (a @ b))
        torch.testing.assert_close(w.grad[k], expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("steps", [1, 3, 10])
def test_gradient_is_that_of_the_formula_with_fixed_vectors(steps):
    """a and b recomputed here step by step, then finite differences of aWb / ab with them held fixed."""
    d = 5
    w = positive(1, d, seed=2).requires_grad_()
    value = spectral_radius(w, np.random.default_rng(5), steps=steps)
    value.sum().backward()
    a, b = np.random.default_rng(5).standard_normal((2, 1, d))[:, 0]
    matrix = without_diagonal(w.detach()[0]).numpy()
    for _ in range(steps):
        a, b = a @ matrix, matrix @ b
        a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)

    def formula(m):
        return (a @ m @ b) / (a @ b)

    assert value.item() == pytest.approx(formula(matrix), rel=1e-12)
    for i in range(d):
        for j in range(d):
            nudge = np.zeros((d, d))
            nudge[i, j] = 1e-6
            numeric = (formula(matrix + nudge) - formula(matrix - nudge)) / 2e-6
            assert w.grad[0, i, j].item() == pytest.approx(0.0 if i == j else numeric, rel=1e-6, abs=1e-9)


def acyclic_cases():
    chain = torch.diag(torch.ones(4), 1)
    full = torch.triu(torch.ones(5, 5), 1)
    return torch.stack([torch.zeros(5, 5), chain, chain.T, full, full.T])


@pytest.mark.parametrize("start", ["normal", "positive"])
def test_acyclic_matrices_give_zero_and_no_gradient(start):
    w = acyclic_cases().requires_grad_()
    radius = spectral_radius(w, rng(), start=start)
    radius.sum().backward()
    assert torch.equal(radius, torch.zeros(5))
    assert torch.equal(w.grad, torch.zeros(5, 5, 5))


@pytest.mark.parametrize("d", [1, 2, 40])
def test_finite_whatever_the_matrix(d):
    hard = [
        torch.zeros(d, d),
        torch.ones(d, d),
        torch.diag(torch.ones(d - 1), 1),
        torch.eye(d),
        1e-35 * torch.ones(d, d),
    ]
    if d > 1:
        hard.append(torch.roll(torch.eye(d), 1, dims=1))  # one long cycle: all eigenvalues of absolute value 1
    w = torch.stack(hard).requires_grad_()
    for seed in range(20):
        w.grad = None
        radius = spectral_radius(w, rng(seed))
        radius.sum().backward()
        assert torch.isfinite(radius).all()
        assert torch.isfinite(w.grad).all()


def test_tiny_probabilities_do_not_vanish():
    w = positive(4, 8, dtype=torch.float32)
    ours = spectral_radius(1e-30 * w, rng(), steps=50)
    torch.testing.assert_close(1e30 * ours, dense(without_diagonal(w)), rtol=1e-4, atol=0.0)


def test_only_the_diagonal_is_ignored():
    w = positive(3, 7, dtype=torch.float32)
    loops = w + torch.diag_embed(torch.full((3, 7), 5.0))
    assert torch.equal(spectral_radius(w, rng()), spectral_radius(loops, rng()))
    assert (spectral_radius(loops, rng(), mask_diagonal=False) > 5).all()


def test_positive_start_is_tame_where_ten_steps_do_not_converge():
    """Nearly acyclic probabilities, as at the end of training: the measured reason for offering the option."""
    generator = rng()
    d, size = 30, 500
    edges = torch.triu((torch.rand(size, d, d, generator=generator) < 0.14).float(), 1)
    w = without_diagonal(0.99 * edges + (1 - edges) * 2e-4 * torch.rand(size, d, d, generator=generator))
    worst = {}
    for start in ("normal", "positive"):
        leaf = w.clone().requires_grad_()
        radius = spectral_radius(leaf, generator, start=start)
        radius.sum().backward()
        worst[start] = leaf.grad.flatten(1).norm(dim=1).max().item()
        assert (radius.min() >= 0) == (start == "positive")
    assert worst["positive"] < 0.1 * worst["normal"]


def test_half_precision_and_seeds():
    w = positive(2, 5, dtype=torch.float32)
    assert spectral_radius(w.bfloat16(), rng()).dtype == torch.float32
    assert torch.equal(spectral_radius(w, rng(1)), spectral_radius(w, rng(1)))
    before = torch.random.get_rng_state()
    spectral_radius(w, rng(1))
    assert torch.equal(before, torch.random.get_rng_state())


def test_given_draws_are_used_as_they_are():
    w = positive(3, 6)
    starts = torch.from_numpy(np.random.default_rng(4).standard_normal((2, 3, 6)))
    assert torch.equal(spectral_radius(w, starts, steps=2), spectral_radius(w, np.random.default_rng(4), steps=2))
    # A part of a batch with its part of the draws gives what the whole batch gives.
    torch.testing.assert_close(spectral_radius(w[1:], starts[:, 1:], steps=2), spectral_radius(w, starts, steps=2)[1:])
    with pytest.raises(DataError, match="start of the power iteration"):
        spectral_radius(w, starts[:, :2])


def test_bad_input_is_refused():
    with pytest.raises(DataError, match=r"\[B, d, d\]"):
        spectral_radius(torch.ones(3, 4), rng())
    with pytest.raises(ConfigError, match="at least one step"):
        spectral_radius(torch.ones(1, 2, 2), rng(), steps=0)
    with pytest.raises(ConfigError, match="start"):
        spectral_radius(torch.ones(1, 2, 2), rng(), start="zero")
