"""Feedback: cyclic linear and saturating systems, measured at equilibrium."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from presage.columns import ColumnKind
from presage.config import Component, Range, register
from presage.errors import ConfigError
from presage.simulators.draws import signed_uniform
from presage.simulators.interventions_general import InterventionPlan, MixedInterventions

__all__ = ["Equilibrium", "Feedback", "close_cycles", "equilibrium"]


@dataclass
class Equilibrium:
    """A cyclic system at equilibrium. columns: [m, n]; weights: [m, m]; effects: [m, m], NaN off edges."""

    columns: np.ndarray
    weights: np.ndarray
    effects: np.ndarray


def close_cycles(rng: np.random.Generator, graph: np.ndarray, count: int) -> np.ndarray:
    """Add up to `count` edges, each from a descendant back to one of its ancestors."""
    m = len(graph)
    reach = (np.eye(m) + graph > 0).astype(np.float32)
    for _ in range(math.ceil(math.log2(max(m, 2)))):  # doubles the length of the paths
        reach = (reach @ reach > 0).astype(np.float32)
    back = np.argwhere((reach.T > 0) & ~np.eye(m, dtype=bool))
    graph = graph.copy()
    for i, j in rng.permutation(back)[:count]:
        graph[i, j] = 1
    return graph


def equilibrium(
    weights: np.ndarray,
    noise: np.ndarray,
    *,
    saturating: bool,
    held: np.ndarray | None = None,
    values: np.ndarray | None = None,
    tolerance: float = 1e-9,
    max_steps: int = 400,
) -> np.ndarray:
    """The solution [m, n] of x = weights.T f(x) + noise, f the identity or tanh, with x = values where held.

    The spectral radius of |weights| must be below 1: then the solution is unique and the iteration converges to it.
    """
    x = noise if held is None or values is None else np.where(held, values, noise)
    for _ in range(max_steps):
        new = weights.T @ (np.tanh(x) if saturating else x) + noise
        if held is not None and values is not None:
            new = np.where(held, values, new)
        done = np.abs(new - x).max() < tolerance
        x = new
        if done:
            break
    return x


@register
@dataclass(frozen=True, kw_only=True)
class Feedback(Component):
    """Cyclic systems of continuous variables without hidden ones.

    weights: signed, divided by the square root of the number of parents. radius: range of the upper bound on the
    spectral radius of the absolute weights, which ensures that equilibria exist. back_edges: share of added edges that
    close cycles, at least one. saturating: share of datasets in which variables act through tanh.
    """

    weights: Range = (0.4, 1.5)
    radius: Range = (0.4, 0.9)
    back_edges: Range = (0.05, 0.4)
    saturating: float = 0.5
    noise_scale: Range = (0.5, 1.5)

    def check(self) -> None:
        for name in ("weights", "radius", "back_edges", "noise_scale"):
            low, high = getattr(self, name)
            if not 0.0 < low <= high:
                raise ConfigError(f"Feedback.{name} needs 0 < low <= high")
        if self.radius[1] >= 1.0 or not 0.0 <= self.saturating <= 1.0:
            raise ConfigError("Feedback.radius must lie below 1 and Feedback.saturating between 0 and 1")

    def graph(self, rng: np.random.Generator, dag: np.ndarray) -> np.ndarray:
        """Add edges that close cycles to an acyclic graph."""
        return close_cycles(rng, dag, max(1, round(rng.uniform(*self.back_edges) * int(dag.sum()))))

    def sample(
        self,
        rng: np.random.Generator,
        graph: np.ndarray,
        noise: np.ndarray,
        fit: int,
        interventions: MixedInterventions,
        plan: InterventionPlan,
    ) -> Equilibrium:
        """Values at equilibrium for standardized noise [m, n]; the first `fit` rows are observational.

        An intervention sets its target, in units of the target's observational values, and the system settles again.
        """
        m = len(graph)
        parents = np.maximum(graph.sum(axis=0), 1)
        weights = signed_uniform(rng, self.weights, m * m).reshape(m, m) * graph / np.sqrt(parents)
        radius, limit = float(np.abs(np.linalg.eigvals(np.abs(weights))).max(initial=0.0)), rng.uniform(*self.radius)
        if radius > limit:
            weights *= limit / radius
        saturating = rng.random() < self.saturating
        noise = noise * rng.uniform(*self.noise_scale, m)[:, None]
        x = equilibrium(weights, noise, saturating=saturating)
        mean, sd = x[:, :fit].mean(axis=1), x[:, :fit].std(axis=1)
        if plan.modes:
            values = x.copy()
            for j, mode in plan.modes.items():
                rows = np.flatnonzero(plan.done[:, j])
                values[j, rows] = interventions.apply(
                    rng, x[j, rows], mode, kind=int(ColumnKind.CONTINUOUS), levels=0, mean=mean[j], sd=sd[j]
                )
            x = equilibrium(weights, noise, saturating=saturating, held=plan.done.T, values=values)
            usual = weights.T @ (np.tanh(x) if saturating else x) + noise
            for j in (j for j, mode in plan.modes.items() if mode == "activity"):
                x[j] = usual[j]  # what is measured; the others settled with the altered activity
        base = x[:, :fit]
        rise = (np.tanh(base + sd[:, None]) - np.tanh(base)).mean(axis=1) if saturating else sd
        effects = np.where(graph > 0, weights * rise[:, None] / sd, np.nan)
        return Equilibrium(x, weights, effects)
