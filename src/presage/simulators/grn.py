"""Stochastic gene expression with knockouts and knockdowns: the chemical Langevin equation near steady state.

    dx = (P - l x) dt + z (sqrt(P) dW1 + sqrt(l x) dW2),   x >= 0

P is b[j, c] for a gene without regulators in cell type c, otherwise the sum over regulators i of |k_ij| A(x_i), with
the Hill function A(x) = x^g / (h_i^g + x^g) for an activating effect and 1 - A(x) for a repressing one. W1 and W2 are
independent, so each step adds one normal variable of variance z^2 (P + l x) dt, which has the same distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from presage.config import Component, Range, options, register
from presage.errors import ConfigError
from presage.graphs.ops import topological_order
from presage.graphs.regulatory import BetaSigns, SignRule, Subgraph
from presage.simulators.draws import check_range

__all__ = ["CellDesign", "Dynamics", "Kinetics", "design_cells", "simulate_expression"]

HalfResponse = Literal["experiment", "wild_type"]
Perturbation = Literal["knockout", "knockdown"]

SNAPSHOT_STEPS = 15
"""Steps per cell of a cell type: m cells are snapshots of a window of 15 m steps."""
WARM_STEPS = 10
"""Extra simulation steps of a regulator relative to its targets."""
BURN_IN_STEPS = 1000
"""Steps of each of the two burn-in runs when all genes are simulated together."""
MEAN_FIELD_ROUNDS = 100
HALF_RESPONSE_CELLS = 100
"""Length, in cells per type, of the wild-type run that determines the half responses."""
CACHE_BYTES = 2**20
"""Target size of the trajectories of experiments that are simulated together."""
MIN_LANES = 32
"""Lanes (experiments times cell types) that use the full vector width of the processor."""
MAX_CELLS_PER_TRAJECTORY = 2000
"""Cells per cell type from one trajectory. Further cells come from independent ones, which bounds memory."""
PRODUCTION_FACTOR = {"knockout": 0.0, "knockdown": 0.5}


@dataclass(frozen=True, kw_only=True, eq=False)
class Kinetics:
    """Kinetic parameters of one regulatory system. Row causes column.

    strength: [d, d] signed, used where the graph has an edge. basal: [d, C], used for genes without regulators. decay,
    noise, hill: scalars or [d] (hill of the regulator).
    """

    strength: np.ndarray
    basal: np.ndarray
    decay: np.ndarray | float = 0.8
    noise: np.ndarray | float = 1.0
    hill: np.ndarray | float = 2.0
    dt: float = 0.01

    def __post_init__(self) -> None:
        d = len(self.strength)
        if np.shape(self.strength) != (d, d) or np.ndim(self.basal) != 2 or len(self.basal) != d:
            raise ConfigError("kinetics need strength of shape [d, d] and basal of shape [d, cell types]")
        for name, low in (("basal", 0.0), ("decay", 1e-9), ("noise", 0.0), ("hill", 1e-9), ("dt", 1e-9)):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if not np.isfinite(value).all() or (value < low).any():
                raise ConfigError(f"{name} must be finite and {'at least 0' if low == 0.0 else 'above 0'} everywhere")
        if not np.isfinite(self.strength).all():
            raise ConfigError("strength must be finite everywhere")
        if np.max(self.decay) * self.dt >= 1.0:
            raise ConfigError("the step dt must be smaller than 1 / decay")


@dataclass(frozen=True, kw_only=True, eq=False)
class CellDesign:
    """The experimental design. target: [n], the perturbed gene or -1; cell_type: [n]."""

    target: np.ndarray
    cell_type: np.ndarray


@register
@dataclass(frozen=True, kw_only=True)
class Dynamics(Component):
    """A distribution over kinetic parameters, and simulation settings."""

    cell_types: tuple[int, ...] = options(5)
    decay: tuple[float, ...] = options(0.7, 0.8, 0.9)
    noise: tuple[float, ...] = options(0.9, 1.0, 1.1)
    hill: tuple[float, ...] = options(1.9, 2.0, 2.1)
    basal: tuple[Range, ...] = options((1.0, 3.0))
    strength: tuple[Range, ...] = options((1.0, 5.0))
    signs: tuple[SignRule, ...] = options(BetaSigns(a=1.0, b=1.0), BetaSigns(a=0.5, b=0.5))
    half_response: HalfResponse = "experiment"
    perturbation: Perturbation = "knockout"
    cyclic: bool = False
    """Simulate all genes together, which allows cyclic graphs but is slower."""

    def check(self) -> None:
        if min(self.cell_types) < 1 or any(number != int(number) for number in self.cell_types):
            raise ConfigError("Dynamics.cell_types must be whole numbers of at least 1")
        for field, least in (("decay", 1e-9), ("noise", 0.0), ("hill", 1e-9)):
            if min(getattr(self, field)) < least:
                raise ConfigError(f"Dynamics.{field} must be {'above' if least else 'at least'} 0")
        for field in ("basal", "strength"):
            for low, high in getattr(self, field):
                check_range(low, high, f"Dynamics.{field}", least=0.0)
        if not all(isinstance(rule, SignRule) for rule in self.signs):
            raise ConfigError("Dynamics.signs must hold sign rules, for example BetaSigns(a=1.0, b=1.0)")
        _check_choice("half_response", self.half_response, ("experiment", "wild_type"))
        _check_choice("perturbation", self.perturbation, tuple(PRODUCTION_FACTOR))

    def kinetics(self, rng: np.random.Generator, subgraph: Subgraph) -> Kinetics:
        """Resolve the options and sample the parameters of one system."""
        resolved, d = self.resolve(rng), len(subgraph.graph)
        (weakest, strongest), (low, high) = resolved.only("strength"), resolved.only("basal")
        strength = rng.uniform(weakest, strongest, size=(d, d)) * resolved.only("signs").sample(rng, subgraph)
        return Kinetics(
            strength=strength,
            basal=rng.uniform(low, high, size=(d, int(resolved.only("cell_types")))),
            decay=resolved.only("decay"),
            noise=resolved.only("noise"),
            hill=resolved.only("hill"),
        )


def _check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{name} must be one of {', '.join(known)}, not {value!r}")


def design_cells(rng: np.random.Generator, *, d: int, cell_types: int, n: int, n_perturbed: int) -> CellDesign:
    """n cells, the last n_perturbed with one perturbed gene each; targets and cell types are balanced.

    >>> design = design_cells(np.random.default_rng(0), d=3, cell_types=2, n=10, n_perturbed=6)
    >>> sorted(design.target.tolist())
    [-1, -1, -1, -1, 0, 0, 1, 1, 2, 2]
    """
    wild_type = n - n_perturbed
    target = np.full(n, -1, dtype=np.int64)
    target[wild_type:] = np.resize(rng.permutation(d), n_perturbed)
    types = rng.permutation(cell_types)
    # Each pass over the targets assigns them to the next cell type.
    round_, position = np.divmod(np.arange(n_perturbed), d)
    index = np.concatenate([np.arange(wild_type), round_ + position])
    order = np.concatenate([rng.permutation(wild_type), wild_type + rng.permutation(n_perturbed)])
    return CellDesign(target=target[order], cell_type=types[index % cell_types][order])


def simulate_expression(
    rng: np.random.Generator,
    graph: np.ndarray,
    kinetics: Kinetics,
    design: CellDesign,
    *,
    half_response: HalfResponse = "experiment",
    perturbation: Perturbation = "knockout",
    cyclic: bool = False,
) -> np.ndarray:
    """Expression [n, d] (float32) of the cells of a design, before measurement noise.

    All cells with the same target (or none) form an experiment with one trajectory per cell type. Its cells are
    snapshots at random times of the last 15 m steps, where m is the largest number of cells per type. half_response:
    the mean of a regulator over all cell types, computed in each experiment or once in the wild type.

    Genes are simulated one after the other, regulators for 10 steps more than their targets, so effects are delayed by
    that much, as in the paper's public code. cyclic: simulate all genes together and without delay, which allows cyclic
    graphs but is slower.
    """
    _check_choice("half_response", half_response, ("experiment", "wild_type"))
    _check_choice("perturbation", perturbation, tuple(PRODUCTION_FACTOR))
    d, cell_types = np.shape(kinetics.basal)
    if np.shape(graph) != (d, d):
        raise ConfigError(f"the graph has shape {np.shape(graph)}, but the kinetics are those of {d} genes")
    if len(design.cell_type) and not 0 <= design.cell_type.min() <= design.cell_type.max() < cell_types:
        raise ConfigError(f"cell types must lie between 0 and {cell_types - 1}")
    if len(design.target) != len(design.cell_type) or (len(design.target) and design.target.max() >= d):
        raise ConfigError(f"a design needs one target (-1 to {d - 1}) and one cell type for each cell")
    system = _System(rng, graph, kinetics, cyclic)
    out = np.empty((len(design.target), d), dtype=np.float32)
    half = None
    if half_response == "wild_type":
        _, means = system.run(np.ones((1, d)), HALF_RESPONSE_CELLS, np.empty(0, dtype=np.int64), None)
        half = means[:, 0]
    wild_type = np.flatnonzero(design.target < 0)
    for chunk in np.array_split(wild_type, max(1, math.ceil(len(wild_type) / (MAX_CELLS_PER_TRAJECTORY * cell_types)))):
        if len(chunk):
            lane = design.cell_type[chunk]
            out[chunk], _ = system.run(np.ones((1, d)), int(np.bincount(lane).max()), lane, half)
    perturbed = np.flatnonzero(design.target >= 0)
    targets, experiment = np.unique(design.target[perturbed], return_inverse=True)
    if len(targets):
        max_cells = int(np.bincount(experiment * cell_types + design.cell_type[perturbed]).max())
        block = system.experiments_at_once(max_cells)
        for first in range(0, len(targets), block):
            chosen = targets[first : first + block]
            factor = np.ones((len(chosen), d))
            factor[np.arange(len(chosen)), chosen] = PRODUCTION_FACTOR[perturbation]
            here = (experiment >= first) & (experiment < first + block)
            rows = perturbed[here]
            lane = (experiment[here] - first) * cell_types + design.cell_type[rows]
            out[rows], _ = system.run(factor, max_cells, lane, half)
    return out


class _System:
    """Inputs of the compiled code, and calls to it."""

    def __init__(self, rng: np.random.Generator, graph: np.ndarray, kinetics: Kinetics, cyclic: bool) -> None:
        from presage.simulators import langevin  # here, because numba is slow to load
        from presage.simulators.vectors import STREAMS

        self.rng, self.compiled, self.cyclic = rng, langevin, cyclic
        self.state = rng.integers(0, 2**64, size=(2, STREAMS), dtype=np.uint64)
        graph = np.asarray(graph) != 0
        self.cell_types: int
        d, self.cell_types = np.shape(kinetics.basal)
        self.order = np.arange(d) if cyclic else topological_order(graph)
        targets, self.parents = np.nonzero(graph.T)
        self.first_parent = np.searchsorted(targets, np.arange(d + 1))
        self.strength = np.ascontiguousarray(np.asarray(kinetics.strength)[self.parents, targets], dtype=np.float32)
        self.basal = np.ascontiguousarray(kinetics.basal, dtype=np.float32)
        self.decay, self.noise, self.hill = (
            np.ascontiguousarray(np.broadcast_to(value, d), dtype=np.float32)
            for value in (kinetics.decay, kinetics.noise, kinetics.hill)
        )
        self.height = langevin.heights(self.order, self.first_parent, self.parents) if not cyclic else None
        self.dt = kinetics.dt

    def experiments_at_once(self, cells: int) -> int:
        """Number of experiments that fit into the processor's cache, and at least enough to fill its vector units."""
        steps = SNAPSHOT_STEPS * cells + WARM_STEPS * (0 if self.height is None else int(self.height.max()))
        bytes_each = 4 * steps * self.cell_types * len(self.basal)
        return max(1, CACHE_BYTES // bytes_each, math.ceil(MIN_LANES / self.cell_types))

    def run(
        self, factor: np.ndarray, cells: int, lane: np.ndarray, half: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Expression [m, d] of cells given by their lanes, and means per experiment [d, E].

        factor: [E, d] multiplies production. cells: the largest number of cells per lane. half: [d], or None to use the
        means.
        """
        steps, kinds, d = SNAPSHOT_STEPS * cells, self.cell_types, len(self.basal)
        lanes = len(factor) * kinds
        snapshot = self.rng.integers(0, steps, size=len(lane)) * lanes + lane
        given = np.empty((d, 0), dtype=np.float32) if half is None else half.astype(np.float32)[:, None]
        basal = np.tile(self.basal, (1, len(factor)))  # [d, E * C]
        production = np.repeat(factor.T.astype(np.float32), kinds, axis=1)  # [d, E * C]
        edges = (self.first_parent, self.parents, self.strength, basal, production)
        if not self.cyclic:
            expression, means = self.compiled.run(
                self.state,
                self.order,
                self.height,
                *edges,
                self.decay,
                self.noise,
                self.hill,
                given,
                kinds,
                steps,
                WARM_STEPS,
                self.dt,
                snapshot,
            )
            return expression.T, means
        # Half responses come from the noiseless steady state first, then from the burn-in runs.
        rates = (self.decay, self.noise, self.hill)
        start = self.compiled.mean_field(*edges, self.decay, self.hill, given, kinds, MEAN_FIELD_ROUNDS)
        response = self._half(start, given)
        for length, cells_at in ((BURN_IN_STEPS, snapshot[:0]), (BURN_IN_STEPS, snapshot[:0]), (steps, snapshot)):
            expression, lane_mean, start = self.compiled.run_together(
                self.state, *edges, *rates, response, start, length, self.dt, cells_at
            )
            response = self._half(lane_mean, given)
        return expression.T, lane_mean.reshape(d, -1, kinds).mean(axis=2)

    def _half(self, lane_mean: np.ndarray, given: np.ndarray) -> np.ndarray:
        """Half response of every lane [d, E * C]: as given, or the mean of its experiment."""
        d, lanes = lane_mean.shape
        by_experiment = lane_mean.reshape(d, -1, self.cell_types).mean(axis=2)
        response = given if given.size else np.repeat(by_experiment, self.cell_types, axis=1)
        return np.ascontiguousarray(np.broadcast_to(response, (d, lanes)), dtype=np.float32)
