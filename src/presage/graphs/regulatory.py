"""Regulatory networks of E. coli and yeast, modular subgraphs of them, and the signs of their effects."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from presage.config import Component, options, register
from presage.errors import ConfigError
from presage.graphs.ops import break_cycles
from presage.graphs.random import GraphModel

__all__ = [
    "NETWORKS",
    "BetaSigns",
    "NetworkSigns",
    "RegulatoryNetwork",
    "RegulatorySubgraph",
    "SignRule",
    "Subgraph",
    "extract_module",
    "load_network",
    "modularity",
]

NETWORKS = ("ecoli", "yeast")


@dataclass(frozen=True, eq=False)
class RegulatoryNetwork:
    """A published network. edges: int64 [2, m] (regulator, target), self-loops included; signs: int8 [m], 0 unknown.

    The undirected skeleton without self-loops is stored in compressed sparse row format: the neighbours of gene v are
    `neighbours[starts[v]:starts[v + 1]]`.
    """

    name: str
    genes: tuple[str, ...]
    edges: np.ndarray
    signs: np.ndarray
    starts: np.ndarray
    neighbours: np.ndarray
    component: np.ndarray
    """Size of the connected component of each gene."""

    @property
    def degree(self) -> np.ndarray:
        """Number of neighbours of each gene in the undirected skeleton."""
        return np.diff(self.starts)

    @property
    def positive_share(self) -> float:
        """Share of activating edges among those of known sign; NaN when no sign is known."""
        known = self.signs != 0
        return float((self.signs[known] > 0).mean()) if known.any() else math.nan

    def subgraph(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All edges among the chosen genes, self-loops included: graph int8 [d, d] and signs int8 [d, d]."""
        index = np.full(len(self.genes), -1, dtype=np.int64)
        index[chosen] = np.arange(len(chosen))
        source, target = index[self.edges]
        inside = (source >= 0) & (target >= 0)
        graph = np.zeros((len(chosen), len(chosen)), dtype=np.int8)
        signs = np.zeros_like(graph)
        graph[source[inside], target[inside]] = 1
        signs[source[inside], target[inside]] = self.signs[inside]
        return graph, signs


@cache
def load_network(name: str) -> RegulatoryNetwork:
    """The bundled network "ecoli" (RegulonDB 6.7) or "yeast" (Balaji 2006); provenance in assets/networks/NOTICE.md.

    >>> len(load_network("ecoli").genes), len(load_network("yeast").genes)
    (1565, 4441)
    """
    if name not in NETWORKS:
        raise ConfigError(f"there is no regulatory network {name!r}; choose one of: {', '.join(NETWORKS)}")
    with (
        resources.files("presage").joinpath("assets/networks/regulatory.npz").open("rb") as file,
        np.load(file) as arrays,
    ):
        genes = tuple(arrays[f"{name}_names"].tobytes().decode().split("\n"))
        edges = arrays[f"{name}_edges"].astype(np.int64)
        signs = arrays[f"{name}_signs"]
    source, target = edges[:, edges[0] != edges[1]]
    pairs = np.unique(np.concatenate([source, target]) * len(genes) + np.concatenate([target, source]))
    owner, neighbours = np.divmod(pairs, len(genes))
    starts = np.searchsorted(owner, np.arange(len(genes) + 1))
    component = _component_sizes(starts, neighbours)
    for array in (edges, signs, starts, neighbours, component):
        array.flags.writeable = False
    return RegulatoryNetwork(name, genes, edges, signs, starts, neighbours, component)


