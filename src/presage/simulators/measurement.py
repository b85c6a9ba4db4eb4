"""From model variables to a table: codes, noise, distortion, limits, outliers, units, rounding, missing cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from presage.columns import ColumnKind
from presage.config import Component, Range, register
from presage.errors import ConfigError
from presage.simulators.draws import check_shares, log_uniform

__all__ = ["DISTORTIONS", "Measurement", "distort", "round_significant"]

DISTORTIONS = ("exp", "log", "root", "sigmoid", "square")


def distort(values: np.ndarray, name: str, strength: float) -> np.ndarray:
    """An increasing function of standardized values, finite everywhere.

    >>> distort(np.array([-1.0, 0.0, 1.0]), "exp", 1.0).round(3).tolist()
    [-0.632, 0.0, 1.718]
    """
    scaled = strength * values
    result: np.ndarray
    if name == "exp":
        result = np.expm1(np.minimum(scaled, 8.0)) + np.maximum(scaled - 8.0, 0.0)
    elif name == "log":
        result = -np.expm1(np.minimum(-scaled, 8.0)) - np.maximum(-scaled - 8.0, 0.0)
    elif name == "root":
        result = np.arcsinh(3.0 * scaled)
    elif name == "sigmoid":
        result = np.tanh(scaled) + 0.01 * scaled
    elif name == "square":
        result = np.logaddexp(0.0, 2.0 * scaled) ** 2
    else:
        raise ConfigError(f"there is no distortion {name!r}; choose one of: {', '.join(DISTORTIONS)}")
    return result


def round_significant(values: np.ndarray, digits: int) -> np.ndarray:
    """Round each value to a number of significant digits.

    >>> round_significant(np.array([0.012345, 98.76]), 2).tolist()
    [0.012, 99.0]
    """
    size = np.abs(values)
    size[size < 1e-300] = 1.0
    factor = 10.0 ** (digits - 1 - np.floor(np.log10(size)))
    result: np.ndarray = np.rint(values * factor) / factor
    return result


@register
@dataclass(frozen=True, kw_only=True)
class Measurement(Component):
    """Shares of datasets with each type of measurement error, and ranges of its size.

    Continuous columns are standardized, distorted, then given units and rounded. Discrete columns have missing cells
    only; counts also have outliers and extra zeros. `clean` is the share of datasets without measurement errors.
    `proportional` is the share of the datasets with noise in which the noise of a value grows with its distance from
    the smallest of its column, as that of concentrations.
    """

    clean: float = 0.2
    rounding: float = 0.6
    distortion: float = 0.25
    noise: float = 0.1
    proportional: float = 0.3
    outliers: float = 0.1
    missing: float = 0.15
    zeros: float = 0.06
    censoring: float = 0.08
    noise_level: Range = (0.05, 0.5)
    outlier_share: Range = (0.001, 0.02)
    missing_share: Range = (0.005, 0.3)
    digits: tuple[int, int] = (1, 4)

    def check(self) -> None:
        check_shares(self, "clean", "rounding", "distortion", "noise", "proportional")
        check_shares(self, "outliers", "missing", "zeros", "censoring")
        for name in ("noise_level", "outlier_share", "missing_share"):
            low, high = getattr(self, name)
            if not 0.0 < low <= high:
                raise ConfigError(f"Measurement.{name} needs 0 < low <= high")
        if self.outlier_share[1] > 1.0 or self.missing_share[1] > 0.8:
            raise ConfigError("Measurement.outlier_share is at most 1 and missing_share at most 0.8")
        if not 1 <= self.digits[0] <= self.digits[1]:
            raise ConfigError("Measurement.digits needs 1 <= low <= high")

    def apply(self, rng: np.random.Generator, columns: np.ndarray, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The table as measured: columns [d, n] (a new array) and missing cells, bool [d, n], which hold 0."""
        columns = columns.copy()
        if rng.random() < self.clean:
            return columns, np.zeros(columns.shape, dtype=bool)
        noise, distortion, censoring, zeros, outliers, rounding, missing = rng.random(7) < (
            self.noise,
            self.distortion,
            self.censoring,
            self.zeros,
            self.outliers,
            self.rounding,
            self.missing,
        )
        numbers = np.flatnonzero(kinds == ColumnKind.CONTINUOUS)
        if len(numbers) and (noise or distortion or censoring or zeros or outliers or rounding):
            x = columns[numbers]
            x -= x.mean(axis=1, keepdims=True)
            sd = np.sqrt(np.einsum("ij,ij->i", x, x) / x.shape[1])
            x /= np.where(sd > 0, sd, 1.0)[:, None]
            if noise:
                self._noise(rng, x)
            if distortion:
                self._distort(rng, x)
            if censoring:
                _censor(rng, x)
            if zeros:
                _zero_inflate(rng, x)
            if outliers:
                _add_outliers(rng, x, log_uniform(rng, self.outlier_share))
            if rounding:
                self._round(rng, x)
            columns[numbers] = x
        if outliers or zeros:
            self._counts(rng, columns, kinds, bool(zeros))
        if not missing:
            return columns, np.zeros(columns.shape, dtype=bool)
        mask = self._missing(rng, columns, kinds)
        columns[mask] = 0.0
        return columns, mask

    def _noise(self, rng: np.random.Generator, x: np.ndarray) -> None:
        noise = log_uniform(rng, self.noise_level) * rng.standard_normal(x.shape)
        if rng.random() < self.proportional:
            above = x - x.min(axis=1, keepdims=True)
            mean = above.mean(axis=1, keepdims=True)
            noise *= above / np.where(mean > 0, mean, 1.0)
        x += noise

    def _distort(self, rng: np.random.Generator, x: np.ndarray) -> None:
        common = DISTORTIONS[int(rng.random() * len(DISTORTIONS))] if rng.random() < 0.6 else None
        strength = log_uniform(rng, (0.3, 1.5))
        share = 1.0 if rng.random() < 0.5 else rng.random()
        for k in np.flatnonzero(rng.random(len(x)) < share).tolist():
            x[k] = distort(x[k], common or DISTORTIONS[int(rng.random() * len(DISTORTIONS))], strength)

    def _counts(self, rng: np.random.Generator, columns: np.ndarray, kinds: np.ndarray, zeros: bool) -> None:
        for j in np.flatnonzero(kinds == ColumnKind.COUNT).tolist():
            if zeros:
                columns[j, rng.random(columns.shape[1]) < rng.uniform(0.05, 0.5)] = 0.0
            else:
                far = rng.random(columns.shape[1]) < log_uniform(rng, self.outlier_share)
                columns[j, far] = np.rint(columns[j, far] * rng.uniform(3.0, 20.0))

    def _round(self, rng: np.random.Generator, x: np.ndarray) -> None:
        """Give every column units, then round it to significant digits or to decimals, never to a constant."""
        low, high = self.digits
        digits = low + int(rng.random(2).mean() * (high - low + 1))  # mostly the middle of the range
        numbers = rng.random((2, len(x)))
        unit = 10.0 ** (6.0 * numbers[0] - 3.0)
        # Many columns are positive and far from zero (heights, pressures); others are centred.
        offset = np.where(numbers[1] < 0.5, 0.0, 4.0 + 40.0 * (numbers[1] - 0.5) ** 2) if rng.random() < 0.6 else 0.0
        if isinstance(offset, np.ndarray):
            x += offset[:, None]
        x *= unit[:, None]
        if rng.random() < 0.4:
            x[:] = round_significant(x, digits + int(isinstance(offset, np.ndarray)))
        else:
            step = unit * 10.0 ** (1.0 - digits) * (0.5 if rng.random() < 0.25 else 1.0)
            x[:] = np.rint(x / step[:, None]) * step[:, None]

    def _missing(self, rng: np.random.Generator, columns: np.ndarray, kinds: np.ndarray) -> np.ndarray:
        d, n = columns.shape
        share = log_uniform(rng, self.missing_share)
        affected = (rng.random(d) < (1.0 if rng.random() < 0.5 else rng.random())) & (kinds != ColumnKind.ENVIRONMENT)
        mask: np.ndarray = (rng.random((d, n)) < share) & affected[:, None]
        if d > 1 and rng.random() < 0.4:
            # Missing at random given another column: cells are missing where it is high (or low).
            for j in np.flatnonzero(affected).tolist():
                other = columns[(j + 1 + int(rng.random() * (d - 1))) % d]
                sd = other.std()
                if sd > 0:
                    slope = 1.5 if rng.random() < 0.5 else -1.5
                    odds = np.exp(np.clip(slope * (other - other.mean()) / sd, -4.0, 4.0))
                    mask[j] = rng.random(n) < np.minimum(share * odds, 0.8)
        # A column keeps at least two observed cells.
        mask[(~mask).sum(axis=1) < 2] = False
        return mask


