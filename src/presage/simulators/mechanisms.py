"""Causal mechanisms f_j: how a variable depends on its parents, before noise.

A mechanism of your own is a frozen dataclass with one method, `function`; see docs/simulate.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from presage.components import Component, Range, options, register
from presage.errors import ConfigError
from presage.simulators.draws import check_range, signed_uniform

__all__ = ["Function", "Linear", "Mechanism", "RandomFourier", "random_fourier_function"]

Function = Callable[[np.ndarray], np.ndarray]
"""Maps the values of the parents [n, p] to [n]."""

FEATURES = 100  # M of the paper


@dataclass(frozen=True, kw_only=True)
class Mechanism(Component):
    """A distribution over functions of the parents."""

    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        """Draw the function of one variable: [n, n_parents] -> [n]. Parents may number 0."""
        raise NotImplementedError(f"{type(self).__name__} must implement function")


@register
@dataclass(frozen=True, kw_only=True)
class Linear(Mechanism):
    """Affine functions: weights from a signed uniform distribution, uniform bias."""

    weights: tuple[Range, ...] = options((1.0, 3.0), signed=True)
    bias: tuple[Range, ...] = options((-3.0, 3.0))

    def check(self) -> None:
        for low, high in self.weights:
            check_range(low, high, "Linear.weights", least=0.0)
        for low, high in self.bias:
            check_range(low, high, "Linear.bias")

    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        weights = signed_uniform(rng, self.only("weights"), n_parents)
        bias = rng.uniform(*self.only("bias"))
        return lambda parents: parents @ weights + bias


@register
@dataclass(frozen=True, kw_only=True)
class RandomFourier(Mechanism):
    """Draws from a Gaussian process with squared exponential kernel, by random Fourier features (M = 100)."""

    length_scale: tuple[Range, ...] = options((7.0, 10.0))
    output_scale: tuple[Range, ...] = options((10.0, 20.0))
    bias: tuple[Range, ...] = options((-3.0, 3.0))

    def check(self) -> None:
        for name in ("length_scale", "output_scale"):
            for low, high in getattr(self, name):
                check_range(low, high, f"RandomFourier.{name}", least=0.0)
                if low == 0.0:
                    raise ConfigError(f"RandomFourier.{name} must be above 0")
        for low, high in self.bias:
            check_range(low, high, "RandomFourier.bias")

    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        wave = random_fourier_function(
            rng, n_parents, rng.uniform(*self.only("length_scale")), rng.uniform(*self.only("output_scale"))
        )
        bias = rng.uniform(*self.only("bias"))
        return lambda parents: wave(parents) + bias


def random_fourier_function(
    rng: np.random.Generator, n_parents: int, length_scale: float, output_scale: float
) -> Function:
    """A zero-mean function draw: c sqrt(2 / M) sum_m alpha_m cos(omega_m . x / l + delta_m).

    The cosines are the whole cost of the domain; in single precision NumPy computes them with vector instructions,
    and their error is far below that of M features standing in for a Gaussian process.
    """
    omega = rng.standard_normal((n_parents, FEATURES), dtype=np.float32) * np.float32(1.0 / length_scale)
    delta = rng.random(FEATURES, dtype=np.float32) * np.float32(2.0 * np.pi)
    alpha = rng.standard_normal(FEATURES, dtype=np.float32) * np.float32(output_scale * np.sqrt(2.0 / FEATURES))

    def evaluate(parents: np.ndarray) -> np.ndarray:
        # Reduce the phase in double precision only where heavy tails make it large: cos is 2 pi periodic.
        phase = parents.astype(np.float32) @ omega  # [n, M]
        phase += delta
        np.cos(phase, out=phase)
        return (phase @ alpha).astype(np.float64)

    return evaluate
