"""`Dataset` and `Batch`: measurements with interventions, missing cells, names and, where known, the true graph.

Orientation, stated once for everything in Presage: `graph[i, j] = 1` and `probability[i, j]` mean that variable i
(the row) is a direct cause of variable j (the column).
"""

from __future__ import annotations

import copy
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from presage.columns import ColumnKind, guess_kinds
from presage.errors import DataError, reason
from presage.files import atomic_write

if TYPE_CHECKING:
    import anndata

__all__ = ["Batch", "Dataset", "Kind", "default_names", "read_npz"]

Kind = Literal["real", "counts"]

_ANNOTATION = "annotation_"
"""Prefix of the keys of row annotations in an npz file."""
_EXTRA = ("missing", "column_kinds", "confounded", "effects")
"""Arrays that only some domains sample."""


def default_names(d: int) -> tuple[str, ...]:
    """Names for variables that have none: x0, x1, ...

    >>> default_names(3)
    ('x0', 'x1', 'x2')
    """
    return tuple(f"x{j}" for j in range(d))


def read_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of an npz file by name; raises `DataError` if it cannot be read or holds Python objects."""
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:  # NumPy leaves a damaged file open
            return {key: file[key] for key in file.files}
    except (OSError, ValueError, TypeError, AttributeError, zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{os.fspath(path)!r} cannot be read as npz: {reason(error)}") from error


def _frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view, so that a dataset cannot be changed in place; the caller's array stays writable."""
    view: np.ndarray = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Measurements of d variables in n rows. Checked once, here; read-only afterwards.

    x: [n, d] values (float64). Missing cells hold 0 and are marked in `missing`.
    interventions: [n, d] bool; True where the variable was set from outside in that row. None means nowhere.
    missing: [n, d] bool; True where the cell was not measured. None means nowhere; NaN cells of x are added to it.
    names: d distinct strings. kind: "real", or "counts" for non-negative whole numbers.
    column_kinds: [d] int8 of `presage.columns.ColumnKind`; None guesses them from the values. Nominal and environment
    columns hold whole-number codes.
    graph: [d, d] int8 of 0/1 if the true graph is known (row causes column). With hidden variables it is the latent
    projection; then confounded [d, d] bool marks pairs with a hidden common cause, and effects [d, d] are the signed
    standardized effects of the edges (NaN where there is none).
    annotations: labels of the rows, for example {"cell_type": [n]}.
    """

    x: np.ndarray
    interventions: np.ndarray = None  # type: ignore[assignment]  # filled in below
    missing: np.ndarray = None  # type: ignore[assignment]
    names: tuple[str, ...] = None  # type: ignore[assignment]
    kind: Kind = "real"
    column_kinds: np.ndarray = None  # type: ignore[assignment]
    graph: np.ndarray | None = None
    confounded: np.ndarray | None = None
    effects: np.ndarray | None = None
    annotations: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        x = np.asarray(self.x)
        if x.ndim != 2 or x.shape[1] == 0:
            raise DataError(f"the values must be a table of n rows and at least one column, not of shape {x.shape}")
        if x.dtype.kind not in "fiub":
            raise DataError(f"the values must be numbers, not {x.dtype}")
        n, d = x.shape
        x = x.astype(np.float64)  # always a copy: the caller's array is never shared
        missing = _mask(self.missing, (n, d), "missing mask") | np.isnan(x)
        x[missing] = 0.0
        if not np.isfinite(x).all():
            raise DataError("the values contain infinities; replace them or mark them as missing (NaN)")
        _check_kind(x, self.kind)
        names = default_names(d) if self.names is None else tuple(str(name) for name in self.names)
        if len(names) != d:
            raise DataError(f"there are {d} columns but {len(names)} names")
        if len(set(names)) != d:
            twice = sorted({name for name in names if names.count(name) > 1})
            raise DataError(f"variable names must differ; used more than once: {', '.join(twice[:5])}")
        graph = self.graph
        if graph is not None:
            graph = np.asarray(graph)
            if graph.shape != (d, d) or not np.isin(graph, (0, 1)).all():
                raise DataError(f"the graph must be a {d} x {d} table of 0 and 1 (row causes column)")
            graph = _frozen(graph.astype(np.int8))
        column_kinds = _column_kinds(self.column_kinds, x, missing)
        confounded, effects = (
            _pairs(value, d, what, dtype)
            for value, what, dtype in ((self.confounded, "confounded pairs", bool), (self.effects, "effects", float))
        )
        annotations = {key: _frozen(np.array(value)) for key, value in self.annotations.items()}
        for key, value in annotations.items():
            if value.ndim == 0:
                raise DataError(f"the row annotation {key!r} must have one entry for each of the {n} rows")
            if len(value) != n:
                raise DataError(f"the row annotation {key!r} has {len(value)} entries for {n} rows")
        set_ = object.__setattr__
        set_(self, "x", _frozen(x))
        set_(self, "interventions", _frozen(_mask(self.interventions, (n, d), "intervention mask")))
        set_(self, "missing", _frozen(missing))
        set_(self, "names", names)
        set_(self, "column_kinds", column_kinds)
        set_(self, "graph", graph)
        set_(self, "confounded", confounded)
        set_(self, "effects", effects)
        set_(self, "annotations", annotations)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.x.shape[0])

    @property
    def d(self) -> int:
        """Number of variables."""
        return int(self.x.shape[1])

    def take(self, rows: np.ndarray) -> Dataset:
        """The dataset of the rows given by indices or by a mask of length n."""
        return Dataset(
            x=self.x[rows],
            interventions=self.interventions[rows],
            missing=self.missing[rows],
            names=self.names,
            kind=self.kind,
            column_kinds=self.column_kinds,
            graph=self.graph,
            confounded=self.confounded,
            effects=self.effects,
            annotations={key: value[rows] for key, value in self.annotations.items()},
        )

    def with_kind(self, kind: Kind) -> Dataset:
        """The same measurements as another kind of values; shares memory with this dataset."""
        if kind == self.kind:
            return self
        _check_kind(self.x, kind)
        other = copy.copy(self)
        object.__setattr__(other, "kind", kind)
        return other

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a compressed npz file that `Dataset.load` and `presage.discover` read.

        Keys: x, interventions, names, kind, column_kinds; missing, graph, confounded and effects where there are any;
        annotation_KEY for row annotations.
        Values are stored as float32 or int32 where that loses nothing.
        """
        arrays = {"x": _compact(self.x, self.kind), "interventions": self.interventions}
        arrays |= {"column_kinds": self.column_kinds}
        arrays |= {"missing": self.missing} if self.missing.any() else {}
        truth = {"graph": self.graph, "confounded": self.confounded, "effects": self.effects}
        arrays |= {key: value for key, value in truth.items() if value is not None}
        _write_npz(path, arrays, self.annotations, np.array(self.names), self.kind)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Dataset:
        """Read a dataset from an npz file, written by `save` or otherwise; only the values x [n, d] are required.

        A file with a single array may store the values under any key. Pickled data is refused.
        """
        text, arrays = repr(os.fspath(path)), read_npz(path)
        keys = list(arrays)
        key = "x" if "x" in keys else keys[0] if len(keys) == 1 else None
        if key is None:
            raise DataError(f"{text} should hold the values under the key 'x'; its keys: {', '.join(keys) or 'none'}")
        if arrays[key].ndim == 3:
            raise DataError(
                f"{text} holds {len(arrays[key])} datasets; save one of them on its own (x of shape [rows, variables])"
            )
        return Dataset(
            x=arrays[key],
            interventions=arrays.get("interventions"),  # type: ignore[arg-type]  # None means nowhere
            missing=arrays.get("missing"),  # type: ignore[arg-type]
            names=tuple(np.ravel(arrays["names"])) if "names" in arrays else None,  # type: ignore[arg-type]
            kind=str(arrays.get("kind", "real")),  # type: ignore[arg-type]  # checked by Dataset
            column_kinds=arrays.get("column_kinds"),  # type: ignore[arg-type]
            graph=arrays.get("graph"),
            confounded=arrays.get("confounded"),
            effects=arrays.get("effects"),
            annotations={
                name.removeprefix(_ANNOTATION): value for name, value in arrays.items() if name.startswith(_ANNOTATION)
            },
        )

    def to_anndata(self) -> anndata.AnnData:
        """As AnnData: values in X, targets and row annotations in obs, the graph in varp (extra `anndata`)."""
        from presage.data.anndata_io import to_anndata

        return to_anndata(self)

    @staticmethod
    def from_anndata(adata: anndata.AnnData) -> Dataset:
        """The dataset in an AnnData that `to_anndata` made, or in another one with targets in obs["target"]."""
        from presage.data.anndata_io import from_anndata

        return from_anndata(adata)

    def __repr__(self) -> str:
        edges = "" if self.graph is None else f", {int(self.graph.sum())} edges"
        touched = int(self.interventions.any(axis=1).sum())
        return f"Dataset({self.n} rows ({touched} interventional) x {self.d} variables, {self.kind}{edges})"


