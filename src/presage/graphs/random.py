"""Random graph models of the paper. Each sample is an acyclic adjacency matrix [d, d] (row causes column).

Undirected models keep the upper triangle of the adjacency matrix, then every model labels its variables at
random. NumPy only: the libraries that offer these models draw from a global generator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from presage.components import Component, options, register
from presage.errors import ConfigError
from presage.graphs.ops import relabel

__all__ = [
    "ErdosRenyi",
    "Geometric",
    "GraphModel",
    "ScaleFreeIn",
    "ScaleFreeOut",
    "StochasticBlock",
    "WattsStrogatz",
]


@dataclass(frozen=True, kw_only=True)
class GraphModel(Component):
    """A distribution over acyclic graphs. Subclasses implement `ordered`."""

    def sample(self, rng: np.random.Generator, d: int) -> np.ndarray:
        """Draw the options, then a graph of d variables in random order: int8 [d, d]."""
        if d < 1:
            raise ConfigError(f"d must be a whole number of at least 1, not {d!r}")
        return relabel(rng, self.resolve(rng).ordered(rng, d).astype(np.int8))

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        """A graph before its variables are shuffled, with options resolved."""
        raise NotImplementedError(f"{type(self).__name__} must implement ordered")

    def _positive(self, *names: str) -> None:
        for name in names:
            if min(getattr(self, name)) <= 0:
                raise ConfigError(f"{type(self).__name__}.{name} must be above 0")

    def _probability(self, *names: str) -> None:
        for name in names:
            if not all(0.0 <= value <= 1.0 for value in getattr(self, name)):
                raise ConfigError(f"{type(self).__name__}.{name} must lie between 0 and 1")


def _upper(rng: np.random.Generator, probability: np.ndarray | float, d: int) -> np.ndarray:
    """Independent edges in the upper triangle."""
    return np.triu(rng.random((d, d)) < probability, k=1)


def _scaled(edges_per_node: float, d: int, weight: float) -> float:
    """Edge probability that gives the expected number of edges when the pairs weigh `weight` in all."""
    return min(edges_per_node * d / weight, 0.99) if weight > 0 else 0.0


@register
@dataclass(frozen=True, kw_only=True)
class ErdosRenyi(GraphModel):
    """Every pair is joined independently; the probability is scaled to the expected edges per node."""

    edges_per_node: tuple[float, ...] = options(1.0, 2.0, 3.0)

    def check(self) -> None:
        self._positive("edges_per_node")

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        return _upper(rng, _scaled(self.only("edges_per_node"), d, d * (d - 1) / 2), d)


@dataclass(frozen=True, kw_only=True)
class _ScaleFree(GraphModel):
    edges_per_node: tuple[int, ...] = options(1, 2, 3)
    power: tuple[float, ...] = options(1.0)

    def check(self) -> None:
        self._positive("edges_per_node")
        if any(edges != int(edges) for edges in self.edges_per_node):
            raise ConfigError(f"{type(self).__name__}.edges_per_node must be whole numbers")
        if min(self.power) < 0:
            raise ConfigError(f"{type(self).__name__}.power must be at least 0")

    def _attach(self, rng: np.random.Generator, d: int) -> np.ndarray:
        """new[i, j]: the later node i chose the earlier node j, with probability ~ degree(j)^power + 1.

        The + 1 lets nodes that nobody has chosen yet be chosen at all. Choosing m distinct nodes with given weights
        is done by the largest of log(weight) + Gumbel noise.
        """
        edges, power = int(self.only("edges_per_node")), self.only("power")
        chosen = np.zeros((d, d), dtype=bool)
        degree = np.zeros(d)
        gumbel = rng.gumbel(size=(d, d))
        for i in range(1, d):
            if i <= edges:
                picks = np.arange(i)
            else:
                score = np.log(degree[:i] ** power * (degree[:i] > 0) + 1.0) + gumbel[i, :i]
                picks = np.argpartition(-score, edges - 1)[:edges]
            chosen[i, picks] = True
            degree[picks] += 1.0
        return chosen


@register
@dataclass(frozen=True, kw_only=True)
class ScaleFreeIn(_ScaleFree):
    """Preferential attachment with a heavy tail of in-degrees: new nodes cause popular ones."""

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        return self._attach(rng, d)


@register
@dataclass(frozen=True, kw_only=True)
class ScaleFreeOut(_ScaleFree):
    """Preferential attachment with a heavy tail of out-degrees: popular nodes cause new ones."""

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        return self._attach(rng, d).T


@register
@dataclass(frozen=True, kw_only=True)
class WattsStrogatz(GraphModel):
    """A periodic lattice of nearest neighbours, rewired at random; surplus nodes are dropped at random."""

    dimension: tuple[int, ...] = options(2, 3)
    rewire: tuple[float, ...] = options(0.3)

    def check(self) -> None:
        self._positive("dimension")
        self._probability("rewire")

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        dimension, rewire = int(self.only("dimension")), self.only("rewire")
        side = _root_up(d, dimension)
        nodes = side**dimension
        joined = np.zeros((nodes, nodes), dtype=bool)
        grid = np.arange(nodes).reshape((side,) * dimension)
        for axis in range(dimension):
            ends = np.roll(grid, -1, axis=axis).ravel()
            for start, end in zip(grid.ravel(), ends, strict=True):
                joined[start, end] = joined[end, start] = True
        np.fill_diagonal(joined, False)  # a side of length 1 joins a node to itself
        starts, ends = np.nonzero(np.triu(joined))
        for start, end in zip(starts, ends, strict=True):
            if rng.random() < rewire:
                free = np.flatnonzero(~joined[start])
                free = free[free != start]
                if len(free):
                    target = free[int(rng.integers(len(free)))]
                    joined[start, end] = joined[end, start] = False
                    joined[start, target] = joined[target, start] = True
        kept = np.sort(rng.permutation(nodes)[:d])
        return np.triu(joined[np.ix_(kept, kept)], k=1)


def _root_up(d: int, dimension: int) -> int:
    """The smallest side whose power reaches d, in whole numbers (27 ** (1/3) is not 3 in floating point)."""
    side = max(1, math.floor(d ** (1.0 / dimension)) - 1)
    while side**dimension < d:
        side += 1
    return side


@register
@dataclass(frozen=True, kw_only=True)
class StochasticBlock(GraphModel):
    """Communities: edges between blocks are rarer than within by the factor `damping`."""

    edges_per_node: tuple[float, ...] = options(2.0)
    blocks: tuple[int, ...] = options(5, 10)
    damping: tuple[float, ...] = options(0.1)

    def check(self) -> None:
        self._positive("edges_per_node", "blocks")
        self._probability("damping")

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        blocks = min(d, int(self.only("blocks")))
        cuts = np.sort(rng.permutation(d - 1)[: blocks - 1]) + 1  # a random partition into non-empty runs
        block = np.zeros(d, dtype=np.int64)
        block[cuts] = 1
        block = rng.permutation(np.cumsum(block))
        relative = np.where(block[:, None] == block[None, :], 1.0, self.only("damping"))
        weight = float(np.triu(relative, k=1).sum())
        return _upper(rng, relative * _scaled(self.only("edges_per_node"), d, weight), d)


@register
@dataclass(frozen=True, kw_only=True)
class Geometric(GraphModel):
    """Random points of the unit square, joined when closer than `radius`."""

    radius: tuple[float, ...] = options(0.1)

    def check(self) -> None:
        self._positive("radius")

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        points = rng.random((d, 2))
        # Sorted along one side as the published graphs are, so that causes tend to lie to the left of effects.
        points = points[np.argsort(points[:, 0])]
        distance = np.linalg.norm(points[:, None] - points[None, :], axis=-1)
        return np.triu(distance < self.only("radius"), k=1)
