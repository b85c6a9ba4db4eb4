"""The spectral radius by power iteration against dense eigenvalues, and its gradient numerically."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from presage.errors import ConfigError, DataError
from presage.training.spectral_radius import spectral_radius


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def start(w, seed=0):
    return torch.randn(2, *w.shape[:2], generator=rng(seed), dtype=torch.float64)


def positive(size, d, seed=0, dtype=torch.float64):
    return torch.rand(size, d, d, generator=rng(seed), dtype=dtype) * 0.9 + 0.05


def dense(w):
    return torch.linalg.eigvals(w).abs().amax(dim=-1)


def without_diagonal(w):
    return w * (1 - torch.eye(w.shape[-1], dtype=w.dtype))


@pytest.mark.parametrize("d", [3, 10, 30])
def test_equals_the_dense_radius_once_converged(d):
    w = positive(16, d)
    torch.testing.assert_close(spectral_radius(w, start(w), 400), dense(without_diagonal(w)), rtol=1e-9, atol=0.0)


def test_ten_steps_come_close_on_dense_probabilities():
    w = positive(64, 30, dtype=torch.float32)
    torch.testing.assert_close(spectral_radius(w, start(w)), dense(without_diagonal(w)), rtol=1e-4, atol=0.0)


def test_gradient_is_the_analytic_derivative_of_the_eigenvalue():
    w = positive(4, 6).requires_grad_()
    spectral_radius(w, start(w), 400).sum().backward()
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
    value = spectral_radius(w, start(w), steps)
    value.sum().backward()
    a, b = start(w).abs().numpy()[:, 0]
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


def test_acyclic_matrices_give_zero_and_no_gradient():
    w = acyclic_cases().requires_grad_()
    radius = spectral_radius(w, start(w))
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
        radius = spectral_radius(w, start(w, seed))
        radius.sum().backward()
        assert torch.isfinite(radius).all()
        assert torch.isfinite(w.grad).all()


def test_tiny_probabilities_do_not_vanish():
    w = positive(4, 8, dtype=torch.float32)
    ours = spectral_radius(1e-30 * w, start(w), 50)
    torch.testing.assert_close(1e30 * ours, dense(without_diagonal(w)), rtol=1e-4, atol=0.0)


def test_only_the_diagonal_is_ignored():
    w = positive(3, 7, dtype=torch.float32)
    loops = w + torch.diag_embed(torch.full((3, 7), 5.0))
    assert torch.equal(spectral_radius(w, start(w)), spectral_radius(loops, start(w)))


def test_radius_and_gradient_are_tame_where_ten_steps_do_not_converge():
    """Nearly acyclic probabilities, as at the end of training (14,000 with starts of either sign)."""
    generator = rng()
    d, size = 30, 500
    edges = torch.triu((torch.rand(size, d, d, generator=generator) < 0.14).float(), 1)
    w = without_diagonal(0.99 * edges + (1 - edges) * 2e-4 * torch.rand(size, d, d, generator=generator))
    leaf = w.requires_grad_()
    radius = spectral_radius(leaf, start(w))
    radius.sum().backward()
    assert radius.min() >= 0
    assert leaf.grad.flatten(1).norm(dim=1).max() < 1500


def test_half_precision_becomes_single():
    w = positive(2, 5, dtype=torch.float32)
    assert spectral_radius(w.bfloat16(), start(w)).dtype == torch.float32


def test_a_part_of_a_batch_gives_what_the_whole_batch_gives():
    w = positive(3, 6)
    starts = start(w)
    torch.testing.assert_close(spectral_radius(w[1:], starts[:, 1:], 2), spectral_radius(w, starts, 2)[1:])
    with pytest.raises(DataError, match="start of the power iteration"):
        spectral_radius(w, starts[:, :2])


def test_bad_input_is_refused():
    with pytest.raises(DataError, match=r"\[B, d, d\]"):
        spectral_radius(torch.ones(3, 4), torch.ones(2, 3, 4))
    with pytest.raises(ConfigError, match="at least one step"):
        spectral_radius(torch.ones(1, 2, 2), torch.ones(2, 1, 2), 0)