class Batch(Sequence[Dataset]):
    """Datasets of equal shape as stacked arrays, for training; indexing gives a `Dataset`.

    x: [B, n, d] float64; interventions: [B, n, d] bool; graph: [B, d, d] int8.
    names: one tuple of names per dataset, or None for x0, x1, ...; annotations: labels of the rows, each [B, n].
    extra: further arrays of `Dataset` by name, with a leading axis: missing, column_kinds, confounded, effects.
    """

    def __init__(
        self,
        *,
        x: np.ndarray,
        interventions: np.ndarray,
        graph: np.ndarray,
        kind: Kind = "real",
        names: Sequence[tuple[str, ...]] | None = None,
        annotations: Mapping[str, np.ndarray] | None = None,
        extra: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.x = x
        self.interventions = interventions
        self.graph = graph
        self.kind: Kind = kind
        self.names = names
        self.annotations = dict(annotations or {})
        self.extra = dict(extra or {})

    @classmethod
    def stack(cls, items: Sequence[Mapping[str, Any]], kind: Kind) -> Batch:
        """Stack raw samples: mappings with x, interventions, graph and optionally names, annotations and extras."""

        def stacked(parts: Sequence[Mapping[str, Any]], keys: Iterable[str]) -> dict[str, np.ndarray]:
            return {key: np.stack([part[key] for part in parts]) for key in keys}

        first = items[0]
        return cls(
            **stacked(items, ("x", "interventions", "graph")),
            kind=kind,
            names=[item["names"] for item in items] if first.get("names") is not None else None,
            annotations=stacked([item.get("annotations") or {} for item in items], first.get("annotations") or {}),
            extra=stacked(items, [key for key in _EXTRA if key in first]),
        )

    @classmethod
    def concatenate(cls, batches: Sequence[Batch]) -> Batch:
        """One batch of the datasets of several, which must agree in shape and kind."""
        first = batches[0]
        if len(batches) == 1:
            return first

        def joined(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
            return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

        return cls(
            x=np.concatenate([batch.x for batch in batches]),
            interventions=np.concatenate([batch.interventions for batch in batches]),
            graph=np.concatenate([batch.graph for batch in batches]),
            kind=first.kind,
            names=None if first.names is None else [name for batch in batches for name in batch.names or ()],
            annotations=joined([batch.annotations for batch in batches]),
            extra=joined([batch.extra for batch in batches]),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an npz file: the keys of `Dataset.save`, with a leading axis unless there is only one dataset."""
        if len(self) == 1:
            return self[0].save(path)
        names = default_names(self.x.shape[2]) if self.names is None else self.names
        arrays = {"x": _compact(self.x, self.kind), "interventions": self.interventions, "graph": self.graph}
        return _write_npz(path, arrays | self.extra, self.annotations, np.array(names), self.kind)

    def __len__(self) -> int:
        return len(self.x)

    @overload
    def __getitem__(self, index: int) -> Dataset: ...
    @overload
    def __getitem__(self, index: slice) -> Batch: ...
    def __getitem__(self, index: int | slice) -> Dataset | Batch:
        names = None if self.names is None else self.names[index]
        annotations = {key: value[index] for key, value in self.annotations.items()}
        extra = {key: value[index] for key, value in self.extra.items()}
        parts: dict[str, Any] = {
            "x": self.x[index],
            "interventions": self.interventions[index],
            "graph": self.graph[index],
            "kind": self.kind,
            "names": names,
            "annotations": annotations,
        }
        return Batch(**parts, extra=extra) if isinstance(index, slice) else Dataset(**(parts | extra))

    def __iter__(self) -> Iterator[Dataset]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        size, n, d = self.x.shape
        return f"Batch({size} datasets of {n} rows x {d} variables, {self.kind})"


def _compact(x: np.ndarray, kind: Kind) -> np.ndarray:
    """The values as int32 (counts) or float32 (real values) where that loses nothing."""
    with np.errstate(over="ignore", invalid="ignore"):
        small = x.astype(np.int32 if kind == "counts" else np.float32)
    return small if (small == x).all() else x


def _write_npz(
    path: str | os.PathLike[str],
    arrays: Mapping[str, np.ndarray],
    annotations: Mapping[str, np.ndarray],
    names: np.ndarray,
    kind: Kind,
) -> None:
    labels = {f"{_ANNOTATION}{key}": value for key, value in annotations.items()}
    for key, value in labels.items():
        if value.dtype == object:
            labels[key] = value.astype(str)
    with atomic_write(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays, **labels, names=names, kind=np.array(kind))


def _check_kind(x: np.ndarray, kind: Kind) -> None:
    if kind not in ("real", "counts"):
        raise DataError(f"kind must be 'real' or 'counts', not {kind!r}")
    if kind == "counts" and ((x < 0).any() or (x != np.floor(x)).any()):
        raise DataError("counts must be whole numbers of at least 0; for other values use kind='real'")


def _mask(mask: np.ndarray | None, shape: tuple[int, int], what: str) -> np.ndarray:
    if mask is None:
        return np.zeros(shape, dtype=bool)
    mask = np.array(mask)
    if mask.shape != shape:
        raise DataError(f"the {what} has shape {mask.shape}, but the values have shape {shape}; they must agree")
    if mask.dtype != bool:
        if mask.dtype.kind not in "fiu" or not np.isin(mask, (0, 1)).all():
            raise DataError(f"the {what} must hold only 0 and 1 (or False and True)")
        mask = mask.astype(bool)
    return mask


def _column_kinds(kinds: np.ndarray | None, x: np.ndarray, missing: np.ndarray) -> np.ndarray:
    if kinds is None:
        return _frozen(guess_kinds(x, missing))
    kinds = np.asarray(kinds)
    if kinds.shape != (x.shape[1],) or not np.isin(kinds, list(ColumnKind)).all():
        raise DataError(f"column_kinds must hold a ColumnKind for each of the {x.shape[1]} columns")
    return _frozen(kinds.astype(np.int8))


def _pairs(values: np.ndarray | None, d: int, what: str, dtype: type) -> np.ndarray | None:
    """A table of pairs [d, d], or None."""
    if values is None:
        return None
    values = np.asarray(values)
    if values.shape != (d, d):
        raise DataError(f"the {what} must be a {d} x {d} table, not of shape {values.shape}")
    return _frozen(values.astype(dtype))
