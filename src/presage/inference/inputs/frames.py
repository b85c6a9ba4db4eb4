"""Read data frames (pandas, polars) and dictionaries of columns into a `Table`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from presage.errors import DataError, reason
from presage.inference.inputs.cells import TextColumn, read_column
from presage.inference.inputs.names import clean_name, clean_names
from presage.inference.inputs.tables import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["from_frame", "from_mapping", "from_polars"]


def from_mapping(data: Mapping[Any, Any]) -> Table:
    """A dictionary of columns."""
    import pandas as pd

    try:
        frame = pd.DataFrame(dict(data))
    except Exception as error:  # whatever the values are, pandas names what is wrong
        raise DataError(f"the columns of the dictionary do not form a table: {reason(error)}") from error
    return from_frame(frame)


def from_frame(frame: pd.DataFrame, *, decimal_comma: bool = False) -> Table:
    """A pandas data frame: columns of numbers, and columns of text. `decimal_comma` decides texts such as `1,234`."""
    names, notes = clean_names(frame.columns)
    types = list(frame.dtypes)  # once: it is rebuilt on every access
    numeric = np.array([_is_numeric(kind) for kind in types], dtype=bool)
    for j in np.flatnonzero(numeric):
        if types[j].kind == "c":
            raise DataError(f"the column {names[j]!r} holds complex numbers; give real ones")
    columns = _read_text_columns(frame, names, np.flatnonzero(~numeric), decimal_comma)
    converted = {j: found.numbers for j, found in columns.items() if found.numbers is not None}
    kept = sorted([*np.flatnonzero(numeric).tolist(), *converted])
    table = Table(
        values=_values(frame, types, kept, converted),
        names=[names[j] for j in kept],
        text=[names[j] for j in columns if j not in converted],
        columns={names[j]: found for j, found in columns.items()},
        order=names,
        notes=notes,
        guess_roles=True,
    )
    table.labels = {name: found.labels for name, found in table.columns.items() if found.labels is not None}
    _drop_saved_index(table)
    return table


def _is_numeric(kind: Any) -> bool:
    """Whether a column of this dtype holds numbers or truth values."""
    import pandas as pd

    if isinstance(kind, np.dtype):
        return kind.kind in "fiubc"
    try:
        number = pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind)
    except NotImplementedError:  # types of Arrow that pandas does not know
        return False
    return bool(number) and not isinstance(kind, pd.CategoricalDtype)


def _read_text_columns(
    frame: pd.DataFrame, names: list[str], positions: np.ndarray, decimal_comma: bool
) -> dict[int, TextColumn]:
    found = {int(j): read_column(frame.iloc[:, j], names[j], decimal_comma=decimal_comma) for j in positions}
    if not decimal_comma and any(column.comma for column in found.values()):
        for j, column in found.items():  # one column with decimal commas decides those that could be read both ways
            if column.ambiguous_comma:
                found[j] = read_column(frame.iloc[:, j], names[j], decimal_comma=True)
    return found


def _values(frame: pd.DataFrame, types: list[Any], kept: list[int], converted: Mapping[int, np.ndarray]) -> np.ndarray:
    """The columns of numbers: [n, d]; without a copy where the frame is one block of numbers."""
    own = [types[j] for j in kept if j not in converted]
    kinds = {kind.kind for kind in own if isinstance(kind, np.dtype)}
    plain = all(isinstance(kind, np.dtype) for kind in own) and (kinds <= set("fiu") or kinds == {"b"})
    if not converted and plain:  # other mixtures would become objects
        return np.asarray(frame.to_numpy() if len(kept) == len(types) else frame.iloc[:, kept].to_numpy())
    values = np.empty((len(frame), len(kept)))
    numpy_columns = [k for k, j in enumerate(kept) if j not in converted and isinstance(types[j], np.dtype)]
    if numpy_columns:
        part = frame.iloc[:, [kept[k] for k in numpy_columns]]
        values[:, numpy_columns] = part.to_numpy(dtype=np.float64)
    done = set(numpy_columns)
    for k, j in enumerate(kept):
        if k not in done:
            values[:, k] = converted[j] if j in converted else _extension(frame.iloc[:, j])
    return values


def _extension(column: pd.Series) -> np.ndarray:
    """A column of a pandas extension type as float64 [n]."""
    import pandas as pd

    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        numbers = pd.to_numeric(column, errors="coerce")
        return np.asarray([np.nan if cell is None or cell is pd.NA else float(cell) for cell in numbers])


def _drop_saved_index(table: Table) -> None:
    """Drop the unnamed column 0, 1, 2, ... that data frames saved with their index have."""
    numbering = np.arange(len(table.values))
    unnamed = [name for name in table.names if name == "" or name.startswith("Unnamed: ")]
    saved = {name for name in unnamed if len(numbering) and np.array_equal(table.column(name), numbering)}
    if saved:
        table.drop(saved)
        table.notes += ["an unnamed column that only numbers the rows was left out"] * len(saved)


def from_polars(frame: Any) -> Table:
    """A polars data frame."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for name in frame.columns:
        try:
            columns[name] = _polars_column(frame[name])
        except Exception as error:  # polars has types that neither NumPy nor Python has
            raise DataError(
                f"the column {clean_name(name)!r} of type {frame[name].dtype} cannot be read: {reason(error)}"
            ) from error
    return from_frame(pd.DataFrame(columns, index=range(frame.height)))


def _polars_column(column: Any) -> Any:
    """A polars series as an array of numbers, a pandas category (Enum) or a series of objects."""
    import pandas as pd

    kind = str(column.dtype)
    if not (column.dtype.is_numeric() or kind == "Boolean"):
        cells = pd.Series(column.to_list(), dtype=object)
        if kind.startswith("Enum"):  # its order is part of the type
            return pd.Categorical(cells, categories=list(column.dtype.categories), ordered=True)
        return cells
    if kind.startswith("Decimal") or kind in ("Int128", "UInt128"):  # NumPy has no such types
        column = column.cast(float)
    if column.null_count():
        return np.array([np.nan if cell is None else float(cell) for cell in column])
    return column.to_numpy()
