"""Files -> `Table`: csv, tsv, parquet, npz, npy and h5ad."""

from __future__ import annotations

import csv
import gzip
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from presage.errors import DataError, require_extra
from presage.inference.inputs.tables import Table, _from_array, _refuse_duplicates, from_frame, listed, read_table

__all__ = ["SUFFIXES", "read_file"]

SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".parquet", ".npz", ".npy", ".h5ad")


def read_file(path: str | os.PathLike[str], *, layer: str | None = None) -> Table:
    """The table in a file, by its suffix."""
    path = Path(path)
    name = path.name.lower()
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), None)
    if not path.exists():
        raise DataError(f"there is no file {str(path)!r}")
    if path.is_dir():
        raise DataError(f"{str(path)!r} is a folder; give the file of measurements inside it")
    if suffix is None:
        raise DataError(f"cannot tell the format of {str(path)!r} by its name; it should end in {', '.join(SUFFIXES)}")
    if path.stat().st_size == 0:
        raise DataError(f"the file {str(path)!r} is empty")
    if layer is not None and suffix != ".h5ad":
        raise DataError(f"a layer ({layer!r}) can be chosen only in .h5ad files, not in {str(path)!r}")
    try:
        if suffix == ".parquet":
            return _read_parquet(path)
        if suffix == ".npz":
            return _read_npz(path)
        if suffix == ".npy":
            return _from_array(np.load(path, allow_pickle=False))
        if suffix == ".h5ad":
            anndata = require_extra("anndata", "anndata", "reading .h5ad files")
            return read_table(anndata.read_h5ad(path), layer=layer)
        return _read_text(path, "\t" if suffix.startswith(".tsv") else None)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        if isinstance(error, DataError):
            raise
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(f"{str(path)!r} cannot be read as {suffix[1:]}: {first}") from error


def _read_parquet(path: Path) -> Table:
    import pandas as pd
    import pyarrow

    try:
        frame = pd.read_parquet(path)
    except pyarrow.ArrowException as error:
        raise ValueError(str(error)) from error
    # An index with a name is a column of the file that its writer set aside; it never is a measurement.
    return from_frame(frame)


def _read_npz(path: Path) -> Table:
    with np.load(path, allow_pickle=False) as file:
        keys = list(file.files)
        key = "x" if "x" in keys else keys[0] if len(keys) == 1 else None
        if key is None:
            raise DataError(f"{str(path)!r} should hold the values under the key 'x'; its keys: {listed(keys)}")
        values = file[key]
        extra = {name: file[name] for name in ("interventions", "missing", "names", "graph") if name in keys}
    if values.ndim == 3:
        raise DataError(
            f"{str(path)!r} holds {len(values)} datasets; save one of them on its own (x of shape [rows, variables])"
        )
    table = _from_array(values)
    if "names" in extra:
        names = [str(name) for name in np.ravel(extra["names"])]
        if len(names) != len(table.names):
            raise DataError(f"{str(path)!r} has {len(table.names)} columns but {len(names)} names")
        _refuse_duplicates(names)
        table.names = names
    table.interventions = extra.get("interventions")
    table.missing = extra.get("missing")
    graph = extra.get("graph")
    table.graph = graph if graph is not None and graph.ndim == 2 else None
    return table


def _read_text(path: Path, separator: str | None) -> Table:
    """Text tables: the separator and a missing header are recognised, repeated names are refused."""
    import pandas as pd

    header, second = _first_lines(path)
    if separator is None:
        separator = next((mark for mark in (",", ";", "\t") if mark in header), None)
        if separator is None:
            separator = " " if re.search(r"\S\s+\S", header) and second.count(" ") else ","
        elif separator == "," and ";" in header and header.count(";") >= header.count(","):
            separator = ";"
    fields = next(csv.reader([header], delimiter=separator), [])
    headless = bool(fields) and all(_is_number(field) for field in fields)
    if not headless:
        _refuse_duplicates([field.strip() for field in fields if field.strip()])
    options: dict[str, Any] = {"sep": r"\s+" if separator == " " else separator, "encoding": "utf-8-sig"}
    if headless:
        options["header"] = None
    decimal_comma = separator == ";" and re.search(r"(^|;)\s*-?\d+,\d+", second) is not None
    try:
        frame = pd.read_csv(path, decimal="," if decimal_comma else ".", skipinitialspace=True, **options)
    except UnicodeDecodeError as error:
        raise DataError(f"{str(path)!r} is not text in UTF-8; save it as UTF-8") from error
    except pd.errors.EmptyDataError as error:
        raise DataError(f"the file {str(path)!r} is empty") from error
    except pd.errors.ParserError as error:
        raise DataError(f"{str(path)!r} is not a table: {str(error).splitlines()[0]}") from error
    if not isinstance(frame.index, pd.RangeIndex):
        raise DataError(f"{str(path)!r} is not a table: its rows have more cells than its header has names")
    if headless:
        frame.columns = pd.Index([f"x{j}" for j in range(frame.shape[1])])
    else:
        frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    table = from_frame(frame)
    if headless:
        table.notes.append(
            "the first line of the file holds numbers: it was read as data, and the columns are x0, x1, ..."
        )
    return table


def _first_lines(path: Path) -> tuple[str, str]:
    with gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb") as file:
        lines = [file.readline(1 << 24) for _ in range(2)]
    if b"\x00" in lines[0]:
        raise DataError(f"{str(path)!r} is not a text file")
    try:
        first, second = (line.decode("utf-8-sig").strip("\r\n") for line in lines)
    except UnicodeDecodeError as error:
        raise DataError(f"{str(path)!r} is not text in UTF-8; save it as UTF-8") from error
    if not first.strip():
        raise DataError(f"the first line of {str(path)!r} is empty; it should hold the names of the columns")
    return first, second


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
