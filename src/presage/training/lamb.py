"""LAMB (You et al., 2019), the optimiser of the paper's recipe: Adam whose step is scaled to each tensor's norm.

m, v   moving averages of the gradient and of its square, divided by 1 - beta^t
step   m / (sqrt(v) + eps) + weight_decay * w
w     <- w - lr * |w| / |step| * step          (the ratio is 1 where either norm is 0)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer, ParamsT

from presage.errors import ConfigError

__all__ = ["Lamb", "evaluate_closure", "square_root_scaled"]


def square_root_scaled(base_lr: float, batch: int) -> float:
    """The learning rate for a batch size: the paper's base rate of 3e-5 times the square root of the batch.

    >>> round(square_root_scaled(3e-5, 8 * 27), 5)
    0.00044
    """
    if batch < 1:
        raise ConfigError(f"the batch must hold at least one dataset, not {batch!r}")
    return base_lr * math.sqrt(batch)


class Lamb(Optimizer):
    """LAMB with decoupled weight decay and bias correction."""

    def __init__(
        self,
        params: ParamsT,
        lr: float = 3e-5,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        if not (math.isfinite(lr) and lr >= 0.0):
            raise ConfigError(f"the learning rate must be a finite number of at least 0, not {lr!r}")
        if len(betas) != 2 or not all(0.0 <= beta < 1.0 for beta in betas):
            raise ConfigError(f"betas must be two numbers of at least 0 and below 1, not {betas!r}")
        if not eps > 0.0:
            raise ConfigError(f"eps must be above 0, not {eps!r}")
        if not weight_decay >= 0.0:
            raise ConfigError(f"weight_decay must be at least 0, not {weight_decay!r}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient; returns what the closure returns."""
        loss = evaluate_closure(closure)
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._update(weight, weight.grad, group)
        return loss

    def _update(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        first, second = group["betas"]
        state = self.state[weight]
        if not state:
            state["step"] = 0
            state["mean"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
            state["square"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
        state["step"] += 1
        state["mean"].lerp_(gradient, 1.0 - first)
        state["square"].mul_(second).addcmul_(gradient, gradient, value=1.0 - second)
        mean = state["mean"] / (1.0 - first ** state["step"])
        square = state["square"] / (1.0 - second ** state["step"])
        step = mean / square.sqrt_().add_(group["eps"])
        if group["weight_decay"]:
            step.add_(weight, alpha=group["weight_decay"])
        size, length = torch.linalg.vector_norm(weight), torch.linalg.vector_norm(step)
        # The ratio is 1 for zero weights, which could not change otherwise, and for a zero step: no division by 0.
        ratio = torch.where((size > 0) & (length > 0), size / length, torch.ones_like(size))
        weight.sub_(step * (group["lr"] * ratio))


def evaluate_closure(closure: Callable[[], Any] | None) -> Any:
    """What the closure of an optimiser step returns, with gradients enabled; None without a closure."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()
