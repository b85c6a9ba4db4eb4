"""Read cells of text as numbers: decimal commas, thousands separators, limits such as `<0.3`, words for missing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from presage.inference.inputs.names import in_shell, is_null, listed, row_number, safe_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MISSING_WORDS", "TextColumn", "cell_sentences", "days", "is_missing_word", "read_column"]

MISSING_WORDS = frozenset(
    (
        "", "na", "n/a", "n.a.", "n.a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "nil", "missing", "unknown", "?",
        "-", "--", "---", ".", "..", "…", "nd", "n.d.", "not available", "not measured", "not done", "not recorded",
        "not applicable", "no data", "unbekannt", "k.a.", "k. a.", "k.a", "keine angabe", "nicht bestimmt", "n.b.",
        "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!", "#nv", "#wert!", "#bezug!", "nat",
    )
)  # fmt: skip
"""Words for a missing cell, in upper or lower case."""
_MISSING_AMONG_NUMBERS = MISSING_WORDS | {"none", "x", "*", "**", "blank", "empty", "error", "keine", "fehlt", "snan"}

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_POINT = re.compile(rf"[+-]?(?:\d+\.?\d*|\.\d+){_EXPONENT}")
_COMMA = re.compile(rf"[+-]?(?:\d+,\d*|,\d+){_EXPONENT}")
_THOUSANDS_COMMA = re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?{_EXPONENT}")
_THOUSANDS_POINT = re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:\.\d{{3}})+(?:,\d*)?{_EXPONENT}")
_THOUSANDS_SPACE = re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:[ '’]\d{{3}})+(?:[.,]\d*)?{_EXPONENT}")
_LIMIT = re.compile(r"(?:[<>≤≥]=?|[<>]{2})\s*(?=[\d.,+-])")
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})|\d{1,2}[- ][A-Za-z]{3,9}[- ,]+\d{2,4}"
    r"|[A-Za-z]{3,9} \d{1,2},? \d{4}|\d{1,2}\. ?[A-Za-zä]{3,9} \d{4})(?:[ T,]+\d{1,2}:\d{2}.*)?"
    r"|\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?"
)


def is_missing_word(text: str) -> bool:
    """Whether a text means that the cell was not measured."""
    return text.strip().lower() in MISSING_WORDS


@dataclass(kw_only=True)
class TextColumn:
    """A column without a numeric type, as read.

    numbers: [n] or None if the column is text; labels: [n] stripped text, None where missing (None for numbers).
    problem: why the column cannot be read as numbers although most of its cells are numbers.
    levels: the levels in the order of a pandas category; ordered: whether that order means something.
    """

    numbers: np.ndarray | None = None
    labels: np.ndarray | None = None
    problem: str | None = None
    is_date: bool = False
    levels: tuple[str, ...] | None = None
    ordered: bool = False
    limits: int = 0
    limit_example: str = ""
    missing_words: frozenset[str] = field(default_factory=frozenset)
    comma: bool | None = None
    """Whether commas are decimal; None if both are possible or there are none."""
    ambiguous_comma: bool = False
    """Whether the cells could be read both ways (`1,234`)."""


def read_column(column: pd.Series, name: str, *, decimal_comma: bool = False) -> TextColumn:
    """Read a column of objects, strings, categories or dates; `decimal_comma` decides cells such as `1,234`."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return _category(column, name, decimal_comma)
    if _kind(column.dtype) in "mM" or isinstance(column.dtype, (pd.DatetimeTZDtype, pd.PeriodDtype)):
        return TextColumn(labels=_labels(column), is_date=True)
    cells = column.to_numpy(dtype=object)
    present = ~_is_null(column)
    if not present.any():
        return TextColumn(numbers=np.full(len(cells), np.nan))
    types = set(map(type, cells[present]))
    if all(issubclass(kind, (bool, np.bool_)) for kind in types):
        numbers = np.full(len(cells), np.nan)
        numbers[present] = cells[present].astype(np.float64)
        return TextColumn(numbers=numbers)
    if all(kind.__name__ in ("date", "datetime", "time", "Timestamp", "timedelta", "datetime64") for kind in types):
        return TextColumn(labels=_labels(column), is_date=True)
    if any(issubclass(kind, (complex, np.complexfloating)) for kind in types):
        return TextColumn(
            labels=_labels(map(safe_text, cells)), problem=f"the column {name!r} holds complex numbers; give real ones"
        )
    return _read_cells(cells, present, name, decimal_comma)


def _kind(dtype: Any) -> str:
    """NumPy's letter for a type; "O" for types of Arrow that have none."""
    try:
        return str(dtype.kind)
    except NotImplementedError:
        return "O"


