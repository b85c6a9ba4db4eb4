"""Cheap summaries of a dataset that do not depend on units, for the out-of-distribution check.

Every summary is one number that changes little with the number of rows and variables; the remaining dependence on size
is modelled in `check`. NaN means that a summary does not apply (for example, without interventions).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from presage.data.standardize import standardize_dataset
from presage.types import Dataset

__all__ = ["LABELS", "Summary", "standardized_ranks", "summarize"]

_FEW = 10
_ROWS, _COLUMNS = 2000, 150
"""Larger tables are subsampled to this many evenly spaced rows and variables."""

LABELS = {
    "skew": "typical skewness of a variable",
    "skew high": "skewness of the most skewed variables",
    "kurtosis": "typical kurtosis of a variable (log)",
    "kurtosis high": "kurtosis of the heaviest-tailed variables (log)",
    "peak": "share of values near the mean",
    "few values": "share of columns with at most ten distinct values",
    "missing": "share of missing cells",
    "serial": "dependence between consecutive rows (log)",
    "correlation": "mean squared correlation",
    "correlation high": "largest correlations",
    "rank": "effective number of dimensions over variables (log)",
    "first direction": "variance along the first direction",
    "predictability": "how well variables follow from the others (R2)",
    "predictability spread": "spread of that R2 over variables",
    "monotone": "rank correlation beyond linear correlation",
    "quadratic": "dependence of values on squares of others",
    "volatility": "dependence of squares on squares of others",
    "rows": "size of the most extreme rows (log)",
    "set values": "size of values under intervention",
    "set spread": "spread of values under intervention",
    "targets": "share of variables that are targets",
    "library": "counts per row (log10)",
    "library spread": "spread of counts per row (log10)",
    "dispersion": "variance over mean of counts (log)",
    "gene range": "spread of mean counts over variables (log10)",
    "zeros": "share of zeros",
    "zero spread": "spread of the share of zeros over variables",
    "confidence": "mean probability of the expected edges",
    "edges": "expected edges per variable (log)",
    "orientation": "share of edges that may point either way",
}
"""Names of the summaries in sentences."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Summaries of a dataset by name, and its size: rows (after subsampling), variables, interventional share."""

    values: dict[str, float]
    rows: int
    variables: int
    share: float
    subsampled: bool

    def with_prediction(self, probabilities: np.ndarray) -> Summary:
        """Add summaries of the predicted edge probabilities."""
        p = probabilities * ~np.eye(len(probabilities), dtype=bool)
        total = max(float(p.sum()), 1e-9)
        predicted = {
            "confidence": (p**2).sum() / total,
            "edges": np.log(total / len(p) + 0.05),
            "orientation": np.minimum(p, p.T).sum() / total,
        }
        return replace(self, values={**self.values, **{name: float(value) for name, value in predicted.items()}})


def summarize(dataset: Dataset, max_rows: int = _ROWS) -> Summary:
    """The summaries of a dataset."""
    sub = _subsample(dataset, min(max_rows, _ROWS))
    return Summary(
        values=_summaries(sub),
        rows=sub.n,
        variables=dataset.d,
        share=float(sub.interventions.any(axis=1).mean()) if sub.n else 0.0,
        subsampled=sub.n < dataset.n,
    )


def _summaries(sub: Dataset) -> dict[str, float]:
    z = standardize_dataset(sub).astype(np.float64)
    varying = np.abs(z).max(axis=0) > 0
    z, x, missing, u = z[:, varying], sub.x[:, varying], sub.missing[:, varying], sub.interventions[:, varying]
    if z.shape[1] == 0 or len(z) < 3:
        return {}
    if sub.kind == "counts":  # log counts are not centred by standardization
        z = z - z.mean(axis=0)
        z /= np.maximum(z.std(axis=0), 1e-9)
    found = {**_marginals(z, x, missing), **_dependence(z), **_interventions(z, u)}
    if sub.kind == "counts":
        found |= _counts(x)
    return {name: float(value) for name, value in found.items()}


def _subsample(dataset: Dataset, max_rows: int) -> Dataset:
    rows = np.unique(np.linspace(0, dataset.n - 1, min(dataset.n, max_rows)).astype(int))
    columns = np.unique(np.linspace(0, dataset.d - 1, min(dataset.d, _COLUMNS)).astype(int))
    if len(rows) == dataset.n and len(columns) == dataset.d:
        return dataset
    grid = np.ix_(rows, columns)
    return Dataset(
        x=dataset.x[grid],
        interventions=dataset.interventions[grid],
        missing=dataset.missing[grid],
        kind=dataset.kind,
        column_kinds=dataset.column_kinds[columns],
    )


