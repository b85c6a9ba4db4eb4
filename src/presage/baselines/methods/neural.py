"""GraN-DAG and DCDI: one neural density per variable, a learned mask of its causes, and an augmented Lagrangian.

Written from Lachapelle et al. (2020) and Brouillard et al. (2020). Both maximise

    E_mask [ mean over rows of sum_j log p(x_j | mask_j * x) ] - sparsity * sum of edge probabilities

subject to the edge probabilities having no cycle; DCDI leaves out the terms of the variables a row intervenes on and
models the noise scale by the network too, GraN-DAG restricts the candidates beforehand and prunes afterwards. Masks
are drawn row by row and pass their gradient straight through, as in DCDI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from presage.baselines.api import Estimate, Problem
from presage.baselines.methods.pruning import neighbourhoods, prune
from presage.baselines.orientation import graph_row_to_column
from presage.graphs.ops import project_to_dag

if TYPE_CHECKING:
    import torch

__all__ = ["RATE", "AcyclicityPenalty", "cycles", "dcdi", "gran_dag"]

BATCH = 128
RATE = 3e-3
WARM_UP = 0.3
"""Share of the steps before the acyclicity constraint applies."""
ROUNDS = 50
"""Number of updates of the multipliers."""


class _Densities:
    """d networks in parallel, each with two hidden layers: causes of j -> mean and log scale of x_j."""

    def __init__(
        self, d: int, hidden: int, *, heteroscedastic: bool, allowed: np.ndarray, rng: torch.Generator
    ) -> None:
        import torch

        def weights(fan_in: int, fan_out: int) -> torch.Tensor:
            scale = (2.0 / (min(fan_in, 5) + fan_out)) ** 0.5  # few of the d inputs will stay
            drawn: torch.Tensor = scale * torch.randn(d, fan_in, fan_out, generator=rng)
            return drawn.requires_grad_()

        def zeros(width: int) -> torch.Tensor:
            return torch.zeros(d, 1, width, requires_grad=True)

        self.layers = [
            (weights(d, hidden), zeros(hidden)),
            (weights(hidden, hidden), zeros(hidden)),
            (weights(hidden, 2 if heteroscedastic else 1), zeros(2 if heteroscedastic else 1)),
        ]
        self.log_scale = torch.zeros(d, requires_grad=True)
        self.heteroscedastic = heteroscedastic
        self.allowed = torch.from_numpy(allowed)
        # Most edges are on at first, so that the networks learn before the mask does: [cause, effect].
        self.logits = torch.full((d, d), 2.0, requires_grad=True)
        self.rng = rng

    def edges(self) -> torch.Tensor:
        """Edge probabilities [d, d]."""
        return self.logits.sigmoid() * self.allowed

    def draw_mask(self, rows: int) -> torch.Tensor:
        """A mask per row [rows, d, d] of 0/1, whose gradient is that of its relaxation."""
        import torch

        uniform = torch.rand(rows, *self.logits.shape, generator=self.rng).clamp_(1e-6, 1.0 - 1e-6)
        soft = (self.logits + uniform.log() - (-uniform).log1p()).sigmoid() * self.allowed
        return (soft > 0.5).to(soft) - soft.detach() + soft

    def log_density(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """log p(x_j | masked x): [rows, d] for x [rows, d] and mask [rows or 1, d, d]."""
        import torch

        value = (x[:, :, None] * mask).permute(2, 0, 1)  # [effect, rows, cause]
        for depth, (weight, bias) in enumerate(self.layers):
            value = torch.baddbmm(bias, value, weight)  # [effect, rows, width]
            if depth < 2:
                value = torch.nn.functional.leaky_relu(value, 0.25)
        mean = value[..., 0].T  # [rows, d]
        log_scale = self.log_scale + (value[..., 1].T if self.heteroscedastic else 0.0)
        log_scale = log_scale.clamp(-4.0, 4.0)
        return -log_scale - 0.5 * ((x - mean) / log_scale.exp()) ** 2 - 0.9189385

    def parameters(self) -> list[torch.Tensor]:
        return [self.log_scale, *(part for layer in self.layers for part in layer)]


def cycles(edges: torch.Tensor) -> torch.Tensor:
    """Zero exactly for an acyclic matrix [d, d] of numbers >= 0: log of the mean diagonal of (1 + edges / d)^d.

    The logarithm keeps dense matrices, where the power is huge, on the scale of sparse ones. On a graph without cycles
    the gradient vanishes for every edge that closes none, so the constraint does not change an acyclic graph.
    """
    import torch

    d = len(edges)
    trace: torch.Tensor = torch.linalg.matrix_power(torch.eye(d) + edges / d, d).diagonal().sum()
    return (trace / d).log()


class AcyclicityPenalty:
    """The augmented Lagrangian of `cycles(edges) = 0`.

    The constraint does not apply in the first share `warm_up` of the steps. multiplier: of the linear term after that.
    """

    def __init__(self, steps: int, *, warm_up: float = WARM_UP, multiplier: float = 0.0) -> None:
        self.warm = int(warm_up * steps)
        self.every = max(1, (steps - self.warm) // ROUNDS)
        self.multiplier, self.penalty, self.last = multiplier, 0.0, float("inf")

    def __call__(self, step: int, edges: torch.Tensor) -> torch.Tensor | float:
        """The term to add to the loss in a step."""
        if step < self.warm:
            return 0.0
        found = cycles(edges)
        if (step - self.warm) % self.every == 0:
            now = float(found.detach())
            self.multiplier += self.penalty * now
            if now > 0.9 * self.last or self.penalty == 0.0:
                self.penalty = min(max(1.0, 1.5 * self.penalty), 1e9)
            self.last = now
        return self.multiplier * found + 0.5 * self.penalty * found**2


def _fit(
    problem: Problem,
    *,
    hidden: int,
    sparsity: float,
    steps: int,
    heteroscedastic: bool,
    allowed: np.ndarray,
    holdout: bool,
) -> tuple[np.ndarray, float | None]:
    """An acyclic graph [d, d], and its held-out log-likelihood per row if asked for."""
    import torch

    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(problem.seed)
    train, held = problem.split() if holdout else (np.arange(len(problem.x)), np.arange(0))
    x = torch.from_numpy(problem.x).float()
    follows = torch.from_numpy(~problem.mask).float()  # 1 where a variable follows its mechanism
    net = _Densities(problem.d, hidden, heteroscedastic=heteroscedastic, allowed=allowed, rng=rng)
    optimizer = torch.optim.Adam(
        [{"params": net.parameters(), "lr": RATE}, {"params": [net.logits], "lr": 3.0 * RATE}], betas=(0.9, 0.99)
    )
    rows = torch.from_numpy(train)
    acyclicity = AcyclicityPenalty(steps)
    for step in range(steps):
        pick = rows[torch.randint(len(rows), (min(BATCH, len(rows)),), generator=rng)]
        density = net.log_density(x[pick], net.draw_mask(len(pick)))
        edges = net.edges()
        loss = -(density * follows[pick]).sum(dim=1).mean() + sparsity * edges.sum()
        loss = loss + acyclicity(step, edges)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        graph = project_to_dag(net.edges().numpy().astype(np.float64), 0.5)
        score = None
        if len(held):
            keep = torch.from_numpy(held)
            density = net.log_density(x[keep], torch.from_numpy(graph).float()[None])
            score = float((density * follows[keep]).sum(dim=1).mean())
    return graph, score


def _all_pairs(d: int) -> np.ndarray:
    return 1.0 - np.eye(d, dtype=np.float32)


def dcdi(problem: Problem, *, hidden: int, sparsity: float, steps: int, holdout: bool) -> Estimate:
    """DCDI with Gaussian densities and known perfect interventions."""
    graph, score = _fit(
        problem,
        hidden=hidden,
        sparsity=sparsity,
        steps=steps,
        heteroscedastic=True,
        allowed=_all_pairs(problem.d),
        holdout=holdout,
    )
    return graph_row_to_column(graph, score=score)


def gran_dag(
    problem: Problem, *, hidden: int, neighbours: float, cutoff: float, sparsity: float, steps: int, holdout: bool
) -> Estimate:
    """GraN-DAG with additive Gaussian noise, preliminary neighbour selection and pruning by additive regressions."""
    allowed = neighbourhoods(problem.x, neighbours, seed=problem.seed) * _all_pairs(problem.d)
    graph, score = _fit(
        problem,
        hidden=hidden,
        sparsity=sparsity,
        steps=steps,
        heteroscedastic=False,
        allowed=allowed.astype(np.float32),
        holdout=holdout,
    )
    return graph_row_to_column(prune(problem.x, graph, cutoff), score=score)
