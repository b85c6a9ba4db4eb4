"""The forward-KL objective and the acyclicity dual.

    maximise  E[ log q(G | D) ] / d^2   subject to   E[ spectral radius of the edge probabilities ] = 0

by gradient steps on the weights and, now and then, an ascent step on the multiplier.
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

    Dividing by d^2 makes losses and gradients of all d about equal in size. With `mask_diagonal` the diagonal is left
    out of the sum: it is never predicted where graphs are acyclic.
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
    """The multiplier of the acyclicity constraint and the moving average of what it multiplies."""

    config: DualConfig
    multiplier: float = 0.0
    average: float | None = None
    ascended: float = 0.0
    """The share of the budget that was spent at the last ascent."""

    def observe(self, penalty: float) -> None:
        """Take in the penalty of a primal step."""
        rate = self.config.smoothing
        self.average = penalty if self.average is None else (1.0 - rate) * self.average + rate * penalty

    def ascend(self, step: int, progress: float) -> None:
        """After a primal step: every so often, move the multiplier up by the averaged penalty."""
        if (step + 1) % self.config.every == 0 and self.average is not None:
            warm = 1.0 if self.config.warmup == 0 else min(1.0, progress / self.config.warmup)
            size = self.config.rate
            if self.config.per_run:
                size *= max(0.0, progress - self.ascended)
            self.multiplier += warm * size * self.average
            self.ascended = progress

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"multiplier": self.multiplier, "average": self.average, "ascended": self.ascended}

    def restore(self, state: dict[str, Any]) -> None:
        """Back from `state`."""
        self.multiplier, self.average = state["multiplier"], state["average"]
        self.ascended = state.get("ascended", 0.0)