def _quantile(values: np.ndarray, share: float) -> float:
    """An order statistic; NumPy's interpolated quantile takes ten times as long."""
    k = min(int(share * len(values)), len(values) - 1)
    return float(np.partition(values, k)[k])


def _censor(rng: np.random.Generator, x: np.ndarray) -> None:
    """Values beyond a limit of detection are reported as the limit."""
    lower = rng.random() < 0.7
    for k in np.flatnonzero(rng.random(len(x)) < rng.uniform(0.2, 1.0)).tolist():
        share = rng.uniform(0.03, 0.5)
        limit = _quantile(x[k], share if lower else 1.0 - share)
        x[k] = np.maximum(x[k], limit) if lower else np.minimum(x[k], limit)


def _zero_inflate(rng: np.random.Generator, x: np.ndarray) -> None:
    """Shift columns to positive values and set some to zero: all below a limit, or random cells."""
    below = rng.random() < 0.5
    for k in np.flatnonzero(rng.random(len(x)) < rng.uniform(0.2, 1.0)).tolist():
        share = rng.uniform(0.1, 0.6)
        values = x[k] - x[k].min() + 0.1
        zero = values <= _quantile(values, share) if below else rng.random(len(values)) < share
        values[zero] = 0.0
        x[k] = values


def _add_outliers(rng: np.random.Generator, x: np.ndarray, share: float) -> None:
    count = int(rng.binomial(x.size, share))
    cells = (rng.random(count) * x.size).astype(np.intp)
    sizes = rng.uniform(4.0, 20.0, count) * np.where(rng.random(count) < 0.5, 1.0, -1.0)
    flat = x.reshape(-1)  # x is contiguous: a view
    flat[cells] += sizes
