"""Shifts of datasets with known graphs: how tables may differ from the training domain.

Each shift changes a dataset in one way and keeps its graph, so that the loss of accuracy can be measured in pairs. The
check is calibrated on them (`presage.ood.check`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from presage.columns import guess_kinds
from presage.data.encode import is_nominal
from presage.types import Dataset

__all__ = ["COUNT_SHIFTS", "SHIFTS", "Shift"]

Shift = Callable[[Dataset, np.random.Generator], Dataset]


def _changed(data: Dataset, **changes: Any) -> Dataset:
    """The dataset with some parts replaced; kinds of columns are guessed again where the values changed."""
    parts: dict[str, Any] = {"x": data.x, "interventions": data.interventions, "missing": data.missing}
    parts |= {"graph": data.graph, "kind": data.kind}
    if "x" not in changes:
        parts["column_kinds"] = data.column_kinds
    return Dataset(**{**parts, **changes})


def _z(data: Dataset) -> np.ndarray:
    """Values in robust standard deviations about the median, so that heavy tails stay moderate."""
    centre = np.median(data.x, axis=0)
    spread = np.quantile(np.abs(data.x - centre), 0.683, axis=0)
    return np.asarray((data.x - centre) / np.where(spread > 0, spread, 1.0))


def _values(change: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Shift:
    """A shift of the values, given in robust standard deviations; nominal columns stay as they are."""

    def shift(data: Dataset, rng: np.random.Generator) -> Dataset:
        x = change(np.clip(_z(data), -50.0, 50.0), rng)
        return _with_values(data, x)

    return shift


def _with_values(data: Dataset, x: np.ndarray) -> Dataset:
    nominal = is_nominal(data.column_kinds)
    x = np.where(nominal, data.x, x)
    kinds = np.where(nominal, data.column_kinds, guess_kinds(x, data.missing))
    return _changed(data, x=x, column_kinds=kinds)


def _round(digits: int) -> Shift:
    def shift(data: Dataset, rng: np.random.Generator) -> Dataset:
        size = 10.0 ** (digits - 1 - np.floor(np.log10(np.maximum(np.abs(data.x), 1e-12))))
        return _with_values(data, np.round(data.x * size) / size)

    return shift


def _levels(count: int, share: float) -> Shift:
    """A share of the columns cut into levels at equally spaced quantiles."""

    def shift(data: Dataset, rng: np.random.Generator) -> Dataset:
        x = data.x.copy()
        for j in np.flatnonzero(rng.random(data.d) < share):
            cuts = np.unique(np.quantile(x[:, j], np.arange(1, count) / count))
            x[:, j] = np.searchsorted(cuts, x[:, j])
        return _with_values(data, x)

    return shift


def _outliers(share: float, size: float) -> Shift:
    def change(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        hit = rng.random(z.shape) < share
        return np.where(hit, size * rng.choice((-1.0, 1.0), z.shape) * (1.0 + rng.random(z.shape)), z)

    return _values(change)


def _batches(size: float) -> Shift:
    """Two batches of rows whose columns differ in location."""

    def change(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        second = rng.random(len(z)) < 0.5
        return np.asarray(z + second[:, None] * rng.normal(0.0, size, z.shape[1]))

    return _values(change)


def _missing(share: float) -> Shift:
    return lambda data, rng: _changed(data, missing=data.missing | (rng.random(data.x.shape) < share))


def _selected(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Only the rows in which the sum of two variables is large."""
    sums = _z(data)[:, rng.choice(data.d, 2, replace=data.d < 2)].sum(axis=1)
    return data.take(np.flatnonzero(sums >= np.quantile(sums, 0.6)))


