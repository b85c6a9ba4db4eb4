"""Optimisers behind one face: parameter groups, schedule, clipping, and the moving average of the weights."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from presage.training.config import OptimConfig
from presage.training.lamb import Lamb
from presage.training.muon import Muon

__all__ = ["Average", "Updater", "rate_factor"]


def rate_factor(config: OptimConfig, step: int, progress: float) -> float:
    """Share of the peak rate at a step, where `progress` is the share of the budget that is spent."""
    warm = 1.0 if config.warmup == 0 else min(1.0, (step + 1) / config.warmup)
    if config.schedule == "steps":
        return warm * (0.1 if progress >= 2.0 / 3.0 else 1.0)
    return warm * 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))


class Updater:
    """Clips gradients and applies one step of whatever optimisers the config names."""

    def __init__(self, network: nn.Module, config: OptimConfig) -> None:
        self.config = config
        self.named = [(name, p) for name, p in network.named_parameters() if p.requires_grad]
        parameters = [p for _, p in self.named]
        self.optimisers: list[torch.optim.Optimizer] = []
        if config.name == "lamb":
            self.optimisers.append(Lamb(parameters, lr=config.lr, weight_decay=config.weight_decay))
            return
        # Muon orthogonalises updates of matrices inside the network; the input and output layers, norms and biases
        # keep AdamW, as its authors advise.
        inner = {id(p) for name, p in self.named if config.name == "muon" and p.ndim == 2 and not _outer(name)}
        matrices = [p for p in parameters if id(p) in inner]
        decayed = [p for p in parameters if id(p) not in inner and p.ndim > 1]
        plain = [p for p in parameters if id(p) not in inner and p.ndim <= 1]
        if matrices:
            self.optimisers.append(Muon(matrices, lr=config.lr, weight_decay=config.weight_decay))
        groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        groups = [group for group in groups if group["params"]]
        self.optimisers.append(torch.optim.AdamW(groups, lr=config.lr, betas=(0.9, 0.99)))

    def step(self, factor: float) -> float:
        """Clip, update with `factor` of the peak rate, forget the gradients; returns the gradient's length."""
        length = float(nn.utils.clip_grad_norm_([p for _, p in self.named], self.config.clip))
        if math.isfinite(length):  # one bad batch must not ruin the weights
            for optimiser in self.optimisers:
                for group in optimiser.param_groups:
                    group["lr"] = self.config.lr * factor
                optimiser.step()
        for _, p in self.named:
            p.grad = None
        return length

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors by name and JSON data, for a checkpoint."""
        tensors: dict[str, Tensor] = {}
        numbers: dict[str, Any] = {}
        names = {id(p): name for name, p in self.named}
        for k, optimiser in enumerate(self.optimisers):
            for p, entries in optimiser.state.items():
                for key, value in entries.items():
                    where = f"{k}/{names[id(p)]}/{key}"
                    if isinstance(value, Tensor):
                        tensors[where] = value
                    else:
                        numbers[where] = value
        return tensors, numbers

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Back from `state`."""
        parameters = dict(self.named)
        for where, value in (*tensors.items(), *numbers.items()):
            number, name, key = where.split("/")
            entry = value.clone() if isinstance(value, Tensor) else value
            self.optimisers[int(number)].state[parameters[name]][key] = entry


def _outer(name: str) -> bool:
    """Whether a parameter belongs to a layer that reads the input or writes the answer."""
    return name.startswith(("head", "cell_in.0", "pair_in", "input", "output"))


class Average:
    """Exponential moving average of the weights with a half-life in steps, short at first and then as asked."""

    def __init__(self, network: nn.Module, half_life: float) -> None:
        self.half_life = half_life
        self.weights = {name: p.detach().clone() for name, p in network.named_parameters()}

    @torch.no_grad()
    def update(self, network: nn.Module, step: int) -> None:
        """Take in the weights after a step."""
        half_life = min(self.half_life, 0.1 * (step + 1))  # early weights are soon worthless
        rate = 1.0 if half_life <= 0 else 1.0 - 0.5 ** (1.0 / half_life)
        for name, p in network.named_parameters():
            self.weights[name].lerp_(p, rate)

    @torch.no_grad()
    def copy_to(self, network: nn.Module) -> None:
        """Put the averaged weights into a network of the same shape."""
        for name, p in network.named_parameters():
            p.copy_(self.weights[name])
