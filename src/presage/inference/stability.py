"""Stability: how much edge probabilities change when the rows are resampled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from presage.errors import ConfigError
from presage.inference.inputs.names import safe_text
from presage.rng import Stream, generator

__all__ = ["check_bootstrap", "resample_rows", "row_groups", "spread"]

_MAX_RESAMPLES = 10_000


def row_groups(interventions: np.ndarray, environments: np.ndarray | None = None) -> list[np.ndarray]:
    """Row numbers of each distinct set of targets in each environment; observational rows form one group.

    interventions: bool [n, d]. environments: codes [n, e], or None if all rows come from one environment.

    >>> [group.tolist() for group in row_groups(np.array([[0, 0], [1, 0], [0, 0], [1, 0]], dtype=bool))]
    [[0, 2], [1, 3]]
    """
    key = np.packbits(interventions, axis=1)
    if environments is not None:
        key = np.hstack([key, environments])
    _, member = np.unique(key, axis=0, return_inverse=True)
    member = member.reshape(-1)
    order = np.argsort(member, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(member[order])) + 1)


def resample_rows(rng: np.random.Generator, groups: list[np.ndarray]) -> np.ndarray:
    """Row numbers [n] drawn with replacement within each group, which keeps the number of rows of each intervention."""
    return np.sort(np.concatenate([group[rng.integers(len(group), size=len(group))] for group in groups]))


def spread(
    predict: Callable[[np.ndarray], np.ndarray], groups: list[np.ndarray], bootstrap: int, *, seed: int = 0
) -> np.ndarray:
    """Standard deviation [d, d] of what `predict` gives for `bootstrap` resamples of the rows.

    predict: from row numbers [n] to edge probabilities [d, d]. groups: see `row_groups`.
    """
    mean, square = np.zeros((2, 1, 1))  # Welford's update keeps two matrices instead of all predictions
    for number in range(bootstrap):
        found = predict(resample_rows(generator(seed, Stream.ANSWER, 2, number), groups))
        step = found - mean
        mean = mean + step / (number + 1)
        square = square + step * (found - mean)
    return np.sqrt(square / (bootstrap - 1))


def check_bootstrap(bootstrap: int) -> int:
    """The number of resamples as an int; raises `ConfigError` unless it is 0 or at least 2."""
    whole = isinstance(bootstrap, (int, np.integer)) and not isinstance(bootstrap, bool)
    if not whole or bootstrap < 0 or bootstrap == 1 or bootstrap > _MAX_RESAMPLES:
        shown = safe_text(bootstrap)[:60]
        raise ConfigError(f"bootstrap must be 0 (off) or a whole number between 2 and {_MAX_RESAMPLES:,}, not {shown}")
    return int(bootstrap)
