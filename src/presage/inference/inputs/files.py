"""Read files (csv, tsv, parquet, npz, npy, h5ad) into a `Table`."""

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
from presage.inference.inputs.tables import Table, _refuse_duplicates, from_frame, read_table
from presage.types import Dataset

__all__ = ["SUFFIXES", "read_file"]

SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".parquet", ".npz", ".npy", ".h5ad")


def read_file(path: str | os.PathLike[str], *, layer: str | None = None) -> Table:
    """Read a table from a file; the suffix decides the format."""
    path = Path(path)
    name = path.name.lower()
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), None)
    if not path.exists():
        raise DataError(f"there is no file {str(path)!r}")
    if path.is_dir():
        raise DataError(f"{str(path)!r} is a folder; give the file of measurements inside it")
    if suffix is None:
        raise DataError(f"the format of {str(path)!r} is unknown; its name should end in {', '.join(SUFFIXES)}")
    if path.stat().st_size == 0:
        raise DataError(f"the file {str(path)!r} is empty")
    if layer is not None and suffix != ".h5ad":
        raise DataError(f"a layer ({layer!r}) can be chosen only in .h5ad files, not in {str(path)!r}")
    try:
        if suffix == ".parquet":
            return _read_parquet(path)
        if suffix == ".npz":
            return read_table(Dataset.load(path))
        if suffix == ".npy":
            return read_table(np.load(path, allow_pickle=False))
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
    # A named index is a column that the writer of the file kept apart; it is not a measurement.
    return from_frame(frame)


def _read_text(path: Path, separator: str | None) -> Table:
    """Read a text table; detects the separator and a missing header, refuses repeated names."""
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
