"""Columns of an upload for the page: the guessed role of each, the reason, and the roles it can have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from presage.columns import ColumnKind
from presage.errors import DataError
from presage.inference.inputs import ROLES, ColumnRole, Table
from presage.inference.inputs.codes import code_labels
from presage.inference.inputs.roles import MAX_LEVELS, VARIABLES, Choices, guess_roles, names_variables

__all__ = ["MAX_LISTED", "Column", "columns_of", "intervention_column", "roles_from_page"]

MAX_LISTED = 400
"""Columns beyond this number are not listed; columns of numbers are left off first."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the table.

    role: the role that `discover` guesses; empty if it refuses the column until the user decides. why: the reason.
    options: the roles that the column can have. order: levels of text as "low < high", where it could be ordinal.
    """

    name: str
    role: str
    why: str
    options: tuple[str, ...] = ROLES
    order: str = ""
    is_number: bool = False


def columns_of(table: Table) -> list[Column]:
    """All columns: those that need a decision first, then those that are not variables, text, numbers."""
    problems = {name: text.problem for name, text in table.columns.items() if text.problem}
    found = guess_roles(table, Choices(roles=dict.fromkeys(problems, "ignored")))
    columns = [_column(table, role, problems.get(role.name)) for role in found]
    columns.sort(key=_attention)
    return columns[:MAX_LISTED]


def intervention_column(table: Table) -> str | None:
    """The first column of text or row annotation whose entries are names of variables."""
    names = set(table.names)
    for name, entries in table.labels.items():
        levels = list(dict.fromkeys(str(entry) for entry in entries if entry is not None and entry == entry))
        if names_variables(levels, names, name):
            return name
    return None


def roles_from_page(given: Any) -> dict[str, str]:
    """The roles that a browser sent; `read_inputs` checks them."""
    pairs = given.items() if isinstance(given, Mapping) else ()
    return {name: role for name, role in pairs if isinstance(name, str) and isinstance(role, str)}


def _column(table: Table, found: ColumnRole, problem: str | None) -> Column:
    name = found.name
    if problem is not None:
        reason = problem.partition(", or leave the column out")[0]
        return Column(name=name, role="", why=f"{reason}, or choose a role", options=("nominal", "ignored"))
    if name in table.names:
        return Column(name=name, role=found.role, why=found.why, is_number=True)
    text = table.columns.get(name)
    is_date = text is not None and text.is_date
    kinds = ("continuous", "nominal") if is_date else ("binary", "ordinal", "nominal")
    options = (*kinds, *ROLES[len(VARIABLES) :])
    return Column(
        name=name,
        role=found.role,
        why=found.why,
        options=options if found.role in options else (found.role, *options),
        order="" if is_date else _order(table, name),
    )


def _order(table: Table, name: str) -> str:
    """Levels of a column of text from low to high; sorted where their order is unknown."""
    text = table.columns.get(name)
    own, ordered = (None, False) if text is None else (text.levels, text.ordered)
    labels = table.labels[name]
    if len({label for label in labels if label is not None}) > MAX_LEVELS:
        return ""
    try:
        levels = code_labels(labels, name, ColumnKind.ORDINAL, own, None, ordered).levels or ()
    except DataError:
        levels = code_labels(labels, name, ColumnKind.NOMINAL, own).levels or ()
    return "" if any("<" in level for level in levels) else " < ".join(levels)


def _attention(column: Column) -> int:
    if not column.role:
        return 0
    if column.role not in VARIABLES:
        return 1
    return 3 if column.is_number else 2
