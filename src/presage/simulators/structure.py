"""Variables of a dataset: graph, kinds, hidden variables, batch and environment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from presage.columns import ColumnKind
from presage.simulators.columns import KindPlan
from presage.simulators.environments import EnvironmentPlan, Environments

__all__ = ["Structure", "choose_hidden", "design_variables"]


@dataclass
class Structure:
    """Variables of one dataset before they are simulated.

    graph: [m, m]. kinds, levels: [m] as seen by children (levels 0 for numbers); measured_kinds, measured_levels: [m]
    as in the table. hidden: bool [m]. environment: index of the environment variable, whose edges act through changed
    mechanisms, not as a parent.
    """

    graph: np.ndarray
    kinds: np.ndarray
    levels: list[int]
    hidden: np.ndarray
    measured_kinds: np.ndarray
    measured_levels: list[int]
    environment: int | None = None
    environments: EnvironmentPlan | None = None


def choose_hidden(
    rng: np.random.Generator, graph: np.ndarray, count: int, *, prefer_confounders: bool = False
) -> np.ndarray:
    """Choose `count` hidden variables: bool [m]. prefer_confounders: those with two or more children first."""
    hidden = np.zeros(len(graph), dtype=bool)
    score = rng.random(len(graph))
    if prefer_confounders:
        score += graph.sum(axis=1) >= 2
    hidden[np.argsort(-score)[:count]] = True
    return hidden


def design_variables(
    rng: np.random.Generator,
    graph: np.ndarray,
    plan: KindPlan,
    hidden: np.ndarray,
    *,
    batch: bool = False,
    environments: Environments | None = None,
    n: int = 0,
) -> Structure:
    """Variables 0..m-1 of the graph with their kinds, followed by a hidden batch and an environment of n rows.

    A batch is a hidden nominal variable without causes that acts on two to about a third of the variables.
    """
    m = len(graph)
    kinds, levels = plan.kinds[:m], plan.levels[:m]
    seen_kinds, seen_levels = (kinds, levels) if plan.inside else (np.zeros_like(kinds), np.zeros_like(levels))
    extra_kinds: list[int] = []
    extra_levels: list[int] = []
    total = m + batch + (environments is not None)
    if total > m:
        larger = np.zeros((total, total), dtype=graph.dtype)
        larger[:m, :m] = graph
        graph = larger
        hidden = np.append(hidden, np.zeros(total - m, dtype=bool))
    if batch:
        hidden[m] = True
        graph[m, rng.permutation(m)[: 2 + int(rng.random() * (1 + m / 3))]] = 1
        extra_kinds.append(ColumnKind.NOMINAL)
        extra_levels.append(2 + int(rng.random() * 5))
    environment = changes = None
    if environments is not None:
        environment = total - 1
        changes = environments.plan(rng, np.flatnonzero(~hidden[:m]), n)
        graph[environment, list(changes.changed)] = 1
        extra_kinds.append(ColumnKind.ENVIRONMENT)
        extra_levels.append(int(changes.codes.max()) + 1)
    tail = np.array(extra_kinds, dtype=np.int8)
    return Structure(
        graph=graph,
        kinds=np.append(seen_kinds, tail),
        levels=seen_levels.tolist() + extra_levels,
        hidden=hidden,
        measured_kinds=np.append(kinds, tail),
        measured_levels=levels.tolist() + extra_levels,
        environment=environment,
        environments=changes,
    )
