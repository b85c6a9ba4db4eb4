"""Muon (Jordan et al. 2024): momentum whose matrix updates are orthogonalised by Newton-Schulz iterations.

The same update as `torch.optim.Muon(adjust_lr_fn="match_rms_adamw")`, with two differences that matter on a CPU:
matrices of one shape are orthogonalised together in one batched product, and in float32 unless the run computes in
bf16. PyTorch's version always computes in bf16, which crashes on virtual machines that announce AMX instructions
without having them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from presage.errors import ConfigError
from presage.training.lamb import evaluate_closure

__all__ = ["Muon", "orthogonalise"]

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5


def orthogonalise(matrices: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """About U V^T of each matrix U S V^T in [b, rows, columns]: singular values end up between 0.7 and 1.2.

    dtype: of the products; bf16 takes less than half the time where the processor supports it.
    """
    a, b, c = COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp_min(1e-7)
    x = x.to(dtype)
    for _ in range(STEPS):
        gram = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    x = x.to(matrices.dtype)
    return x.transpose(1, 2) if tall else x


class Muon(torch.optim.Optimizer):
    """Orthogonalised momentum for matrices, with updates as large as AdamW's (0.2 root mean square)."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 4e-3,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.dtype = dtype
        if any(p.ndim != 2 for group in self.param_groups for p in group["params"]):
            raise ConfigError("Muon updates matrices only; give other parameters to another optimiser")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every matrix that has a gradient."""
        loss = evaluate_closure(closure)
        for group in self.param_groups:
            alike: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = defaultdict(list)
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(p)
                state["momentum"].lerp_(p.grad, 1.0 - group["momentum"])
                alike[tuple(p.shape)].append((p, p.grad.lerp(state["momentum"], group["momentum"])))
            for shape, pairs in alike.items():
                updates = orthogonalise(torch.stack([update for _, update in pairs]), self.dtype)
                size = group["lr"] * 0.2 * max(shape) ** 0.5
                for (p, _), update in zip(pairs, updates, strict=True):
                    p.mul_(1.0 - group["lr"] * group["weight_decay"]).add_(update, alpha=-size)
        return loss
