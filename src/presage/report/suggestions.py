"""Experiments that a report or the page suggests: which variables to intervene on next, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from presage.columns import ColumnKind

if TYPE_CHECKING:
    from presage.inference.result import Result
    from presage.types import Dataset

__all__ = ["suggested_experiments"]


def suggested_experiments(result: Result, dataset: Dataset | None, k: int = 3) -> list[tuple[str, str]]:
    """Up to k variables on which an intervention would be most informative about the graph, each with the reason.

    Variables that were intervened on in the dataset already and environments are left out.
    """
    names = set(result.names)
    exclude = []
    if dataset is not None:
        done = dataset.interventions.any(axis=0) | np.asarray(dataset.column_kinds == ColumnKind.ENVIRONMENT)
        exclude = [name for name, out in zip(dataset.names, done, strict=True) if out and name in names]
    if len(exclude) == len(names):
        return []
    found = result.next_experiments(k, exclude=exclude)
    return [(row.variable, row.reason) for row in found.itertuples(index=False) if row.information > 0]
