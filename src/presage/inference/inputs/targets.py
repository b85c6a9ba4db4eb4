"""Read interventions in any form (mask, names per row, a column, a file) into a mask [n, d]."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from presage.errors import DataError
from presage.inference.inputs.tables import Table, _is_instance, listed, read_table, row_number

__all__ = ["CONTROL_LABELS", "mask_from", "mask_from_entries"]

CONTROL_LABELS = frozenset(
    ("", "-", "control", "ctrl", "nan", "na", "none", "non-targeting", "nontargeting", "null", "obs", "observational")
)
"""Entries that mean "no intervention in this row" in upper or lower case, unless a variable has that name."""


def mask_from(interventions: Any, table: Table) -> np.ndarray | None:
    """The mask [n, d] (bool) or None; a column named by `interventions` is removed from the table."""
    if interventions is None:
        return None if table.interventions is None else _binary(table.interventions, table)
    if isinstance(interventions, (str, os.PathLike)):
        return _from_name(interventions, table)
    if _is_instance(interventions, "polars", "DataFrame"):
        interventions = interventions.to_pandas()
    if _is_instance(interventions, "pandas", "DataFrame"):
        return _from_named_columns(read_table(interventions), table)
    if _is_instance(interventions, "pandas", "Series") or _is_instance(interventions, "polars", "Series"):
        return mask_from_entries(interventions.to_list(), table)
    if hasattr(interventions, "toarray"):
        interventions = interventions.toarray()
    if isinstance(interventions, np.ndarray):
        return _binary(interventions, table) if interventions.ndim == 2 else mask_from_entries(interventions, table)
    if isinstance(interventions, Sequence):
        return _from_sequence(interventions, table)
    raise DataError(
        f"interventions cannot be {type(interventions).__name__}; give a mask of 0 and 1 shaped like the data, "
        "a list with the target's name (or None) for each row, or the name of a column"
    )


def _from_sequence(entries: Sequence[Any], table: Table) -> np.ndarray:
    """Read a list of names per row, or a mask written as a list of lists of 0 and 1."""
    n, d = table.values.shape
    rows = [entry for entry in entries if isinstance(entry, (list, tuple, np.ndarray))]
    numeric = all(isinstance(item, (bool, int, float, np.number, np.bool_)) for row in rows for item in row)
    if len(rows) == len(entries) and len(entries) == n and numeric and any(len(row) for row in rows):
        try:
            return _binary(np.array([list(row) for row in rows]), table)
        except ValueError as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"the intervention mask must have {d} entries in every row") from error
    return mask_from_entries(entries, table)


def _from_name(name: str | os.PathLike[str], table: Table) -> np.ndarray:
    if isinstance(name, str) and name in table.labels:
        return mask_from_entries(table.labels[name], table)
    if isinstance(name, str) and name in table.names:
        if len(table.names) == 1:
            raise DataError(f"the table has no column besides the interventions {name!r}")
        column = table.drop(name)
        entries = [None if np.isnan(value) else int(value) if value == int(value) else value for value in column]
        return mask_from_entries(entries, table)
    if not Path(name).is_file():
        raise DataError(
            f"there is no column {str(name)!r} in the data (nor a file of that name) that could hold the interventions"
            + _suggest(str(name), [*table.labels, *table.names])
        )
    other = read_table(name)
    n = len(table.values)
    if not other.names and len(other.text) == 1:  # one column of names
        return mask_from_entries(other.labels[other.text[0]], table)
    if len(other.values) != n:
        raise DataError(f"{str(name)!r} has {len(other.values)} rows, but the data has {n}")
    if set(other.names) <= set(table.names):
        return _from_named_columns(other, table)
    return _binary(other.values, table)


def _from_named_columns(other: Table, table: Table) -> np.ndarray:
    """Read a mask with column names; variables without a column are never intervened on."""
    unknown = [name for name in (*other.names, *other.text) if name not in table.names]
    if unknown and len(other.names) == len(table.names) and other.names == [str(k) for k in range(len(other.names))]:
        return _binary(other.values, table)  # a data frame without names
    if unknown:
        raise DataError(
            f"the intervention mask has columns that are not variables: {listed(unknown)}"
            + _suggest(unknown[0], table.names)
        )
    if other.text:
        raise DataError(f"the intervention mask must hold only 0 and 1, but {listed(other.text)} holds text")
    if len(other.values) != len(table.values):
        raise DataError(f"the intervention mask has {len(other.values)} rows, but the data has {len(table.values)}")
    full = np.zeros(table.values.shape, dtype=np.float64)
    full[:, [table.names.index(name) for name in other.names]] = other.values
    return _binary(full, table)


def _binary(mask: np.ndarray, table: Table) -> np.ndarray:
    mask = np.asarray(mask)
    shape = table.values.shape
    if mask.shape != shape:
        hint = "; it seems to be transposed" if mask.shape == shape[::-1] else ""
        raise DataError(f"the intervention mask has shape {mask.shape}, but the data has shape {shape}{hint}")
    if mask.dtype == bool:
        return mask
    if mask.dtype.kind not in "fiu" or not np.isin(mask, (0, 1)).all():
        raise DataError("the intervention mask must hold only 0 (not intervened) and 1 (intervened)")
    return np.asarray(mask == 1)


def mask_from_entries(entries: Iterable[Any], table: Table) -> np.ndarray:
    """Read one entry per row: None (or a label such as "control"), a name, several names, or 0-based column numbers."""
    entries = list(entries)
    n, d = table.values.shape
    if len(entries) != n:
        raise DataError(f"there are {len(entries)} entries of interventions for {n} rows; give one per row")
    plain = [entry for entry in entries if isinstance(entry, (bool, int, np.integer, np.bool_, float))]
    if len(plain) == n and d > 2 and set(plain) == {0, 1}:
        raise DataError(
            "the interventions hold only 0 or 1 for each row; give the names of the targets, or a mask [n, d]"
        )
    positions = {name: j for j, name in enumerate(table.names)}
    mask = np.zeros((n, d), dtype=bool)
    known: dict[Any, list[int]] = {}  # most rows repeat a few entries
    for row, entry in enumerate(entries):
        key = entry if isinstance(entry, (str, int, float)) or entry is None else None
        if key is not None and key in known and type(entry) in (str, int):
            targets = known[key]
        else:
            targets = _targets(entry, row, positions, table.names)
            if key is not None and type(entry) in (str, int):
                known[key] = targets
        mask[row, targets] = True
    return mask


def _targets(entry: Any, row: int, positions: dict[str, int], names: list[str]) -> list[int]:
    if entry is None or (isinstance(entry, (float, np.floating)) and np.isnan(entry)):
        return []
    if isinstance(entry, str):
        name = entry.strip()
        if entry in positions:
            return [positions[entry]]
        if name in positions:
            return [positions[name]]
        if name.lower() in CONTROL_LABELS:
            return []
        parts = [part.strip() for part in re.split(r"[,;|+]", name)]
        if len(parts) > 1 and all(part in positions or part.lower() in CONTROL_LABELS for part in parts):
            return [positions[part] for part in parts if part in positions]
        raise DataError(
            f"{row_number(row)}: the intervention {entry!r} is not a variable of the data" + _suggest(name, names)
        )
    if isinstance(entry, (bool, np.bool_)):
        raise DataError(f"{row_number(row)}: the intervention {entry!r} should be a name, a list of names or None")
    if isinstance(entry, (int, np.integer)):
        if str(entry) in positions:
            return [positions[str(entry)]]
        if entry == -1:
            return []
        if not 0 <= entry < len(names):
            raise DataError(
                f"{row_number(row)}: there is no column number {entry}; columns are counted from 0 to {len(names) - 1}"
            )
        return [int(entry)]
    if isinstance(entry, (list, tuple, set, frozenset, np.ndarray)):
        return [target for part in entry for target in _targets(part, row, positions, names)]
    if type(entry).__name__ in ("NAType", "NaTType"):
        return []
    raise DataError(f"{row_number(row)}: the intervention {entry!r} should be a name, a list of names or None")


def _suggest(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {listed(list(names))}"
