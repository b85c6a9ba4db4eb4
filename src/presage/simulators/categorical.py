"""Categorical variables: softmax sampling from logits, and conditional probability tables.

The noise (Gumbel noise per level, or one uniform number) is stored, so that values are functions of parents and noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from presage.config import Component, Range, register
from presage.errors import ConfigError
from presage.simulators.draws import log_uniform
from presage.simulators.nodes import Node, Rows

__all__ = ["CategoricalMechanism", "LogitSampling", "ParentInfo", "ProbabilityTable", "Switched"]


@dataclass
class ParentInfo:
    """Properties of the parents of a categorical node, as arrays [p].

    levels: number of codes, 0 for numeric parents. mean, inverse_sd: moments of the observational rows.
    """

    levels: list[int]
    mean: np.ndarray
    inverse_sd: np.ndarray


@dataclass(frozen=True, kw_only=True)
class CategoricalMechanism(Component, ABC):
    """A distribution over nodes with L levels. Subclasses implement `node` and `noise`."""

    @abstractmethod
    def noise(self, rng: np.random.Generator, levels: int, n: int) -> np.ndarray:
        """The noise of n rows; rows are the last axis."""

    @abstractmethod
    def node(
        self, rng: np.random.Generator, parents: ParentInfo, levels: int, noise: np.ndarray, *, ordered: bool = False
    ) -> Node:
        """Sample the parameters of one variable; `ordered` levels change gradually with numeric parents."""


@register
@dataclass(frozen=True, kw_only=True)
class LogitSampling(CategoricalMechanism):
    """Softmax sampling: logits of the levels are sums of the parents' effects.

    strength: standard deviation of the logits (log-uniform), from weak to nearly deterministic; skew: of the base
    logits. rank_one: share of variables whose levels lie on one hidden scale that all parents act on (states such as
    low, normal, high); ordered levels always do.
    """

    strength: Range = (0.7, 8.0)
    skew: Range = (0.0, 1.5)
    rank_one: float = 0.5

    def check(self) -> None:
        if not 0.0 < self.strength[0] <= self.strength[1] or not 0.0 <= self.skew[0] <= self.skew[1]:
            raise ConfigError("LogitSampling needs 0 < strength low <= high and 0 <= skew low <= high")
        if not 0.0 <= self.rank_one <= 1.0:
            raise ConfigError("LogitSampling.rank_one must lie between 0 and 1")

    def noise(self, rng: np.random.Generator, levels: int, n: int) -> np.ndarray:
        return -np.log(rng.standard_exponential((levels, n)))

    def node(
        self, rng: np.random.Generator, parents: ParentInfo, levels: int, noise: np.ndarray, *, ordered: bool = False
    ) -> Node:
        p = len(parents.levels)
        strength = log_uniform(rng, self.strength) / math.sqrt(max(p, 1))
        base = rng.uniform(*self.skew) * rng.standard_normal(levels)
        if p == 0:
            return _LogitNode(base, noise, [], np.zeros(0, dtype=np.intp), None, parents)
        # Scores of the levels [L]; nominal levels have no order, so their scores are sampled.
        scores = None
        if ordered:
            scores = np.linspace(-1.5, 1.5, levels)
        elif rng.random() < self.rank_one:
            scores = rng.standard_normal(levels)
        tables: list[tuple[int, np.ndarray]] = []
        numeric = [k for k, count in enumerate(parents.levels) if count == 0]
        for k, count in enumerate(parents.levels):
            if count:
                if scores is not None:
                    table = np.outer(scores, rng.standard_normal(count))
                else:
                    table = rng.standard_normal((levels, count))
                tables.append((k, strength * table))
        slopes = None
        if numeric:
            if scores is not None:
                slopes = strength * np.outer(scores, rng.standard_normal(len(numeric)))
            else:
                slopes = strength * rng.standard_normal((levels, len(numeric)))
        return _LogitNode(base, noise, tables, np.array(numeric, dtype=np.intp), slopes, parents)


class _LogitNode:
    def __init__(
        self,
        base: np.ndarray,
        noise: np.ndarray,
        tables: Sequence[tuple[int, np.ndarray]],
        numeric: np.ndarray,
        slopes: np.ndarray | None,
        parents: ParentInfo,
    ) -> None:
        self.base = base[:, None]
        self.noise = noise
        self.tables = tables
        self.numeric = numeric
        self.slopes = slopes
        self.mean = parents.mean[numeric][:, None]
        self.inverse_sd = parents.inverse_sd[numeric][:, None]

    def evaluate(self, values: np.ndarray, rows: Rows, fit: int = 0) -> np.ndarray:
        logits: np.ndarray = self.noise[:, rows] + self.base  # [L, k]
        for k, table in self.tables:
            logits += table[:, values[k].astype(np.intp)]
        if self.slopes is not None:
            logits += self.slopes @ np.clip((values[self.numeric] - self.mean) * self.inverse_sd, -5.0, 5.0)
        return np.asarray(logits.argmax(axis=0), dtype=np.float64)


@register
@dataclass(frozen=True, kw_only=True)
class ProbabilityTable(CategoricalMechanism):
    """Conditional probability tables: a Dirichlet row for each configuration of the parents.

    concentration: of the rows, log-uniform; small values give nearly deterministic rows. evenness: shape of the gamma
    distribution of the levels' base weights, log-uniform; small values give skewed columns. floor: mixed into each row
    so that no level is impossible. Levels of parents are merged, and numeric parents cut into two or three bins,
    until there are at most `max_configurations`.
    """

    concentration: Range = (0.1, 2.0)
    evenness: Range = (0.7, 4.0)
    floor: float = 0.01
    max_configurations: int = 128

    def check(self) -> None:
        if not 0.0 < self.concentration[0] <= self.concentration[1] or not 0.0 <= self.floor < 1.0:
            raise ConfigError("ProbabilityTable needs 0 < concentration low <= high and 0 <= floor < 1")
        if not 0.0 < self.evenness[0] <= self.evenness[1]:
            raise ConfigError("ProbabilityTable.evenness needs 0 < low <= high")
        if self.max_configurations < 2:
            raise ConfigError("ProbabilityTable.max_configurations must be at least 2")

    def noise(self, rng: np.random.Generator, levels: int, n: int) -> np.ndarray:
        return rng.random(n)

    def node(
        self, rng: np.random.Generator, parents: ParentInfo, levels: int, noise: np.ndarray, *, ordered: bool = False
    ) -> Node:
        sizes = [count or 2 + int(rng.random() < 0.5) for count in parents.levels]
        while math.prod(sizes) > self.max_configurations and max(sizes) > 2:
            sizes[sizes.index(max(sizes))] -= 1
        maps: list[np.ndarray] = []
        strides: list[int] = []
        stride, count_limit = 1, self.max_configurations
        for count, size in zip(parents.levels, sizes, strict=True):
            if count:
                groups = np.resize(np.arange(size), count)
                if size < count:  # merged levels: every group keeps at least one
                    rng.shuffle(groups)
                maps.append(groups)
            else:
                maps.append(np.sort(rng.uniform(-1.0, 1.0, size - 1)))
            # Still too many configurations: the remaining parents select among the rows in a scrambled order.
            strides.append(stride if stride < count_limit else 1 + int(rng.random() * (count_limit - 1)))
            stride *= size
        count = min(stride, self.max_configurations)
        concentration = log_uniform(rng, self.concentration)
        base = rng.standard_gamma(log_uniform(rng, self.evenness), levels) + 0.1
        shape = concentration * levels * base / base.sum()
        weights = rng.standard_gamma(np.broadcast_to(shape, (count, levels))) + 1e-12
        rows = weights / weights.sum(axis=1, keepdims=True)
        rows = (1.0 - self.floor) * rows + self.floor / levels
        return _TableNode(np.cumsum(rows, axis=1)[:, :-1].T.copy(), maps, strides, noise, parents)


class _TableNode:
    def __init__(
        self,
        cumulative: np.ndarray,
        maps: Sequence[np.ndarray],
        strides: Sequence[int],
        noise: np.ndarray,
        parents: ParentInfo,
    ) -> None:
        self.cumulative = cumulative  # [L - 1, configurations]
        self.maps = maps
        self.strides = strides
        self.noise = noise
        self.parents = parents

    def evaluate(self, values: np.ndarray, rows: Rows, fit: int = 0) -> np.ndarray:
        uniform = self.noise[rows]
        index = np.zeros(len(uniform), dtype=np.intp)
        for k, (groups, stride) in enumerate(zip(self.maps, self.strides, strict=True)):
            if self.parents.levels[k]:
                part = groups[values[k].astype(np.intp)]
            else:
                part = np.searchsorted(groups, (values[k] - self.parents.mean[k]) * self.parents.inverse_sd[k])
            index += part * stride
        index %= self.cumulative.shape[1]
        codes: np.ndarray = (uniform > self.cumulative[:, index]).sum(axis=0)
        return codes.astype(np.float64)


class Switched:
    """A node that is replaced by another one in the rows of some environments."""

    def __init__(self, node: Node, others: Sequence[tuple[int, Node]], environment: np.ndarray) -> None:
        self.node = node
        self.others = others
        self.environment = environment

    def evaluate(self, values: np.ndarray, rows: Rows, fit: int = 0) -> np.ndarray:
        result = self.node.evaluate(values, rows, fit)
        codes = self.environment[rows]
        index = np.arange(len(self.environment))[rows]
        for code, other in self.others:
            mask = np.flatnonzero(codes == code)
            if len(mask):
                result[mask] = other.evaluate(values[:, mask], index[mask], 0)
        return result
