"""Hard and soft interventions on variables of every kind, with one or two targets per row."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from presage.columns import ColumnKind
from presage.config import Component, Range, register
from presage.errors import ConfigError
from presage.simulators.draws import check_shares, log_uniform, signed_uniform
from presage.simulators.interventions import assign_targets

__all__ = ["HARD_MODES", "MODES", "SOFT_MODES", "InterventionPlan", "MixedInterventions"]

MODES = ("constant", "signed", "random", "off_range", "shift", "scale", "held", "activity")
"""Constant value; value of either sign in each row, as in the paper; randomized value; value far outside the usual
range; shift; scaling; value pulled towards a constant; the same for the value that acts on the children, while the
measured one is as usual (inhibitors change the activity of an enzyme, not its amount). The last four are soft."""
HARD_MODES, SOFT_MODES = MODES[:4], MODES[4:]


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
    signed: share of datasets with the paper's interventions, besides those that sample this mode by chance.
    single: share of datasets with one target, as in a randomized trial.
    factorial: share of datasets in which an interventional row sets several targets at once, as in a designed
    experiment. These have at most half of the variables as targets, and their values are randomized.
    own_mode: share of datasets in which each target has its own mode.
    two_targets: share of datasets in which some rows have two targets.
    mislabelled: share of datasets in which some rows have a wrong label. mislabelled_rows: share of these rows.
    unlabelled: share of datasets in which no target is recorded, as in tables pooled from several experiments.
    strength: size of shifts and values, in standard deviations. off_range: the same for values far outside the usual
    range.
    """

    share: Range = (0.1, 1.0)
    soft: float = 0.35
    signed: float = 0.05
    single: float = 0.12
    factorial: float = 0.15
    own_mode: float = 0.25
    two_targets: float = 0.15
    mislabelled: float = 0.1
    mislabelled_rows: Range = (0.01, 0.1)
    unlabelled: float = 0.0
    strength: Range = (0.5, 3.0)
    off_range: Range = (3.0, 6.0)

    def check(self) -> None:
        check_shares(self, "soft", "signed", "single", "factorial", "own_mode", "two_targets", "mislabelled")
        check_shares(self, "unlabelled")
        for name in ("share", "mislabelled_rows"):
            low, high = getattr(self, name)
            if not 0.0 < low <= high <= 1.0:
                raise ConfigError(f"MixedInterventions.{name} needs 0 < low <= high <= 1")
        for name in ("strength", "off_range"):
            low, high = getattr(self, name)
            if not 0.0 <= low <= high:
                raise ConfigError(f"MixedInterventions.{name} needs 0 <= low <= high")

    def _mode(self, rng: np.random.Generator) -> str:
        modes = SOFT_MODES if rng.random() < self.soft else HARD_MODES
        return modes[int(rng.random() * len(modes))]

    def plan(
        self, rng: np.random.Generator, candidates: np.ndarray, *, n: int, m: int, n_interventional: int
    ) -> InterventionPlan:
        """Targets among `candidates` (of m variables) for the last n_interventional of n rows."""
        done = np.zeros((n, m), dtype=bool)
        if not n_interventional or not len(candidates):
            return InterventionPlan(done, done, {})
        single, factorial = (rng.random(2) < (self.single, self.factorial)).tolist()
        count = 1 if single else max(1, math.ceil(rng.uniform(*self.share) * len(candidates) - 1e-9))
        if factorial:
            count = min(count, max(1, len(candidates) // 2))
        targets = rng.permutation(candidates)[:count]
        rows = np.arange(n - n_interventional, n)
        done[rows, assign_targets(rng, targets, n_interventional)] = True
        if factorial:
            often = 1.0 if rng.random() < 0.6 else rng.random()
            done[np.ix_(rows, targets)] |= rng.random((n_interventional, count)) < often
        elif rng.random() < self.two_targets:
            second = rows[rng.random(n_interventional) < rng.random()]
            done[second, targets[(rng.random(len(second)) * count).astype(np.intp)]] = True
        if factorial or (single and rng.random() < 0.6):
            modes = dict.fromkeys(targets.tolist(), "random")
        else:
            common = None if rng.random() < self.own_mode else self._mode(rng)
            common = "signed" if rng.random() < self.signed else common
            modes = {int(j): common or self._mode(rng) for j in targets}
        labels = done
        if rng.random() < self.mislabelled and len(candidates) > 1:
            wrong = rows[rng.random(n_interventional) < rng.uniform(*self.mislabelled_rows)]
            labels = done.copy()
            labels[wrong] = False
            labels[wrong, candidates[(rng.random(len(wrong)) * len(candidates)).astype(np.intp)]] = True
        if rng.random() < self.unlabelled:
            labels = np.zeros_like(done)
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
        elif mode == "signed":
            result = mean + sd * rng.uniform(0.5, 1.5) * signed_uniform(rng, self.strength, len(values))
        elif mode == "random":
            result = self._randomized(rng, values, mean, sd)
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

    def _randomized(self, rng: np.random.Generator, values: np.ndarray, mean: float, sd: float) -> np.ndarray:
        """Values assigned at random: the usual ones shuffled, Gaussian, uniform, or some doses."""
        n, design = len(values), rng.random()
        if design < 0.25:
            return rng.permutation(values)
        if rng.random() < 0.5:
            mean = mean + sd * rng.uniform(-1.5, 1.5)
        width = sd * log_uniform(rng, (0.3, 3.0))
        if design < 0.5:
            return np.asarray(mean + width * rng.standard_normal(n))
        if design < 0.75:
            return np.asarray(mean + width * rng.uniform(-1.7, 1.7, n))
        n_doses = 2 + int(rng.random() * 4)
        doses = np.linspace(-1.5, 1.5, n_doses) if rng.random() < 0.5 else rng.standard_normal(n_doses)
        return np.asarray(mean + width * doses[_unequal(rng, n_doses, n)])

    def _level(self, rng: np.random.Generator, values: np.ndarray, mode: str, levels: int) -> np.ndarray:
        n = len(values)
        if mode in ("random", "signed"):
            if mode == "random" and rng.random() < 0.35:
                return rng.permutation(values)
            return _unequal(rng, levels, n).astype(np.float64)
        level = float(int(rng.random() * levels))
        if mode in ("constant", "off_range"):
            return np.full(n, level)
        # Soft: some rows take the level, the others depend on their parents.
        return np.where(rng.random(n) < rng.uniform(0.3, 0.9), level, values)


def _unequal(rng: np.random.Generator, k: int, n: int) -> np.ndarray:
    """n numbers below k, with equal or unequal probabilities."""
    shares = np.ones(k) if rng.random() < 0.5 else rng.uniform(0.2, 1.0, k)
    return np.minimum(np.searchsorted(np.cumsum(shares / shares.sum()), rng.random(n)), k - 1)
