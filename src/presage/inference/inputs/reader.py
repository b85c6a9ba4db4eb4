"""`read_inputs`: from the user's data and interventions to a checked `Dataset`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.errors import DataError
from presage.inference.inputs.checks import looks_like_counts
from presage.inference.inputs.tables import Table, listed, read_table, row_number
from presage.inference.inputs.targets import mask_from
from presage.types import Dataset

__all__ = ["Inputs", "read_inputs"]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Data as read: the checked dataset (of kind "real"), notes about reading it, and whether it looks like counts."""

    dataset: Dataset
    notes: tuple[str, ...]
    countlike: bool


def read_inputs(data: Any, interventions: Any = None, *, layer: str | None = None) -> Inputs:
    """Read and check a user's data; see `presage.discover` for what `data` and `interventions` may be.

    `presage.discover` takes the result in place of the data. Nothing the caller passed is modified.
    """
    table = read_table(data, layer=layer)
    mask = mask_from(interventions, table)
    _check_table(table)
    dataset = Dataset(
        x=table.values,
        interventions=mask,  # type: ignore[arg-type]  # None means nowhere
        missing=table.missing,  # type: ignore[arg-type]
        names=tuple(table.names),
        column_kinds=data.column_kinds if isinstance(data, Dataset) and data.d == len(table.names) else None,  # type: ignore[arg-type]
        graph=table.graph,
    )
    if dataset.missing.all():
        raise DataError("every cell of the table is missing")
    notes = [*table.notes]
    # Interventions may be an array, whose comparison with a name is an array, too.
    targets = interventions if isinstance(interventions, str) else None
    left_out = [name for name in table.text if name != targets]
    if left_out:
        notes.append(f"{listed(left_out)}: not numbers, so these columns were left out")
    if mask is not None and not mask.any():
        notes.append("interventions were given, but no row has any")
    return Inputs(dataset=dataset, notes=tuple(notes), countlike=looks_like_counts(table.values))


def _check_table(table: Table) -> None:
    n, d = table.values.shape
    if d == 0:
        because = f" (its columns hold text: {listed(table.text)})" if table.text else ""
        raise DataError(f"the table has no column of numbers{because}")
    if n == 0:
        raise DataError("the table has no rows")
    if n == 1:
        raise DataError("the table has a single row; at least two rows are needed")
    if table.values.dtype.kind != "f":
        return
    for j in range(d):  # by columns: no copy of the whole table
        infinite = np.isinf(table.values[:, j])
        if infinite.any():
            row = int(np.flatnonzero(infinite)[0])
            raise DataError(
                f"the column {table.names[j]!r} is infinite in {int(infinite.sum())} cells ({row_number(row)} first); "
                "replace them, or leave them empty (NaN) if they were not measured"
            )
