"""Atomic file writes (a reader sees the old file or the complete new one) and JSON of bounded depth."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from presage.errors import InputError, reason

__all__ = ["atomic_write", "check_writable", "parse_json", "read_bytes"]

MAX_JSON_DEPTH = 100
"""Nesting that `parse_json` accepts; functions that walk the values may then recurse."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary binary file that replaces `path` on success; missing folders are created.

    An `OSError` becomes an `InputError` that names the path.

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
        with _explained(path):  # a full disk is noticed when the file is written or closed
            with os.fdopen(handle, "wb") as file:
                yield file
            os.chmod(name, 0o666 & ~_umask())  # mkstemp creates private files; use the mode that `open` would use
            os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` if `path` cannot be written, before a long computation starts; leaves nothing behind."""
    path = Path(path)
    with _explained(path):
        absent = [folder for folder in path.parents if not folder.exists()]
        try:
            handle, name = _temporary(path)
            os.close(handle)
            os.unlink(name)
        finally:
            for folder in absent:
                with suppress(OSError):
                    folder.rmdir()


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file; `OSError` for pipes and devices, which may never end or never begin."""
    path = Path(path)
    if _is_special(path):
        raise OSError(errno.EINVAL, _SPECIAL, str(path))
    return path.read_bytes()


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; `ValueError` if the text is not JSON, is not UTF-8 or is nested too deeply.

    >>> parse_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    layer = [value]
    for _ in range(MAX_JSON_DEPTH):
        layer = [
            item
            for parent in layer
            if isinstance(parent, (dict, list))
            for item in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not layer:
            return value
    raise ValueError(f"it is nested more than {MAX_JSON_DEPTH} levels deep")


_SPECIAL = "it is a pipe or a device, not a file"


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _temporary(path: Path) -> tuple[int, str]:
    if path.is_dir():
        raise IsADirectoryError(None, "it is a folder")
    if _is_special(path):  # an administrator would replace it by a file
        raise OSError(errno.EINVAL, _SPECIAL)
    path.parent.mkdir(parents=True, exist_ok=True)
    return tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)  # names may be as long as systems allow


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {reason(error)}") from error
    except ValueError as error:
        if "null" not in str(error) and not isinstance(error, UnicodeError):
            raise
        raise InputError(f"cannot write {str(path)!r}: no file can have this name") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
