"""Read containers in memory into a `Table`: named columns of numbers, and columns of labels. For files see `files`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from presage.data.anndata_io import INTERVENTIONS, KIND
from presage.errors import DataError
from presage.types import Dataset, default_names

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Table", "from_frame", "listed", "read_table", "row_number"]


@dataclass(kw_only=True)
class Table:
    """A user's table as read, before any check.

    values: [n, d] numbers (NaN where missing); shared with the caller, so never written to.
    names: d column names. labels: columns that may hold intervention targets: text columns, row annotations.
    text: names of the text columns of the table. notes: warnings about reading.
    interventions, missing, graph: masks and graph of npz files and `Dataset`s, or None.
    """

    values: np.ndarray
    names: list[str]
    labels: dict[str, np.ndarray] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interventions: np.ndarray | None = None
    missing: np.ndarray | None = None
    graph: np.ndarray | None = None

    def drop(self, name: str) -> np.ndarray:
        """Remove a column of numbers from the table and return it."""
        j = self.names.index(name)
        column = self.values[:, j]
        keep = [k for k in range(len(self.names)) if k != j]
        self.values = self.values[:, keep]
        self.names = [self.names[k] for k in keep]
        for key in ("interventions", "missing"):
            mask = getattr(self, key)
            if mask is not None:
                setattr(self, key, mask[:, keep])
        if self.graph is not None:
            self.graph = self.graph[np.ix_(keep, keep)]
        return column


def read_table(data: Any, *, layer: str | None = None) -> Table:
    """Read a table from any supported container or file; raises `DataError` if that is impossible."""
    if isinstance(data, (str, os.PathLike)):
        from presage.inference.inputs.files import read_file

        return read_file(data, layer=layer)
    if isinstance(data, Dataset):
        return Table(
            values=data.x,
            names=list(data.names),
            labels={key: np.asarray(value) for key, value in data.annotations.items()},
            interventions=data.interventions if data.interventions.any() else None,
            missing=data.missing if data.missing.any() else None,
            graph=data.graph,
        )
    if _is_instance(data, "anndata", "AnnData"):
        return _from_anndata(data, layer)
    if layer is not None:
        raise DataError(f"a layer ({layer!r}) can be chosen only in AnnData, not in {type(data).__name__}")
    if _is_instance(data, "polars", "LazyFrame"):
        data = data.collect()
    if _is_instance(data, "polars", "DataFrame"):
        return _from_polars(data)
    if _is_instance(data, "pandas", "DataFrame"):
        return from_frame(data)
    if _is_instance(data, "pandas", "Series") or _is_instance(data, "polars", "Series"):
        raise DataError("a single series has one variable; give a table (data frame) with one column per variable")
    if isinstance(data, Mapping):
        return _from_mapping(data)
    return _from_array(data)


def _is_instance(data: Any, package: str, name: str) -> bool:
    """`isinstance` for a class of a package that may not be installed."""
    return any(cls.__name__ == name and cls.__module__.split(".")[0] == package for cls in type(data).__mro__)


def _from_mapping(data: Mapping[Any, Any]) -> Table:
    import pandas as pd

    try:
        return from_frame(pd.DataFrame(dict(data)))
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"the columns of the dictionary do not form a table: {error}") from error


def _from_array(data: Any) -> Table:
    if data is None:
        raise DataError("there is no data (None); give an array, a data frame, AnnData or the path of a file")
    if hasattr(data, "toarray"):  # SciPy sparse matrices and arrays
        data = data.toarray()
    if isinstance(data, np.ma.MaskedArray):
        data = np.ma.filled(data.astype(np.float64), np.nan)
    if hasattr(data, "detach"):  # torch tensors
        data = data.detach().cpu().numpy()
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise DataError("the rows have different lengths, so they do not form a table") from error
    if array.dtype.names is not None and array.ndim == 1:
        return _from_mapping({name: array[name] for name in array.dtype.names})
    if array.ndim != 2:
        hint = "; for a single variable use x[:, None]" if array.ndim == 1 else ""
        raise DataError(
            f"the data must be a table [rows, variables], not an array with {array.ndim} axes "
            f"and shape {array.shape}{hint}"
        )
    if array.dtype.kind not in "fiub":
        array = _to_numbers(array)
    return Table(values=array, names=list(default_names(array.shape[1])))


def _to_numbers(array: np.ndarray) -> np.ndarray:
    """Numbers from an array of objects or strings."""
    if array.dtype.kind == "c":
        raise DataError("the values are complex numbers; give real ones")
    if array.dtype.kind in "mM":
        raise DataError("the values are dates or times; give numbers")
    try:
        return np.array([[np.nan if cell is None else float(cell) for cell in row] for row in array]).reshape(
            array.shape
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"the array holds values that are not numbers ({error})") from error


def from_frame(frame: pd.DataFrame) -> Table:
    """A pandas data frame: numeric columns are measurements, the others labels."""
    import pandas as pd

    names = [_column_name(name) for name in frame.columns]
    _refuse_duplicates(names)
    numeric, labels, text = [], {}, []
    converted: dict[int, np.ndarray] = {}
    for j, name in enumerate(names):
        column = frame.iloc[:, j]
        if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_numeric_dtype(column.dtype):
            if pd.api.types.is_complex_dtype(column.dtype):
                raise DataError(f"the column {name!r} holds complex numbers; give real ones")
            numeric.append(j)
            continue
        values = _text_to_numbers(column, name)
        if values is None:
            labels[name] = column.to_numpy(dtype=object)
            text.append(name)
        else:
            numeric.append(j)
            converted[j] = values
    kinds = {frame.dtypes.iloc[j].kind for j in numeric if isinstance(frame.dtypes.iloc[j], np.dtype)}
    own = all(isinstance(frame.dtypes.iloc[j], np.dtype) for j in numeric)
    plain = not converted and own and (kinds <= set("fiu") or kinds == {"b"})  # mixtures would become objects
    if plain:
        values = frame.iloc[:, numeric].to_numpy() if len(numeric) < len(names) else frame.to_numpy()
    else:
        values = np.empty((len(frame), len(numeric)))
        for k, j in enumerate(numeric):
            values[:, k] = (
                converted[j] if j in converted else frame.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan)
            )
    table = Table(values=values, names=[names[j] for j in numeric], labels=labels, text=text)
    _drop_saved_index(table)
    return table


def _column_name(name: Any) -> str:
    return "/".join(str(part) for part in name) if isinstance(name, tuple) else str(name)


def _refuse_duplicates(names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise DataError(f"variable names must differ; used more than once: {listed(twice)}")


def _text_to_numbers(column: pd.Series, name: str) -> np.ndarray | None:
    """Numbers of a column without a numeric type; None if it is text; raises if only some cells are not numbers."""
    import pandas as pd

    if len(column) == 0:
        return np.empty(0)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or pd.api.types.is_timedelta64_dtype(column.dtype):
        return None
    present = column.notna().to_numpy()
    if not present.any():
        return np.full(len(column), np.nan)
    try:
        numbers: np.ndarray = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        return None
    bad = present & np.isnan(numbers)
    if not bad.any():
        return numbers
    if bad.sum() <= 0.5 * present.sum():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"the column {name!r} holds numbers, but {int(bad.sum())} of its cells do not: "
            f"{str(column.iloc[row])[:40]!r} in {row_number(row)} is the first; correct them or leave them empty"
        )
    return None


def _drop_saved_index(table: Table) -> None:
    """Drop the unnamed column 0, 1, 2, ... that data frames saved with their index have."""
    for name in [name for name in table.names if name == "" or name.startswith("Unnamed: ")]:
        column = table.values[:, table.names.index(name)]
        if len(column) and np.array_equal(column, np.arange(len(column))):
            table.drop(name)
            table.notes.append("an unnamed column that only numbers the rows was left out")


def _from_polars(frame: Any) -> Table:
    numeric, labels, text = [], {}, []
    for name, kind in zip(frame.columns, frame.dtypes):
        if kind.is_numeric() or str(kind) in ("Boolean", "Null"):
            numeric.append(name)
        else:
            labels[name] = np.array(frame[name].to_list(), dtype=object)
            text.append(name)
    values = np.empty((frame.height, len(numeric)))
    for k, name in enumerate(numeric):
        column = frame[name]
        values[:, k] = np.array([np.nan if v is None else float(v) for v in column]) if column.null_count() else column
    return Table(values=values, names=numeric, labels=labels, text=text)


def _from_anndata(adata: Any, layer: str | None) -> Table:
    if layer is not None and layer not in adata.layers:
        known = listed(sorted(adata.layers)) or "none"
        raise DataError(f"the AnnData has no layer {layer!r}; its layers: {known}")
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise DataError("the AnnData has no X; choose one of its layers (layer=..., or --layer on the command line)")
    values = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    if values.dtype.kind not in "fiub":
        values = _to_numbers(values)
    names = [str(name) for name in adata.var_names]
    if len(set(names)) < len(names):
        raise DataError("the AnnData's variable names are not unique; call adata.var_names_make_unique() first")
    labels = {str(name): adata.obs[name].to_numpy(dtype=object) for name in adata.obs.columns}
    table = Table(values=values, names=names, labels=labels)
    if KIND in adata.uns and INTERVENTIONS in adata.layers:  # written by Dataset.to_anndata
        mask = adata.layers[INTERVENTIONS]
        table.interventions = np.asarray(mask.toarray() if hasattr(mask, "toarray") else mask).astype(bool)
    return table


def listed(names: list[str], limit: int = 5) -> str:
    """Names for a sentence, at most `limit` of them.

    >>> listed(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def row_number(row: int) -> str:
    """A row in a sentence: counted from 1, without the header."""
    return f"row {row + 1}"
