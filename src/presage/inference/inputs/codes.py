"""Columns as numbers of a kind: labels and discrete numbers become codes 0, 1, ..."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from presage.columns import ColumnKind
from presage.errors import DataError
from presage.inference.inputs.cells import days
from presage.inference.inputs.names import listed
from presage.inference.inputs.tables import Table, as_written

__all__ = ["Coded", "code_column", "code_labels"]

_FIRST = frozenset(
    ("no", "n", "false", "f", "absent", "negative", "neg", "-", "0", "off", "never", "control", "ctrl", "healthy",
     "normal", "wt", "low", "nein", "non", "untreated", "female")
)  # fmt: skip
"""Words that become level 0 of a binary column; without one, levels are sorted."""
_SCALES = (
    ("none", "minimal", "mild", "moderate", "severe", "extreme"),
    ("none", "slight", "moderate", "strong"),
    ("very low", "low", "medium", "high", "very high"),
    ("low", "intermediate", "high"),
    ("low", "mid", "high"),
    ("low", "moderate", "high"),
    ("low", "normal", "high"),
    ("small", "medium", "large"),
    ("xs", "s", "m", "l", "xl", "xxl"),
    ("never", "rarely", "sometimes", "often", "usually", "always"),
    ("never", "former", "current"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("bad", "ok", "good"),
    ("i", "ii", "iii", "iv", "v", "vi"),
    ("0", "i", "ii", "iii", "iv", "v"),
    ("young", "middle", "old"),
    ("primary", "secondary", "tertiary"),
)


class Coded(NamedTuple):
    """A column as numbers.

    values: float64 [n], NaN where missing. levels: labels of the codes, or None. numbers: the number that every code
    stands for, or None where codes stand for text or values are the numbers themselves.
    """

    values: np.ndarray
    kind: ColumnKind
    levels: tuple[str, ...] | None = None
    numbers: tuple[float, ...] | None = None


def code_column(table: Table, name: str, role: str, order: Sequence[str] | None = None) -> Coded:
    """The column `name` in a role; `order` lists the levels of an ordinal column from low to high."""
    kind = ColumnKind[role.upper()]
    column = table.columns.get(name)
    is_number = table.position(name) is not None
    numbers = None if is_number or column is not None else _annotated_numbers(table.labels[name])
    if numbers is not None and order is None:
        return _code_numbers(numbers, name, kind)
    if not is_number:
        if kind in (ColumnKind.CONTINUOUS, ColumnKind.COUNT):
            if column is not None and column.is_date and kind == ColumnKind.CONTINUOUS:
                return Coded(_days(table.labels[name], name), kind)
            reason = column.problem if column is not None else None
            raise DataError(reason or f"the column {name!r} holds text, so its role cannot be {role!r}; use 'nominal'")
        own = None if column is None else column.levels
        return code_labels(table.labels[name], name, kind, own, order, column is not None and column.ordered)
    values = table.column(name).astype(np.float64)
    if order is not None:
        return code_labels(_as_labels(values), name, kind, None, order)
    return _code_numbers(values, name, kind)


def _days(labels: np.ndarray, name: str) -> np.ndarray:
    """Dates as days; refuses columns with many dates that cannot be read, such as those before the year 1677."""
    found = days(labels)
    given = np.array([label is not None for label in labels], dtype=bool)
    unread = given & np.isnan(found)
    if unread.sum() > 0.1 * given.sum():
        example = labels[np.flatnonzero(unread)[0]]
        raise DataError(f"the column {name!r} holds dates that cannot be read as days, such as {example[:60]!r}")
    return found


def _annotated_numbers(labels: np.ndarray) -> np.ndarray | None:
    """A row annotation as numbers, or None if it is text."""
    try:
        return np.array([math.nan if label is None else float(label) for label in labels], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _as_labels(values: np.ndarray) -> np.ndarray:
    return np.array([None if math.isnan(value) else as_written(value) for value in values], dtype=object)


def _code_numbers(values: np.ndarray, name: str, kind: ColumnKind) -> Coded:
    present = ~np.isnan(values)
    if kind == ColumnKind.CONTINUOUS:
        return Coded(values, kind)
    if np.isinf(values).any():
        raise DataError(
            f"the column {name!r} is infinite in {int(np.isinf(values).sum())} cells; replace them, or leave them "
            "empty (NaN) if they were not measured"
        )
    if kind == ColumnKind.COUNT:
        seen = values[present]
        if (seen < 0).any() or (seen != np.floor(seen)).any():
            raise DataError(
                f"the column {name!r} cannot be counts: it holds negative numbers or fractions; use 'continuous'"
            )
        return Coded(values, kind)
    distinct, codes = np.unique(values[present], return_inverse=True)
    if kind == ColumnKind.BINARY and len(distinct) > 2:
        raise DataError(f"the column {name!r} has {len(distinct)} distinct values, so it is not binary; use 'nominal'")
    if kind == ColumnKind.BINARY and len(distinct) == 1 and distinct[0] in (0.0, 1.0):
        return Coded(values, kind, ("0", "1"), (0.0, 1.0))
    coded = np.full(len(values), np.nan)
    coded[present] = codes
    return Coded(coded, kind, tuple(map(as_written, distinct)), tuple(distinct.tolist()))


def code_labels(
    labels: np.ndarray,
    name: str,
    kind: ColumnKind,
    own: tuple[str, ...] | None = None,
    order: Sequence[str] | None = None,
    ordered: bool = False,
) -> Coded:
    """Labels [n] (None where missing) as codes. own: levels of a pandas category in its order."""
    texts = [None if label is None or label != label else str(label) for label in labels]
    seen = set(texts) - {None}
    levels = [level for level in own if level in seen] if own is not None else sorted(map(str, seen), key=_natural)
    if kind == ColumnKind.ORDINAL:
        levels = _ordered(levels, name, ordered, order)
    elif kind == ColumnKind.BINARY:
        if len(levels) > 2:
            raise DataError(
                f"the column {name!r} has {len(levels)} levels ({listed(levels)}), so it is not binary; use 'nominal'"
            )
        levels.sort(key=lambda level: level.lower() not in _FIRST)
    code = {level: float(k) for k, level in enumerate(levels)}
    values = np.array([math.nan if text is None else code[text] for text in texts], dtype=np.float64)
    return Coded(values, kind, tuple(levels))


def _ordered(levels: list[str], name: str, ordered: bool, order: Sequence[str] | None) -> list[str]:
    """Levels from low to high: as given, as in the pandas category, by a known scale, or by the numbers in them."""
    if order is not None:
        unknown = [level for level in levels if level not in order]
        if unknown:
            raise DataError(f"the order given for {name!r} lacks the levels {listed(unknown)}")
        return [level for level in order if level in levels]
    if ordered or len(levels) < 2:
        return levels
    lower = {level.lower(): level for level in levels}
    for scale in _SCALES:
        if set(lower) <= set(scale):
            return [lower[word] for word in scale if word in lower]
    if all(re.match(r"\D{0,12}\d", level) for level in levels):
        return sorted(levels, key=_natural)
    text = "<".join(levels)
    raise DataError(
        f"the order of the levels of {name!r} is unknown; list them from low to high: "
        f'roles={{{name!r}: {levels!r}}} (--role "{name}={text}")'
    )


def _natural(text: str) -> tuple[list[tuple[int, float, str]], str]:
    """A key that sorts `grade 2` before `grade 10`, and limits such as `<5` before `5-10`."""
    parts = re.findall(r"\d+(?:\.\d+)?|\D+", text)
    key = [(0, float(part), "") if part[0].isdigit() else (1, 0.0, part.lower()) for part in parts]
    if text[:1] in "<≤" and len(key) > 1:
        key = [(key[1][0], key[1][1] - 0.5, ""), *key[2:]]
    elif text[:1] in ">≥" and len(key) > 1:
        key = [(key[1][0], key[1][1] + 0.5, ""), *key[2:]]
    return key, text
