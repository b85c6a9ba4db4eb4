"""Read interventions in any form (mask, names per row, a column, a file) into a mask [n, d]."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from presage.errors import DataError
from presage.inference.inputs.names import clean_name, is_null, listed, row_number, safe_text, suggestion
from presage.inference.inputs.tables import Table, is_instance, read_table, to_array

__all__ = ["CONTROL_LABELS", "Targets", "is_control", "read_targets", "split_targets"]

CONTROL_LABELS = frozenset(
    (
        "", "-", "control", "controls", "ctrl", "nan", "na", "n/a", "none", "non-targeting", "nontargeting", "null",
        "non_targeting", "obs", "observational", "nt", "ntc", "wt", "wildtype", "wild type", "wild-type", "unperturbed",
        "untreated", "dmso", "vehicle", "mock", "scramble", "scrambled", "no intervention", "no_intervention",
    )
)  # fmt: skip
"""Entries that mean "no intervention in this row" in upper or lower case, unless a variable has that name."""
_CONTROL = re.compile(
    r"(?:neg(?:ative)?[\s_-]?(?:ctrl|control)|non[\s_-]?targeting|safe[\s_-]?targeting|ctrl|control)[\s_-]?\w{0,4}"
)


def is_control(text: str) -> bool:
    """Whether a label means that nothing was intervened on.

    >>> is_control("non-targeting"), is_control("NegCtrl0"), is_control("GATA1")
    (True, True, False)
    """
    text = text.strip().lower()
    return text in CONTROL_LABELS or _CONTROL.fullmatch(text) is not None


def split_targets(text: str, variables: Iterable[str]) -> list[str]:
    """The names in a label such as `GATA1+KLF1`; the label itself if it is a name, or if no part of it is known."""
    name = text.strip()
    if name in variables:
        return [name]
    parts = [part.strip() for part in re.split(r"[,;|+]", name)]
    return parts if any(part in variables or is_control(part) for part in parts) else [name]


_GROUPS = (list, tuple, set, frozenset, np.ndarray)


@dataclass
class Targets:
    """Interventions as read.

    mask: bool [n, d] over the variables, or None. unmeasured: for each row the names of targets that are not variables,
    joined by "+", or None; None if there are none at all.
    """

    mask: np.ndarray | None
    unmeasured: np.ndarray | None = None


@dataclass
class _Space:
    """The names that targets may refer to: the variables, and all columns for masks and column numbers."""

    table: Table
    variables: Sequence[str]
    columns: list[str]
    position: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.position = {name: j for j, name in enumerate(self.variables)}

    @property
    def n(self) -> int:
        return len(self.table.values)


def read_targets(interventions: Any, table: Table, variables: Sequence[str], column: str | None) -> Targets:
    """Read interventions. `column`: the column of the table that holds them, if `interventions` is its name."""
    space = _Space(table, variables, [name for name in table.order if name != column])
    if column is not None:
        return _from_column(column, space)
    if interventions is None:
        return Targets(None if table.interventions is None else _binary(table.interventions, space, table.names))
    if isinstance(interventions, (str, os.PathLike)):
        return _from_file(interventions, space)
    for package, kind in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame")):
        if is_instance(interventions, package, kind):
            return _from_table(read_table(interventions), space)
    if is_instance(interventions, "pandas", "Series") or is_instance(interventions, "polars", "Series"):
        return _from_entries(interventions.to_list(), space)
    if isinstance(interventions, memoryview) or any(hasattr(interventions, name) for name in ("toarray", "__array__")):
        interventions = to_array(interventions)
    if isinstance(interventions, np.ndarray):
        if interventions.ndim == 2:
            return Targets(_binary(interventions, space))
        if interventions.ndim == 1:
            return _from_entries(interventions.tolist(), space)
        raise DataError(
            f"interventions cannot be an array with {interventions.ndim} axes; give a mask [n, d] or one entry per row"
        )
    if isinstance(interventions, Sequence):
        return _from_sequence(interventions, space)
    raise DataError(
        f"interventions cannot be {type(interventions).__name__}; give a mask of 0 and 1 shaped like the data, "
        "a list with the target's name (or None) for each row, or the name of a column"
    )


def _from_column(name: str, space: _Space) -> Targets:
    if not space.variables:
        raise DataError(f"the table has no column besides the interventions {name!r} that could be a variable")
    if name in space.table.labels:
        return _from_entries(space.table.labels[name], space)
    column = space.table.column(name).astype(np.float64)
    entries = [None if np.isnan(value) else int(value) if value.is_integer() else value for value in column.tolist()]
    return _from_entries(entries, space)


def _from_file(name: str | os.PathLike[str], space: _Space) -> Targets:
    text = os.fsdecode(os.fspath(name))
    table = space.table
    try:
        exists = Path(text).is_file()
    except (OSError, ValueError):  # overlong names and the like
        exists = False
    if not exists:
        shown = clean_name(text[:200])
        raise DataError(
            f"there is no column {shown!r} in the data (nor a file of that name) that could hold the interventions"
            + suggestion(shown, [*table.labels, *table.names])
        )
    other = read_table(name)
    if len(other.values) != space.n:
        raise DataError(f"{text!r} has {len(other.values)} rows, but the data has {space.n}")
    if other.names and not set(other.names) <= set(table.order):
        return Targets(_binary(other.values, space))
    return _from_table(other, space)


def _from_table(other: Table, space: _Space) -> Targets:
    if not other.names and len(other.text) == 1 and other.text[0] not in space.table.order:  # one column of names
        return _from_entries(other.labels[other.text[0]], space)
    return Targets(_from_named_columns(other, space))


def _from_sequence(entries: Sequence[Any], space: _Space) -> Targets:
    """Read a list of names per row, or a mask written as a list of lists of 0 and 1."""
    rows = [entry for entry in entries if isinstance(entry, (list, tuple, np.ndarray)) and _is_flat(entry)]
    numeric = all(isinstance(item, (bool, int, float, np.number, np.bool_)) for row in rows for item in row)
    if len(rows) == len(entries) == space.n and numeric and any(len(row) for row in rows):
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            raise DataError(f"the intervention mask must have {len(space.columns)} entries in every row")
        return Targets(_binary(np.array([list(row) for row in rows]), space))
    return _from_entries(entries, space)


def _from_named_columns(other: Table, space: _Space) -> np.ndarray:
    """Read a mask with column names; variables without a column are never intervened on."""
    known = set(space.columns)
    unknown = [name for name in (*other.names, *other.text) if name not in known]
    if unknown and other.names == [str(k) for k in range(len(other.names))]:
        return _binary(other.values, space)  # a data frame without names
    if unknown:
        raise DataError(
            f"the intervention mask has columns that are not variables: {listed(unknown)}"
            + suggestion(unknown[0], space.columns)
        )
    if other.text:
        raise DataError(f"the intervention mask must hold only 0 and 1, but {listed(other.text)} holds text")
    if len(other.values) != space.n:
        raise DataError(f"the intervention mask has {len(other.values)} rows, but the data has {space.n}")
    return _binary(other.values, space, other.names)


def _binary(mask: np.ndarray, space: _Space, names: Sequence[str] | None = None) -> np.ndarray:
    """A mask over `names`: bool [n, d]. By default all columns, the variables or the numbers, by its width."""
    mask = np.asarray(mask)
    shape = (space.n, len(space.columns))
    if names is None:
        numbers = set(space.table.names)
        choices = (
            space.columns,
            space.variables,
            space.table.names,
            [name for name in space.variables if name in numbers],
        )
        fitting = [choice for choice in choices if mask.shape == (space.n, len(choice))]
        if not fitting:
            hint = "; it seems to be transposed" if mask.shape == shape[::-1] else ""
            raise DataError(f"the intervention mask has shape {mask.shape}, but the data has shape {shape}{hint}")
        names = fitting[0]
    if mask.dtype != bool:
        if mask.dtype.kind == "O":
            mask = _plain(mask)
        if mask.dtype.kind not in "fiub" or not np.isin(mask, (0, 1)).all():
            raise DataError("the intervention mask must hold only 0 (not intervened) and 1 (intervened)")
        mask = np.asarray(mask == 1)
    if list(names) == list(space.variables):
        return mask
    full = np.zeros((space.n, len(space.variables)), dtype=bool)
    kept = [(j, space.position[name]) for j, name in enumerate(names) if name in space.position]
    if kept:
        source, target = zip(*kept, strict=True)
        full[:, list(target)] = mask[:, list(source)]
    return full


def _plain(mask: np.ndarray) -> np.ndarray:
    """An array of objects as numbers; unchanged if some are not numbers."""
    try:
        return mask.astype(np.float64)
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        return mask


def _from_entries(entries: Iterable[Any], space: _Space) -> Targets:
    """Read one entry per row: None (or a label such as "control"), a name, several names, or 0-based column numbers."""
    entries = list(entries)
    n, d = space.n, len(space.variables)
    if len(entries) != n:
        raise DataError(f"there are {len(entries)} entries of interventions for {n} rows; give one per row")
    plain = [entry for entry in entries if isinstance(entry, (bool, int, np.integer, np.bool_, float))]
    if len(plain) == n and d > 2 and set(plain) == {0, 1}:
        raise DataError(
            "the interventions hold only 0 or 1 for each row; give the names of the targets, or a mask [n, d]"
        )
    mask = np.zeros((n, d), dtype=bool)
    unmeasured = np.full(n, None, dtype=object)
    known: dict[Any, tuple[list[int], list[str]]] = {}  # most rows repeat a few entries
    for row, entry in enumerate(entries):
        if type(entry) in (str, int):
            if entry not in known:
                known[entry] = _targets(entry, row, space)
            targets, others = known[entry]
        else:
            targets, others = _targets(entry, row, space)
        mask[row, targets] = True
        if others:
            unmeasured[row] = "+".join(dict.fromkeys(others))
    return Targets(mask, unmeasured if any(label is not None for label in unmeasured) else None)


def _targets(entry: Any, row: int, space: _Space) -> tuple[list[int], list[str]]:
    """Positions of the targets of one row, and names of those that are not variables."""
    if is_null(entry) or (isinstance(entry, np.floating) and np.isnan(entry)):
        return [], []
    if isinstance(entry, str):
        return _targets_of_text(entry, space)
    if isinstance(entry, (bool, np.bool_)):
        raise DataError(f"{row_number(row)}: the intervention {entry!r} should be a name, a list of names or None")
    if isinstance(entry, (int, np.integer)):
        name = safe_text(entry)
        if name in space.position:
            return [space.position[name]], []
        if entry == -1:
            return [], []
        if not 0 <= entry < len(space.columns):
            last = len(space.columns) - 1
            raise DataError(
                f"{row_number(row)}: there is no column number {name[:40]}; columns are counted from 0 to {last}"
            )
        return _targets_of_text(space.columns[int(entry)], space)
    if isinstance(entry, np.ndarray) and entry.ndim == 0:
        return _targets(entry.item(), row, space)
    if isinstance(entry, _GROUPS) and _is_flat(entry):
        parts = [_targets(part, row, space) for part in entry]
        return [target for targets, _ in parts for target in targets], [name for _, names in parts for name in names]
    raise DataError(
        f"{row_number(row)}: the intervention {clean_name(entry)[:80]!r} should be a name, a list of names or None"
    )


def _is_flat(entry: Any) -> bool:
    """Whether a list or an array [k] holds no lists; a list may even hold itself."""
    if isinstance(entry, np.ndarray) and entry.ndim != 1:
        return False
    return not any(isinstance(part, (*_GROUPS, dict)) for part in entry)


def _targets_of_text(entry: str, space: _Space) -> tuple[list[int], list[str]]:
    position = space.position
    if entry in position:
        return [position[entry]], []
    name = clean_name(entry)
    if name in position:
        return [position[name]], []
    if is_control(name):
        return [], []
    parts = split_targets(name, position)
    targets = [position[part] for part in parts if part in position]
    return targets, [part for part in parts if part not in position and not is_control(part)]
