"""Text of reports, the web page and exported tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["escape_formulas", "sentence"]


def sentence(text: str) -> str:
    """A message with a capital letter and a full stop; quoted names at its start stay as they are.

    >>> sentence("the table has no rows"), sentence("'age': never measured")
    ('The table has no rows.', "'age': never measured.")
    """
    text = " ".join(text.split())
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def escape_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose names and texts no spreadsheet reads as formulas: those that look like one start with a quote."""

    def safe(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value

    out = frame.rename(index=safe, columns=safe)
    for name, column in out.items():
        if column.dtype == object:
            out[name] = column.map(safe)
    return out
