"""Optimisers behind one interface: parameter groups, schedule, clipping, and the moving average of the weights."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from presage.training.config import OptimConfig
from presage.training.lamb import Lamb
from presage.training.muon import Muon

__all__ = ["Updater", "averaged_network", "lr_factor"]


def lr_factor(config: OptimConfig, step: int, progress: float) -> float:
    """Share of the peak learning rate at a step, where `progress` is the share of the budget that is used."""
    warm = 1.0 if config.warmup == 0 else min(1.0, (step + 1) / config.warmup)
    if config.schedule == "steps":
        return warm * (0.1 if progress >= 2.0 / 3.0 else 1.0)
    return warm * 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))


class Updater:
    """Clips gradients and applies one step of the configured optimiser.

    io_layers: kept out of Muon. dtype: of Muon's matrix products.
    """

    def __init__(
        self,
        network: nn.Module,
        config: OptimConfig,
        io_layers: Iterable[nn.Module] = (),
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.config = config
        self.named = [(name, p) for name, p in network.named_parameters() if p.requires_grad]
        parameters = [p for _, p in self.named]
        self.optimisers: list[torch.optim.Optimizer] = []
        if config.name == "lamb":
            self.optimisers.append(Lamb(parameters, lr=config.lr, weight_decay=config.weight_decay))
            return
        # Muon orthogonalises updates of matrices inside the network; input and output layers, norms and biases use
        # AdamW, as its authors advise.
        outer = {id(p) for layer in io_layers for p in layer.parameters()}
        inner = {id(p) for p in parameters if config.name == "muon" and p.ndim == 2 and id(p) not in outer}
        matrices = [p for p in parameters if id(p) in inner]
        decayed = [p for p in parameters if id(p) not in inner and p.ndim > 1]
        plain = [p for p in parameters if id(p) not in inner and p.ndim <= 1]
        if matrices:
            self.optimisers.append(Muon(matrices, lr=config.lr, weight_decay=config.weight_decay, dtype=dtype))
        groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        groups = [group for group in groups if group["params"]]
        self.optimisers.append(torch.optim.AdamW(groups, lr=config.lr, betas=(0.9, 0.99)))

    def step(self, factor: float) -> float:
        """Clip, update with `factor` of the peak learning rate and clear the gradients; returns the gradient norm."""
        norm = float(nn.utils.clip_grad_norm_([p for _, p in self.named], self.config.clip))
        if math.isfinite(norm):  # skip the update otherwise: one bad batch must not ruin the weights
            for optimiser in self.optimisers:
                for group in optimiser.param_groups:
                    group["lr"] = self.config.lr * factor
                optimiser.step()
        for _, p in self.named:
            p.grad = None
        return norm

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
            if isinstance(value, Tensor) and value.is_floating_point() and value.dtype != parameters[name].dtype:
                raise ValueError(f"{where} is of type {value.dtype}, not {parameters[name].dtype}")
            entry = value.clone() if isinstance(value, Tensor) else value
            self.optimisers[int(number)].state[parameters[name]][key] = entry


def averaged_network(network: nn.Module, half_life: float) -> AveragedModel:
    """A copy of a network that holds the exponential moving average of its weights, with a half-life in steps.

    The half-life is shorter at the start, where earlier weights are far off. With 0 the copy follows the network.
    """

    @torch.no_grad()
    def update(averaged: Any, current: Any, count: Any) -> None:
        shortened = min(half_life, 0.1 * (float(count) + 1.0))
        decay = 0.5 ** (1.0 / shortened) if shortened > 0.0 else 0.0
        get_ema_multi_avg_fn(decay)(averaged, current, count)

    return AveragedModel(network, multi_avg_fn=update)
