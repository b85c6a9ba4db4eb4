"""`Inputs`: a user's data as read, and the same data for models that read only numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from presage.columns import ColumnKind
from presage.errors import DataError
from presage.inference.inputs.names import listed
from presage.inference.inputs.roles import ColumnRole
from presage.types import Dataset

__all__ = ["Inputs"]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Data as read.

    dataset: the checked dataset (of kind "real"), with the kinds of its columns.
    levels: labels of the codes of discrete columns. roles: every column of the table with its role and the reason.
    soft_targets: variables with soft interventions, whose rows are part of the dataset's intervention mask.
    notes: sentences about reading. countlike: whether the columns of numbers look like counts.
    numbers: the numbers that the codes of a column stand for, where they stand for numbers.
    """

    dataset: Dataset
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roles: tuple[ColumnRole, ...] = ()
    notes: tuple[str, ...] = ()
    countlike: bool = False
    soft_targets: tuple[str, ...] = ()
    numbers: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def column_kinds(self) -> np.ndarray:
        """Kinds of the columns: int8 [d] of `ColumnKind`."""
        return self.dataset.column_kinds

    def for_model(self, reads_kinds: bool, *, counts: bool = False) -> Inputs:
        """These inputs for a model that reads kinds of columns, or for one that reads only numbers.

        The latter gets numbers as they are in the table. Nominal columns with more than two levels and environments
        are left out, with a sentence. counts: the model takes counts, so columns of text are left out, too.
        """
        if reads_kinds:
            return self
        dataset = self.dataset
        nominal = self.column_kinds == ColumnKind.NOMINAL
        many = dataset.x.max(axis=0) > 1  # codes above 1: more than two levels
        environment = self.column_kinds == ColumnKind.ENVIRONMENT
        text = np.array([name in self.levels and name not in self.numbers for name in dataset.names], dtype=bool)
        dropped = (nominal & many) | environment | (text & counts)
        if not dropped.any() and not self.numbers:
            return self
        kept = np.flatnonzero(~dropped)
        if len(kept) == 0:
            raise DataError(
                "the table has no column of numbers; model='general' (--model general) reads columns of text"
            )
        x = dataset.x[:, kept]
        names = [dataset.names[j] for j in kept]
        for j, name in enumerate(names):
            if self.numbers.get(name):  # a column without any measured cell has no codes
                x[:, j] = np.asarray(self.numbers[name])[x[:, j].astype(np.intp)]
        return replace(
            self,
            dataset=Dataset(
                x=x,
                interventions=dataset.interventions[:, kept],
                missing=dataset.missing[:, kept],
                names=tuple(names),
                column_kinds=self.column_kinds[kept],
                graph=None if dataset.graph is None else dataset.graph[np.ix_(kept, kept)],
                annotations=dataset.annotations,
            ),
            soft_targets=tuple(name for name in self.soft_targets if name in set(names)),
            levels={name: levels for name, levels in self.levels.items() if name in set(names)},
            notes=(*self.notes, *_left_out(dataset.names, dropped, environment)),
            numbers={},
        )


def _left_out(names: Sequence[str], dropped: np.ndarray, environment: np.ndarray) -> list[str]:
    found = []
    for mask, what in ((dropped & ~environment, "columns of text or without an order"), (environment, "environments")):
        left = [name for name, drop in zip(names, mask, strict=True) if drop]
        if left:
            found.append(
                f"{listed(left, 20)}: left out because this model does not read {what}; "
                "model='general' (--model general) uses them"
            )
    return found
