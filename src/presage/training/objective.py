"""The forward-KL objective and the dual variable of the acyclicity constraint.

    maximise  E[ log q(G | D) ] / d^2   subject to   E[ spectral radius of the edge probabilities ] = 0

by gradient steps on the weights and, every few of them, an ascent step on the multiplier. The constraint is optional.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from presage.training.config import DualConfig

__all__ = ["Dual", "confounded_loss", "effect_loss", "negative_log_likelihood"]


def negative_log_likelihood(logits: Tensor, graph: Tensor, *, mask_diagonal: bool) -> Tensor:
    """Minus the Bernoulli log-likelihood of graph [B, d, d] over d^2, for each dataset: [B].

    Dividing by d^2 makes losses and gradients of all d about equal in size. `mask_diagonal` leaves the diagonal out of
    the sum: it is never predicted where graphs are acyclic.
    """
    d = logits.shape[-1]
    terms = F.binary_cross_entropy_with_logits(logits.float(), graph.float(), reduction="none")
    if mask_diagonal:
        terms = terms * (1.0 - torch.eye(d, device=terms.device))
    return terms.sum(dim=(1, 2)) / d**2


CONFOUNDED_WEIGHT = 0.5
"""Weight of the likelihood of hidden common causes; every pair is counted in both directions."""
EFFECT_WEIGHT = 0.2
"""Weight of the likelihood of effects, which only true edges have."""


def confounded_loss(logits: Tensor, confounded: Tensor) -> Tensor:
    """Minus the Bernoulli log-likelihood of hidden common causes [B, d, d] over d^2, diagonal left out: [B]."""
    return negative_log_likelihood(logits, confounded, mask_diagonal=True)


def effect_loss(effect: Tensor, log_scale: Tensor, truth: Tensor) -> Tensor:
    """Minus the Laplace log-likelihood of the effects [B, d, d] that are finite, over d^2: [B]."""
    known = torch.isfinite(truth)
    bounded = log_scale.clamp(-5.0, 3.0)
    error = (effect - truth.nan_to_num(0.0).clamp(-3.0, 3.0)).abs()
    terms = torch.where(known, error * torch.exp(-bounded) + bounded, 0.0)
    return terms.sum(dim=(1, 2)) / truth.shape[-1] ** 2


@dataclass
class Dual:
    """The multiplier of the acyclicity constraint and the moving average of the penalty."""

    config: DualConfig
    multiplier: float = 0.0
    average: float | None = None
    last_ascent: float = 0.0
    """The share of the budget that was used at the last ascent."""

    def observe(self, penalty: float) -> None:
        """Update the moving average with the penalty of a primal step."""
        weight = self.config.ema
        self.average = penalty if self.average is None else (1.0 - weight) * self.average + weight * penalty

    def ascend(self, step: int, progress: float) -> None:
        """Raise the multiplier by the averaged penalty, if a dual step is due after this primal step."""
        if (step + 1) % self.config.every == 0 and self.average is not None:
            warm = 1.0 if self.config.warmup == 0 else min(1.0, progress / self.config.warmup)
            size = self.config.step_size
            if self.config.per_run:
                size *= max(0.0, progress - self.last_ascent)
            self.multiplier += warm * size * self.average
            self.last_ascent = progress

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"multiplier": self.multiplier, "average": self.average, "last_ascent": self.last_ascent}

    def restore(self, state: dict[str, Any]) -> None:
        """Back from `state`."""
        for name in self.state():
            setattr(self, name, state[name])
