"""Total effects: what setting one variable does to another, averaged over sampled acyclic graphs.

In a linear model with graph G, the effect of setting a on b is the coefficient of a in the regression of b on a and the
parents of a in G (Pearl, 2009, section 3.3), and 0 if b is not a descendant of a. Covariances suffice for that
regression, so a result stores the second moments of its table and not the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from presage.errors import ConfigError
from presage.graphs.ops import descendants
from presage.inference.moments import Moments

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EffectTable", "TotalEffect", "Units", "effect_frame", "total_effect", "total_effects"]

Units = Literal["standardized", "raw"]

_RIDGE = 1e-9
"""Added to variances of 1: keeps exact collinearity solvable and gives it a very wide interval."""


@dataclass(frozen=True, kw_only=True)
class TotalEffect:
    """The effect of setting one variable on another, over all directed paths.

    effect: mean over sampled acyclic graphs, 0 in graphs where the cause is not an ancestor. low, high: bounds of the
    interval of probability `level`, which covers the choice of the graph and the sampling error of the regression.
    probability: share of the graphs in which the cause is an ancestor of the effect. confounded: probability of a
    hidden common cause of the two, which would bias the effect; None if the model does not estimate it.
    units: "standardized" (standard deviations of the effect per standard deviation of the cause) or "raw" (units of
    the effect per unit of the cause).
    """

    cause: str
    outcome: str
    effect: float
    low: float
    high: float
    probability: float
    level: float
    units: Units
    confounded: float | None = None

    def __repr__(self) -> str:
        certainty = f"ancestor with probability {self.probability:.2f}"
        if self.confounded is not None:
            certainty += f", hidden common cause with probability {self.confounded:.2f}"
        return (
            f"TotalEffect({self.cause} on {self.outcome}: {self.effect:.3g}, {self.level:.0%} interval "
            f"{self.low:.3g} to {self.high:.3g} ({self.units}); {certainty})"
        )


class EffectTable(NamedTuple):
    """Total effects of one variable (standardized units) on several: arrays [m]."""

    effect: np.ndarray
    low: np.ndarray
    high: np.ndarray
    probability: np.ndarray


def total_effect(
    graphs: np.ndarray,
    moments: Moments | None,
    names: Sequence[str],
    cause: int,
    outcome: int,
    *,
    units: Units = "standardized",
    level: float = 0.9,
) -> TotalEffect:
    """The effect of setting variable number `cause` on variable number `outcome`; see `total_effects`."""
    if cause == outcome:
        raise ConfigError(f"cause and outcome are both {names[cause]!r}; give two variables")
    known = _require(moments)
    for j in (cause, outcome):
        if known.is_nominal(j):
            raise ConfigError(f"the levels of {names[j]!r} have no order, so there is no effect per unit of it")
    factor = _factors(known, cause, np.array([outcome]), units)[0]
    found = total_effects(graphs, known, cause, [outcome], level=level)
    return TotalEffect(
        cause=names[cause],
        outcome=names[outcome],
        effect=float(found.effect[0] * factor),
        low=float(found.low[0] * factor),
        high=float(found.high[0] * factor),
        probability=float(found.probability[0]),
        level=_check_level(level),
        units=units,
    )


def effect_frame(
    graphs: np.ndarray,
    moments: Moments | None,
    names: Sequence[str],
    *,
    threshold: float = 0.5,
    units: Units = "standardized",
    level: float = 0.9,
) -> pd.DataFrame:
    """Total effects of all pairs whose probability of ancestry is above the threshold, largest effects first.

    Nominal variables, whose levels have no order, are left out.
    Columns: source, target, effect, low, high, probability.
    """
    import pandas as pd

    known = _require(moments)
    reach = descendants(graphs)
    parts = []
    ordered = [j for j in range(len(names)) if not known.is_nominal(j)]
    for cause in ordered:
        outcomes = np.intersect1d(np.flatnonzero(reach[:, cause].mean(axis=0) > threshold), ordered)
        factors = _factors(known, cause, outcomes, units)
        if len(outcomes) == 0:
            continue
        found = total_effects(graphs, known, cause, outcomes.tolist(), level=level, reach=reach)
        part = {"source": names[cause], "target": [names[j] for j in outcomes.tolist()]}
        part |= {key: getattr(found, key) * factors for key in ("effect", "low", "high")}
        parts.append(pd.DataFrame({**part, "probability": found.probability}))
    columns = ["source", "target", "effect", "low", "high", "probability"]
    if not parts:
        return pd.DataFrame({key: np.zeros(0, dtype=object if key in columns[:2] else float) for key in columns})
    frame = pd.concat(parts, ignore_index=True).astype({"source": object, "target": object})
    return frame.sort_values("effect", key=np.abs, ascending=False, kind="stable", ignore_index=True)


def total_effects(
    graphs: np.ndarray,
    moments: Moments,
    cause: int,
    outcomes: Sequence[int],
    *,
    level: float = 0.9,
    reach: np.ndarray | None = None,
) -> EffectTable:
    """Effects of setting `cause` on each outcome, over sampled acyclic graphs [k, d, d], in standardized units.

    reach: `descendants(graphs)`, if known. Samples with the same parents of `cause` share one regression.
    """
    level = _check_level(level)
    columns = np.asarray(outcomes, dtype=np.int64)
    below = (descendants(graphs) if reach is None else reach)[:, cause, columns]  # [k, m]
    parent_sets, member = np.unique(graphs[:, :, cause], axis=0, return_inverse=True)
    # Share of the samples with each parent set (rows) in which the cause is an ancestor of each outcome (columns).
    same = np.eye(len(parent_sets))[member.reshape(-1)]  # [k, sets]
    share = same.T @ below / len(graphs)
    fits = [_regress(moments, cause, np.flatnonzero(parents), columns) for parents in parent_sets]
    slope, error, freedom = (np.stack(parts) for parts in zip(*fits, strict=True))  # [sets, m] each
    mixture = _Mixture(slope, np.maximum(error, 1e-12), freedom, share)
    low, high = (mixture.quantile(tail) for tail in ((1.0 - level) / 2, (1.0 + level) / 2))
    return EffectTable((share * slope).sum(axis=0), low, high, share.sum(axis=0))


class _Mixture(NamedTuple):
    """Student distributions [sets, m] with weights [sets, m]; the remaining weight of a column is a point mass at 0."""

    slope: np.ndarray
    error: np.ndarray
    freedom: np.ndarray
    share: np.ndarray

    def quantile(self, level: float) -> np.ndarray:
        """The smallest value [m] whose cumulative probability reaches the level, by bisection."""
        from scipy.special import stdtr, stdtrit

        at_zero = 1.0 - self.share.sum(axis=0)
        points = np.where(self.share > 0, self.slope + self.error * stdtrit(self.freedom, level), 0.0)
        # The quantile of a mixture lies between those of its parts, of which 0 is one.
        low, high = np.minimum(points.min(axis=0), 0.0), np.maximum(points.max(axis=0), 0.0)
        for _ in range(60):
            middle = (low + high) / 2
            reached = (self.share * stdtr(self.freedom, (middle - self.slope) / self.error)).sum(axis=0)
            enough = reached + at_zero * (middle >= 0) >= level - 1e-12
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(np.abs(high) < 1e-12, 0.0, high)


def _regress(
    moments: Moments, cause: int, parents: np.ndarray, outcomes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficient of the cause, its standard error and degrees of freedom [m], adjusting for the parents."""
    inputs = np.concatenate([[cause], moments.adjustment_columns(parents)])
    inside = moments.correlation[np.ix_(inputs, inputs)] + _RIDGE * np.eye(len(inputs))
    across = moments.correlation[np.ix_(inputs, outcomes)]  # [p, m]
    inverse = np.linalg.inv(inside)
    slopes = inverse @ across
    residual = np.maximum(np.diag(moments.correlation)[outcomes] - (slopes * across).sum(axis=0), 0.0)
    if moments.pairs is None:
        n = np.full(len(outcomes), moments.n)
    else:
        n = np.minimum(moments.pairs[np.ix_(inputs, inputs)].min(), moments.pairs[np.ix_(inputs, outcomes)].min(axis=0))
    freedom = np.maximum(n - len(inputs) - 1, 1)
    return slopes[0], np.sqrt(residual * inverse[0, 0] / freedom), freedom


def _check_level(level: float) -> float:
    """The level as a float; raises `ConfigError` unless it is a number between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, (int, float, np.number)) or not 0 < level < 1:
        raise ConfigError(f"the level of an interval must be a number between 0 and 1, not {level!r}")
    return float(level)


def _require(moments: Moments | None) -> Moments:
    if moments is None:
        raise ConfigError("this result holds no moments of the data; run presage.discover to get total effects")
    return moments


def _factors(moments: Moments, cause: int, outcomes: np.ndarray, units: Units) -> np.ndarray:
    """Standardized effects times these [m] are effects in the requested units."""
    if units not in ("standardized", "raw"):
        raise ConfigError(f"units must be 'standardized' or 'raw', not {units!r}")
    if units == "standardized":
        return np.ones(len(outcomes))
    if moments.scale is None:
        raise ConfigError("the values are counts, read as log counts, so effects have no raw units; use 'standardized'")
    return moments.scale[outcomes] / moments.scale[cause] if moments.scale[cause] > 0 else np.zeros(len(outcomes))
