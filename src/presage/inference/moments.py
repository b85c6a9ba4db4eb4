"""`Moments`: the correlations of a table, which suffice for linear regressions without the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.data.encode import is_nominal
from presage.data.standardize import standardize_dataset
from presage.types import Dataset

__all__ = ["ENOUGH_ROWS", "Moments"]

ENOUGH_ROWS = 50
"""With at least this many observational rows, interventional rows are left out of the moments."""
_MAX_INDICATORS = 20
"""Indicator columns of a nominal variable; rarer levels share the reference level."""
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Second moments of a table of d variables and m indicator columns for the levels of nominal variables.

    correlation: float64 [d + m, d + m]; rows and columns of variables that never change are 0.
    scale: standard deviations [d] in the units of the table; None for counts, which are analysed as log counts.
    n: number of rows used. pairs: number of rows [d + m, d + m] where both were measured; None: all n rows.
    observational: whether all of these rows are observational. indicator_of: variable of each indicator column [m].
    """

    correlation: np.ndarray
    scale: np.ndarray | None
    n: int
    pairs: np.ndarray | None = None
    observational: bool = True
    indicator_of: tuple[int, ...] = ()

    @staticmethod
    def of(dataset: Dataset) -> Moments:
        """Moments over the observational rows, or over all rows if fewer than `ENOUGH_ROWS` are observational.

        Missing cells are left out pair by pair.
        """
        rows = np.flatnonzero(~dataset.interventions.any(axis=1))
        observational = len(rows) == dataset.n or len(rows) >= ENOUGH_ROWS
        rows = rows if observational else np.arange(dataset.n)
        values = standardize_dataset(dataset) if dataset.kind == "counts" else dataset.x
        levels = _levels(dataset, rows)
        source = np.array([*range(dataset.d), *(j for j, _ in levels)], dtype=np.int64)
        level = np.array([level for _, level in levels], dtype=np.float64)

        def columns(block: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """Values and whether they were measured, both [rows, columns]."""
            found = values[np.ix_(block, source[which])].astype(np.float64)
            indicator = np.flatnonzero(which >= dataset.d)
            found[:, indicator] = found[:, indicator] == level[which[indicator] - dataset.d]
            return found, ~dataset.missing[np.ix_(block, source[which])]

        everything = np.arange(len(source))
        centre, scale = np.zeros((2, len(source)))
        for c in everything:
            column, measured = columns(rows, everything[c : c + 1])
            centre[c], scale[c] = _centre_and_scale(column[measured])
        unit = np.where(scale > 0, scale, 1.0)
        total, pairs = np.zeros((2, len(source), len(source)))
        for start in range(0, len(rows), _ROWS_AT_ONCE):  # no copy of the whole table
            block, measured = columns(rows[start : start + _ROWS_AT_ONCE], everything)
            z = np.where((scale > 0) & measured, block / unit - centre / unit, 0.0)  # differences could overflow
            total += z.T @ z
            pairs += measured.T.astype(np.float64) @ measured
        complete = bool((pairs == len(rows)).all())
        correlation = total / np.maximum(pairs, 1.0)
        return Moments(
            correlation=correlation if complete else _semidefinite(correlation),
            scale=None if dataset.kind == "counts" else scale[: dataset.d],
            n=len(rows),
            pairs=None if complete else np.rint(pairs).astype(np.int64),
            observational=observational,
            indicator_of=tuple(j for j, _ in levels),
        )

    def is_nominal(self, j: int) -> bool:
        """Whether the levels of variable j have no order."""
        return j in self.indicator_of

    def adjustment_columns(self, variables: np.ndarray) -> np.ndarray:
        """The columns that stand for these variables in a regression: indicators for nominal ones."""
        plain = [j for j in variables.tolist() if not self.is_nominal(j)]
        d = len(self.correlation) - len(self.indicator_of)
        indicators = d + np.flatnonzero(np.isin(self.indicator_of, variables))
        return np.concatenate([np.array(plain, dtype=np.int64), indicators])

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data."""
        return {
            "correlation": self.correlation.tolist(),
            "scale": None if self.scale is None else self.scale.tolist(),
            "n": self.n,
            "pairs": None if self.pairs is None else self.pairs.tolist(),
            "observational": self.observational,
            "indicator_of": list(self.indicator_of),
        }

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Moments:
        """The moments that `to_json` described."""
        scale, pairs = content["scale"], content["pairs"]
        return Moments(
            correlation=np.array(content["correlation"], dtype=np.float64),
            scale=None if scale is None else np.array(scale, dtype=np.float64),
            n=int(content["n"]),
            pairs=None if pairs is None else np.array(pairs, dtype=np.int64),
            observational=bool(content["observational"]),
            indicator_of=tuple(content["indicator_of"]),
        )


def _levels(dataset: Dataset, rows: np.ndarray) -> list[tuple[int, float]]:
    """Variable and code of each indicator column: all levels of nominal variables but the most frequent one."""
    found = []
    for j in np.flatnonzero(is_nominal(dataset.column_kinds)).tolist():
        codes, counts = np.unique(dataset.x[rows, j][~dataset.missing[rows, j]], return_counts=True)
        order = np.argsort(-counts, kind="stable")[1 : _MAX_INDICATORS + 1]
        found += [(j, code) for code in codes[order].tolist()]
    return found


def _centre_and_scale(column: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation; the deviation of constants is 0."""
    largest = float(np.abs(column).max(initial=0.0))
    if largest == 0:
        return 0.0, 0.0
    column = column / largest  # keeps squares of heavy-tailed values finite
    deviation = float(column.std())
    return largest * float(column.mean()), largest * deviation if deviation > 1e-12 else 0.0


def _semidefinite(correlation: np.ndarray) -> np.ndarray:
    """Correlations of incomplete pairs without negative eigenvalues; the diagonal stays as it is."""
    values, vectors = np.linalg.eigh(correlation)
    if values[0] >= 0:
        return correlation
    fixed = (vectors * np.maximum(values, 0.0)) @ vectors.T
    wanted, found = np.sqrt(np.diag(correlation)), np.sqrt(np.diag(fixed))
    factor = np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)
    return np.asarray(fixed * np.outer(factor, factor))
