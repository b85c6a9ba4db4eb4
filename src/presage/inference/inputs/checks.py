"""Checks of a dataset: warnings about suspicious data."""

from __future__ import annotations

import hashlib

import numpy as np

from presage.data.standardize import standardize_real
from presage.inference.inputs.names import listed
from presage.types import Dataset

__all__ = ["constant_columns", "data_warnings"]

_COLLINEARITY_LIMIT = 2000
"""Collinear columns are not searched for above this many variables (the search is cubic in d)."""
_EQUAL, _NEARLY_EQUAL = 1 - 1e-6, 0.9999
"""Correlations above which columns count as equal or as nearly equal: the same quantity in two units, rounded."""


def constant_columns(dataset: Dataset) -> np.ndarray:
    """Whether each column has the same value in all rows where it was measured: bool [d]."""
    result = np.zeros(dataset.d, dtype=bool)
    for j in range(dataset.d):
        column = dataset.x[~dataset.missing[:, j], j]
        result[j] = len(column) == 0 or bool((column == column[0]).all())
    return result


def data_warnings(dataset: Dataset, *, several_targets: bool = False) -> list[str]:
    """Sentences about properties of the data that make results less reliable; empty if there are none.

    several_targets: whether the model was trained with rows that have more than one target.
    """
    found: list[str] = []
    names, missing = dataset.names, dataset.missing
    if dataset.d == 1:
        found.append("there is only one variable, so there are no edges to find")
    absent = missing.all(axis=0)
    empty = [names[j] for j in np.flatnonzero(absent)]
    if empty:
        found.append(f"{listed(empty)}: never measured; all edges of such variables get probability 0")
    constant = [names[j] for j in np.flatnonzero(constant_columns(dataset) & ~absent)]
    if constant:
        found.append(f"{listed(constant)}: the value never changes; all edges of such variables get probability 0")
    share = float(missing.mean())
    if share > 0:
        amount = "less than 0.1%" if share < 0.001 else f"{share:.1%}"
        found.append(f"{amount} of the cells are missing; missing cells are ignored; no rows were dropped")
    if dataset.d > 1 and dataset.n < dataset.d:
        found.append(f"there are fewer rows ({dataset.n}) than variables ({dataset.d}); expect uncertain results")
    found += _interventions(dataset, several_targets)
    found += _dependent_columns(dataset)
    return found


def _interventions(dataset: Dataset, several_targets: bool) -> list[str]:
    mask = dataset.interventions
    if not mask.any():
        return []
    found = []
    always = [dataset.names[j] for j in np.flatnonzero(mask.all(axis=0))]
    if always:
        found.append(
            f"{listed(always)}: intervened on in every row; the data says nothing about the causes of such variables"
        )
    elif mask.any(axis=1).all():
        found.append("every row has an intervention; there are no purely observational rows to compare with")
    many = int((mask.sum(axis=1) > 1).sum())
    if many and not several_targets:
        rows = "1 row has" if many == 1 else f"{many} rows have"
        found.append(f"{rows} more than one target; the model was trained with one target per row")
    return found


def _dependent_columns(dataset: Dataset) -> list[str]:
    """Warnings about copies of columns and about exact linear combinations."""
    if dataset.d < 2 or dataset.n < 3 or dataset.d > _COLLINEARITY_LIMIT or dataset.kind == "counts":
        return _copies(dataset)
    rows = np.linspace(0, dataset.n - 1, min(dataset.n, 20_000)).astype(int)  # enough rows to rule out exact dependence
    hidden = dataset.missing[rows]
    z = standardize_real(dataset.x[rows], hidden if hidden.any() else None).astype(np.float64)
    changing = np.flatnonzero(np.abs(z).max(axis=0) > 0)
    z = z[:, changing]
    if z.shape[1] < 2:
        return []
    found = []
    correlation = _correlation(z, ~hidden[:, changing])
    upper = np.triu(np.abs(correlation), 1)
    for above, below, what in (
        (_EQUAL, np.inf, "equal up to scale, so their edges cannot be distinguished"),
        (_NEARLY_EQUAL, _EQUAL, "nearly equal up to scale, so their edges can hardly be distinguished; leave one out"),
    ):
        pairs = [(changing[i], changing[j]) for i, j in np.argwhere((upper > above) & (upper <= below))]
        if pairs:
            found.append(f"{_pairs(dataset, pairs)}: {what}")
    if len(z) > z.shape[1] and not hidden.any():
        distinct = [j for j in range(z.shape[1]) if not (upper[:, j] > _EQUAL).any()]
        smallest, vector = np.linalg.eigh(correlation[np.ix_(distinct, distinct)])
        if len(distinct) > 2 and smallest[0] < 1e-6:
            involved = [dataset.names[changing[distinct[j]]] for j in np.flatnonzero(np.abs(vector[:, 0]) > 0.05)]
            found.append(
                f"{listed(involved)}: exactly collinear (one is a linear combination of the others), "
                "so edges among them are not identifiable"
            )
    return found


def _correlation(z: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Correlations [d, d] of standardized columns over the rows in which both were measured; 0 for fewer than three."""
    if observed.all():
        found: np.ndarray = z.T @ z / len(z)
        return found
    seen = observed.astype(np.float64)
    count = np.maximum(seen.T @ seen, 1.0)
    mean = z.T @ seen / count  # [i, j]: of column i over the rows in which j was measured
    variance = np.maximum((z**2).T @ seen / count - mean**2, 0.0)
    covariance = z.T @ z / count - mean * mean.T
    scale = np.sqrt(variance * variance.T)
    return np.where((count >= 3) & (scale > 1e-9), covariance / np.maximum(scale, 1e-9), 0.0)


def _copies(dataset: Dataset) -> list[str]:
    seen: dict[bytes, int] = {}
    pairs = []
    for j in range(dataset.d):
        key = hashlib.blake2b(np.ascontiguousarray(dataset.x[:, j]).data, digest_size=16).digest()
        if key in seen:
            pairs.append((seen[key], j))
        seen.setdefault(key, j)
    if not pairs:
        return []
    return [f"{_pairs(dataset, pairs)}: identical columns, so their edges cannot be distinguished"]


def _pairs(dataset: Dataset, pairs: list[tuple[int, int]], limit: int = 3) -> str:
    """Pairs of names for a sentence."""
    shown = ", ".join(f"{dataset.names[i]!r} and {dataset.names[j]!r}" for i, j in pairs[:limit])
    return shown if len(pairs) <= limit else f"{shown} and {len(pairs) - limit} more pairs"