def _is_null(column: pd.Series) -> np.ndarray:
    try:
        found: np.ndarray = column.isna().to_numpy(dtype=bool)
    except Exception:  # objects that cannot be compared, such as Decimal("sNaN")
        found = np.array([cell is None for cell in column], dtype=bool)
    return found


def _labels(column: Iterable[Any]) -> np.ndarray:
    """Stripped text of every cell, None where missing: object [n]."""
    cells = list(column)
    out = np.empty(len(cells), dtype=object)
    known: dict[str, str | None] = {}
    for row, cell in enumerate(cells):
        if is_null(cell):
            continue
        text = cell if isinstance(cell, str) else _text_of(cell)
        if text not in known:
            stripped = text.strip()
            known[text] = None if is_missing_word(stripped) else stripped
        out[row] = known[text]
    return out


def _text_of(cell: Any) -> str:
    if isinstance(cell, bytes):
        return cell.decode("utf-8", errors="replace")
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))  # 1.0 in a column of mixed types was written 1
    if isinstance(cell, int) and abs(cell) >= 10**400:  # Python does not write numbers of thousands of digits
        return "inf" if cell > 0 else "-inf"
    return safe_text(cell)


def _category(column: pd.Series, name: str, decimal_comma: bool) -> TextColumn:
    levels = [_text_of(level).strip() for level in column.cat.categories]
    ordered = bool(column.cat.ordered)
    if not ordered and len(levels) > 24:  # a saved column of numbers rather than a choice among few
        found = read_column(column.astype(object), name, decimal_comma=decimal_comma)
        if found.numbers is not None:
            return found
    names = np.array([*levels, None], dtype=object)
    if not ordered:
        names[:-1] = [None if is_missing_word(level) else level for level in levels]
    kept = tuple(level for level in names[:-1] if level is not None)
    return TextColumn(labels=names[column.cat.codes.to_numpy()], levels=kept, ordered=ordered)


def _read_cells(cells: np.ndarray, present: np.ndarray, name: str, decimal_comma: bool) -> TextColumn:
    texts = np.empty(len(cells), dtype=object)
    texts[present] = [cell if isinstance(cell, str) else _text_of(cell) for cell in cells[present]]
    rows = np.flatnonzero(present)
    if not decimal_comma:  # most columns hold plain numbers
        plain = _plain_numbers(texts[rows])
        if plain is not None:
            numbers = np.full(len(cells), np.nan)
            numbers[rows] = plain
            return TextColumn(numbers=numbers)
    codes, distinct = _factorize(texts[rows])
    counts = np.bincount(codes, minlength=len(distinct))
    read = _Reading(distinct, decimal_comma)
    n_plain = int(counts[read.plain].sum())
    n_bad = int(counts[read.bad].sum())
    labels = None
    if n_bad or not n_plain:
        if not n_bad and not read.limit.any():  # only words for missing
            return TextColumn(numbers=np.full(len(cells), np.nan), missing_words=read.words)
        labels = _labels([texts[row] if present[row] else None for row in range(len(cells))])
        if n_bad >= n_plain:
            words = frozenset(text.strip() for text in distinct if text.strip() and is_missing_word(text))
            return TextColumn(labels=labels, is_date=_are_dates(labels), missing_words=words)
        row = int(rows[np.flatnonzero(read.bad[codes])[0]])
        return TextColumn(
            labels=labels,
            problem=f"the column {name!r} holds numbers, but {n_bad} of its cells do not: "
            f"{safe_text(texts[row])[:40]!r} in {row_number(row)} is the first; correct them or leave them empty, "
            f"or leave the column out with exclude=[{name!r}] (--exclude {in_shell(name)})",
        )
    numbers = np.full(len(cells), np.nan)
    numbers[rows] = read.values[codes]
    limits = int(counts[read.limit].sum())
    example = str(distinct[int(np.flatnonzero(read.limit)[0])]).strip() if limits else ""
    return TextColumn(
        numbers=numbers,
        limits=limits,
        limit_example=example,
        missing_words=read.words,
        comma=read.comma,
        ambiguous_comma=read.ambiguous_comma,
    )


def _plain_numbers(texts: np.ndarray) -> np.ndarray | None:
    """Numbers of texts that are all plain numbers, or None; exact rounding, as in a numeric file."""
    try:
        found: np.ndarray = texts.astype(np.float64)
    except (ValueError, OverflowError, TypeError):
        return None
    return None if np.isnan(found).any() else found


