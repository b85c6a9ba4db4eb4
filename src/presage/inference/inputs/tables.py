"""`Table`: a user's table as read, and `read_table`, which reads it from any container. For files see `files`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from presage.data.anndata_io import INTERVENTIONS, KIND, dense
from presage.errors import DataError, reason
from presage.inference.inputs.cells import TextColumn
from presage.inference.inputs.names import clean_names, listed
from presage.types import Dataset, default_names

__all__ = ["Table", "as_written", "is_instance", "read_table"]


@dataclass(kw_only=True)
class Table:
    """A user's table as read, before any check.

    values: [n, d] numbers (NaN where missing); shared with the caller, so never written to.
    names: d names of the columns of numbers. text: names of the other columns of the table.
    labels: text [n] (None where missing) of the text columns and of row annotations, which are no columns.
    columns: how columns without a numeric type were read. order: names of all columns as in the table.
    notes: sentences about reading. interventions, missing, graph, kinds: of npz files and `Dataset`s, or None.
    guess_roles: whether columns may be identifiers or dates; one_kind: whether all numbers measure the same thing.
    """

    values: np.ndarray
    names: list[str]
    labels: dict[str, np.ndarray] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    columns: dict[str, TextColumn] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interventions: np.ndarray | None = None
    missing: np.ndarray | None = None
    graph: np.ndarray | None = None
    kinds: np.ndarray | None = None
    guess_roles: bool = False
    one_kind: bool = False
    _positions: tuple[list[str], dict[str, int]] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.order:
            self.order = [*self.names, *self.text]

    def position(self, name: str) -> int | None:
        """The number of a column of numbers, or None if there is none of that name."""
        if self._positions is None or self._positions[0] is not self.names:  # names are replaced, never changed
            self._positions = self.names, {other: j for j, other in enumerate(self.names)}
        return self._positions[1].get(name)

    def column(self, name: str) -> np.ndarray:
        """The values [n] of a column of numbers; NaN where missing."""
        j = self.position(name)
        assert j is not None
        values = self.values[:, j]
        if self.missing is None or not self.missing[:, j].any():
            return values
        return np.where(self.missing[:, j], np.nan, values)

    def drop(self, names: Collection[str]) -> None:
        """Remove columns of numbers from the table."""
        self.select([name for name in self.names if name not in names])
        self.order = [name for name in self.order if name not in names]

    def select(self, names: list[str]) -> None:
        """Keep only these columns of numbers."""
        if names == self.names:
            return
        position = {name: j for j, name in enumerate(self.names)}
        kept = [position[name] for name in names]
        self.values = self.values[:, kept]
        self.names = list(names)
        for key in ("interventions", "missing"):
            mask = getattr(self, key)
            if mask is not None:
                setattr(self, key, mask[:, kept])
        if self.graph is not None:
            self.graph = self.graph[np.ix_(kept, kept)]
        if self.kinds is not None:
            self.kinds = self.kinds[kept]


def read_table(data: Any, *, layer: str | None = None, max_bytes: int | None = None) -> Table:
    """Read a table from any supported container or file; raises `DataError` if that is impossible.

    max_bytes: the most memory that a file may need; None: what the machine has.
    """
    if isinstance(data, (str, os.PathLike)):
        from presage.inference.inputs.files import read_file

        return read_file(data, layer=layer, max_bytes=max_bytes)
    if isinstance(data, Dataset):
        return _from_dataset(data)
    if is_instance(data, "anndata", "AnnData"):
        return _from_anndata(data, layer)
    if layer is not None:
        raise DataError(f"a layer ({layer!r}) can be chosen only in AnnData, not in {type(data).__name__}")
    if is_instance(data, "polars", "LazyFrame"):
        data = _collected(data)
    return _from_memory(data)


def _collected(frame: Any) -> Any:
    """The data frame of a polars query; the query may fail."""
    try:
        return frame.collect()
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"the polars query cannot be run: {reason}") from error


def _from_memory(data: Any) -> Table:
    from presage.inference.inputs.frames import from_frame, from_mapping, from_polars

    if is_instance(data, "polars", "DataFrame"):
        return from_polars(data)
    if is_instance(data, "pandas", "DataFrame"):
        return from_frame(data)
    if is_instance(data, "pandas", "Series") or is_instance(data, "polars", "Series"):
        raise DataError("a single series has one variable; give a table (data frame) with one column per variable")
    if isinstance(data, Mapping) and not hasattr(data, "toarray"):  # sparse matrices of keys are dictionaries, too
        return from_mapping(data)
    array = to_array(data)
    if array.dtype.names is not None and array.ndim == 1:
        return from_mapping({name: array[name] for name in array.dtype.names})
    return _from_array(array)


def is_instance(data: Any, package: str, name: str) -> bool:
    """`isinstance` for a class of a package that may not be installed."""
    return any(cls.__name__ == name and cls.__module__.split(".")[0] == package for cls in type(data).__mro__)


def _from_dataset(data: Dataset) -> Table:
    names, notes = clean_names(data.names)
    return Table(
        values=data.x,
        names=names,
        labels={key: np.asarray(value) for key, value in data.annotations.items()},
        notes=notes,
        interventions=data.interventions if data.interventions.any() else None,
        missing=data.missing if data.missing.any() else None,
        graph=data.graph,
        kinds=data.column_kinds,
    )


def to_array(data: Any) -> np.ndarray:
    """An array of lists, sparse matrices, masked arrays or tensors."""
    if data is None:
        raise DataError("there is no data (None); give an array, a data frame, AnnData or the path of a file")
    try:
        if is_instance(data, "torch", "Tensor"):
            data = data.detach().cpu()
            if data.layout != _strided():
                data = data.to_dense()
            if str(data.dtype) == "torch.bfloat16":  # NumPy has no such type
                data = data.float()
            data = data.resolve_conj().resolve_neg().numpy()
        if isinstance(data, np.ma.MaskedArray):
            numeric = data.dtype.kind in "fiub"
            data = np.ma.filled(data.astype(np.float64 if numeric else object), np.nan if numeric else None)
        return dense(data)
    except DataError:
        raise
    except MemoryError as error:
        raise DataError("the data does not fit into memory; use fewer rows or variables") from error
    except Exception as error:
        if isinstance(error, ValueError) and isinstance(data, (list, tuple)):
            raise DataError("the rows have different lengths, so they do not form a table") from error
        raise DataError(f"the data ({type(data).__name__}) cannot be read as an array: {reason(error)}") from error


def _strided() -> Any:
    import torch

    return torch.strided


def _from_array(array: np.ndarray) -> Table:
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
    except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
        raise DataError(
            f"the array holds values that are not numbers ({reason(error)[:100]}); columns of text need names: give a "
            "data frame"
        ) from error


def _from_anndata(adata: Any, layer: str | None) -> Table:
    if layer is not None and layer not in adata.layers:
        known = listed(sorted(adata.layers)) or "none"
        raise DataError(f"the AnnData has no layer {layer!r}; its layers: {known}")
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise DataError("the AnnData has no X; choose one of its layers with layer=... (--layer)")
    values = dense(values)
    if values.dtype.kind not in "fiub":
        values = _to_numbers(values)
    raw = [str(name) for name in adata.var_names]
    if len(set(raw)) < len(raw):
        raise DataError("the AnnData's variable names are not unique; call adata.var_names_make_unique() first")
    names, notes = clean_names(raw)
    labels = {str(name): adata.obs[name].to_numpy(dtype=object) for name in adata.obs.columns}
    table = Table(values=values, names=names, labels=labels, notes=notes, one_kind=True)
    if KIND in adata.uns and INTERVENTIONS in adata.layers:  # written by Dataset.to_anndata
        table.interventions = dense(adata.layers[INTERVENTIONS])  # its values are checked with those of masks
    return table


def as_written(value: Any) -> str:
    """A number in its usual notation, for previews.

    >>> as_written(100523.0), as_written(0.1 + 0.2), as_written(float("nan"))
    ('100523', '0.3', '')
    """
    value = float(value)
    return "" if np.isnan(value) else f"{value:.10g}"
