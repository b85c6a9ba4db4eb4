"""Data of the page: an upload, a bundled example or a simulation, each with the Python code for the same data."""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from presage.data.examples import load_example
from presage.domain.catalog import simulate
from presage.errors import ConfigError, DataError, PresageError
from presage.inference.inputs import Inputs, Table, as_written, looks_like_counts, read_inputs, read_table
from presage.inference.inputs.intervention_kinds import read_kind
from presage.processes import temporary_folder
from presage.types import Dataset
from presage.web.column_guess import Column, columns_of, intervention_column
from presage.web.reading import Reader

__all__ = ["MAX_VARIABLES", "Example", "Preview", "Simulation", "Source", "Upload"]

MAX_VARIABLES = 300
"""The page shows no more variables than this; the command line has no such limit."""
_SHOWN_ROWS, _SHOWN_COLUMNS = 6, 40


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The first rows of a table, and the choices it offers."""

    title: str
    facts: str
    columns: list[str]
    rows: list[list[str]]
    more_columns: int = 0
    intervention_columns: list[str] = field(default_factory=list)
    """Columns that may hold intervention targets: text columns first, then the others."""
    guess: str | None = None
    """The most likely one."""
    has_mask: bool = False
    layers: list[str] = field(default_factory=list)
    countlike: bool = False
    """Whether all values look like counts."""
    roles: list[Column] = field(default_factory=list)
    """The columns of an upload with their guessed roles."""
    unlisted_columns: int = 0
    """Columns of numbers that `roles` leaves off."""


class Source(ABC):
    """Data that `discover` can be run on."""

    preview: Preview

    @abstractmethod
    def inputs(
        self, interventions: Any = None, *, layer: str | None = None, roles: dict[str, str] | None = None
    ) -> Inputs:
        """Read the data for `discover`; raises `DataError` with one sentence if it cannot be used.

        interventions: a column's name, an `Upload` with a mask, None, or {"targets": any of these, "kind": ...}.
        """

    @abstractmethod
    def code(self) -> str:
        """A Python expression for the data."""

    @property
    def size(self) -> int:
        """Memory in bytes."""
        return 0


class Upload(Source):
    """A user's file, kept in memory; it is on disk only while it is read."""

    def __init__(self, name: str, content: bytes, *, reader: Reader | None = None, limit: int | None = None) -> None:
        """reader: reads the file in a separate process; None reads it in this one.

        limit: the most bytes that the file may hold once it is decompressed; None: the free memory.
        """
        self.name = _file_name(name)
        self.content = content
        self._reader = reader
        self.preview: Preview = self._read(_look, self.name, content, limit)

    @property
    def size(self) -> int:
        """Memory in bytes."""
        return len(self.content)

    def code(self) -> str:
        """A Python expression for the data."""
        return repr(self.name)

    def inputs(
        self, interventions: Any = None, *, layer: str | None = None, roles: dict[str, str] | None = None
    ) -> Inputs:
        """Read the file."""
        targets, kind = read_kind(interventions)
        given = (targets.name, targets.content) if isinstance(targets, Upload) else targets
        found: Inputs = self._read(_read, self.name, self.content, given, kind, layer, roles)
        _check_size(found.dataset.d)
        return found

    def as_mask_of(self, dataset: Dataset, kind: Any = None) -> Inputs:
        """Read the file as the intervention mask of a dataset. kind: see `read_kind`."""
        found: Inputs = self._read(_read_mask, dataset, self.name, self.content, kind)
        return found

    def _read(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args) if self._reader is None else self._reader.call(self.name, function, *args)


def _file_name(name: str) -> str:
    """The last part of a name that a browser sent, safe as the name of a file: no control characters, not too long."""
    last = re.sub(r"[\x00-\x1f\x7f\ud800-\udfff]", "_", name.replace("\\", "/").rstrip("/").rpartition("/")[2]).strip()
    if last in ("", ".", ".."):
        return "data.csv"
    stem, dot, ending = last.rpartition(".")
    while len(last.encode()) > 120:  # file systems count bytes
        stem = stem[:-1]
        last = f"{stem}…{dot}{ending[-12:]}" if stem else f"data.{ending[-12:]}"
    return last


def _read(
    name: str, content: bytes, targets: Any, kind: Any, layer: str | None, roles: dict[str, str] | None
) -> Inputs:
    """Read an upload; runs in the process of the reader. targets: a column's name, (name, content) or None."""
    with _Folder() as folder:
        path = folder.put(name, content)
        given = targets
        if isinstance(targets, tuple):
            mask, mask_content = targets
            given = folder.put(mask, mask_content, "mask-" if mask == name else "")
        return read_inputs(path, _with_kind(given, kind), layer=layer, roles=roles)


def _read_mask(dataset: Dataset, name: str, content: bytes, kind: Any) -> Inputs:
    """Read an upload as the mask of a dataset; runs in the process of the reader."""
    with _Folder() as folder:
        return read_inputs(dataset, _with_kind(folder.put(name, content), kind))


def _with_kind(targets: Any, kind: Any) -> Any:
    """Interventions as `discover` takes them."""
    return targets if kind is None else {"targets": targets, "kind": kind}


