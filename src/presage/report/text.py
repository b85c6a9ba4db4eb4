"""Messages of the library as sentences for reports and the web page."""

from __future__ import annotations

__all__ = ["sentence"]


def sentence(text: str) -> str:
    """A message with a capital letter and a full stop; quoted names at its start stay as they are.

    >>> sentence("the table has no rows"), sentence("'age': never measured")
    ('The table has no rows.', "'age': never measured.")
    """
    text = " ".join(text.split())
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
