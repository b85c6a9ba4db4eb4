"""Mechanisms with steps: thresholds on single parents, and oblivious trees."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from presage.config import register
from presage.errors import ConfigError
from presage.simulators.draws import signed_uniform
from presage.simulators.mechanisms import Function, Mechanism
from presage.simulators.mechanisms_general import constant_zero

__all__ = ["SoftTree", "Thresholds"]


@register
@dataclass(frozen=True, kw_only=True)
class Thresholds(Mechanism):
    """A sum of steps, one or two on each parent."""

    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        if n_parents == 0:
            return constant_zero
        steps = np.concatenate((np.arange(n_parents), np.flatnonzero(rng.random(n_parents) < 0.5)))
        at = rng.uniform(-1.0, 1.0, len(steps))
        heights = signed_uniform(rng, (0.7, 2.0), len(steps)) / math.sqrt(n_parents)
        return lambda parents: (parents[:, steps] > at) @ heights


@register
@dataclass(frozen=True, kw_only=True)
class SoftTree(Mechanism):
    """Oblivious trees: every level splits all rows on one parent; every parent has a split in one of the trees.

    `softness` above 0 replaces steps by sigmoids of that width in half of the samples.
    """

    depth: int = 3
    softness: float = 0.2

    def check(self) -> None:
        if not 1 <= self.depth <= 8 or self.softness < 0:
            raise ConfigError("SoftTree needs a depth from 1 to 8 and a softness of at least 0")

    def function(self, rng: np.random.Generator, n_parents: int) -> Function:
        if n_parents == 0:
            return constant_zero
        p = n_parents
        trees = -(-p // self.depth)
        splits = np.resize(np.arange(p), trees * self.depth)
        at = rng.uniform(-1.2, 1.2, trees * self.depth)
        leaves = rng.standard_normal((trees, 2**self.depth)) / math.sqrt(trees)
        width = self.softness if rng.random() < 0.5 else 0.0
        powers = 2 ** np.arange(self.depth)
        depth = self.depth

        def evaluate(parents: np.ndarray) -> np.ndarray:
            inputs = parents[:, splits] - at  # [n, trees * depth]
            total = np.zeros(len(parents))
            for t in range(trees):
                side = inputs[:, t * depth : (t + 1) * depth]
                if width == 0.0:
                    total += leaves[t, (side > 0) @ powers]
                    continue
                values = leaves[t][:, None]  # [leaves, 1], folded level by level, the last split first
                for k in range(depth - 1, -1, -1):
                    right = 0.5 + 0.5 * np.tanh(side[:, k] / (2.0 * width))
                    half = len(values) // 2
                    values = values[:half] + right * (values[half:] - values[:half])
                total += values[0]
            return total

        return evaluate
