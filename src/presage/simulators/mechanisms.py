"""Causal mechanisms f_j: how a variable depends on its parents, before noise.

A custom mechanism is a frozen dataclass with one method, `function`; see docs/simulate.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from presage.config import Component, Range, options, register
from presage.errors import ConfigError
from presage.simulators.draws import check_range, signed_uniform, uniform

__all__ = ["Function", "Linear", "Mechanism", "RandomFourier", "random_fourier_functions"]

Function = Callable[[np.ndarray], np.ndarray]
"""Maps the values of the parents [n, p] to [n]."""

FEATURES = 100  # M of the paper
TWO_PI = 2.0 * math.pi
LARGE = 1e8  # if the sum of squares is below this, every value is below 1e4


@dataclass(frozen=True, kw_only=True)
class Mechanism(Component, ABC):
    """A distribution over functions of the parents."""

    @abstractmethod
    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        """Sample the function of one variable: [n, n_parents] -> [n]; n_parents may be 0."""

    def functions(self, rng: np.random.Generator, n_parents: Sequence[int]) -> list[Function]:
        """Sample the functions of all variables. Override where sampling them together is faster."""
        return [self.function(rng, count) for count in n_parents]


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
        return self.functions(rng, [n_parents])[0]

    def functions(self, rng: np.random.Generator, n_parents: Sequence[int]) -> list[Function]:
        weights = signed_uniform(rng, self.only("weights"), sum(n_parents))
        biases = uniform(rng, self.only("bias"), len(n_parents)).tolist()
        ends = list(accumulate(n_parents))
        return [
            _affine(weights[end - count : end], bias) for count, end, bias in zip(n_parents, ends, biases, strict=True)
        ]


def _affine(weights: np.ndarray, bias: float) -> Function:
    return lambda parents: parents @ weights + bias


@register
@dataclass(frozen=True, kw_only=True)
class RandomFourier(Mechanism):
    """Samples of a Gaussian process with squared exponential kernel, by random Fourier features (M = 100)."""

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
        return self.functions(rng, [n_parents])[0]

    def functions(self, rng: np.random.Generator, n_parents: Sequence[int]) -> list[Function]:
        d = len(n_parents)
        length, output, bias = (uniform(rng, self.only(name), d) for name in ("length_scale", "output_scale", "bias"))
        return random_fourier_functions(rng, n_parents, length, output, bias)


def random_fourier_functions(
    rng: np.random.Generator,
    n_parents: Sequence[int],
    length_scale: np.ndarray,
    output_scale: np.ndarray,
    bias: np.ndarray,
) -> list[Function]:
    """Functions b + c sqrt(2 / M) sum_m alpha_m cos(omega_m . x / l + delta_m), one per entry of `n_parents`.

    The cosines dominate the cost of simulation. NumPy vectorises them in single precision, whose error is far below
    that of approximating a Gaussian process by M features. Without parents the function is a constant sampled from the
    same process.
    """
    d, edges = len(n_parents), sum(n_parents)
    normal = rng.standard_normal((edges + d, FEATURES), dtype=np.float32)
    alpha = normal[edges:]
    alpha *= (output_scale * math.sqrt(2.0 / FEATURES)).astype(np.float32)[:, None]
    # wave [p + 1, M] of each function: the frequencies omega / l, then the phases delta, multiplied by inputs of 1.
    ends = np.cumsum(n_parents) + np.arange(1, d + 1)
    is_phase = np.zeros(edges + d, dtype=bool)
    is_phase[ends - 1] = True
    wave = np.empty_like(normal)
    wave[~is_phase] = normal[:edges] * np.repeat((1.0 / length_scale).astype(np.float32), n_parents)[:, None]
    wave[is_phase] = rng.random((d, FEATURES), dtype=np.float32) * np.float32(TWO_PI)
    return [
        _wave_sum(wave[end - count - 1 : end], *rest)
        for count, end, *rest in zip(n_parents, ends.tolist(), alpha, bias, strict=True)
    ]


def _wave_sum(wave: np.ndarray, alpha: np.ndarray, bias: np.float64) -> Function:
    def evaluate(parents: np.ndarray) -> np.ndarray:
        n, p = parents.shape
        if p == 0:
            return np.full(n, alpha @ np.cos(wave[0]) + bias)
        values = parents.T  # [p, n]
        if np.vdot(values, values) < LARGE:
            inputs = np.empty((p + 1, n), dtype=np.float32)
            inputs[:-1] = values
            inputs[-1] = 1.0
            phase = wave.T @ inputs  # [M, n]
        else:
            # Single precision cannot resolve the phase of very large inputs: reduce it modulo 2 pi in double precision.
            cycles = wave[:-1].T.astype(np.float64) @ values / TWO_PI
            phase = ((cycles - np.rint(cycles)) * TWO_PI).astype(np.float32) + wave[-1][:, None]  # [M, n]
        np.cos(phase, out=phase)
        total: np.ndarray = alpha @ phase + bias  # the sum in single, the result in double precision
        return total

    return evaluate
