"""Names of columns: cleaned, distinct, and as they are listed in sentences."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from presage.errors import DataError

__all__ = [
    "clean_name",
    "clean_names",
    "closest",
    "did_you_mean",
    "in_shell",
    "is_null",
    "listed",
    "refuse_duplicates",
    "row_number",
    "safe_text",
    "suggestion",
    "unused",
]

# Control characters and lone surrogates cannot be written to XML, UTF-8 or a terminal.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]+")
_MAX_NAME = 200


def safe_text(value: Any) -> str:
    """`str(value)`, also where Python refuses it (whole numbers of thousands of digits, broken objects)."""
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


def is_null(cell: Any) -> bool:
    """Whether a cell of a column of objects is missing: None, NaN, or the NA and NaT of pandas."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def clean_name(name: Any) -> str:
    """A column's name that every export can write: no control characters or lone surrogates, at most 200 characters.

    >>> clean_name("a\\nb"), clean_name(("g", "x")), clean_name(3)
    ('a b', 'g/x', '3')
    """
    text = "/".join(safe_text(part) for part in name) if isinstance(name, tuple) else safe_text(name)
    text = _UNWRITABLE.sub(" ", text).strip()
    return text if len(text) <= _MAX_NAME else text[:_MAX_NAME] + "…"


def clean_names(names: Iterable[Any]) -> tuple[list[str], list[str]]:
    """Cleaned, distinct names, and a note if characters had to be removed."""
    raw = ["/".join(safe_text(part) for part in name) if isinstance(name, tuple) else safe_text(name) for name in names]
    refuse_duplicates(raw)
    cleaned = [clean_name(name) for name in raw]
    if len(set(cleaned)) < len(cleaned):  # names that differed only in what was removed
        taken: set[str] = set()
        for j, name in enumerate(cleaned):
            cleaned[j] = unused(name, taken) if name in taken else name
            taken.add(cleaned[j])
    changed = [new for old, new in zip(raw, cleaned, strict=True) if _UNWRITABLE.search(old) or len(old) > _MAX_NAME]
    if not changed:
        return cleaned, []
    return cleaned, [f"control characters or overlong text were removed from the names of {listed(changed)}"]


def refuse_duplicates(names: Sequence[str]) -> None:
    """Raise an error that lists the names used more than once."""
    if len(set(names)) < len(names):
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        raise DataError(f"variable names must differ; used more than once: {listed(twice)}")


def listed(names: Sequence[str], limit: int = 5) -> str:
    """Names for a sentence, at most `limit` of them.

    >>> listed(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(repr(name if len(name) <= 60 else name[:60] + "…") for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def closest(name: str, names: Sequence[str]) -> str | None:
    """The known name that is most like `name`, or None if there is no similar one."""
    lower = {known.lower(): known for known in names[:10_000]}
    close = difflib.get_close_matches(name[:200].lower(), list(lower), n=1, cutoff=0.8)
    return lower[close[0]] if close else None


def suggestion(name: str, names: Sequence[str]) -> str:
    """The end of a sentence about an unknown name: the closest known one, or a few of them."""
    if not names:
        return ""
    return did_you_mean(name, names) or f"; there are: {listed(list(names))}"


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """The end of a sentence about an unknown name: the closest known one, or nothing if none is similar.

    >>> did_you_mean("hight", ["height", "weight"]), did_you_mean("q", ["height"])
    ("; did you mean 'height'?", '')
    """
    close = difflib.get_close_matches(name[:200], list(names[:10_000]), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def in_shell(text: str) -> str:
    """A text as typed in a shell: in quotes where it needs them."""
    return text if re.fullmatch(r"[\w.=,:/@%+-]+", text) else repr(text)


def row_number(row: int) -> str:
    """A row in a sentence: counted from 1, without the header."""
    return f"row {row + 1}"


def unused(name: str, names: Iterable[str]) -> str:
    """`name`, with a number if it is taken.

    >>> unused("environment", ["a", "environment"])
    'environment 2'
    """
    taken = set(names)
    found, number = name, 2
    while found in taken:
        found, number = f"{name} {number}", number + 1
    return found
