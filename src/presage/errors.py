"""The exceptions of Presage. User errors and internal errors have different classes.

PresageError
├── InputError          invalid input; the message says what is wrong and what to do        (also a ValueError)
│   ├── DataError       a table, a mask or a data file is invalid
│   └── ConfigError     an option, a domain, a model name or a configuration is invalid
├── ModelFileError      a model file is damaged, of another format or of another version
├── MissingExtraError   an optional package is missing; the message names the extra      (also an ImportError)
└── InternalError       an internal invariant is violated: please report it as a bug
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = [
    "ConfigError",
    "DataError",
    "InputError",
    "InternalError",
    "MissingExtraError",
    "ModelFileError",
    "PresageError",
    "reason",
    "require_extra",
]


_LONGEST = 2000
"""Characters of a message; a file can hold names of any length."""


class PresageError(Exception):
    """Base class of all exceptions that Presage raises deliberately; the message is one line."""

    def __init__(self, message: str = "") -> None:
        text = " ".join(line.strip() for line in str(message).splitlines())  # a quoted array has many lines
        super().__init__(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ...")


class InputError(PresageError, ValueError):
    """Invalid input; the message says what is wrong and what to do."""


class DataError(InputError):
    """A table, a mask or a data file is invalid."""


class ConfigError(InputError):
    """An option, a domain, a model name or a configuration is invalid."""


class ModelFileError(PresageError):
    """A model file is damaged, of another format or of another version."""


class MissingExtraError(PresageError, ImportError):
    """An optional package is not installed."""


class InternalError(PresageError):
    """An internal invariant is violated; this is a bug in Presage."""


def reason(error: BaseException) -> str:
    """The first line of an exception for a message: the words of the operating system, or the class if it has none.

    >>> reason(FileNotFoundError(2, "No such file or directory")), reason(ValueError("a\\nb")), reason(EOFError())
    ('no such file or directory', 'a', 'EOFError')
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def require_extra(module: str, extra: str, purpose: str) -> Any:
    """Import `module`, or raise an error that names the extra to install for `purpose`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs the package {module.split('.')[0]!r}; install it with: pip install 'presage[{extra}]'"
        ) from error
