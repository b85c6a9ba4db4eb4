"""Kinds of columns: which kind and how many levels each variable of a dataset has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from presage.columns import ColumnKind
from presage.config import Component, Range, register
from presage.errors import ConfigError
from presage.simulators.draws import log_uniform
from presage.simulators.nodes import Counts, Cuts

__all__ = ["ColumnKinds", "KindPlan"]

CONTINUOUS, COUNT, BINARY, ORDINAL, NOMINAL = (int(kind) for kind in list(ColumnKind)[:5])


@dataclass
class KindPlan:
    """Kinds int8 [d] and levels [d] (0 for numbers) of the variables of one dataset.

    inside: children see codes and counts; otherwise variables are continuous until they are measured.
    """

    kinds: np.ndarray
    levels: np.ndarray
    inside: bool

    @property
    def continuous(self) -> bool:
        """Whether all columns are continuous."""
        return not self.kinds.any()


@register
@dataclass(frozen=True, kw_only=True)
class ColumnKinds(Component):
    """Shares of datasets whose columns are all continuous, all discrete or (the rest) mixed, and their levels.

    inside: share of discrete and mixed datasets in which the children of a variable see its code.
    few_levels: share of all-discrete datasets with mostly two to four levels, as in networks designed by experts.
    """

    continuous: float = 0.5
    discrete: float = 0.2
    inside: float = 0.8
    few_levels: float = 0.7
    ordinal_levels: tuple[int, int] = (3, 7)
    nominal_levels: tuple[int, int] = (3, 10)
    count_mean: Range = (0.5, 300.0)

    def check(self) -> None:
        if min(self.continuous, self.discrete) < 0 or self.continuous + self.discrete > 1:
            raise ConfigError("ColumnKinds.continuous and .discrete are shares with a sum of at most 1")
        if not (0 <= self.inside <= 1 and 0 <= self.few_levels <= 1):
            raise ConfigError("ColumnKinds.inside and .few_levels must lie between 0 and 1")
        for low, high in (self.ordinal_levels, self.nominal_levels):
            if not 3 <= low <= high:
                raise ConfigError("levels of ordinal and nominal columns need 3 <= low <= high")

    def sample(self, rng: np.random.Generator, d: int) -> KindPlan:
        """Kinds and levels of d variables."""
        pick, inside = rng.random(2)
        if pick < self.continuous:
            return KindPlan(np.zeros(d, dtype=np.int8), np.zeros(d, dtype=np.intp), True)
        discrete = pick < self.continuous + self.discrete
        # Uneven shares of count, binary, ordinal and nominal columns: the columns of one table resemble each other.
        shares = rng.standard_gamma([0.3, 0.8, 0.6, 0.6])
        few = discrete and rng.random() < self.few_levels
        if discrete:
            shares[0] = 0.0 if rng.random() < 0.9 else shares[0]
            if few and rng.random() < 0.6:
                shares[2] = 0.0  # experts' networks name states
            continuous_share = 0.0
        else:
            continuous_share = rng.uniform(0.1, 0.9)
        bounds = np.cumsum(shares / shares.sum())
        u = rng.random((3, d))
        kinds = (1 + np.searchsorted(bounds[:3], u[0], side="right")).astype(np.int8)
        kinds[u[1] < continuous_share] = CONTINUOUS
        levels = np.zeros(d, dtype=np.intp)
        levels[kinds == BINARY] = 2
        # The square favours few levels; networks designed by experts mostly have three or four.
        skewed = u[2] ** 4 if few else u[2] ** 1.5
        for kind, (low, high) in ((ORDINAL, self.ordinal_levels), (NOMINAL, self.nominal_levels)):
            levels = np.where(kinds == kind, low + (skewed * (high - low + 1)).astype(np.intp), levels)
        return KindPlan(kinds, levels, bool(inside < self.inside))

    def cuts(self, rng: np.random.Generator, levels: int, *, nominal: bool = False) -> Cuts:
        """Cut points for a latent variable; the shares of the levels are uneven, but not tiny."""
        shares = rng.standard_gamma(1.5, levels) + 0.25
        shares /= shares.sum()
        return Cuts(np.cumsum(shares)[:-1], rng.permutation(levels) if nominal else None)

    def counts(self, rng: np.random.Generator, n: int) -> Counts:
        """Poisson or (half of them) negative binomial counts."""
        mean = log_uniform(rng, self.count_mean)
        slope = rng.uniform(0.3, 1.0)
        gamma = None
        if rng.random() < 0.5:
            shape = log_uniform(rng, (0.7, 10.0))
            gamma = rng.standard_gamma(shape, n) / shape
        return Counts(np.log(mean) - 0.5 * slope * slope, slope, rng.standard_normal(n), gamma)
