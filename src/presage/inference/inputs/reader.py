"""`read_inputs`: everything between what the user gave and a checked `Dataset`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.errors import DataError
from presage.inference.inputs.checks import describe_oddities, looks_like_counts
from presage.inference.inputs.tables import Table, listed, read_table, row_number
from presage.inference.inputs.targets import mask_from
from presage.types import Dataset, Kind

__all__ = ["Inputs", "read_inputs"]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """A checked dataset, what is odd about it, and whether its values look like counts."""

    dataset: Dataset
    warnings: tuple[str, ...]
    countlike: bool


def read_inputs(
    data: Any, interventions: Any = None, *, counts: bool | None = None, layer: str | None = None, kind: Kind = "real"
) -> Inputs:
    """Read and check a user's data for a model of a kind.

    counts: True and False are the user's word on what the values are, None leaves it to the model and to a look at
    the values. Nothing the caller passed is modified.
    """
    if counts is not None and not isinstance(counts, (bool, np.bool_)):
        raise DataError(f"counts must be True, False or None, not {counts!r}")
    table = read_table(data, layer=layer)
    mask = mask_from(interventions, table)
    _check_table(table)
    countlike = looks_like_counts(table.values)
    if counts and not countlike:
        raise DataError("counts=True, but the values are not counts (whole numbers of at least 0, some above 1)")
    missing = _missing(table)
    dataset = Dataset(
        x=table.values,
        interventions=mask,  # type: ignore[arg-type]  # None means nowhere
        missing=missing,  # type: ignore[arg-type]
        names=tuple(table.names),
        kind=kind if kind == "counts" and countlike else "real",
        graph=table.graph,
    )
    if dataset.missing.all():
        raise DataError("every cell of the table is missing")
    warnings = [*table.notes]
    left_out = [name for name in table.text if name != interventions]
    if left_out:
        warnings.append(f"{listed(left_out)}: not numbers, so these columns were left out")
    if mask is not None and not mask.any():
        warnings.append("interventions were given, but no row has any")
    return Inputs(dataset=dataset, warnings=(*warnings, *describe_oddities(dataset)), countlike=countlike)


def _missing(table: Table) -> np.ndarray | None:
    if table.missing is None:
        return None
    missing = np.asarray(table.missing)
    if missing.shape != table.values.shape:
        raise DataError(f"the mask of missing cells has shape {missing.shape}, but the data has {table.values.shape}")
    return missing


def _check_table(table: Table) -> None:
    n, d = table.values.shape
    if d == 0:
        because = f" (its columns hold text: {listed(table.text)})" if table.text else ""
        raise DataError(f"the table has no column of numbers{because}")
    if n == 0:
        raise DataError("the table has no rows")
    if n == 1:
        raise DataError("the table has a single row; at least two are needed to see anything vary")
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