def _smoothed(width: int) -> Shift:
    """Each row averaged with the rows before it, as in a slow time series."""

    def change(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        total = np.cumsum(np.concatenate([np.zeros((1, z.shape[1])), z]), axis=0)
        start = np.maximum(np.arange(len(z)) + 1 - width, 0)
        return np.asarray(total[1:] - total[start])

    return _values(change)


def _labels(wrong: bool) -> Shift:
    """Interventions without labels, or with the labels of other variables."""

    def shift(data: Dataset, rng: np.random.Generator) -> Dataset:
        order = np.roll(rng.permutation(data.d), 1)
        return _changed(data, interventions=data.interventions[:, order] if wrong else None)

    return shift


def _noise(size: float) -> Shift:
    return _values(lambda z, rng: z + size * rng.normal(size=z.shape))


def _ranks(transform: Callable[[np.ndarray], np.ndarray]) -> Shift:
    return _values(lambda z, rng: transform((z.argsort(0).argsort(0) + 0.5) / len(z)))


def _logit(share: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(share / (1.0 - share)))


def _few_rows(n: int) -> Shift:
    return lambda data, rng: data.take(np.sort(rng.permutation(data.n)[:n]))


def _exponential(rate: float) -> Shift:
    return _values(lambda z, rng: np.exp(rate * np.clip(z, -8, 8)))


def _power(exponent: float) -> Shift:
    return _values(lambda z, rng: np.sign(z) * np.abs(z) ** exponent)


def _saturated(slope: float) -> Shift:
    return _values(lambda z, rng: np.tanh(slope * z))


SHIFTS: dict[str, Shift] = {
    **{f"rounded to {k} digits": _round(k) for k in (1, 2, 3, 4)},
    **{f"exponential {rate:g}": _exponential(rate) for rate in (0.3, 1.0, 2.0)},
    **{f"power {exponent:g}": _power(exponent) for exponent in (0.3, 2.0, 3.0)},
    **{f"saturated {slope:g}": _saturated(slope) for slope in (0.5, 1.5, 4.0)},
    "squared": _values(lambda z, rng: z**2),
    "absolute": _values(lambda z, rng: np.abs(z)),
    "sine": _values(lambda z, rng: np.sin(2.0 * z)),
    "uniform": _ranks(lambda share: share),
    "logistic": _ranks(_logit),
    **{f"{k} levels": _levels(k, 1.0) for k in (2, 3, 5, 10)},
    **{f"half of the columns {k} levels": _levels(k, 0.5) for k in (2, 4)},
    "one column in five binary": _levels(2, 0.2),
    **{f"outliers {share:g}": _outliers(share, 10.0) for share in (0.01, 0.05, 0.2)},
    "rare extreme outliers": _outliers(0.003, 100.0),
    **{f"noise {size:g}": _noise(size) for size in (0.3, 1.0, 2.0)},
    **{f"batches {size:g}": _batches(size) for size in (0.5, 1.5, 4.0)},
    **{f"missing {share:g}": _missing(share) for share in (0.1, 0.3, 0.6)},
    "censored": _values(lambda z, rng: np.maximum(z, 0.0)),
    "zero-inflated": _values(lambda z, rng: np.where(rng.random(z.shape) < 0.4, 0.0, z)),
    "selected rows": _selected,
    **{f"smoothed {width}": _smoothed(width) for width in (3, 20)},
    "interventions without labels": _labels(wrong=False),
    "interventions with wrong labels": _labels(wrong=True),
    "20 rows": _few_rows(20),
    "scaled rows": _values(lambda z, rng: z * rng.lognormal(0.0, 1.0, (len(z), 1))),
    "closed to a constant sum": _values(lambda z, rng: np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)),
}
"""Shifts of real values by name."""


def _counts(change: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Shift:
    return lambda data, rng: _changed(data, x=np.rint(np.clip(change(data.x, rng), 0, 1e9)))


def _thin(share: float) -> Shift:
    return _counts(lambda x, rng: rng.binomial(x.astype(np.int64), share).astype(float))


def _gene_batches(size: float) -> Shift:
    """Half of the rows with other capture rates for every column."""

    def change(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        rates = np.where(rng.random(len(x)) < 0.5, 1.0, 0.0)[:, None] * rng.normal(0.0, size, x.shape[1])
        return _poisson(x * np.exp(rates), rng)

    return _counts(change)


def _poisson(rate: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(rng.poisson(np.minimum(rate, 1e7)).astype(np.float64))


def _dropout(share: float) -> Shift:
    return _counts(lambda x, rng: x * (rng.random(x.shape) > share))


def _scaled(factor: float) -> Shift:
    return _counts(lambda x, rng: _poisson(factor * x, rng))


def _ambient(share: float) -> Shift:
    """Counts of the average row added to every row."""
    return _counts(lambda x, rng: x + _poisson(np.broadcast_to(share * x.mean(axis=0), x.shape), rng))


COUNT_SHIFTS: dict[str, Shift] = {
    **{f"thinned to {share:g}": _thin(share) for share in (0.5, 0.2, 0.05)},
    **{f"dropout {share:g}": _dropout(share) for share in (0.1, 0.3, 0.6)},
    **{f"counts times {factor}": _scaled(factor) for factor in (3, 10)},
    **{f"ambient {share:g}": _ambient(share) for share in (0.3, 1.0)},
    "doublets": _counts(lambda x, rng: x + x[rng.permutation(len(x))] * (rng.random((len(x), 1)) < 0.5)),
    "capped": _counts(lambda x, rng: np.minimum(x, 1.0 + np.quantile(x, 0.9, axis=0))),
    "logarithms": _counts(lambda x, rng: np.log1p(x) * 3.0),
    **{f"batches {size:g}": _gene_batches(size) for size in (0.3, 1.0, 2.0)},
    **{f"missing {share:g}": _missing(share) for share in (0.1, 0.3)},
    "interventions without labels": _labels(wrong=False),
    "interventions with wrong labels": _labels(wrong=True),
    "20 rows": _few_rows(20),
}
"""Shifts of counts by name."""
