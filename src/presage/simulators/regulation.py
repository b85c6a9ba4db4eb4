"""Mechanisms of gene regulation: steady-state transcription rates as Hill functions of concentrations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from presage.config import Range, register
from presage.errors import ConfigError
from presage.simulators.draws import check_range, check_shares, log_uniform
from presage.simulators.mechanisms import Function, Mechanism
from presage.simulators.mechanisms_general import constant_zero

__all__ = ["Regulation"]


@register
@dataclass(frozen=True, kw_only=True)
class Regulation(Mechanism):
    """Transcription rates at steady state: regulators activate or repress by Hill functions of their concentration.

    The concentration of a regulator with standardized value z is max(z + level, 0) / level, which is 1 on average;
    `level` is the inverse of its coefficient of variation. Regulators act independently (the product of their Hill
    functions), additively, or compete for one binding site.

    hill: Hill coefficients. half: concentrations of half-maximal response. activating: share of activators.
    """

    level: Range = (1.2, 4.0)
    hill: Range = (1.0, 8.0)
    half: Range = (0.4, 2.0)
    activating: float = 0.6

    def check(self) -> None:
        for name in ("level", "hill", "half"):
            low, high = getattr(self, name)
            check_range(low, high, f"Regulation.{name}", least=0.0)
            if low == 0.0:
                raise ConfigError(f"Regulation.{name} must be above 0")
        check_shares(self, "activating")

    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        if n_parents == 0:
            return constant_zero
        p, style = n_parents, rng.random()
        level = log_uniform(rng, self.level)
        hill = np.array([log_uniform(rng, self.hill) for _ in range(p)])
        half = np.array([log_uniform(rng, self.half) for _ in range(p)])
        activates = rng.random(p) < self.activating
        weights = rng.uniform(0.5, 1.5, p)

        def evaluate(parents: np.ndarray) -> np.ndarray:
            concentration = np.maximum(parents + level, 0.0) / level
            bound = np.minimum(concentration / half, 1e3) ** hill  # [n, p]
            if style < 0.2 and activates.any():
                return np.asarray(bound[:, activates].sum(axis=1) / (1.0 + bound.sum(axis=1)))
            rate = np.where(activates, bound, 1.0) / (1.0 + bound)
            if style < 0.6 and p <= 5:  # a product of many rates is nearly always 0
                return np.asarray(rate.prod(axis=1))
            return np.asarray(rate @ weights)

        return evaluate
