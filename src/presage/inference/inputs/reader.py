"""`read_inputs`: from the user's data, interventions, environments and roles to a checked `Dataset`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from presage.columns import ColumnKind
from presage.errors import ConfigError, DataError
from presage.inference.inputs.cells import cell_sentences
from presage.inference.inputs.codes import Coded, code_column, code_labels
from presage.inference.inputs.environments import column_labels, combined, read_environment
from presage.inference.inputs.inputs import Inputs
from presage.inference.inputs.intervention_kinds import read_kind, soft_targets
from presage.inference.inputs.kinds import looks_like_counts
from presage.inference.inputs.names import clean_name, closest, listed, row_number, unused
from presage.inference.inputs.roles import (
    MAX_LEVELS,
    VARIABLES,
    Choices,
    ColumnRole,
    guess_roles,
    ignored_sentences,
    read_choices,
)
from presage.inference.inputs.tables import Table, read_table
from presage.inference.inputs.targets import Targets, read_targets
from presage.types import Dataset

__all__ = ["read_inputs"]

_REFERENCE = "reference"
"""Label of rows without unmeasured targets, where other rows have such targets."""


def read_inputs(
    data: Any,
    interventions: Any = None,
    *,
    environment: Any = None,
    roles: Any = None,
    exclude: Any = None,
    unmeasured_targets: str = "environment",
    layer: str | None = None,
    max_bytes: int | None = None,
) -> Inputs:
    """Read and check a user's data; see `presage.discover` for what the arguments may be.

    unmeasured_targets: rows whose target is not a variable get their own environment ("environment") or are left
    out ("drop"). max_bytes: the most bytes that a file may hold once it is decompressed; None: the free memory.

    `presage.discover` takes the result in place of the data. Nothing the caller passed is modified.
    """
    if unmeasured_targets not in ("environment", "drop"):
        raise ConfigError(f"unmeasured_targets must be 'environment' or 'drop', not {unmeasured_targets!r}")
    interventions, intervention_kind = read_kind(interventions)
    table = read_table(data, layer=layer, max_bytes=max_bytes)
    choices = read_choices(table, roles, exclude)
    column = _intervention_column(interventions, table, choices)
    given = read_environment(environment, table)
    if isinstance(given, str):
        _choose(choices, given, "environment")
    found_roles = guess_roles(table, choices)
    _check_rows(table)
    names = [role.name for role in found_roles if role.role in VARIABLES]
    _check_names(names, found_roles, column)
    targets = read_targets(interventions if column is None else None, table, names, column)
    read = {name: table.columns[name] for name in names if name in table.columns}
    notes = [*table.notes, *cell_sentences(read), *ignored_sentences(found_roles)]
    soft, kind_notes = soft_targets(intervention_kind, targets, names)
    notes += kind_notes
    if targets.mask is not None and not targets.mask.any() and targets.unmeasured is None:
        notes.append("interventions were given, but no row has any")
    if targets.unmeasured is not None:
        notes.append(_unmeasured_sentence(targets.unmeasured, names, unmeasured_targets))
    numbers = table.values if names == table.names else table.values[:, _positions(names, table)]
    columns = _Columns(names, {role.name: role for role in found_roles}, _coded(table, names, found_roles, choices))
    labels = _environment(table, choices, given, targets if unmeasured_targets == "environment" else None)
    if labels is not None:
        notes += columns.add_environment(*labels)
    x, missing = _matrix(table, columns)
    mask = targets.mask
    if mask is not None and len(columns.names) > len(names):
        mask = np.concatenate([mask, np.zeros((len(mask), 1), dtype=bool)], axis=1)
    if unmeasured_targets == "drop" and targets.unmeasured is not None:
        kept = np.array([label is None for label in targets.unmeasured], dtype=bool)
        x, missing, mask = x[kept], None if missing is None else missing[kept], None if mask is None else mask[kept]
        if len(x) < 2:
            raise DataError("fewer than two rows are left without the rows that have unmeasured targets")
    _check_finite(x, columns.names)
    dataset = Dataset(
        x=x,
        interventions=mask,  # type: ignore[arg-type]  # None means nowhere
        missing=missing,  # type: ignore[arg-type]
        names=tuple(columns.names),
        column_kinds=columns.kinds(),
        graph=_graph(table, columns.names),
    )
    if dataset.missing.all():
        raise DataError("every cell of the table is missing")
    coded = columns.coded
    return Inputs(
        dataset=dataset,
        levels={name: found.levels for name, found in coded.items() if found.levels is not None},
        roles=tuple(columns.roles.values()),
        notes=(*notes, *_pooled(coded)),
        soft_targets=soft,
        countlike=looks_like_counts(numbers) if numbers.shape[1] else False,
        numbers={name: found.numbers for name, found in coded.items() if found.numbers is not None},
    )


class _Columns:
    """The variables of the dataset: names, roles of all columns, and the columns that had to be coded."""

    def __init__(self, names: list[str], roles: dict[str, ColumnRole], coded: dict[str, Coded]) -> None:
        self.names, self.roles, self.coded = names, roles, coded

    def add_environment(self, title: str, labels: np.ndarray, why: str) -> list[str]:
        """Append a column with the environment of each row; a sentence instead if all rows have the same."""
        name = unused(title, self.names)
        coded = code_labels(labels, name, ColumnKind.ENVIRONMENT)
        if len(coded.levels or ()) < 2:
            return [f"all rows have the same environment ({name!r}), so it was left out"]
        self.names = [*self.names, name]
        self.roles[name] = ColumnRole(name, "environment", why)
        self.coded[name] = coded
        return []

    def kinds(self) -> np.ndarray:
        """The kind of every variable: int8 [d]."""
        return np.array([ColumnKind[self.roles[name].role.upper()] for name in self.names], dtype=np.int8)


def _choose(choices: Choices, name: str, role: str) -> None:
    if choices.roles.get(name, role) != role:
        raise ConfigError(f"the column {name!r} cannot be the {role} and have the role {choices.roles[name]!r}")
    choices.roles[name] = role


def _intervention_column(interventions: Any, table: Table, choices: Choices) -> str | None:
    """The column that holds the targets, by `interventions` or by its role."""
    named = choices.named("intervention")
    # Interventions may be an array, whose comparison with a name is an array, too.
    if isinstance(interventions, str) and clean_name(interventions) in {*table.names, *table.labels}:
        name = clean_name(interventions)
        _choose(choices, name, "intervention")
        named = choices.named("intervention")
    elif interventions is not None and named:
        raise ConfigError(f"interventions are given, but the column {named[0]!r} has the role 'intervention', too")
    if len(named) > 1:
        raise ConfigError(f"only one column can hold the interventions, not {listed(named)}")
    return named[0] if named else None


def _check_rows(table: Table) -> None:
    n = len(table.values)
    if n == 0 and table.order:
        raise DataError("the table has no rows")
    if n == 1:
        raise DataError("the table has a single row; at least two rows are needed")


def _check_names(names: list[str], roles: Sequence[ColumnRole], column: str | None) -> None:
    if names:
        return
    others = [role.name for role in roles if role.name != column]
    if column is not None and not others:
        raise DataError(f"the table has no column besides the interventions {column!r}")
    if not others:
        raise DataError("the table has no columns")
    raise DataError(
        f"the table has no column of numbers or of text with few levels; {listed(others)}: left out; "
        "roles={NAME: ROLE} (--role NAME=ROLE) keeps a column"
    )


def _positions(names: Sequence[str], table: Table) -> list[int]:
    """Where the columns of numbers among `names` are in the table."""
    position = {name: j for j, name in enumerate(table.names)}
    return [position[name] for name in names if name in position]


def _coded(table: Table, names: Sequence[str], roles: Sequence[ColumnRole], choices: Choices) -> dict[str, Coded]:
    """The variables that are not numbers as they should be; all others are left as they are."""
    role_of = {role.name: role.role for role in roles}
    numeric = set(table.names)
    plain = {name for name in numeric if name not in choices.roles and role_of[name] in ("continuous", "count")}
    if table.kinds is not None:  # codes of a `Dataset`
        plain |= numeric - set(choices.roles)
    binary = [name for name in names if name in numeric and role_of[name] == "binary" and name not in plain]
    if binary:
        values = table.values[:, _positions(binary, table)]
        fits = ((values == 0) | (values == 1) | (values != values)).all(axis=0)
        plain |= {name for name, fit in zip(binary, fits, strict=True) if fit}
    return {
        name: code_column(table, name, role_of[name], choices.orders.get(name)) for name in names if name not in plain
    }


def _environment(
    table: Table, choices: Choices, given: tuple[str, np.ndarray] | str | None, targets: Targets | None
) -> tuple[str, np.ndarray, str] | None:
    """Name, labels [n] and origin of the environment, or None if there is none."""
    columns = choices.named("environment")
    parts = [column_labels(table, name) for name in columns]
    title, why = (columns[0], "as you chose") if columns else ("environment", "labels of the rows that you gave")
    if isinstance(given, tuple):
        parts.append(given[1])
    if targets is not None and targets.unmeasured is not None:
        if not parts:
            title, why = "unmeasured target", "targets of interventions that were not measured"
            parts.append(np.array([label or _REFERENCE for label in targets.unmeasured], dtype=object))
        else:
            parts.append(targets.unmeasured)
    return (title, combined(parts), why) if parts else None


def _unmeasured_sentence(unmeasured: np.ndarray, names: Sequence[str], choice: str) -> str:
    labels = [label for label in unmeasured if label is not None]
    targets = list(dict.fromkeys(target for label in labels for target in label.split("+")))
    close = closest(targets[0], names) if len(targets) == 1 else None
    rows = "1 row has an intervention" if len(labels) == 1 else f"{len(labels):,} rows have interventions"
    what = "a target that is" if len(targets) == 1 else f"{len(targets):,} targets that are"
    sentence = (
        f"{rows} on {what} not among the variables ({listed(targets)}{f'; did you mean {close!r}?' if close else ''})"
    )
    if choice == "drop":
        return (
            f"{sentence}; these rows were left out; "
            "unmeasured_targets='environment' (--unmeasured-targets environment) keeps them"
        )
    return (
        f"{sentence}; each such target became an environment of its rows; unmeasured_targets='drop' "
        "(--unmeasured-targets drop) leaves the rows out"
    )


def _matrix(table: Table, columns: _Columns) -> tuple[np.ndarray, np.ndarray | None]:
    """Values [n, d] and the missing mask, or None where NaN marks all missing cells."""
    if not columns.coded:
        positions = _positions(columns.names, table)
        if positions == list(range(len(table.names))):
            return table.values, table.missing
        return table.values[:, positions], None if table.missing is None else table.missing[:, positions]
    x = np.empty((len(table.values), len(columns.names)))
    missing = None if table.missing is None else np.zeros(x.shape, dtype=bool)
    position = {name: j for j, name in enumerate(table.names)}
    plain = [(k, position[name]) for k, name in enumerate(columns.names) if name not in columns.coded]
    if plain:
        to, source = (list(part) for part in zip(*plain, strict=True))
        x[:, to] = table.values[:, source]
        if missing is not None and table.missing is not None:
            missing[:, to] = table.missing[:, source]
    for k, name in enumerate(columns.names):
        if name in columns.coded:
            x[:, k] = columns.coded[name].values
    return x, missing


def _graph(table: Table, names: Sequence[str]) -> np.ndarray | None:
    """The known graph among the variables, if all of them are part of it."""
    positions = _positions(names, table)
    if table.graph is None or len(positions) < len(names):
        return None
    return np.asarray(table.graph[np.ix_(positions, positions)])


def _check_finite(x: np.ndarray, names: Sequence[str]) -> None:
    if x.dtype.kind != "f" or np.isfinite(x.sum(dtype=np.float64)):
        return
    for j in range(x.shape[1]):  # by columns: no copy of the whole table
        infinite = np.isinf(x[:, j])
        if infinite.any():
            row = int(np.flatnonzero(infinite)[0])
            raise DataError(
                f"the column {names[j]!r} is infinite in {int(infinite.sum())} cells ({row_number(row)} first); "
                "replace them, or leave them empty (NaN) if they were not measured"
            )


def _pooled(coded: dict[str, Coded]) -> list[str]:
    unordered = (ColumnKind.NOMINAL, ColumnKind.ENVIRONMENT)
    many = [
        name for name, column in coded.items() if column.kind in unordered and len(column.levels or ()) > MAX_LEVELS
    ]
    if not many:
        return []
    return [f"{listed(many)}: levels beyond the {MAX_LEVELS - 1} most frequent ones are read as one"]
