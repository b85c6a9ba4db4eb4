"""Environments: groups of rows in which some mechanisms differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from presage.config import Component, Range, register
from presage.errors import ConfigError
from presage.simulators.draws import signed_uniform
from presage.simulators.mechanisms import Mechanism
from presage.simulators.nodes import Change

__all__ = ["EnvironmentPlan", "Environments"]


@dataclass
class EnvironmentPlan:
    """Environments of the rows. codes: [n]; changed: for each variable, the codes in which its mechanism differs."""

    codes: np.ndarray
    changed: dict[int, list[int]]


@register
@dataclass(frozen=True, kw_only=True)
class Environments(Component):
    """Two to six groups of rows; in each group except one, one to three mechanisms are changed.

    shift: in standard deviations of the variable. factor: of the variable or of its noise, or its inverse.
    """

    groups: tuple[int, int] = (2, 6)
    changes: tuple[int, int] = (1, 3)
    shift: Range = (0.5, 3.0)
    factor: Range = (1.5, 4.0)

    def check(self) -> None:
        if not 2 <= self.groups[0] <= self.groups[1] or not 1 <= self.changes[0] <= self.changes[1]:
            raise ConfigError("Environments needs 2 <= groups low <= high and 1 <= changes low <= high")
        if not 0 <= self.shift[0] <= self.shift[1] or not 1 <= self.factor[0] <= self.factor[1]:
            raise ConfigError("Environments needs 0 <= shift low <= high and 1 <= factor low <= high")

    def plan(self, rng: np.random.Generator, candidates: np.ndarray, n: int) -> EnvironmentPlan:
        """Sample environments of n rows, and which of the variables `candidates` change in which environment."""
        low, high = self.groups
        groups = low + int(rng.random() * (high - low + 1))
        shares = rng.standard_gamma(2.0, groups) + 0.3
        codes = np.searchsorted(np.cumsum(shares / shares.sum())[:-1], rng.random(n), side="right")
        reference = int(rng.random() * groups)  # the code of the unchanged group is random
        changed: dict[int, list[int]] = {}
        low, high = self.changes
        for code in range(groups):
            if code != reference:
                count = low + int(rng.random() * (high - low + 1))
                for j in rng.permutation(candidates)[:count].tolist():
                    changed.setdefault(j, []).append(code)
        return EnvironmentPlan(codes, changed)

    def change(self, rng: np.random.Generator, code: int, mechanism: Mechanism, n_parents: int) -> Change:
        """How a numeric variable differs in one environment."""
        pick = rng.random()
        if pick < 0.2 and n_parents:
            return Change(code, function=mechanism.function(rng, n_parents))
        if pick < 0.7:
            return Change(code, shift=float(signed_uniform(rng, self.shift, 1)[0]))
        factor = rng.uniform(*self.factor)
        factor = factor if rng.random() < 0.5 else 1.0 / factor
        return Change(code, factor=factor) if pick < 0.85 else Change(code, noise_factor=factor)
