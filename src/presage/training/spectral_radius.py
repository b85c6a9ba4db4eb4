"""The acyclicity penalty of the paper: the spectral radius of the edge probabilities, by power iteration.

A graph is acyclic exactly when the spectral radius of its adjacency matrix is 0. With a and b the left and right
vectors that t steps of a <- aW and b <- Wb lead to (each scaled to length one after every step),

    radius = aWb / ab,   and its gradient with respect to W is a b^T / ab,   since a and b count as constants.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from presage.errors import ConfigError, DataError

__all__ = ["spectral_radius"]

SMALLEST_OVERLAP = 1e-6
"""Where a and b (of length one) overlap less than this, there is no cycle that t steps could find: the radius is 0."""


def spectral_radius(
    probabilities: Tensor,
    generator: torch.Generator | np.random.Generator | Tensor,
    steps: int = 10,
    *,
    mask_diagonal: bool = True,
    start: Literal["normal", "positive"] = "normal",
) -> Tensor:
    """Approximate spectral radius [B] of edge probabilities [B, d, d], differentiable with respect to them.

    The diagonal counts as 0 unless `mask_diagonal` is False: the penalty belongs to domains whose graphs are acyclic,
    where it is not predicted. Where the steps lead to zero, as for the zero matrix and for any acyclic 0/1 graph whose
    longest path has fewer edges than there are steps, radius and gradient are exactly 0; nothing ever becomes NaN.

    generator: source of a and b, or their start values [2, B, d].
    start: "normal" draws a and b from N(0, I) as the paper does; "positive" takes the absolute values. The leading
    vectors of a non-negative matrix are non-negative, so the second cannot start out nearly orthogonal to them: close
    to acyclicity, where ten steps do not converge, it keeps the radius non-negative and the largest gradients of a
    batch more than ten times smaller (tests/training/test_spectral_radius.py).

    >>> cycle = torch.tensor([[[0.0, 0.5], [0.5, 0.0]]])
    >>> spectral_radius(cycle, torch.Generator().manual_seed(0)).shape
    torch.Size([1])
    """
    if probabilities.ndim != 3 or probabilities.shape[1] != probabilities.shape[2]:
        raise DataError(f"the probabilities must be [B, d, d], not {tuple(probabilities.shape)}")
    if steps < 1:
        raise ConfigError(f"power iteration needs at least one step, not {steps!r}")
    if start not in ("normal", "positive"):
        raise ConfigError(f"start must be 'normal' or 'positive', not {start!r}")
    size, d, _ = probabilities.shape
    w = probabilities.float() if probabilities.dtype != torch.float64 else probabilities
    if mask_diagonal:
        w = w * (1.0 - torch.eye(d, dtype=w.dtype, device=w.device))
    with torch.no_grad():
        a, b = (vector.to(w) for vector in _normal(generator, 2, size, d))  # 2 x [B, d]
        if start == "positive":
            a, b = a.abs(), b.abs()
        for _ in range(steps):
            a = _unit(torch.einsum("bi,bij->bj", a, w))
            b = _unit(torch.einsum("bij,bj->bi", w, b))
        overlap = (a * b).sum(dim=-1)  # [B]
        found = overlap.abs() > SMALLEST_OVERLAP
        weight = torch.where(found, 1.0 / torch.where(found, overlap, 1.0), 0.0)  # [B]
    return torch.einsum("bi,bij,bj->b", a, w, b) * weight


def _normal(generator: torch.Generator | np.random.Generator | Tensor, *shape: int) -> Tensor:
    if isinstance(generator, Tensor):
        if generator.shape != shape:
            raise DataError(f"the start of the power iteration must be {shape}, not {tuple(generator.shape)}")
        return generator
    if isinstance(generator, np.random.Generator):
        return torch.from_numpy(generator.standard_normal(shape))
    return torch.randn(shape, generator=generator, device=generator.device)


def _unit(vector: Tensor) -> Tensor:
    """Scale [B, d] to length one; zero stays zero. Dividing by the largest entry first keeps squares from underflow."""
    largest = vector.abs().amax(dim=-1, keepdim=True)
    vector = vector / torch.where(largest > 0, largest, 1.0)
    length = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
    return vector / torch.where(length > 0, length, 1.0)