def _component_sizes(starts: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """Size of the connected component of each gene of a skeleton in compressed sparse row format."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    genes = len(starts) - 1
    skeleton = csr_array((np.ones(len(neighbours)), neighbours, starts), shape=(genes, genes))
    _, label = connected_components(skeleton, directed=False)
    return np.asarray(np.bincount(label)[label])


def modularity(network: RegulatoryNetwork, chosen: np.ndarray) -> float:
    """Modularity of a set of genes against the rest of the network, on the undirected skeleton.

    Q = (1 / M) * sum over pairs i, j of the set of (A_ij - k_i k_j / 2M), M the number of edges.
    """
    inside = np.zeros(len(network.genes), dtype=bool)
    inside[chosen] = True
    owner = np.repeat(np.arange(len(network.genes)), network.degree)
    edges = len(network.neighbours) / 2
    ends = int((inside[owner] & inside[network.neighbours]).sum())  # both directions of each edge
    return float((ends - network.degree[chosen].sum() ** 2 / (2 * edges)) / edges)


def extract_module(rng: np.random.Generator, network: RegulatoryNetwork, d: int, top: float = 0.2) -> np.ndarray:
    """d genes: a random seed gene, grown by neighbours that maximise modularity (Marbach et al. 2009), in that order.

    Each step samples among the `top` fraction of neighbours whose addition gives the highest modularity. With a_v the
    number of edges from v into the set, K the total degree of the set and M the total number of edges, adding v
    changes M * Q by 2 a_v - k_v K / M - k_v^2 / 2M, so a step only updates a over the neighbours of the new gene.
    """
    seeds = np.flatnonzero(network.component >= d)
    if len(seeds) == 0:
        raise ConfigError(
            f"the network {network.name!r} has no connected set of {d} genes; the largest has {network.component.max()}"
        )
    degree = network.degree.astype(np.float64)
    edges = degree.sum() / 2
    own = degree**2 / (2 * edges)
    links = np.zeros(len(degree))
    inside = np.zeros(len(degree), dtype=bool)
    total = 0.0
    v = int(rng.choice(seeds))
    chosen = [v]
    for _ in range(d - 1):
        inside[v] = True
        total += degree[v]
        links[network.neighbours[network.starts[v] : network.starts[v + 1]]] += 1.0
        candidates = np.flatnonzero((links > 0) & ~inside)
        gain = 2.0 * links[candidates] - degree[candidates] * (total / edges) - own[candidates]
        gain += 1e-7 * rng.random(len(gain))  # break ties at random: distinct gains differ by at least 1 / 2M
        kept = math.ceil(top * len(candidates))
        best = np.argpartition(-gain, kept - 1)[:kept]
        v = int(candidates[best[int(rng.integers(kept))]])
        chosen.append(v)
    return np.array(chosen)


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A graph of named genes. signs: int8 [d, d], 0 where unknown; positive_share: of the whole network."""

    graph: np.ndarray
    names: tuple[str, ...]
    signs: np.ndarray | None = None
    positive_share: float = math.nan


@register
@dataclass(frozen=True, kw_only=True)
class RegulatorySubgraph(GraphModel):
    """A modular subgraph of a real regulatory network without its self-loops, made acyclic by default."""

    network: tuple[str, ...] = options(*NETWORKS)
    top: tuple[float, ...] = options(0.2)
    acyclic: bool = True

    def check(self) -> None:
        unknown = sorted(set(self.network) - set(NETWORKS))
        if unknown:
            raise ConfigError(f"there is no regulatory network {unknown[0]!r}; choose one of: {', '.join(NETWORKS)}")
        if not all(0.0 < top <= 1.0 for top in self.top):
            raise ConfigError("RegulatorySubgraph.top must be above 0 and at most 1")

    def extract(self, rng: np.random.Generator, d: int) -> Subgraph:
        """Resolve the options and sample d genes in random order with their edges, names and signs."""
        resolved = self.resolve(rng)
        network = load_network(resolved.only("network"))
        chosen = rng.permutation(extract_module(rng, network, d, resolved.only("top")))
        graph, signs = network.subgraph(chosen)
        np.fill_diagonal(graph, 0)
        if resolved.acyclic:
            graph = break_cycles(rng, graph)
        return Subgraph(graph, tuple(network.genes[v] for v in chosen), signs, network.positive_share)

    def ordered(self, rng: np.random.Generator, d: int) -> np.ndarray:
        return self.extract(rng, d).graph


@dataclass(frozen=True, kw_only=True)
class SignRule(Component, ABC):
    """A distribution over the signs of effects. Subclasses implement `sample`."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, subgraph: Subgraph) -> np.ndarray:
        """1.0 (activating) or -1.0 (repressing) for every ordered pair: [d, d]."""


@register
@dataclass(frozen=True, kw_only=True)
class BetaSigns(SignRule):
    """Each gene draws p ~ Beta(a, b); each of its effects is activating with probability p."""

    a: float = 1.0
    b: float = 1.0

    def check(self) -> None:
        if self.a <= 0 or self.b <= 0:
            raise ConfigError(f"{type(self).__name__} needs a and b above 0, not {self.a!r} and {self.b!r}")

    def sample(self, rng: np.random.Generator, subgraph: Subgraph) -> np.ndarray:
        d = len(subgraph.graph)
        return np.where(rng.random((d, d)) < rng.beta(self.a, self.b, size=(d, 1)), 1.0, -1.0)


@register
@dataclass(frozen=True, kw_only=True)
class NetworkSigns(BetaSigns):
    """Published signs. Unknown ones are drawn with the frequency of known positives, or like `BetaSigns` without any.

    The Beta distribution is the paper's fit to the fractions of activating effects per gene in E. coli.
    """

    a: float = 0.2588
    b: float = 0.2499

    def sample(self, rng: np.random.Generator, subgraph: Subgraph) -> np.ndarray:
        if subgraph.signs is None or math.isnan(subgraph.positive_share):
            return super().sample(rng, subgraph)
        imputed = np.where(rng.random(subgraph.signs.shape) < subgraph.positive_share, 1.0, -1.0)
        return np.where(subgraph.signs != 0, subgraph.signs, imputed)
