"""Read files (csv, tsv, xlsx, ods, parquet, npz, npy, h5ad) into a `Table`."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np

from presage.errors import DataError, reason, require_extra
from presage.inference.inputs import sizes
from presage.inference.inputs.frames import from_frame
from presage.inference.inputs.tables import Table, read_table
from presage.types import Dataset

__all__ = ["SUFFIXES", "read_file"]

_TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_SPREADSHEETS = (".xlsx", ".xlsm", ".ods")
SUFFIXES = (*_TEXT, *_SPREADSHEETS, ".parquet", ".npz", ".npy", ".h5ad")


def read_file(path: str | os.PathLike[str], *, layer: str | None = None, max_bytes: int | None = None) -> Table:
    """Read a table from a file; the suffix decides the format. max_bytes: limit of its decompressed size."""
    path, suffix = _checked_path(path)
    if layer is not None and suffix != ".h5ad":
        raise DataError(f"a layer ({layer!r}) can be chosen only in .h5ad files, not in {str(path)!r}")
    limit = sizes.memory_limit(max_bytes)
    if suffix in _SPREADSHEETS:
        from presage.inference.inputs.spreadsheets import read_spreadsheet

        return read_spreadsheet(path, suffix, limit)
    if suffix in _TEXT:
        from presage.inference.inputs.text_files import read_text_file

        return read_text_file(path, suffix, limit)
    with sizes.reading(path, suffix):
        if suffix == ".parquet":
            return _read_parquet(path, limit)
        if suffix == ".npz":
            sizes.check_npz(path, limit)
            return read_table(Dataset.load(path))
        if suffix == ".npy":
            sizes.check_npy(path, limit)
            return read_table(np.load(path, allow_pickle=False))
        anndata = require_extra("anndata", "anndata", "reading .h5ad files")
        sizes.check_hdf5(path, limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about versions of the writer
            adata = anndata.read_h5ad(path)
        return read_table(adata, layer=layer)


def _checked_path(given: str | os.PathLike[str]) -> tuple[Path, str]:
    """The path of an existing file and its suffix."""
    text = os.fsdecode(os.fspath(given))
    shown = repr(text if len(text) <= 200 else text[:100] + "…")
    if "\n" in text or "\r" in text or "\x00" in text:
        raise DataError(
            "the text of a table was given where the path of a file is expected; save it to a file, or give "
            "pandas.read_csv(io.StringIO(text))"
        )
    path = Path(text)
    suffix = next((suffix for suffix in sorted(SUFFIXES, key=len, reverse=True) if text.lower().endswith(suffix)), None)
    try:
        if not path.exists():
            raise DataError(f"there is no file {shown}")
        if path.is_dir():
            raise DataError(f"{shown} is a folder; give the file of measurements inside it")
        if not path.is_file():
            raise DataError(f"{shown} is a pipe or a device, not a file; save the table to a file")
        empty = path.stat().st_size == 0
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{shown} is not the path of a file: {reason(error)}") from error
    if text.lower().endswith(".xls"):
        raise DataError(f"{shown} is in the old Excel format; save it as .xlsx or .csv")
    if suffix is None:
        raise DataError(f"the format of {shown} is unknown; its name should end in {', '.join(SUFFIXES)}")
    if empty:
        raise DataError(f"the file {shown} is empty")
    return path, suffix


def _read_parquet(path: Path, limit: int) -> Table:
    import pandas as pd
    import pyarrow.parquet

    sizes.check_parquet(path, limit)
    try:
        frame = pd.read_parquet(path)
    except Exception:  # the metadata that pandas wrote may be damaged where the columns are not
        frame = pyarrow.parquet.ParquetFile(path).read().replace_schema_metadata(None).to_pandas()
    # A named index is a column that the writer of the file kept apart; it is not a measurement.
    return from_frame(frame)