def _marginals(z: np.ndarray, x: np.ndarray, missing: np.ndarray) -> dict[str, float]:
    observed = np.maximum((~missing).sum(axis=0), 1)
    z = np.where(missing, 0.0, z)
    skew = np.abs((z**3).sum(axis=0) / observed)
    kurtosis = np.log(np.maximum((z**4).sum(axis=0) / observed, 1.0))
    levels = np.array([len(np.unique(x[~missing[:, j], j])) for j in range(x.shape[1])])
    serial = standardized_ranks(z)
    serial = (serial[1:] * serial[:-1]).mean(axis=0)
    return {
        "skew": np.log1p(np.median(skew)),
        "skew high": np.log1p(np.quantile(skew, 0.9)),
        "kurtosis": np.median(kurtosis),
        "kurtosis high": np.quantile(kurtosis, 0.9),
        "peak": ((np.abs(z) < 0.4) & ~missing).sum() / observed.sum(),
        "few values": (levels <= _FEW).mean(),
        "missing": missing.mean(),
        "serial": np.log((serial**2).mean() + 1.0 / len(z)),
    }


def standardized_ranks(z: np.ndarray) -> np.ndarray:
    """Standardized ranks within each column; ties share their mean rank."""
    out = np.empty_like(z)
    for j in range(z.shape[1]):
        _, codes, counts = np.unique(z[:, j], return_inverse=True, return_counts=True)
        out[:, j] = (np.cumsum(counts) - 0.5 * (counts + 1))[codes]
    out -= out.mean(axis=0)
    out /= np.maximum(out.std(axis=0), 1e-9)
    return out


def _dependence(z: np.ndarray) -> dict[str, float]:
    n, d = z.shape
    norms = np.sqrt((z**2).mean(axis=1))
    rows = {"rows": np.log(np.quantile(norms, 0.995) / max(float(np.median(norms)), 1e-9))}
    if d < 2:
        return rows
    pairs = ~np.eye(d, dtype=bool)
    pearson = z.T @ z / n
    square = np.clip(z, -6, 6) ** 2
    square = square - square.mean(axis=0)
    square /= np.maximum(square.std(axis=0), 1e-9)
    ranks = standardized_ranks(z)
    spearman = ranks.T @ ranks / n
    spectrum = np.clip(np.linalg.eigvalsh(pearson), 0, None)
    r2 = 1 - 1 / np.diag(np.linalg.inv(pearson + 0.02 * np.eye(d)))
    noise = 1.0 / n  # squared sample correlations of independent variables
    return {
        **rows,
        "correlation": np.log((pearson[pairs] ** 2).mean() + noise),
        "correlation high": np.quantile(np.abs(pearson[pairs]), 0.95),
        "rank": np.log(spectrum.sum() ** 2 / (spectrum**2).sum() / d),
        "first direction": np.log(spectrum[-1] / d),
        "predictability": r2.mean(),
        "predictability spread": r2.std(),
        "monotone": (np.abs(spearman[pairs]) - np.abs(pearson[pairs])).mean(),
        "quadratic": np.log(((square.T @ z / n)[pairs] ** 2).mean() + noise),
        "volatility": np.log(((square.T @ square / n)[pairs] ** 2).mean() + noise),
    }


def _interventions(z: np.ndarray, u: np.ndarray) -> dict[str, float]:
    if not u.any():
        return {"set values": np.nan, "set spread": np.nan, "targets": np.nan}
    values = np.abs(z[u])
    return {
        "set values": np.log(values.mean() + 0.05),
        "set spread": values.std() / (values.mean() + 0.05),
        "targets": u.any(axis=0).mean() if u.sum() >= u.shape[1] else np.nan,  # few interventions have few targets
    }


def _counts(x: np.ndarray) -> dict[str, float]:
    library = np.log10(x.sum(axis=1) + 1.0)
    mean, variance = x.mean(axis=0), x.var(axis=0)
    return {
        "library": np.median(library) - np.log10(x.shape[1]),
        "library spread": library.std(),
        "dispersion": np.median(np.log((variance + 0.1) / (mean + 0.1))),
        "gene range": np.log10(mean + 0.1).std(),
        "zeros": (x == 0).mean(),
        "zero spread": (x == 0).mean(axis=0).std(),
    }
