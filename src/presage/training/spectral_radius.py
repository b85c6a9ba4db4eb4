"""The acyclicity penalty of the paper: the spectral radius of the edge probabilities, by power iteration.

A graph is acyclic exactly when the spectral radius of its adjacency matrix is 0. With a and b the left and right
vectors that t steps of a <- aW and b <- Wb lead to (each scaled to length one after every step),

    radius = aWb / ab,   and its gradient with respect to W is a b^T / ab,   since a and b count as constants.
"""

from __future__ import annotations

import torch
from torch import Tensor

from presage.errors import ConfigError, DataError

__all__ = ["spectral_radius"]

SMALLEST_OVERLAP = 1e-6
"""Where a and b (of length one) overlap less than this, there is no cycle that t steps could find: the radius is 0."""


def spectral_radius(probabilities: Tensor, start: Tensor, steps: int = 10) -> Tensor:
    """Approximate spectral radius [B] of edge probabilities [B, d, d], differentiable with respect to them.

    The diagonal counts as 0: the penalty belongs to domains whose graphs are acyclic, where it is not predicted. Where
    the steps lead to zero, as for the zero matrix and for any acyclic 0/1 graph whose longest path has fewer edges than
    there are steps, radius and gradient are exactly 0; nothing ever becomes NaN.

    start: a and b before the first step, [2, B, d], of which the absolute values are used. The leading vectors of a
    non-negative matrix are non-negative, so these cannot be nearly orthogonal to them, as the paper's normal draws
    can: close to acyclicity, where ten steps do not converge, the radius stays non-negative and the largest gradients
    of a batch are more than ten times smaller.

    >>> cycle = torch.tensor([[[0.0, 0.5], [0.5, 0.0]]])
    >>> round(float(spectral_radius(cycle, torch.ones(2, 1, 2))), 4)
    0.5
    """
    if probabilities.ndim != 3 or probabilities.shape[1] != probabilities.shape[2]:
        raise DataError(f"the probabilities must be [B, d, d], not {tuple(probabilities.shape)}")
    if steps < 1:
        raise ConfigError(f"power iteration needs at least one step, not {steps!r}")
    size, d, _ = probabilities.shape
    if start.shape != (2, size, d):
        raise DataError(f"the start of the power iteration must be {(2, size, d)}, not {tuple(start.shape)}")
    w = probabilities.float() if probabilities.dtype != torch.float64 else probabilities
    w = w * (1.0 - torch.eye(d, dtype=w.dtype, device=w.device))
    with torch.no_grad():
        a, b = start.to(w).abs()  # [B, d] each
        for _ in range(steps):
            a = _unit(torch.einsum("bi,bij->bj", a, w))
            b = _unit(torch.einsum("bij,bj->bi", w, b))
        overlap = (a * b).sum(dim=-1)  # [B]
        found = overlap.abs() > SMALLEST_OVERLAP
        weight = torch.where(found, 1.0 / torch.where(found, overlap, 1.0), 0.0)  # [B]
    return torch.einsum("bi,bij,bj->b", a, w, b) * weight


def _unit(vector: Tensor) -> Tensor:
    """Scale [B, d] to length one; zero stays zero. Dividing by the largest entry first keeps squares from underflow."""
    largest = vector.abs().amax(dim=-1, keepdim=True)
    vector = vector / torch.where(largest > 0, largest, 1.0)
    length = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
    return vector / torch.where(length > 0, length, 1.0)