def _factorize(texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import pandas as pd

    codes, distinct = pd.factorize(texts)
    return codes, np.asarray(distinct, dtype=object)


class _Reading:
    """Distinct texts of a column as numbers. plain, limit, bad: bool [k]; values: [k], NaN where missing."""

    def __init__(self, texts: np.ndarray, decimal_comma: bool) -> None:
        k = len(texts)
        self.values = np.full(k, np.nan)
        self.plain, self.limit, self.bad = (np.zeros(k, dtype=bool) for _ in range(3))
        words: set[str] = set()
        stripped = [_bare(text) for text in texts]
        self.comma, self.ambiguous_comma = _comma_style(stripped)
        comma = decimal_comma if self.comma is None else self.comma
        if comma and self.comma is None and any(_has_decimal_point(text) for text in stripped):
            comma = False
        for index, text in enumerate(stripped):
            if text.lower() in _MISSING_AMONG_NUMBERS:
                if text:
                    words.add(text)
                continue
            start = _LIMIT.match(text)
            value = _number(text[start.end() :] if start else text, comma)
            if value is None:
                self.bad[index] = True
                continue
            self.values[index] = value
            (self.limit if start else self.plain)[index] = True
        self.words = frozenset(words)


def _bare(text: str) -> str:
    """A cell without blanks around it, with usual spaces and minus signs, without a percent sign."""
    text = text.strip().replace("\u00a0", " ").replace("\u202f", " ").replace("\u2212", "-")
    if text.startswith("'"):  # Excel's mark for text
        text = text[1:]
    return text[:-1].rstrip() if text.endswith("%") and len(text) > 1 else text


def _comma_style(texts: list[str]) -> tuple[bool | None, bool]:
    """Whether commas are decimal (None: there are none, or both are possible), and whether both are possible."""
    ambiguous_comma = False
    for text in texts:
        start = _LIMIT.match(text)
        text = text[start.end() :] if start else text
        if "," not in text and text.count(".") < 2:
            continue
        thousands = _THOUSANDS_COMMA.fullmatch(text) is not None
        decimal = _COMMA.fullmatch(text) is not None
        if thousands and decimal:
            ambiguous_comma = True
        elif decimal or _THOUSANDS_POINT.fullmatch(text):
            return True, False
        elif thousands:
            return False, False
    return None, ambiguous_comma


def _has_decimal_point(text: str) -> bool:
    return "." in text and _POINT.fullmatch(text) is not None and _THOUSANDS_POINT.fullmatch(text) is None


def _number(text: str, comma: bool) -> float | None:
    """A number as written, or None."""
    if comma:
        if _COMMA.fullmatch(text):
            return _float(text.replace(",", "."))
        if _THOUSANDS_POINT.fullmatch(text):
            return _float(text.replace(".", "").replace(",", "."))
    elif _THOUSANDS_COMMA.fullmatch(text):
        return _float(text.replace(",", ""))
    if _POINT.fullmatch(text):
        return _float(text)
    if _THOUSANDS_SPACE.fullmatch(text):
        return _float(re.sub("[ '’]", "", text).replace(",", "."))
    if text.lower() in ("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"):
        return math.inf if not text.startswith("-") else -math.inf
    return None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except (ValueError, OverflowError):
        return None


def _are_dates(labels: np.ndarray) -> bool:
    distinct = list(dict.fromkeys(label for label in labels if label is not None))[:200]
    return bool(distinct) and sum(_DATE.fullmatch(text) is not None for text in distinct) >= 0.9 * len(distinct)


def days(labels: np.ndarray) -> np.ndarray:
    """Dates as days since the first one, durations as days: float64 [n], NaN where a cell is neither."""
    import warnings

    import pandas as pd

    texts = pd.Series(labels, dtype=object)
    dotted = bool(texts.dropna().astype(str).str.match(r"\d{1,2}\.").any())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about guessed formats
        found = pd.to_datetime(texts, errors="coerce", dayfirst=dotted, format="mixed", utc=True)
        spans = found - found.min() if found.notna().any() else pd.to_timedelta(texts, errors="coerce")
    seconds = spans.dt.total_seconds().to_numpy(dtype=np.float64)
    return np.asarray(seconds / 86400.0)


def cell_sentences(columns: Mapping[str, TextColumn]) -> list[str]:
    """Sentences about cells that are not plain numbers."""
    notes = []
    limits = [name for name, column in columns.items() if column.limits]
    if limits:
        total = sum(columns[name].limits for name in limits)
        example = columns[limits[0]].limit_example
        cells = "1 cell" if total == 1 else f"{total} cells"
        notes.append(
            f"{listed(limits)}: {cells} such as {example!r} (beyond a limit of detection) were read as the limit itself"
        )
    words = sorted({word for column in columns.values() for word in column.missing_words})
    if words:
        notes.append(f"cells with {listed(words, 8)} were read as missing")
    commas = [name for name, column in columns.items() if column.ambiguous_comma and not column.comma]
    if commas and not any(column.comma for column in columns.values()):
        notes.append(f"{listed(commas)}: commas were read as thousands separators")
    return notes
