"""Families of standardized noise: mean about 0, variance about 1 (Cauchy: quartiles of the normal distribution).

`presage.simulators.nodes` adds the noise to a variable, multiplies by it, or scales it by a function of a parent.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from presage.config import Component, Range, register
from presage.errors import ConfigError

__all__ = [
    "CauchyNoise",
    "ExponentialNoise",
    "GaussianNoise",
    "GumbelNoise",
    "LaplaceNoise",
    "LogNormalNoise",
    "MixtureNoise",
    "NoiseFamily",
    "StudentNoise",
    "UniformNoise",
]

Shape = int | tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class NoiseFamily(Component, ABC):
    """A distribution of standardized noise. Subclasses implement `standard`."""

    @abstractmethod
    def standard(self, rng: np.random.Generator, size: Shape) -> np.ndarray:
        """Sample the parameters of the family (a sign, degrees of freedom, ...), then standardized noise."""


def _sign(rng: np.random.Generator) -> float:
    return 1.0 if rng.random() < 0.5 else -1.0


@register
@dataclass(frozen=True, kw_only=True)
class GaussianNoise(NoiseFamily):
    """Normal."""

    def standard(self, rng: np.random.Generator, size: Shape) -> np.ndarray:
        return rng.standard_normal(size)


@register
@dataclass(frozen=True, kw_only=True)
class LaplaceNoise(NoiseFamily):
    """Double exponential."""

    def standard(self, rng: np.random.Generator, size: Shape) -> np.ndarray:
        return rng.laplace(0.0, math.sqrt(0.5), size)


@register
@dataclass(frozen=True, kw_only=True)
class StudentNoise(NoiseFamily):
    """Student's t with degrees of freedom from a range above 2."""

    df: Range = (2.5, 10.0)

    def check(self) -> None:
        if not 2.0 < self.df[0] <= self.df[1]:
            raise ConfigError("StudentNoise.df needs 2 < low <= high")

    def standard(self, rng: np.random.Generator, size: Shape) -> np.ndarray:
        df = rng.uniform(*self.df)
        noise = rng.standard_t(df, size)
        noise *= math.sqrt((df - 2.0) / df)
        return noise


@register
@dataclass(frozen=True, kw_only=True)
class UniformNoise(NoiseFamily):
    """Uniform."""

    def standard(self, rng: np.random.Generator, size: Shape) -> np.ndarray:
        return rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), size)


@register
@dataclass(frozen=True, kw_only=True)
class GumbelNoise(NoiseFamily):
    """Gumbel, skewed to either side."""

    def standard(self, rng: np.random.Generator, size: Shape) -> np.ndarray:
        scale = math.sqrt(6.0) / math.pi
        return _sign(rng) * rng.gumbel(-np.euler_gamma * scale, scale, size)


@register
@dataclass(frozen=True, kw_only=True)
class ExponentialNoise(NoiseFamily):
    """Exponential, skewed to either side."""

    def standard(self, rng: np.random.Generator, size: Shape) -> np.ndarray:
        return _sign(rng) * (rng.standard_exponential(size) - 1.0)


@register
@dataclass(frozen=True, kw_only=True)
class LogNormalNoise(NoiseFamily):
    """Log-normal with a sampled standard deviation of the logarithm, skewed to the right."""

    sigma: Range = (0.3, 1.0)

    def check(self) -> None:
        if not 0.0 < self.sigma[0] <= self.sigma[1]:
            raise ConfigError("LogNormalNoise.sigma needs 0 < low <= high")

    def standard(self, rng: np.random.Generator, size: Shape) -> np.ndarray:
        variance = rng.uniform(*self.sigma) ** 2
        noise = np.exp(math.sqrt(variance) * rng.standard_normal(size))
        mean = math.exp(variance / 2.0)
        return (noise - mean) / (mean * math.sqrt(math.exp(variance) - 1.0))


@register
@dataclass(frozen=True, kw_only=True)
class MixtureNoise(NoiseFamily):
    """Two normal components: with different means (bimodal) or different variances (contaminated)."""

    gap: Range = (1.5, 5.0)
    width: Range = (2.0, 6.0)

    def check(self) -> None:
        if not 0.0 <= self.gap[0] <= self.gap[1] or not 1.0 <= self.width[0] <= self.width[1]:
            raise ConfigError("MixtureNoise needs 0 <= gap low <= high and 1 <= width low <= high")

    def standard(self, rng: np.random.Generator, size: Shape) -> np.ndarray:
        apart = rng.random() < 0.5
        share = rng.uniform(0.15, 0.85) if apart else rng.uniform(0.05, 0.3)
        second = rng.random(size) < share
        noise = rng.standard_normal(size)
        if apart:
            gap = rng.uniform(*self.gap)
            noise += gap * (second - share)
            noise *= 1.0 / math.sqrt(1.0 + gap * gap * share * (1.0 - share))
        else:
            width = rng.uniform(*self.width)
            noise *= np.where(second, width, 1.0) / math.sqrt(1.0 + share * (width * width - 1.0))
        return noise


@register
@dataclass(frozen=True, kw_only=True)
class CauchyNoise(NoiseFamily):
    """Cauchy with the quartiles of the normal distribution, truncated at `limit` so that the variance exists."""

    limit: float = 100.0

    def check(self) -> None:
        if self.limit <= 0:
            raise ConfigError("CauchyNoise.limit must be above 0")

    def standard(self, rng: np.random.Generator, size: Shape) -> np.ndarray:
        return np.clip(0.6745 * rng.standard_cauchy(size), -self.limit, self.limit)
