"""The interface of networks: (values, masks) -> edge logits.

A network is built from a frozen configuration (written as JSON into every checkpoint) and maps

    x [B, n, d] float32 standardized values, u [B, n, d] intervention mask (0/1 or bool),
    missing [B, n, d] mask or None   ->   logits [B, d, d], where sigmoid(logits[b, i, j]) = P(i -> j)

for any n, d >= 1. The order of rows does not matter; permuting variables permutes the logits. A network also
states which layers are input and output layers, and how much memory it needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from presage.config import Config, register
from presage.data.encode import encode
from presage.data.row_statistics import Columns
from presage.errors import ConfigError

__all__ = [
    "NetConfig",
    "Network",
    "Prediction",
    "build_network",
    "continuous_columns",
    "network_config",
    "register_network",
]


@dataclass(frozen=True, kw_only=True)
class NetConfig(Config):
    """Base of network configurations; subclasses hold exactly the fields their network accepts."""

    net: ClassVar[str] = ""
    """The short name of the network on the command line and in lists of models."""

    @property
    def depth(self) -> int:
        """Number of repeated modules, each with its own weights; a file cannot declare more than it holds."""
        return 1

    @classmethod
    def import_subclasses(cls) -> None:
        import presage.networks.axial
        import presage.networks.pair  # noqa: F401 - both register themselves


class Prediction(NamedTuple):
    """Predictions for every ordered pair; None if the network has no such output."""

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

    @abstractmethod
    def io_layers(self) -> Iterator[nn.Module]:
        """Input and output layers, whose weights optimisers treat separately."""

    def progress_layers(self) -> list[nn.Module]:
        """Modules that run once in every pass: how many of them have run is the progress of a prediction.

        By default the layer norms. Every block begins with one, and norms are always called as modules, which not all
        layers are.
        """
        return [module for module in self.modules() if isinstance(module, nn.LayerNorm)]

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
            return self._stream(x[None], u[None], hidden, batched, rows).first()
        finally:
            self.train(training)

    def _stream(
        self, x: Tensor, u: Tensor, missing: Tensor | None, columns: Columns | None, rows: int | None
    ) -> Prediction:
        """All predictions for a batch; networks that can process `rows` rows at a time override this."""
        return self.outputs(x, u, missing, columns)


_NETWORKS: dict[type[NetConfig], type[Network]] = {}


def register_network(config: type[NetConfig], network: type[Network]) -> None:
    """Register a network and its configuration."""
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
