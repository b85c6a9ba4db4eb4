"""Noise models: a family (Gaussian, Laplace, Cauchy) and a scale that is constant or depends on the parents.

A custom noise model is a frozen dataclass with one method, `sampler`; see docs/simulate.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from presage.config import Component, Range, options, register
from presage.errors import ConfigError
from presage.simulators.draws import check_range, uniform
from presage.simulators.mechanisms import Function, random_fourier_functions

__all__ = ["Family", "Heteroscedastic", "Homoscedastic", "Noise", "Sampler"]

Family = Literal["gaussian", "laplace", "cauchy"]
Sampler = Callable[[np.random.Generator, np.ndarray], np.ndarray]
"""Maps a generator and the values of the parents [n, p] to noise [n]."""

Standard = Callable[[np.random.Generator, int], np.ndarray]

_STANDARD: dict[str, Standard] = {
    "gaussian": np.random.Generator.standard_normal,
    "laplace": lambda rng, n: rng.laplace(size=n),
    "cauchy": np.random.Generator.standard_cauchy,
}


@dataclass(frozen=True, kw_only=True)
class Noise(Component, ABC):
    """A distribution over noise samplers, one for each variable."""

    @abstractmethod
    def sampler(self, rng: np.random.Generator, n_parents: int) -> Sampler:
        """Sample the noise distribution of one variable as a function (rng, parents [n, p]) -> [n]."""

    def samplers(self, rng: np.random.Generator, n_parents: Sequence[int]) -> list[Sampler]:
        """Sample the noise distributions of all variables. Override where sampling them together is faster."""
        return [self.sampler(rng, count) for count in n_parents]


def _check_families(families: tuple[str, ...], where: str) -> None:
    unknown = [family for family in families if family not in _STANDARD]
    if unknown:
        raise ConfigError(f"{where}.family has no {unknown[0]!r}; choose among {', '.join(_STANDARD)}")


@register
@dataclass(frozen=True, kw_only=True)
class Homoscedastic(Noise):
    """Noise of constant scale; each variable draws its scale uniformly from the range."""

    family: tuple[Family, ...] = options("gaussian")
    scale: tuple[Range, ...] = options((0.2, 2.0))

    def check(self) -> None:
        _check_families(self.family, "Homoscedastic")
        for low, high in self.scale:
            check_range(low, high, "Homoscedastic.scale", least=0.0)

    def sampler(self, rng: np.random.Generator, n_parents: int) -> Sampler:
        return self.samplers(rng, [n_parents])[0]

    def samplers(self, rng: np.random.Generator, n_parents: Sequence[int]) -> list[Sampler]:
        standard = _STANDARD[self.only("family")]
        return [_constant(standard, scale) for scale in uniform(rng, self.only("scale"), len(n_parents)).tolist()]


def _constant(standard: Standard, scale: float) -> Sampler:
    def draw(noise_rng: np.random.Generator, parents: np.ndarray) -> np.ndarray:
        noise = standard(noise_rng, len(parents))
        noise *= scale
        return noise

    return draw


@register
@dataclass(frozen=True, kw_only=True)
class Heteroscedastic(Noise):
    """Noise whose squared scale is softplus of a random Fourier function of the parents.

    The paper's table defines softplus as sigma squared, its text as sigma. We follow the table, as the public code
    does.
    """

    family: tuple[Family, ...] = options("laplace", "cauchy")
    length_scale: tuple[float, ...] = options(10.0)
    output_scale: tuple[float, ...] = options(2.0)

    def check(self) -> None:
        _check_families(self.family, "Heteroscedastic")
        for name in ("length_scale", "output_scale"):
            if min(getattr(self, name)) <= 0:
                raise ConfigError(f"Heteroscedastic.{name} must be above 0")

    def sampler(self, rng: np.random.Generator, n_parents: int) -> Sampler:
        return self.samplers(rng, [n_parents])[0]

    def samplers(self, rng: np.random.Generator, n_parents: Sequence[int]) -> list[Sampler]:
        d = len(n_parents)
        length, output = (np.full(d, self.only(name)) for name in ("length_scale", "output_scale"))
        waves = random_fourier_functions(rng, n_parents, length, output, np.zeros(d))
        return [_varying(_STANDARD[self.only("family")], wave) for wave in waves]


def _varying(standard: Standard, wave: Function) -> Sampler:
    def draw(noise_rng: np.random.Generator, parents: np.ndarray) -> np.ndarray:
        noise = standard(noise_rng, len(parents))
        noise *= np.sqrt(np.logaddexp(0.0, wave(parents)))  # softplus is the squared scale
        return noise

    return draw
