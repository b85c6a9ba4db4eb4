"""What a network is: (values, masks) -> edge logits.

A network is built from a frozen config dataclass (written as JSON into every checkpoint) and maps

    x [B, n, d] float32 standardized values, u [B, n, d] intervention mask (0/1 or bool),
    missing [B, n, d] mask or None   ->   logits [B, d, d], where sigmoid(logits[b, i, j]) = P(i -> j)

for any n, d >= 1. Row order never matters; permuting variables permutes the answer.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from presage.errors import ConfigError

__all__ = ["NetConfig", "Network", "build_network", "config_from_json", "config_to_json", "register_network"]


@dataclass(frozen=True, kw_only=True)
class NetConfig:
    """Base of network configurations; subclasses hold exactly the fields their network accepts."""

    net: ClassVar[str] = ""
    """The short name used in configs and on the command line."""


class Network(nn.Module, ABC):
    """Base of networks."""

    config: NetConfig

    @abstractmethod
    def forward(self, x: Tensor, u: Tensor, missing: Tensor | None = None) -> Tensor:
        """Edge logits [B, d, d]."""

    def warm_start(self, other: Network) -> None:
        """Take the weights of a network of the same size, or of one this can grow from without another answer."""
        if self.config != other.config:
            raise ConfigError(f"its network differs: {other.config} against {self.config}")
        self.load_state_dict(other.state_dict())

    def activation_bytes(self, n: int, d: int) -> int:
        """About how much memory one dataset's activations take in training; batches are cut by it.

        A network that does not say is taken to keep 256 numbers for every cell and every pair.
        """
        return 4 * 256 * (n * d + d * d)

    @torch.inference_mode()
    def predict(self, x: Tensor, u: Tensor, missing: Tensor | None = None, rows: int | None = None) -> Tensor:
        """Edge logits [d, d] of one dataset [n, d] in evaluation mode, in memory linear in n at most.

        `rows` bounds how many rows are worked on at once; networks that cannot stream exactly ignore it.
        """
        training = self.training
        self.eval()
        try:
            return self(x[None], u[None], None if missing is None else missing[None])[0]
        finally:
            self.train(training)


_NETWORKS: dict[str, tuple[type[NetConfig], type[Network]]] = {}


def register_network(config: type[NetConfig], network: type[Network]) -> None:
    """Make a network known by its config's short name."""
    _NETWORKS[config.net] = (config, network)


def _lookup(net: str) -> tuple[type[NetConfig], type[Network]]:
    import presage.networks.axial
    import presage.networks.pair  # noqa: F401 - both register themselves

    if net not in _NETWORKS:
        raise ConfigError(f"there is no network {net!r}; choose one of: {', '.join(sorted(_NETWORKS))}")
    return _NETWORKS[net]


def build_network(config: NetConfig, seed: int = 0) -> Network:
    """A freshly initialised network; the same seed gives the same weights, and no global generator is left changed."""
    network = _lookup(config.net)[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return network(config)  # type: ignore[arg-type]  # every network takes its own config


def config_to_json(config: NetConfig) -> dict[str, Any]:
    """Plain JSON data, with the network's name under "net"."""
    return {"net": config.net, **dataclasses.asdict(config)}


def config_from_json(data: dict[str, Any]) -> NetConfig:
    """Back from `config_to_json`; unknown fields are refused by name."""
    body = dict(data)
    cls = _lookup(str(body.pop("net", "")))[0]
    known = {spec.name for spec in dataclasses.fields(cls)}
    extra = sorted(set(body) - known)
    if extra:
        raise ConfigError(f"the network {cls.net!r} has no setting {extra[0]!r}; it has: {', '.join(sorted(known))}")
    return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in body.items()})
