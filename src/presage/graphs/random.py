"""Random graph models of the paper. Each sample is an acyclic adjacency matrix [d, d] (row causes column).

Undirected models keep the upper triangle of the adjacency matrix; every model then permutes its variables at random.
Implemented in NumPy, because the libraries that offer these models use a global random state. The tests compare degree
distributions with those of the libraries.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from presage.config import Component, options, register
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
class GraphModel(Component, ABC):
    """A distribution over acyclic graphs. Subclasses implement `ordered`."""

    def sample(self, rng: np.random.Generator, d: int) -> np.ndarray:
        """Resolve the options and sample a graph of d variables in random order: int8 [d, d]."""
        if d < 1:
            raise ConfigError(f"d must be a whole number of at least 1, not {d!r}")
        return relabel(rng, self.resolve(rng).ordered(rng, d).astype(np.int8))

    @abstractmethod
    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        """Sample an acyclic graph before its variables are permuted; options are resolved."""

    def _positive(self, *names: str) -> None:
        for name in names:
            if min(getattr(self, name)) <= 0:
                raise ConfigError(f"{type(self).__name__}.{name} must be above 0")

    def _whole(self, *names: str) -> None:
        for name in names:
            if any(value != int(value) for value in getattr(self, name)):
                raise ConfigError(f"{type(self).__name__}.{name} must hold whole numbers")

    def _probability(self, *names: str) -> None:
        for name in names:
            if not all(0.0 <= value <= 1.0 for value in getattr(self, name)):
                raise ConfigError(f"{type(self).__name__}.{name} must lie between 0 and 1")


def _upper(rng: np.random.Generator, probability: np.ndarray | float, d: int) -> np.ndarray:
    """Independent edges in the upper triangle."""
    return np.triu(rng.random((d, d)) < probability, k=1)


def _uniforms(rng: np.random.Generator, block: int) -> Iterator[float]:
    """Uniform numbers one at a time, drawn in blocks because single generator calls are slow."""
    while True:
        yield from rng.random(block).tolist()


def _scaled(edges_per_node: float, d: int, weight: float) -> float:
    """Edge probability that gives the expected number of edges when the pair weights sum to `weight`."""
    return min(edges_per_node * d / weight, 0.99) if weight > 0 else 0.0


@register
@dataclass(frozen=True, kw_only=True)
class ErdosRenyi(GraphModel):
    """Independent edges; the edge probability is set by the expected number of edges per node."""

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
        self._whole("edges_per_node")
        if min(self.power) < 0:
            raise ConfigError(f"{type(self).__name__}.power must be at least 0")

    def _attach(self, rng: np.random.Generator, d: int) -> np.ndarray:
        """attached[i, j]: node i attaches to the earlier node j with probability proportional to degree_j^power + 1.

        degree_j counts attachments to j so far. The + 1 allows nodes without attachments to be chosen, as in igraph,
        which generated the paper's graphs. Each node attaches to distinct nodes, drawn one after another.
        """
        edges, power = int(self.only("edges_per_node")), self.only("power")
        weight = [0.0**power + 1.0] * d
        degree = [0.0] * d
        sources: list[int] = []
        targets: list[int] = []
        draw = _uniforms(rng, 2 * edges * d).__next__
        for i in range(1, d):
            picks = list(range(i)) if i <= edges else []
            cumulative = list(accumulate(weight[:i]))
            while len(picks) < min(edges, i):
                j = min(bisect(cumulative, draw() * cumulative[-1]), i - 1)
                if j not in picks:
                    picks.append(j)
                    continue
                rest = weight[:i]  # a repeated pick: draw among the remaining nodes from here on
                for k in picks:
                    rest[k] = 0.0
                cumulative = list(accumulate(rest))
            for j in picks:
                degree[j] += 1.0
                weight[j] = degree[j] ** power + 1.0
            sources += [i] * len(picks)
            targets += picks
        attached = np.zeros((d, d), dtype=bool)
        attached[sources, targets] = True
        return attached


@register
@dataclass(frozen=True, kw_only=True)
class ScaleFreeIn(_ScaleFree):
    """Preferential attachment with heavy-tailed in-degrees: new nodes are parents of high-degree nodes."""

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        return self._attach(rng, d)


@register
@dataclass(frozen=True, kw_only=True)
class ScaleFreeOut(_ScaleFree):
    """Preferential attachment with heavy-tailed out-degrees: new nodes are children of high-degree nodes."""

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        return np.transpose(self._attach(rng, d))


@register
@dataclass(frozen=True, kw_only=True)
class WattsStrogatz(GraphModel):
    """A periodic lattice of nearest neighbours, rewired at random; nodes in excess of d are dropped at random.

    Each edge moves one endpoint with probability `rewire`, as in the original model and in networkx. igraph, which
    generated the paper's graphs, moves both endpoints independently and so keeps fewer lattice edges (about 0.52
    instead of 0.71 of them at 0.3); the number of edges is the same.
    """

    dimension: tuple[int, ...] = options(2, 3)
    rewire: tuple[float, ...] = options(0.3)

    def check(self) -> None:
        self._positive("dimension")
        self._whole("dimension")
        self._probability("rewire")

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        dimension, rewire = int(self.only("dimension")), self.only("rewire")
        side = _ceil_root(d, dimension)
        nodes = side**dimension
        grid = np.arange(nodes).reshape((side,) * dimension)
        lattice: dict[tuple[int, int], None] = {}  # ordered set: each node and its successor along each axis
        for axis in range(dimension):
            successor = np.roll(grid, -1, axis=axis)
            for i, j in zip(grid.ravel().tolist(), successor.ravel().tolist(), strict=True):
                if i != j and (j, i) not in lattice:  # sides of length 1 and 2 wrap onto themselves
                    lattice[i, j] = None
        adjacent: list[set[int]] = [set() for _ in range(nodes)]
        for i, j in lattice:
            adjacent[i].add(j)
            adjacent[j].add(i)
        draw = _uniforms(rng, 4 * len(lattice) + 1).__next__
        for i, j in lattice:
            if draw() >= rewire or len(adjacent[i]) == nodes - 1:  # already adjacent to every other node
                continue
            k = i
            while k == i or k in adjacent[i]:
                k = int(draw() * nodes)
            adjacent[i].remove(j)
            adjacent[j].remove(i)
            adjacent[i].add(k)
            adjacent[k].add(i)
        matrix = np.zeros((nodes, nodes), dtype=bool)
        for i, others in enumerate(adjacent):
            matrix[i, list(others)] = True
        kept = np.sort(rng.permutation(nodes)[:d])
        return np.triu(matrix[np.ix_(kept, kept)], k=1)


def _ceil_root(d: int, dimension: int) -> int:
    """The smallest integer side with side**dimension >= d; floating point alone fails, as 27 ** (1/3) is not 3."""
    side = max(1, math.floor(math.pow(d, 1.0 / dimension)) - 1)
    while side**dimension < d:
        side += 1
    return side


@register
@dataclass(frozen=True, kw_only=True)
class StochasticBlock(GraphModel):
    """Stochastic block model: edges between blocks are less likely than within by the factor `damping`."""

    edges_per_node: tuple[float, ...] = options(2.0)
    blocks: tuple[int, ...] = options(5, 10)
    damping: tuple[float, ...] = options(0.1)

    def check(self) -> None:
        self._positive("edges_per_node", "blocks")
        self._whole("blocks")
        self._probability("damping")

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        blocks = min(d, int(self.only("blocks")))
        cuts = np.sort(rng.permutation(d - 1)[: blocks - 1]) + 1  # a random partition into non-empty blocks
        block = np.zeros(d, dtype=np.int64)
        block[cuts] = 1
        block = rng.permutation(np.cumsum(block))
        relative = np.where(block[:, None] == block[None, :], 1.0, self.only("damping"))
        weight = float(np.triu(relative, k=1).sum())
        return _upper(rng, relative * _scaled(self.only("edges_per_node"), d, weight), d)


@register
@dataclass(frozen=True, kw_only=True)
class Geometric(GraphModel):
    """Random geometric graph: points of the unit square, adjacent when closer than `radius`."""

    radius: tuple[float, ...] = options(0.1)

    def check(self) -> None:
        self._positive("radius")

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        points = rng.random((d, 2))
        # Sorted by the first coordinate like the paper's graphs, so that causes tend to lie to the left of effects.
        points = points[np.argsort(points[:, 0])]
        distance = np.linalg.norm(points[:, None] - points[None, :], axis=-1)
        return np.triu(distance < self.only("radius"), k=1)
