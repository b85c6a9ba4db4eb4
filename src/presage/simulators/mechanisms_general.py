"""Mechanisms for standardized parents: outputs of roughly unit scale, parameters sampled for each variable.

The output of every mechanism depends on every parent, so each edge of the graph is visible in the data. Inputs of
mechanisms that grow quickly are clipped, so that heavy tails and off-range interventions give finite values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from presage.config import Range, register
from presage.errors import ConfigError
from presage.simulators.draws import check_range, log_uniform, signed_uniform
from presage.simulators.mechanisms import Function, Mechanism

__all__ = [
    "FourierFeatures",
    "MonotoneSum",
    "Polynomial",
    "RandomMLP",
    "Saturating",
    "WeightedSum",
    "constant_zero",
]

CLIP = 6.0


def _check_positive(low: float, high: float, where: str) -> None:
    check_range(low, high, where, least=0.0)
    if low == 0.0:
        raise ConfigError(f"{where} must be above 0")


def constant_zero(parents: np.ndarray) -> np.ndarray:
    """The function of a variable without parents."""
    return np.zeros(len(parents))


@register
@dataclass(frozen=True, kw_only=True)
class WeightedSum(Mechanism):
    """Linear functions with signed weights U±(low, high), divided by the square root of the number of parents."""

    weights: Range = (0.3, 1.5)

    def check(self) -> None:
        check_range(*self.weights, "WeightedSum.weights", least=0.0)

    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        weights = signed_uniform(rng, self.weights, n_parents) / math.sqrt(max(n_parents, 1))
        return lambda parents: parents @ weights


@register
@dataclass(frozen=True, kw_only=True)
class FourierFeatures(Mechanism):
    """Samples of a Gaussian process by random Fourier features, with a log-uniform length scale per variable.

    The length scale refers to one standardized parent. It grows with the square root of the number of parents, as
    distances do. The length scale of each parent varies around it by `spread` (standard deviation of the logarithm).
    """

    length_scale: Range = (0.7, 10.0)
    spread: float = 0.3
    features: int = 48

    def check(self) -> None:
        _check_positive(*self.length_scale, "FourierFeatures.length_scale")
        if self.features < 1 or self.spread < 0:
            raise ConfigError("FourierFeatures needs features of at least 1 and spread of at least 0")

    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        if n_parents == 0:
            return constant_zero
        length = log_uniform(rng, self.length_scale) * math.sqrt(n_parents)
        lengths = length * np.exp(self.spread * rng.standard_normal(n_parents))
        normal = rng.standard_normal((n_parents + 1, self.features), dtype=np.float32)
        wave = normal[:-1].T / lengths.astype(np.float32)  # [M, p]
        phase = (rng.random(self.features, dtype=np.float32) * np.float32(2.0 * math.pi))[:, None]
        # Large length scales give nearly constant functions: scale by the slope instead, for unit scale output.
        gain = math.sqrt(2.0 / self.features) * max(1.0, length / math.sqrt(n_parents))
        alpha = normal[-1] * np.float32(gain)

        def evaluate(parents: np.ndarray) -> np.ndarray:
            waves = wave @ parents.T.astype(np.float32)  # [M, n]
            waves += phase
            np.cos(waves, out=waves)
            return np.asarray(alpha @ waves, dtype=np.float64)

        return evaluate


@register
@dataclass(frozen=True, kw_only=True)
class RandomMLP(Mechanism):
    """A random network with one hidden layer of tanh, ReLU or sine units."""

    hidden: tuple[int, int] = (4, 16)
    gain: Range = (0.5, 2.5)

    def check(self) -> None:
        _check_positive(*self.gain, "RandomMLP.gain")
        if not 1 <= self.hidden[0] <= self.hidden[1]:
            raise ConfigError("RandomMLP.hidden needs 1 <= low <= high")

    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        if n_parents == 0:
            return constant_zero
        low, high = self.hidden
        hidden = low + int(rng.random() * (high - low + 1))
        gain, pick = log_uniform(rng, self.gain), rng.random()
        normal = rng.standard_normal((n_parents + 2, hidden), dtype=np.float32)
        first = normal[:-2].T * np.float32(gain / math.sqrt(n_parents))  # [H, p]
        bias, last = normal[-2][:, None], normal[-1] / np.float32(math.sqrt(hidden))

        def evaluate(parents: np.ndarray) -> np.ndarray:
            units = first @ parents.T.astype(np.float32)  # [H, n]
            units += bias
            if pick < 0.5:
                np.tanh(units, out=units)
            elif pick < 0.85:
                np.maximum(units, 0.0, out=units)
            else:
                np.sin(units, out=units)
            return np.asarray(last @ units, dtype=np.float64)

        return evaluate


@register
@dataclass(frozen=True, kw_only=True)
class MonotoneSum(Mechanism):
    """A signed sum of increasing functions, one of each parent: root, cube, softplus, arctangent or sinh-like."""

    weights: Range = (0.3, 1.5)
    sharpness: Range = (0.5, 3.0)

    def check(self) -> None:
        check_range(*self.weights, "MonotoneSum.weights", least=0.0)
        _check_positive(*self.sharpness, "MonotoneSum.sharpness")

    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        if n_parents == 0:
            return constant_zero
        weights = signed_uniform(rng, self.weights, n_parents) / math.sqrt(n_parents)
        numbers = rng.random((3, n_parents))
        shapes = (numbers[0] * 5).astype(int).tolist()
        low, high = self.sharpness
        sharp = (low * (high / low) ** numbers[1]).tolist()
        shift = (2.0 * numbers[2] - 1.0).tolist()

        def evaluate(parents: np.ndarray) -> np.ndarray:
            total = np.zeros(len(parents))
            for k, shape in enumerate(shapes):
                total += weights[k] * _increasing(shape, parents[:, k] - shift[k], sharp[k])
            return total

        return evaluate


def _increasing(shape: int, x: np.ndarray, sharp: float) -> np.ndarray:
    """An increasing function, about 1 in slope or range over standardized inputs."""
    result: np.ndarray
    if shape == 0:
        result = np.arctan(sharp * x)
    elif shape == 1:
        result = np.copysign(np.sqrt(np.abs(x) + 0.01), x)
    elif shape == 2:
        clipped = np.clip(x, -CLIP, CLIP)
        result = 0.3 * clipped * clipped * clipped + 0.3 * x
    elif shape == 3:
        result = np.logaddexp(0.0, np.clip(2.0 * sharp * x, -50.0, 50.0)) / sharp
    else:
        result = np.exp(np.clip(0.7 * x, -CLIP, 0.5 * CLIP))
    return result


@register
@dataclass(frozen=True, kw_only=True)
class Polynomial(Mechanism):
    """Linear terms, squares and products of pairs of parents; inputs are clipped at six standard deviations."""

    linear: float = 0.7
    squares: float = 0.5
    products: float = 0.8

    def check(self) -> None:
        if min(self.linear, self.squares, self.products) < 0 or self.linear + self.squares + self.products == 0:
            raise ConfigError("Polynomial needs weights of at least 0, one of them above 0")

    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        if n_parents == 0:
            return constant_zero
        p = n_parents
        normal = rng.standard_normal((3, p))
        partner = np.roll(np.arange(p), 1)  # products of neighbouring parents; their order is random
        linear = self.linear * normal[0] / math.sqrt(p)
        squares = self.squares * normal[1] / math.sqrt(p)
        products = (self.products if p > 1 else 0.0) * normal[2] / math.sqrt(p)

        def evaluate(parents: np.ndarray) -> np.ndarray:
            x = np.clip(parents, -CLIP, CLIP)
            result: np.ndarray = x @ linear + (x * x) @ squares + (x * x[:, partner]) @ products
            return result

        return evaluate


@register
@dataclass(frozen=True, kw_only=True)
class Saturating(Mechanism):
    """Sigmoid or Hill functions: of each parent, added or multiplied, or of one weighted sum."""

    steepness: Range = (0.7, 4.0)

    def check(self) -> None:
        _check_positive(*self.steepness, "Saturating.steepness")

    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        if n_parents == 0:
            return constant_zero
        p, style = n_parents, rng.random()
        steep = signed_uniform(rng, (1.0, 1.0), p) * np.array([log_uniform(rng, self.steepness) for _ in range(p)])
        centre = rng.uniform(-1.0, 1.0, p)
        weights = rng.uniform(0.5, 1.5, p) * 3.0 / math.sqrt(p)

        def evaluate(parents: np.ndarray) -> np.ndarray:
            inputs = (parents - centre) * steep
            if style < 0.35:  # saturation of the sum
                result = 2.0 * np.tanh(inputs.sum(axis=1) / (2.0 * math.sqrt(p)))
            elif style < 0.8 or p > 4:  # Hill functions of log-scale parents are sigmoids
                result = (0.5 + 0.5 * np.tanh(0.5 * inputs)) @ weights
            else:
                result = np.prod(0.6 + 0.5 * np.tanh(0.5 * inputs), axis=1) * 3.0
            return np.asarray(result)

        return evaluate
