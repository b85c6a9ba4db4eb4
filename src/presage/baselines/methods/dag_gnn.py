"""DAG-GNN, written from Yu et al. (2019): a variational autoencoder whose latent layer is a linear structural equation.

Z = (I - A^T) f(X) and X = g((I - A^T)^-1 Z), with networks f and g that all variables share and standard normal noise
Z. The evidence lower bound is maximised over A, f and g under the constraint that A has no cycles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from presage.baselines.api import Estimate, Problem
from presage.baselines.methods.neural import RATE, AcyclicityPenalty
from presage.baselines.orientation import graph_row_to_column
from presage.graphs.ops import project_to_dag

if TYPE_CHECKING:
    import torch

__all__ = ["dag_gnn"]

BATCH = 512
"""Rows per step; with fewer rows the noise of Z makes the weights inaccurate."""
SPARSITY = 0.02
MULTIPLIER = 5.0
"""Per variable. Acyclicity is enforced from the first step; otherwise weights converge to an equally likely cycle."""


class _Curve:
    """A scalar function, applied elementwise; initialised as the identity, so that training starts linear."""

    def __init__(self, hidden: int, rng: torch.Generator) -> None:
        import torch

        self.inner = torch.randn(hidden, generator=rng).requires_grad_()
        self.shift = torch.randn(hidden, generator=rng).requires_grad_()
        self.outer = torch.zeros(hidden, requires_grad=True)
        self.slope = torch.ones(1, requires_grad=True)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Values [n, d] -> [n, d]."""
        hidden = (x[..., None] * self.inner + self.shift).tanh()  # [n, d, hidden]
        return x * self.slope + hidden @ self.outer

    def parameters(self) -> list[torch.Tensor]:
        return [self.inner, self.shift, self.outer, self.slope]


class _Autoencoder:
    """weights[i, j]: of i in the equation of j. One noise scale serves all variables, as the prior of Z has one."""

    def __init__(self, d: int, hidden: int, rng: torch.Generator) -> None:
        import torch

        self.raw = torch.zeros(d, d, requires_grad=True)
        self.encoder, self.decoder = _Curve(hidden, rng), _Curve(hidden, rng)
        self.log_scale = torch.full((1,), -0.5, requires_grad=True)  # of X given Z
        self.log_spread = torch.full((d,), -0.5, requires_grad=True)  # of Z given X
        self.off_diagonal = 1.0 - torch.eye(d)
        self.identity = torch.eye(d)
        self.rng = rng

    @property
    def weights(self) -> torch.Tensor:
        """[d, d] without the diagonal."""
        return self.raw * self.off_diagonal

    def elbo(self, x: torch.Tensor) -> torch.Tensor:
        """The evidence lower bound per row, with one sample of Z: [n] for x [n, d]."""
        import torch

        mixing = self.identity - self.weights
        mean, log_spread = self.encoder(x) @ mixing, self.log_spread.clamp(-6.0, 1.0)
        z = mean + log_spread.exp() * torch.randn(x.shape, generator=self.rng)
        guess = self.decoder(torch.linalg.solve(mixing, z, left=False))
        log_scale = self.log_scale.clamp(-3.0, 2.0)
        fit = -log_scale - 0.5 * ((x - guess) / log_scale.exp()) ** 2 - 0.9189385
        divergence = 0.5 * (mean**2 + (2.0 * log_spread).exp() - 1.0) - log_spread
        return (fit - divergence).sum(dim=1)

    def parameters(self) -> list[torch.Tensor]:
        return [self.raw, self.log_scale, self.log_spread, *self.encoder.parameters(), *self.decoder.parameters()]


def dag_gnn(
    problem: Problem, *, threshold: float, hidden: int, steps: int, standardize: bool, holdout: bool
) -> Estimate:
    """Edges are weights above the threshold; with holdout=True, fitted to 80% of the rows and scored on the others."""
    import torch

    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(problem.seed)
    train, held = problem.split() if holdout else (np.arange(len(problem.x)), np.arange(0))
    values = problem.centred(standardize)
    scales = values.std(axis=0)
    # One scale for all columns, as their ratios carry the order; the smallest is closest to that of the noise.
    x = torch.from_numpy(values / (scales[scales > 0.0].min() if scales.any() else 1.0)).float()
    model = _Autoencoder(problem.d, hidden, rng)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.99))
    acyclicity = AcyclicityPenalty(steps, warm_up=0.0, multiplier=MULTIPLIER * problem.d)
    rows = torch.from_numpy(train)
    for step in range(steps):
        pick = rows[torch.randint(len(rows), (min(BATCH, len(rows)),), generator=rng)]
        weights = model.weights
        loss = -model.elbo(x[pick]).mean() + SPARSITY * weights.abs().sum() + acyclicity(step, weights**2)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        graph = project_to_dag(model.weights.abs().numpy().astype(np.float64), threshold)
        score = float(model.elbo(x[torch.from_numpy(held)]).mean()) if len(held) else None
    return graph_row_to_column(graph, score=score)
