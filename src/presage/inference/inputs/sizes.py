"""Sizes of files before they are read: decompressed bytes and sizes claimed in headers, against the free memory."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from presage.errors import DataError, PresageError, reason

__all__ = [
    "check_hdf5",
    "check_npy",
    "check_npz",
    "check_parquet",
    "check_size",
    "check_zip",
    "memory_limit",
    "reading",
]


def memory_limit(max_bytes: int | None) -> int:
    """The most bytes that a file may need: as given, or the memory that is free."""
    return int(psutil.virtual_memory().available) if max_bytes is None else int(max_bytes)


def check_size(size: float, limit: int, path: Path) -> None:
    """Refuse data of `size` bytes if that is more than `limit`."""
    if size > limit:
        raise DataError(
            f"{str(path)!r} holds {_amount(size)} of data once it is decompressed, more than the limit of "
            f"{_amount(limit)}; keep fewer rows or columns"
        )


def _amount(size: float) -> str:
    """A number of bytes for a sentence.

    >>> _amount(400e6)
    '400 MB'
    """
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:,.3g} {unit}"
    return f"{size / 1e3:,.3g} kB"


@contextmanager
def reading(path: Path, suffix: str) -> Iterator[None]:
    """Turn any exception of the library that parses a file into a `DataError` with one sentence."""
    try:
        yield
    except PresageError:
        raise
    except MemoryError as error:
        raise DataError(f"{str(path)!r} does not fit into memory; keep fewer rows or columns") from error
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be read as {suffix.lstrip('.')}: {reason(error).lower()}") from error
    except Exception as error:  # damaged files raise almost anything
        raise DataError(f"{str(path)!r} cannot be read as {suffix.lstrip('.')}: {reason(error)[:200]}") from error


def check_zip(path: Path, limit: int) -> None:
    """Refuse a zip archive (xlsx, ods) whose members are too large together."""
    with zipfile.ZipFile(path) as archive:
        check_size(sum(member.file_size for member in archive.infolist()), limit, path)


def check_npy(path: Path, limit: int) -> None:
    """Refuse an npy file whose header claims more than the file holds, or more than the limit."""
    with path.open("rb") as file:
        claimed = _claimed(file)
        rest = path.stat().st_size - file.tell()
    check_size(claimed, limit, path)
    if claimed > rest:
        raise DataError(f"{str(path)!r} is cut off: its header announces {claimed:,} bytes, but only {rest:,} follow")


def check_npz(path: Path, limit: int) -> None:
    """Refuse an npz file with members that are no arrays, or whose sizes are false or above the limit."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        check_size(sum(member.file_size for member in members), limit, path)
        for member in members:
            if not member.filename.endswith(".npy"):
                raise DataError(f"{str(path)!r} holds {member.filename!r}, which is not an array")
            with archive.open(member) as file:
                claimed = _claimed(file)
            check_size(claimed, limit, path)
            if claimed > member.file_size:
                raise DataError(f"{str(path)!r} is damaged: {member.filename!r} is shorter than its header says")


def _claimed(file: Any) -> int:
    """Bytes of the array that an npy header announces; the file is left at the first of them."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise DataError("the file holds Python objects, which are not read for safety; save numbers")
    return math.prod(shape) * dtype.itemsize


def check_parquet(path: Path, limit: int) -> None:
    """Refuse a parquet file that announces more data than the limit."""
    import pyarrow.parquet

    meta = pyarrow.parquet.read_metadata(path)
    check_size(max(meta.num_rows, 0) * meta.num_columns * 8, limit, path)


def check_hdf5(path: Path, limit: int) -> None:
    """Refuse an h5ad file that is not AnnData, or whose values are larger than the limit as a dense table."""
    import h5py

    with h5py.File(path, "r") as file:
        absent = [key for key in ("obs", "var") if key not in file]
        if absent:
            raise DataError(f"{str(path)!r} is an HDF5 file, but not AnnData: it has no {absent[0]!r}")
        values = file.get("X")
        shape = None if values is None else getattr(values, "shape", None) or values.attrs.get("shape")
        if shape is not None:
            check_size(math.prod(int(size) for size in shape) * 8, limit, path)
        largest = 0

        def note(_: str, item: Any) -> None:
            nonlocal largest
            if isinstance(item, h5py.Dataset) and item.shape is not None:
                largest = max(largest, math.prod(item.shape) * item.dtype.itemsize)

        file.visititems(note)
        check_size(largest, limit, path)
