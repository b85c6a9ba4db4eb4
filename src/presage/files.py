"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from presage.errors import InputError

__all__ = ["atomic_write", "check_writable"]


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that takes its place at `path` only once it is complete; missing folders are made.

    Whatever keeps the system from writing there becomes an `InputError` that names the path.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_write(folder / "a" / "b.txt") as file:
    ...     _ = file.write(b"hello")
    >>> (folder / "a" / "b.txt").read_text()
    'hello'
    """
    path = Path(path)
    with _explained(path):
        handle, name = _temporary(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        with _explained(path):
            os.chmod(name, 0o666 & ~_umask())  # mkstemp makes private files; give what `open` would
            os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` now rather than after the work whose result is to be written to `path`."""
    path = Path(path)
    with _explained(path):
        handle, name = _temporary(path)
        os.close(handle)
        os.unlink(name)


def _temporary(path: Path) -> tuple[int, str]:
    if path.is_dir():
        raise IsADirectoryError(None, "it is a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    return tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
