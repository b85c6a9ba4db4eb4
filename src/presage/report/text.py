"""Text of reports, the web page and exported tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from presage.inference.knowledge import Knowledge

__all__ = ["escape_formulas", "knowledge_facts", "sentence"]


def sentence(text: str) -> str:
    """A message with a capital letter and a full stop; quoted names at its start stay as they are.

    >>> sentence("the table has no rows"), sentence("'age': never measured")
    ('The table has no rows.', "'age': never measured.")
    """
    text = " ".join(text.split())
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def knowledge_facts(known: Knowledge | None) -> list[tuple[str, dict[str, Any]]]:
    """Each edge and root of the knowledge as text, with the same fact as data; tiers are left out."""
    if not known:
        return []
    required = [(f"{cause} → {effect} exists", {"required": [cause, effect]}) for cause, effect in known.required]
    forbidden = [
        (f"{cause} → {effect} does not exist", {"forbidden": [cause, effect]}) for cause, effect in known.forbidden
    ]
    return [*required, *forbidden, *((f"{name} has no causes", {"root": name}) for name in known.roots)]


def escape_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose names and texts no spreadsheet reads as formulas: those that look like one start with a quote."""

    def safe(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value

    out = frame.rename(index=safe, columns=safe)
    for name, column in out.items():
        if column.dtype == object:
            out[name] = column.map(safe)
    return out
