"""What a network is: (values, masks) -> edge logits.

A network is built from a frozen configuration (written as JSON into every checkpoint) and maps

    x [B, n, d] float32 standardized values, u [B, n, d] intervention mask (0/1 or bool),
    missing [B, n, d] mask or None   ->   logits [B, d, d], where sigmoid(logits[b, i, j]) = P(i -> j)

for any n, d >= 1. The order of rows does not matter; permuting variables permutes the logits. A network also knows its
own facts: which layers are input and output, and how much memory it takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from presage.config import Config, register
from presage.errors import ConfigError

__all__ = ["NetConfig", "Network", "build_network", "network_config", "register_network"]


@dataclass(frozen=True, kw_only=True)
class NetConfig(Config):
    """Base of network configurations; subclasses hold exactly the fields their network accepts."""

    net: ClassVar[str] = ""
    """The short name of the network on the command line and in lists of models."""

    @classmethod
    def import_subclasses(cls) -> None:
        import presage.networks.axial
        import presage.networks.pair  # noqa: F401 - both register themselves


class Network(nn.Module, ABC):
    """Base of networks."""

    config: NetConfig

    @abstractmethod
    def forward(self, x: Tensor, u: Tensor, missing: Tensor | None = None) -> Tensor:
        """Edge logits [B, d, d]."""

    @abstractmethod
    def io_layers(self) -> Iterator[nn.Module]:
        """The layers that read the input and those that write the logits; optimisers treat their matrices apart."""

    def warm_start(self, other: Network) -> None:
        """Take the weights of a network of the same size, or of one this can grow from without changing predictions."""
        if self.config != other.config:
            raise ConfigError(f"its network differs: {other.config} against {self.config}")
        self.load_state_dict(other.state_dict())

    def activation_bytes(self, n: int, d: int) -> int:
        """Approximate memory of one dataset's activations in training; batches are split by it.

        The default assumes 256 numbers for every cell and every ordered pair.
        """
        return 4 * 256 * (n * d + d * d)

    def bytes_per_pair(self) -> float:
        """Approximate working memory of `predict` for each ordered pair of variables; 0 if it is negligible."""
        return 0.0

    @torch.inference_mode()
    def predict(self, x: Tensor, u: Tensor, missing: Tensor | None = None, rows: int | None = None) -> Tensor:
        """Edge logits [d, d] of one dataset [n, d] in evaluation mode, in memory linear in n at most.

        `rows` bounds how many rows are worked on at once; networks that cannot stream exactly ignore it.
        """
        training = self.training
        self.eval()
        try:
            logits: Tensor = self(x[None], u[None], None if missing is None else missing[None])
            return logits[0]
        finally:
            self.train(training)


_NETWORKS: dict[type[NetConfig], type[Network]] = {}


def register_network(config: type[NetConfig], network: type[Network]) -> None:
    """Make a network and its configuration known."""
    _NETWORKS[register(config)] = network


def network_config(net: str) -> type[NetConfig]:
    """The configuration class of a network's short name."""
    NetConfig.import_subclasses()
    known = {config.net: config for config in _NETWORKS}
    if net not in known:
        raise ConfigError(f"there is no network {net!r}; choose one of: {', '.join(sorted(known))}")
    return known[net]


def build_network(config: NetConfig, seed: int = 0) -> Network:
    """A freshly initialised network; the same seed gives the same weights, and no global generator is left changed."""
    if type(config) not in _NETWORKS:
        raise ConfigError(f"no network is registered for {type(config).__name__}; see register_network")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _NETWORKS[type(config)](config)  # every network takes its own config
