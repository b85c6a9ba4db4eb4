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
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from presage.data.encode import encode
from presage.data.row_statistics import Columns
from presage.errors import ConfigError

__all__ = [
    "NetConfig",
    "Network",
    "Prediction",
    "build_network",
    "config_from_json",
    "config_to_json",
    "continuous_columns",
    "register_network",
]


@dataclass(frozen=True, kw_only=True)
class NetConfig:
    """Base of network configurations; subclasses hold exactly the fields their network accepts."""

    net: ClassVar[str] = ""
    """The short name used in configs and on the command line."""


class Prediction(NamedTuple):
    """What a network predicts for every ordered pair; None where it has no such output."""

    edge: Tensor
    """Logits of i -> j, [B, d, d]."""
    confounded: Tensor | None = None
    """Logits of a hidden common cause of i and j, symmetric [B, d, d]."""
    effect: Tensor | None = None
    """Signed standardized effect of i on j if the edge exists, [B, d, d]: the median of a Laplace distribution."""
    effect_log_scale: Tensor | None = None
    """Logarithm of the scale of that distribution, [B, d, d]."""

    def first(self) -> Prediction:
        """The predictions for the first dataset of the batch."""
        return Prediction(*(None if part is None else part[0] for part in self))  # type: ignore[arg-type]


def continuous_columns(x: Tensor) -> Columns:
    """The `Columns` of standardized values x [B, n, d] that are all continuous."""
    kinds = np.zeros(x.shape[2], dtype=np.int8)
    association = [encode(values.cpu().numpy(), kinds).association for values in x]
    return Columns(
        kinds=torch.zeros(x.shape[0], x.shape[2], dtype=torch.int8, device=x.device),
        second=torch.zeros_like(x[:, :1, :1]).expand_as(x),
        association=torch.from_numpy(np.stack(association)).to(x.device),
    )


class Network(nn.Module, ABC):
    """Base of networks."""

    config: NetConfig

    @abstractmethod
    def forward(self, x: Tensor, u: Tensor, missing: Tensor | None = None) -> Tensor:
        """Edge logits [B, d, d]."""

    def outputs(
        self, x: Tensor, u: Tensor, missing: Tensor | None = None, columns: Columns | None = None
    ) -> Prediction:
        """All predictions for a batch; networks with further outputs or inputs override this."""
        return Prediction(self(x, u, missing))

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

    def predict(self, x: Tensor, u: Tensor, missing: Tensor | None = None, rows: int | None = None) -> Tensor:
        """Edge logits [d, d] of one dataset [n, d] in evaluation mode, in memory linear in n at most.

        `rows` bounds how many rows are processed at once; networks that cannot stream exactly ignore it.
        """
        return self.predict_outputs(x, u, missing, rows=rows).edge

    @torch.inference_mode()
    def predict_outputs(
        self,
        x: Tensor,
        u: Tensor,
        missing: Tensor | None = None,
        columns: Columns | None = None,
        rows: int | None = None,
    ) -> Prediction:
        """All predictions for one dataset [n, d] in evaluation mode; see `predict`."""
        training = self.training
        self.eval()
        try:
            hidden = None if missing is None else missing[None]
            batched = None if columns is None else Columns(*(part[None] for part in columns))
            return self.outputs(x[None], u[None], hidden, batched).first()
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