def _look(name: str, content: bytes, limit: int | None) -> Preview:
    """The preview of an upload; runs in the process of the reader."""
    with _Folder() as folder:
        path = folder.put(name, content)
        table = read_table(path, max_bytes=limit)
        layers = _layers(path)
    n, d = table.values.shape
    if n == 0:
        raise DataError(f"the file {name!r} has no rows of data")
    columns = table.order[:_SHOWN_COLUMNS]
    cells = [[_cell(table, name, row) for name in columns] for row in range(min(n, _SHOWN_ROWS))]
    labels = [name for name in table.labels if name not in table.text]
    choices = [*table.text, *labels, *table.names[:MAX_VARIABLES]]
    roles = columns_of(table)
    return Preview(
        title=name,
        facts=f"{n:,} rows, {d:,} columns of numbers" + (f", {len(table.text)} of text" if table.text else ""),
        columns=columns,
        rows=cells,
        more_columns=len(table.text) + len(table.names) - len(columns),
        intervention_columns=choices,
        guess=intervention_column(table),
        has_mask=table.interventions is not None,
        layers=layers,
        countlike=bool(table.values.size) and looks_like_counts(table.values),
        roles=roles,
        unlisted_columns=len(dict.fromkeys([*table.order, *table.labels])) - len(roles),
    )


@dataclass(frozen=True)
class _Known(Source):
    """Data with a known true graph."""

    @abstractmethod
    def dataset(self) -> Dataset:
        """The dataset."""

    def inputs(
        self, interventions: Any = None, *, layer: str | None = None, roles: dict[str, str] | None = None
    ) -> Inputs:
        """Read the dataset; it has its own interventions, unless a mask is given, and its own kinds of columns."""
        targets, kind = read_kind(interventions)
        if isinstance(targets, Upload):
            return targets.as_mask_of(self.dataset(), kind)
        return read_inputs(self.dataset())

    def _show(self, title: str, dataset: Dataset) -> Preview:
        interventional = int(dataset.interventions.any(axis=1).sum())
        edges = 0 if dataset.graph is None else int(dataset.graph.sum())
        columns = list(dataset.names[:_SHOWN_COLUMNS])
        return Preview(
            title=title,
            facts=f"{dataset.n:,} rows, {interventional:,} of them interventional; {dataset.d} variables, "
            f"{'counts' if dataset.kind == 'counts' else 'real values'}, {edges} true edges",
            columns=columns,
            rows=[[f"{v:.4g}" for v in dataset.x[row, : len(columns)]] for row in range(min(dataset.n, _SHOWN_ROWS))],
            more_columns=dataset.d - len(columns),
            has_mask=interventional > 0,
            countlike=dataset.kind == "counts",
        )


@dataclass(frozen=True)
class Example(_Known):
    """A dataset that comes with the package."""

    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "preview", self._show(f"Bundled example {self.name}", self.dataset()))

    def dataset(self) -> Dataset:
        """The dataset."""
        return load_example(self.name)

    def code(self) -> str:
        """A Python expression for the data."""
        return f"presage.load_example({self.name!r})"


@dataclass(frozen=True)
class Simulation(_Known):
    """A dataset simulated from a domain, once."""

    domain: str
    d: int
    n: int
    share: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.d <= MAX_VARIABLES or not 2 <= self.n <= 100_000:
            raise ConfigError(f"a simulation on this page has 2 to {MAX_VARIABLES} variables and 2 to 100,000 rows")
        if not 0.0 <= self.share <= 1.0:
            raise ConfigError("the interventional share must be between 0 and 100 %")
        simulated = simulate(self.domain, d=self.d, n=self.n, n_interventional=self.interventional, seed=self.seed)
        object.__setattr__(self, "_simulated", simulated)
        object.__setattr__(self, "preview", self._show(f"Simulated from {self.domain}", simulated))

    @property
    def interventional(self) -> int:
        """Number of interventional rows."""
        return round(self.share * self.n)

    def dataset(self) -> Dataset:
        """The dataset."""
        return self._simulated  # type: ignore[attr-defined, no-any-return]  # set above

    @property
    def size(self) -> int:
        """Memory in bytes."""
        return 10 * self.d * self.n

    def code(self) -> str:
        """A Python expression for the data."""
        return (
            f"presage.simulate({self.domain!r}, d={self.d}, n={self.n}, "
            f"n_interventional={self.interventional}, seed={self.seed})"
        )


class _Folder:
    """A temporary folder for uploads while they are read; its path is removed from error messages.

    The folder of a reader that was killed is removed by the next one.
    """

    def __enter__(self) -> _Folder:
        self._stack = contextlib.ExitStack()
        self._path = self._stack.enter_context(temporary_folder("upload"))
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stack.close()
        if isinstance(error, PresageError):
            raise type(error)(str(error).replace(f"{self._path}/", "")) from error

    def put(self, name: str, content: bytes, prefix: str = "") -> str:
        path = self._path / f"{prefix}{name}"
        path.write_bytes(content)
        return str(path)


def _layers(path: str) -> list[str]:
    if not path.lower().endswith(".h5ad"):
        return []
    import h5py

    with h5py.File(path) as file:
        return [name for name in file.get("layers", {}) if not name.startswith("interventions")]


def _check_size(d: int) -> None:
    if d > MAX_VARIABLES:
        raise DataError(
            f"the table has {d:,} variables, but this page shows at most {MAX_VARIABLES}: keep the columns of "
            "interest (for genes, the most variable ones), set the role of others to ignored, or use "
            "`presage discover`, which has no such limit"
        )


def _cell(table: Table, name: str, row: int) -> str:
    if name in table.labels and name not in table.names:
        value = table.labels[name][row]
        return "" if value is None or value != value else str(value)
    return as_written(table.values[row, table.names.index(name)])
