"""One tree of exceptions, so that a caller can tell the user's mistake from ours.

PresageError
├── InputError          the caller gave something we cannot use; the message says what to do  (also a ValueError)
│   ├── DataError       a table, mask or file of measurements is unusable
│   └── ConfigError     an option, domain, model name or configuration is unusable
├── ModelFileError      a model file is damaged, foreign or of another version
├── MissingExtraError   an optional package is needed; the message names the extra   (also an ImportError)
└── InternalError       a broken promise of our own: please report it
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
    "require_extra",
]


class PresageError(Exception):
    """Everything Presage raises on purpose."""


class InputError(PresageError, ValueError):
    """The caller gave something we cannot use; the message says what is wrong and what to do."""


class DataError(InputError):
    """A table, mask or file of measurements is unusable."""


class ConfigError(InputError):
    """An option, domain, model name or configuration is unusable."""


class ModelFileError(PresageError):
    """A model file is damaged, foreign or of another version."""


class MissingExtraError(PresageError, ImportError):
    """An optional package is not installed."""


class InternalError(PresageError):
    """A broken promise of our own."""


def require_extra(module: str, extra: str, purpose: str) -> Any:
    """Import `module`, or say which extra to install for `purpose`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs the package {module.split('.')[0]!r}; install it with: pip install 'presage[{extra}]'"
        ) from error
