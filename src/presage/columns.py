"""Kinds of columns of a table."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ColumnKind"]


class ColumnKind(IntEnum):
    """What the numbers of a column mean. Codes of discrete kinds are 0, 1, ..., levels - 1."""

    CONTINUOUS = 0
    COUNT = 1
    BINARY = 2
    ORDINAL = 3
    """Codes are ranks."""
    NOMINAL = 4
    """The order of codes means nothing."""
    ENVIRONMENT = 5
    """A nominal context of a row (batch, site, condition) that no other variable causes."""
