"""The environment of each row: labels, a column, or the unmeasured targets of interventions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from presage.errors import ConfigError, DataError
from presage.inference.inputs.names import clean_name, is_null, suggestion
from presage.inference.inputs.tables import Table, as_written, is_instance, to_array

__all__ = ["column_labels", "combined", "read_environment"]


def read_environment(environment: Any, table: Table) -> tuple[str, np.ndarray] | str | None:
    """The environment that the user gave: the name of a column, or a new name with labels [n] (None where missing)."""
    if environment is None:
        return None
    if isinstance(environment, str):
        name = clean_name(environment)
        if name not in table.names and name not in table.labels:
            known = [*table.labels, *table.names]
            raise DataError(f"there is no column {name!r} that could hold the environment" + suggestion(name, known))
        return name
    if is_instance(environment, "pandas", "Series") or is_instance(environment, "polars", "Series"):
        environment = environment.to_list()
    if is_instance(environment, "pandas", "Categorical"):
        environment = list(environment)
    if not isinstance(environment, Sequence) and not hasattr(environment, "__array__"):
        raise ConfigError(
            f"environment cannot be {type(environment).__name__}; give one label per row or the name of a column"
        )
    cells = list(environment) if isinstance(environment, Sequence) else np.atleast_1d(to_array(environment)).tolist()
    n = len(table.values)
    if any(isinstance(cell, (list, tuple, dict, set, np.ndarray)) for cell in cells):
        raise DataError("each label of the environment must be a single text or number")
    if len(cells) != n:
        raise DataError(f"there are {len(cells)} labels of environments for {n} rows; give one label per row")
    return "environment", _labels(cells)


def column_labels(table: Table, name: str) -> np.ndarray:
    """The labels [n] of a column or row annotation, None where missing."""
    return _labels(table.labels[name].tolist() if name in table.labels else table.column(name).tolist())


def _labels(cells: Sequence[Any]) -> np.ndarray:
    out = np.empty(len(cells), dtype=object)
    for row, cell in enumerate(cells):
        if is_null(cell):
            continue
        number = isinstance(cell, (int, float, np.number)) and not isinstance(cell, bool)
        out[row] = as_written(cell) if number and _is_float(cell) else clean_name(cell)
    return out


def _is_float(cell: Any) -> bool:
    try:
        float(cell)
    except (OverflowError, TypeError, ValueError):
        return False
    return True


def combined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """One label per row from several, None where all are missing."""
    if len(parts) == 1:
        return parts[0]
    rows = zip(*parts, strict=True)
    joined = [" / ".join(label for label in row if label is not None) or None for row in rows]
    return np.array(joined, dtype=object)
