"""`Dataset` to AnnData and back: values in X, targets and row annotations in obs, the graph in varp.

Edge probabilities go into varp["presage"], with a record of how they were found in uns["presage"].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from presage.errors import DataError, require_extra
from presage.types import Dataset

if TYPE_CHECKING:
    import anndata

__all__ = ["RESULT", "TARGET", "dense", "from_anndata", "store_probabilities", "to_anndata"]

TARGET = "target"
"""Column of obs with the names of the variables intervened on, joined by SEPARATOR; empty in observational rows."""
SEPARATOR = ";"
GRAPH = "graph"
INTERVENTIONS = "interventions"
KIND = "presage_kind"
RESULT = "presage"
"""Key of varp and uns under which edge probabilities and their record are stored."""


def to_anndata(dataset: Dataset) -> anndata.AnnData:
    """The dataset as AnnData.

    X holds the values (NaN where missing); obs the column "target" and the row annotations; layers the intervention
    mask; varp["graph"] the true graph (row causes column) if known.
    """
    module = require_extra("anndata", "anndata", "AnnData output")
    pandas = require_extra("pandas", "anndata", "AnnData output")
    clash = {TARGET} & set(dataset.annotations)
    if clash:
        raise DataError(f"the row annotation {TARGET!r} would hide the targets in obs; rename it")
    names = np.array(dataset.names, dtype=object)
    targets = [SEPARATOR.join(names[row]) if row.any() else "" for row in dataset.interventions]
    obs = pandas.DataFrame({TARGET: pandas.Categorical(targets)}, index=[f"cell{k}" for k in range(dataset.n)])
    for key, value in dataset.annotations.items():
        if value.ndim != 1:
            raise DataError(f"the row annotation {key!r} has more than one number per row; obs cannot hold it")
        obs[key] = value
    x = np.where(dataset.missing, np.nan, dataset.x)
    adata = module.AnnData(X=x, obs=obs, var=pandas.DataFrame(index=[str(name) for name in dataset.names]))
    adata.layers[INTERVENTIONS] = dataset.interventions.copy()
    if dataset.graph is not None:
        adata.varp[GRAPH] = dataset.graph.copy()
    adata.uns[KIND] = dataset.kind
    return adata


def from_anndata(adata: anndata.AnnData) -> Dataset:
    """The dataset in an AnnData. Without a kind in uns, an X of non-negative whole numbers is read as counts.

    Without a layer "interventions", targets are read from obs["target"]: names joined by ";", empty for none.
    """
    x = dense(adata.X)
    names = tuple(str(name) for name in adata.var_names)
    annotations = {str(key): _column(adata.obs[key]) for key in adata.obs.columns if key != TARGET}
    if INTERVENTIONS in adata.layers:
        interventions = dense(adata.layers[INTERVENTIONS])
    elif TARGET in adata.obs:
        interventions = _targets(adata.obs[TARGET], names)
    else:
        interventions = np.zeros(x.shape, dtype=bool)
    kind = adata.uns.get(KIND)
    if kind is None:
        seen = x[~np.isnan(x)]
        kind = "counts" if seen.size and bool((seen >= 0).all() and (seen == np.floor(seen)).all()) else "real"
    return Dataset(
        x=x,
        interventions=interventions,
        names=names,
        kind=str(kind),  # type: ignore[arg-type]  # checked by Dataset
        graph=dense(adata.varp[GRAPH]) if GRAPH in adata.varp else None,
        annotations=annotations,
    )


def store_probabilities(
    adata: anndata.AnnData, probabilities: np.ndarray, names: Sequence[str], record: Mapping[str, Any]
) -> None:
    """Write edge probabilities [d, d] (row causes column) into varp and a record into uns of `adata` itself.

    The matrix in varp is sparse and covers all variables of `adata`; those without probabilities have no entries.
    """
    from scipy.sparse import csr_matrix

    place = {str(name): number for number, name in enumerate(adata.var_names)}
    absent = [name for name in names if name not in place]
    if absent:
        raise DataError(
            f"the AnnData has no variable {absent[0]!r}, which the result has ({len(absent)} of {len(names)} are "
            "absent); pass the AnnData that was analysed"
        )
    if len(place) < adata.n_vars:
        raise DataError("names of variables in the AnnData are not unique; call adata.var_names_make_unique() first")
    columns = np.array([place[name] for name in names], dtype=np.int64)
    causes, effects = np.nonzero(probabilities)
    shape = (adata.n_vars, adata.n_vars)
    adata.varp[RESULT] = csr_matrix(
        (probabilities[causes, effects], (columns[causes], columns[effects])), shape=shape, dtype=np.float64
    )
    adata.uns[RESULT] = {**record, "variables": np.array(names, dtype=object)}


def dense(values: Any) -> np.ndarray:
    """A plain array of a matrix that may be sparse; `DataError` if its indices are out of range or it is too large.

    Code that expands sparse matrices trusts their indices: a wrong one ends the process.
    """
    if values is None:
        raise DataError("the AnnData has no X; put the counts there")
    if hasattr(values, "to_memory"):  # a sparse matrix that is still on disk
        values = values.to_memory()
    if not hasattr(values, "toarray"):
        return np.asarray(values)
    _check_sparse(values)
    needed = math.prod(values.shape) * 8
    available = psutil.virtual_memory().available
    if needed > max(available, 1e9):
        raise DataError(
            f"the sparse matrix of {values.shape[0]:,} rows and {values.shape[1]:,} columns needs "
            f"{needed / 2**30:,.0f} GiB of memory as a table; keep fewer rows or variables"
        )
    return np.asarray(values.toarray())


def _check_sparse(matrix: Any) -> None:
    """Refuse a sparse matrix whose indices do not fit its shape."""
    form = getattr(matrix, "format", None)
    if form == "coo":
        for axis, index in enumerate(matrix.coords):
            _check_index(np.asarray(index), matrix.shape[axis])
        return
    if form not in ("csr", "csc"):
        return  # other formats do not expand by untrusted indices
    major, minor = matrix.shape if form == "csr" else matrix.shape[::-1]
    starts, index = np.asarray(matrix.indptr), np.asarray(matrix.indices)
    fits = len(starts) == major + 1 and starts[0] == 0 and starts[-1] <= min(len(index), len(matrix.data))
    if not fits or (np.diff(starts) < 0).any():
        raise DataError("the sparse matrix is damaged: its row or column pointers do not fit its shape")
    _check_index(index, minor)


def _check_index(index: np.ndarray, size: int) -> None:
    if len(index) and (int(index.min()) < 0 or int(index.max()) >= size):
        raise DataError("the sparse matrix is damaged: it has row or column numbers outside its shape")


def _column(series: Any) -> np.ndarray:
    return np.asarray(series.astype(object) if series.dtype == "category" else series)


def _targets(column: Any, names: tuple[str, ...]) -> np.ndarray:
    number = {name: j for j, name in enumerate(names)}
    mask = np.zeros((len(column), len(names)), dtype=bool)
    for row, entry in enumerate(column.astype(object)):
        if not isinstance(entry, str) or not entry:
            continue  # empty or NaN: observational
        for name in [entry] if entry in number else entry.split(SEPARATOR):
            if name not in number:
                raise DataError(f"obs[{TARGET!r}] names {name!r}, which is not a variable; use names of var")
            mask[row, number[name]] = True
    return mask
