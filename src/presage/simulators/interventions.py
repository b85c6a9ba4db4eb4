"""Which rows are interventional, on which targets, with which values, and how firmly targets are held there."""

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
    """Interventions on single variables: a random share of the variables are targets.

    A target becomes `softness` times what it would have been, plus a value: with 0 it is set (a hard intervention, the
    paper's), with 1 it is shifted, in between it is held loosely. Each target has its own `softness`.
    """

    share: float = 0.5
    values: tuple[Range, ...] = options((1.0, 3.0), signed=True)
    softness: tuple[Range, ...] = options((0.0, 0.0))

    def check(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise ConfigError(f"Interventions.share must lie above 0 and at most at 1, not {self.share!r}")
        for low, high in self.values:
            check_range(low, high, "Interventions.values", least=0.0)
        for low, high in self.softness:
            check_range(low, high, "Interventions.softness", least=0.0)
            if high > 1.0:
                raise ConfigError(f"Interventions.softness is a share of at most 1, not {high:g}")

    def sample(
        self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mask [n, d] (the last n_interventional rows), the values set there [n, d], and `softness` [d]."""
        softness = np.zeros(d)
        mask = np.zeros((n, d), dtype=bool)
        values = np.zeros((n, d))
        if n_interventional:
            # Rounded first: 0.1 * 30 is a little more than 3 in floating point.
            targets = rng.permutation(d)[: math.ceil(round(self.share * d, 9))]
            rows = np.arange(n - n_interventional, n)
            columns = assign_targets(rng, targets, n_interventional)
            mask[rows, columns] = True
            settled = self.resolve(rng)
            values[rows, columns] = signed_uniform(rng, settled.only("values"), n_interventional)
            loose = settled.only("softness")
            if loose != (0.0, 0.0):  # nothing is drawn for hard ones: seeds stay what they were
                softness[targets] = uniform(rng, loose, len(targets))
        return mask, values, softness


def assign_targets(rng: np.random.Generator, targets: np.ndarray, rows: int) -> np.ndarray:
    """A target for each row, in shares as equal as they can be, in random order."""
    return rng.permutation(np.resize(rng.permutation(targets), rows))
