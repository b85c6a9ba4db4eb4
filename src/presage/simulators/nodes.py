"""Structural assignments of single variables that can be re-evaluated with other parents and the same noise.

A node is fitted and evaluated once when a dataset is sampled. The first `fit` rows are observational and determine
means, standard deviations and cut points. Effects are computed by evaluating the node again with changed parents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from presage.simulators.mechanisms import Function

__all__ = ["Change", "Counts", "Cuts", "Encoding", "Node", "NumericNode", "moments"]

Rows = slice | np.ndarray
TINY = 1e-9


class Node(Protocol):
    """A structural assignment: values of the parents [p, k] in the given rows -> values [k]."""

    def evaluate(self, values: np.ndarray, rows: Rows, fit: int = 0) -> np.ndarray:
        """Values with the noise of `rows`; with `fit` > 0, first estimate constants from the first `fit` rows."""
        ...


def moments(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation (several times faster than NumPy's for short arrays)."""
    count = len(values)
    mean = float(np.add.reduce(values)) / count
    centred = values - mean
    return mean, math.sqrt(float(centred @ centred) / count)


@dataclass
class Encoding:
    """Encoding of parents: a value per level for nominal parents; the others are shifted and scaled.

    loc, inverse: [p, 1], or None if no parent is shifted or scaled. tables: (position, value of each level).
    """

    loc: np.ndarray | None
    inverse: np.ndarray | None
    tables: Sequence[tuple[int, np.ndarray]] = ()

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Numbers [p, k] for the mechanism."""
        if self.loc is not None and self.inverse is not None:
            values = (values - self.loc) * self.inverse
        elif self.tables:
            values = values.copy()
        for position, table in self.tables:
            values[position] = table[values[position].astype(np.intp)]
        return values


@dataclass
class Change:
    """What differs in the rows of an environment: a new function, or a shift, a factor or a noise factor."""

    code: int
    function: Function | None = None
    shift: float = 0.0
    factor: float = 1.0
    noise_factor: float = 1.0
    centre: float = 0.0
    gain: float = 1.0


class NumericNode:
    """A function of the parents with noise, optionally standardized and then discretized to codes or counts.

    explained: share of the variance that the parents explain (standardized nodes). scale: scale of the noise (raw
    nodes, where the function's output is used as it is). form: "additive", "multiplicative" or "heteroscedastic".
    """

    def __init__(
        self,
        function: Function,
        encode: Encoding,
        noise: np.ndarray,
        *,
        explained: float = 0.5,
        scale: float | None = None,
        form: str = "additive",
        form_strength: float = 0.5,
        output: Callable[[np.ndarray, Rows, int], np.ndarray] | None = None,
        changes: Sequence[Change] = (),
        environment: np.ndarray | None = None,
    ) -> None:
        self.function = function
        self.encode = encode
        self.noise = noise
        self.explained = explained
        self.scale = scale
        self.form = form
        self.form_strength = form_strength
        self.output = output
        self.changes = changes
        self.environment = environment
        self.centre, self.gain = 0.0, 1.0
        self.mean, self.inverse_sd = 0.0, 1.0
        self.shift_unit = 1.0  # environments shift by multiples of the standard deviation
        self.flat = False

    def evaluate(self, values: np.ndarray, rows: Rows, fit: int = 0) -> np.ndarray:
        """Values of the variable [k]; see `Node`."""
        noise = self.noise[rows]
        masks = []
        if self.changes and self.environment is not None:
            codes = self.environment[rows]
            masks = [(change, codes == change.code) for change in self.changes]
            noise = noise.copy() if isinstance(rows, slice) else noise
            for change, mask in masks:
                noise[mask] *= change.noise_factor
        encoded = self.encode(values) if len(values) else values
        if len(values) or self.scale is not None:
            signal = self._signal(encoded, masks, fit)
            result = self._join(signal, noise, encoded)
        else:
            result = noise
        if masks:
            result = result.copy() if result is noise else result
            if fit:
                self.shift_unit = moments(result[:fit])[1]
            for change, mask in masks:
                result[mask] = result[mask] * change.factor + change.shift * self.shift_unit
        if self.scale is None or self.output is not None:
            if fit:
                self.mean, sd = moments(result[:fit])
                self.inverse_sd = 1.0 / sd if sd > TINY else 1.0
            result = (result - self.mean) * self.inverse_sd
        return result if self.output is None else self.output(result, rows, fit)

    def _signal(self, encoded: np.ndarray, masks: Sequence[tuple[Change, np.ndarray]], fit: int) -> np.ndarray:
        signal = self.function(encoded.T)
        if self.scale is None:
            if fit:
                self.centre, sd = moments(signal[:fit])
                self.flat = sd <= TINY
                self.gain = 1.0 / sd if sd > TINY else 0.0
            signal = (signal - self.centre) * self.gain
        for change, mask in masks:
            if change.function is not None and mask.any():
                other = change.function(encoded[:, mask].T)
                if fit and self.scale is None:
                    change.centre, sd = moments(other)
                    change.gain = 1.0 / sd if sd > TINY else 0.0
                signal[mask] = (other - change.centre) * change.gain
        return signal

    def _join(self, signal: np.ndarray, noise: np.ndarray, encoded: np.ndarray) -> np.ndarray:
        if self.form == "multiplicative":
            # The offset keeps most values on one side of zero; the spread of the factor follows from the share.
            sigma = min(math.sqrt(math.log1p((1.0 - self.explained) / self.explained)), 1.0)
            result: np.ndarray = (signal + 4.0 * self.form_strength) * np.exp(sigma * np.clip(noise, -4.0, 4.0))
            return result
        if self.form == "heteroscedastic":
            noise = noise * np.exp(self.form_strength * np.tanh(encoded[0]))
        if self.scale is not None:
            return signal + self.scale * noise
        return math.sqrt(self.explained) * signal + math.sqrt(1.0 - self.explained) * noise


class Cuts:
    """Codes 0..L-1 by cut points at given cumulative shares [L - 1] of the observational values.

    order: relabels the codes (nominal columns), or None.
    """

    def __init__(self, shares: np.ndarray, order: np.ndarray | None = None) -> None:
        self.shares = shares
        self.order = order
        self.points = shares

    def __call__(self, values: np.ndarray, rows: Rows, fit: int = 0) -> np.ndarray:
        if fit:
            ordered = np.sort(values[:fit])
            upper = np.minimum((self.shares * fit).astype(np.intp), fit - 1)
            self.points = 0.5 * (ordered[upper] + ordered[np.maximum(upper - 1, 0)])
        codes = np.searchsorted(self.points, values, side="right")
        return (codes if self.order is None else self.order[codes]).astype(np.float64)


class Counts:
    """Poisson counts with rate exp(log_mean + slope * value), times gamma noise for negative binomial ones."""

    def __init__(
        self,
        log_mean: float,
        slope: float,
        normal: np.ndarray,
        gamma: np.ndarray | None,
        max_rate: float = 1e5,
    ) -> None:
        self.log_mean = log_mean
        self.slope = slope
        self.normal = normal
        self.gamma = gamma
        self.max_log_rate = math.log(max_rate)

    def __call__(self, values: np.ndarray, rows: Rows, fit: int = 0) -> np.ndarray:
        rate = np.exp(np.minimum(self.log_mean + self.slope * values, self.max_log_rate))
        if self.gamma is not None:
            rate *= self.gamma[rows]
        return poisson_quantile(rate, self.normal[rows])


def poisson_quantile(rate: np.ndarray, normal: np.ndarray, invert_below: float = 8.0) -> np.ndarray:
    """Poisson counts that increase with the rate for the same standard normal noise, unlike those of a generator.

    Small rates invert the distribution function, at a uniform number that is accurate to 2e-4 (a cubic logistic
    approximation of the normal distribution function); larger rates use the square root transformation.
    """
    root = np.sqrt(rate) + 0.5 * normal
    counts: np.ndarray = np.rint(np.maximum(root, 0.0) ** 2 - 0.25)
    np.maximum(counts, 0.0, out=counts)
    small = np.flatnonzero(rate < invert_below)
    if len(small):
        lam, z = rate[small], normal[small]
        u = 1.0 / (1.0 + np.exp(-1.5976 * z - 0.07056 * z**3))
        term = np.exp(-lam)
        total = term.copy()
        inverted = np.zeros(len(small))
        for k in range(1, 60):
            above = u > total
            if not above.any():
                break
            inverted += above
            term *= lam / k
            total += term
        counts[small] = inverted
    return counts
