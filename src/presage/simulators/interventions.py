"""Interventions: which rows are interventional, on which targets, with which values, hard or soft."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from presage.config import Component, Range, options, register
from presage.errors import ConfigError
from presage.simulators.draws import check_range, signed_uniform, uniform

__all__ = ["Interventions", "assign_targets"]


@register
@dataclass(frozen=True, kw_only=True)
class Interventions(Component):
    """Single-variable interventions; a random share of the variables are targets.

    A target becomes `softness` times its unperturbed value plus the intervention value. Softness 0 is a hard
    intervention, as in the paper; 1 is a shift intervention. Each target draws its own softness.
    """

    share: float = 0.5
    values: tuple[Range, ...] = options((1.0, 3.0), signed=True)
    softness: tuple[Range, ...] = options((0.0, 0.0))

    def check(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise ConfigError(f"Interventions.share must be above 0 and at most 1, not {self.share!r}")
        for low, high in self.values:
            check_range(low, high, "Interventions.values", least=0.0)
        for low, high in self.softness:
            check_range(low, high, "Interventions.softness", least=0.0)
            if high > 1.0:
                raise ConfigError(f"Interventions.softness must be at most 1, not {high:g}")

    def sample(
        self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mask [n, d] (True in the last n_interventional rows only), intervention values [n, d], softness [d]."""
        softness = np.zeros(d)
        mask = np.zeros((n, d), dtype=bool)
        values = np.zeros((n, d))
        if n_interventional:
            # Round first: 0.1 * 30 exceeds 3 in floating point.
            targets = rng.permutation(d)[: math.ceil(round(self.share * d, 9))]
            rows = np.arange(n - n_interventional, n)
            columns = assign_targets(rng, targets, n_interventional)
            mask[rows, columns] = True
            resolved = self.resolve(rng)
            values[rows, columns] = signed_uniform(rng, resolved.only("values"), n_interventional)
            softness_range = resolved.only("softness")
            if softness_range != (0.0, 0.0):  # hard interventions draw nothing, which keeps their seeds stable
                softness[targets] = uniform(rng, softness_range, len(targets))
        return mask, values, softness


def assign_targets(rng: np.random.Generator, targets: np.ndarray, rows: int) -> np.ndarray:
    """A target for each row: balanced counts, in random order."""
    return rng.permutation(np.resize(rng.permutation(targets), rows))
