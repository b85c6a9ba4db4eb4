"""Checks of a table: whether it holds counts, and warnings about suspicious data."""

from __future__ import annotations

import numpy as np

from presage.data.standardize import standardize_real
from presage.inference.inputs.tables import listed
from presage.types import Dataset

__all__ = ["constant_columns", "data_warnings", "looks_like_counts"]

_COLLINEARITY_LIMIT = 2000
"""Collinear columns are not searched for above this many variables (the search is cubic in d)."""


def looks_like_counts(values: np.ndarray) -> bool:
    """Whether all values are non-negative whole numbers, some above 1, as counts of molecules or events are.

    >>> looks_like_counts(np.array([[0.0, 7.0], [3.0, 0.0]])), looks_like_counts(np.array([[0.0, 1.0], [1.0, 0.0]]))
    (True, False)
    """
    if values.dtype.kind == "b":
        return False
    largest = 0.0
    for j in range(values.shape[1]):  # by columns: no copy of the whole table
        column = values[:, j]
        if values.dtype.kind == "f":
            column = column[~np.isnan(column)]
            if not (column == np.floor(column)).all():
                return False
        if (column < 0).any():
            return False
        largest = max(largest, float(column.max(initial=0)))
    return largest > 1


def constant_columns(dataset: Dataset) -> np.ndarray:
    """Whether each column has the same value in all rows where it was measured: bool [d]."""
    result = np.zeros(dataset.d, dtype=bool)
    for j in range(dataset.d):
        column = dataset.x[~dataset.missing[:, j], j]
        result[j] = len(column) == 0 or bool((column == column[0]).all())
    return result


def data_warnings(dataset: Dataset) -> list[str]:
    """Sentences about properties of the data that make results less reliable; empty if there are none."""
    found: list[str] = []
    names, missing = dataset.names, dataset.missing
    if dataset.d == 1:
        found.append("there is only one variable, so there are no edges to find")
    empty = [names[j] for j in np.flatnonzero(missing.all(axis=0))]
    if empty:
        found.append(f"{listed(empty)}: never measured; all edges of such variables get probability 0")
    constant = [names[j] for j in np.flatnonzero(constant_columns(dataset)) if names[j] not in empty]
    if constant:
        found.append(f"{listed(constant)}: the value never changes; all edges of such variables get probability 0")
    share = float(missing.mean())
    if share > 0:
        amount = "less than 0.1%" if share < 0.001 else f"{share:.1%}"
        found.append(f"{amount} of the cells are missing; missing cells are ignored; no rows were dropped")
    if dataset.d > 1 and dataset.n < dataset.d:
        found.append(f"there are fewer rows ({dataset.n}) than variables ({dataset.d}); expect uncertain results")
    found += _interventions(dataset)
    found += _dependent_columns(dataset)
    return found


def _interventions(dataset: Dataset) -> list[str]:
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
    if many:
        found.append(f"{many} rows have more than one target; the models were trained on single targets")
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
    correlation = z.T @ z / len(z)
    upper = np.triu(np.abs(correlation), 1)
    pairs = [(changing[i], changing[j]) for i, j in np.argwhere(upper > 1 - 1e-6)]
    if pairs:
        shown = listed([f"{dataset.names[i]} and {dataset.names[j]}" for i, j in pairs], 3)
        found.append(f"{shown}: equal up to scale, so their edges cannot be distinguished")
    if len(z) > z.shape[1] and not hidden.any():
        distinct = [j for j in range(z.shape[1]) if not (upper[:, j] > 1 - 1e-6).any()]
        smallest, vector = np.linalg.eigh(correlation[np.ix_(distinct, distinct)])
        if len(distinct) > 2 and smallest[0] < 1e-6:
            involved = [dataset.names[changing[distinct[j]]] for j in np.flatnonzero(np.abs(vector[:, 0]) > 0.05)]
            found.append(
                f"{listed(involved)}: exactly collinear (one is a linear combination of the others), "
                "so edges among them are not identifiable"
            )
    return found


def _copies(dataset: Dataset) -> list[str]:
    seen: dict[bytes, int] = {}
    pairs = []
    for j in range(dataset.d):
        key = np.ascontiguousarray(dataset.x[:, j]).tobytes()
        if key in seen:
            pairs.append(f"{dataset.names[seen[key]]} and {dataset.names[j]}")
        seen.setdefault(key, j)
    return [f"{listed(pairs, 3)}: identical columns, so their edges cannot be distinguished"] if pairs else []
