"""Graph models in addition to those of the paper: layered graphs, empty graphs, and sampled density."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from presage.config import Range, options, register
from presage.errors import ConfigError
from presage.graphs.random import GraphModel

__all__ = ["Empty", "Layered", "UniformDensity"]


@register
@dataclass(frozen=True, kw_only=True)
class Empty(GraphModel):
    """No edges."""

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        return np.zeros((d, d), dtype=bool)


@register
@dataclass(frozen=True, kw_only=True)
class UniformDensity(GraphModel):
    """Every pair is adjacent with one probability, sampled uniformly for each graph.

    Meant for few variables, for which a fixed number of edges per node gives complete graphs.
    """

    density: tuple[Range, ...] = options((0.05, 0.7))

    def check(self) -> None:
        if any(not 0.0 <= low <= high <= 1.0 for low, high in self.density):
            raise ConfigError("UniformDensity.density needs 0 <= low <= high <= 1")

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        low, high = self.only("density")
        return np.triu(rng.random((d, d)) < rng.uniform(low, high), k=1)


@register
@dataclass(frozen=True, kw_only=True)
class Layered(GraphModel):
    """Tiers of variables; edges run from earlier to later tiers, as from actuators to sensors.

    `skip` is how much rarer an edge is between tiers that are not adjacent. The edge probability is scaled to the
    expected edges per node.
    """

    tiers: tuple[int, ...] = options(2, 3, 4)
    edges_per_node: tuple[float, ...] = options(0.5, 1.0, 2.0, 3.0)
    skip: tuple[float, ...] = options(0.0, 0.3, 1.0)

    def check(self) -> None:
        self._positive("tiers", "edges_per_node")
        self._whole("tiers")
        self._probability("skip")

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        tiers = min(d, int(self.only("tiers")))
        cuts = np.sort(rng.permutation(d - 1)[: tiers - 1]) + 1
        tier = np.searchsorted(cuts, np.arange(d), side="right")
        gap = tier[None, :] - tier[:, None]
        relative = np.where(gap == 1, 1.0, np.where(gap > 1, self.only("skip"), 0.0))
        weight = float(relative.sum())
        if weight == 0.0:
            return np.zeros((d, d), dtype=bool)
        probability = min(self.only("edges_per_node") * d / weight, 0.99)
        edges: np.ndarray = rng.random((d, d)) < relative * probability
        return edges
