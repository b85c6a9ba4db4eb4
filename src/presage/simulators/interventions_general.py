"""Hard and soft interventions on variables of every kind, with one or two targets per row."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from presage.columns import ColumnKind
from presage.config import Component, Range, register
from presage.errors import ConfigError
from presage.simulators.draws import check_shares, signed_uniform
from presage.simulators.interventions import assign_targets

__all__ = ["MODES", "InterventionPlan", "MixedInterventions"]

MODES = ("constant", "random", "off_range", "shift", "scale", "held")
"""Constant value; different value in each row; value far outside the usual range; shift; scaling; value pulled
towards a constant. The last three are soft interventions."""


@dataclass
class InterventionPlan:
    """Targets of each row. done, labels: bool [n, m], true and recorded targets; modes: mode of each target."""

    done: np.ndarray
    labels: np.ndarray
    modes: dict[int, str]


@register
@dataclass(frozen=True, kw_only=True)
class MixedInterventions(Component):
    """Interventions whose mode is sampled for each dataset, or for each target.

    share: share of variables that are targets. soft: share of soft interventions.
    own_mode: share of datasets in which each target has its own mode.
    two_targets: share of datasets in which some rows have two targets.
    mislabelled: share of datasets in which some rows have a wrong label. mislabelled_rows: share of these rows.
    strength: size of shifts and values, in standard deviations. off_range: the same for values far outside the usual
    range.
    """

    share: Range = (0.1, 1.0)
    soft: float = 0.35
    own_mode: float = 0.25
    two_targets: float = 0.15
    mislabelled: float = 0.1
    mislabelled_rows: Range = (0.01, 0.1)
    strength: Range = (0.5, 3.0)
    off_range: Range = (3.0, 6.0)

    def check(self) -> None:
        check_shares(self, "soft", "own_mode", "two_targets", "mislabelled")
        for name in ("share", "mislabelled_rows"):
            low, high = getattr(self, name)
            if not 0.0 < low <= high <= 1.0:
                raise ConfigError(f"MixedInterventions.{name} needs 0 < low <= high <= 1")
        for name in ("strength", "off_range"):
            low, high = getattr(self, name)
            if not 0.0 <= low <= high:
                raise ConfigError(f"MixedInterventions.{name} needs 0 <= low <= high")

    def _mode(self, rng: np.random.Generator) -> str:
        return MODES[(3 if rng.random() < self.soft else 0) + int(rng.random() * 3)]

    def plan(
        self, rng: np.random.Generator, candidates: np.ndarray, *, n: int, m: int, n_interventional: int
    ) -> InterventionPlan:
        """Targets among `candidates` (of m variables) for the last n_interventional of n rows."""
        done = np.zeros((n, m), dtype=bool)
        if not n_interventional or not len(candidates):
            return InterventionPlan(done, done, {})
        count = max(1, math.ceil(rng.uniform(*self.share) * len(candidates) - 1e-9))
        targets = rng.permutation(candidates)[:count]
        rows = np.arange(n - n_interventional, n)
        done[rows, assign_targets(rng, targets, n_interventional)] = True
        if rng.random() < self.two_targets:
            second = rows[rng.random(n_interventional) < rng.random()]
            done[second, targets[(rng.random(len(second)) * count).astype(np.intp)]] = True
        common = None if rng.random() < self.own_mode else self._mode(rng)
        modes = {int(j): common or self._mode(rng) for j in targets}
        labels = done
        if rng.random() < self.mislabelled and len(candidates) > 1:
            wrong = rows[rng.random(n_interventional) < rng.uniform(*self.mislabelled_rows)]
            labels = done.copy()
            labels[wrong] = False
            labels[wrong, candidates[(rng.random(len(wrong)) * len(candidates)).astype(np.intp)]] = True
        return InterventionPlan(done, labels, modes)

    def apply(
        self,
        rng: np.random.Generator,
        values: np.ndarray,
        mode: str,
        *,
        kind: int,
        levels: int,
        mean: float,
        sd: float,
    ) -> np.ndarray:
        """New values of one target in the rows where it is intervened on.

        values: [k], the values without intervention. mean, sd: moments of the observational values.
        """
        if levels:
            return self._level(rng, values, mode, levels)
        sd = sd if sd > 0 else 1.0
        size = signed_uniform(rng, self.strength, 1)[0]
        if mode == "constant":
            result = np.full(len(values), mean + size * sd)
        elif mode == "random":
            result = mean + sd * rng.uniform(0.5, 1.5) * signed_uniform(rng, self.strength, len(values))
        elif mode == "off_range":
            far = signed_uniform(rng, self.off_range, 1)[0]
            result = mean + sd * (far + 0.1 * rng.standard_normal(len(values)))
        elif mode == "shift":
            result = values + size * sd
        elif mode == "scale":
            factor = rng.uniform(0.1, 0.6) if rng.random() < 0.5 else rng.uniform(1.5, 3.0)
            result = mean + factor * (values - mean)
        else:
            keep = rng.uniform(0.1, 0.9)
            result = keep * values + (1.0 - keep) * (mean + size * sd)
        return np.maximum(np.rint(result), 0.0) if kind == ColumnKind.COUNT else result

    def _level(self, rng: np.random.Generator, values: np.ndarray, mode: str, levels: int) -> np.ndarray:
        n = len(values)
        if mode == "random":
            return np.floor(rng.random(n) * levels)
        level = float(int(rng.random() * levels))
        if mode in ("constant", "off_range"):
            return np.full(n, level)
        # Soft: some rows take the level, the others depend on their parents.
        return np.where(rng.random(n) < rng.uniform(0.3, 0.9), level, values)
