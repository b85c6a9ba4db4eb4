"""Sampling functions shared by mechanisms, noise models and interventions."""

from __future__ import annotations

import math

import numpy as np

from presage.config import Component, Range
from presage.errors import ConfigError

__all__ = ["check_range", "check_shares", "log_uniform", "signed_uniform", "uniform"]


def uniform(rng: np.random.Generator, range_: Range, size: int) -> np.ndarray:
    """Uniform numbers [size] from a range."""
    return rng.uniform(range_[0], range_[1], size)


def signed_uniform(rng: np.random.Generator, range_: Range, size: int) -> np.ndarray:
    """The paper's U+-(a, b): uniform on (a, b) with a random sign."""
    low, high = range_
    both = rng.uniform(-1.0, 1.0, size)  # sign and absolute value are independent
    return np.copysign(low + (high - low) * np.abs(both), both)


def log_uniform(rng: np.random.Generator, range_: Range) -> float:
    """A number whose logarithm is uniform on the range of the logarithms."""
    low, high = range_
    return float(low * (high / low) ** rng.random())


def check_range(low: float, high: float, where: str, least: float = -math.inf) -> None:
    """Raise `ConfigError` unless (low, high) is a finite range with low >= `least`."""
    if not (math.isfinite(low) and math.isfinite(high) and least <= low <= high):
        bound = "" if least == -math.inf else f" of at least {least:g}"
        raise ConfigError(f"{where} needs low <= high{bound}, not ({low}, {high})")


def check_shares(component: Component, *names: str) -> None:
    """Raise `ConfigError` unless the named fields lie between 0 and 1."""
    for name in names:
        if not 0.0 <= getattr(component, name) <= 1.0:
            problem = f"must lie between 0 and 1, not {getattr(component, name)!r}"
            raise ConfigError(f"{type(component).__name__}.{name} {problem}")
