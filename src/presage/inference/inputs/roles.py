"""Roles of columns: guessed from names and values, changed by the user, shown with the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from presage.columns import ColumnKind
from presage.errors import ConfigError, DataError
from presage.inference.inputs.kinds import numeric_kinds, row_numbers
from presage.inference.inputs.names import clean_name, in_shell, listed, safe_text, suggestion
from presage.inference.inputs.tables import Table
from presage.inference.inputs.targets import is_control, split_targets

__all__ = [
    "MAX_LEVELS",
    "ROLES",
    "VARIABLES",
    "Choices",
    "ColumnRole",
    "guess_roles",
    "ignored_sentences",
    "read_choices",
]

VARIABLES = ("continuous", "count", "binary", "ordinal", "nominal")
"""Roles of columns that become nodes of the graph."""
ROLES = (*VARIABLES, "environment", "intervention", "ignored")
MAX_LEVELS = 24
"""Text with more levels is not guessed to be nominal; the network pools levels beyond this number."""

_ID_NAME = re.compile(
    r"(?:.*[\s_.-])?(?:ids?|uuid|guid|idx|index|barcode|mrn|key|nr|no|number|nummer|lfd|zeile)\.?|[a-z]+ID|[a-z]+Id|"
    r"Unnamed: \d+|",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r"[A-Za-z]*[a-z](?:ID|Id)")
_UNIT_NAME = re.compile(
    r"(?:patients?|subjects?|samples?|participants?|persons?|records?|cases?|rows?|cells?|animals?|proband(?:en)?|"
    r"name|obs|observation|respondent)(?:[\s_.-]?(?:id|nr|no|name|number|code))?",
    re.IGNORECASE,
)
_TARGET_NAME = re.compile(r"target|perturb|intervention|guide|knock|sgrna|grna|condition|treat", re.IGNORECASE)
_ROWS_FOR_NUMBERING = 10
_ANNOTATION = "an annotation of the rows, not a column of measurements"
_CHOSEN = "as you chose"


class ColumnRole(NamedTuple):
    """A column, its role and the reason. keep: a role that would keep it, where it is ignored by a guess."""

    name: str
    role: str
    why: str
    keep: str = ""


@dataclass
class Choices:
    """What the user decided. orders: levels of ordinal columns from low to high."""

    roles: dict[str, str] = field(default_factory=dict)
    orders: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def named(self, role: str) -> list[str]:
        """Columns with this role."""
        return [name for name, given in self.roles.items() if given == role]


def read_choices(table: Table, roles: Any, exclude: Any) -> Choices:
    """Check `roles` and `exclude` against the columns of the table."""
    choices = Choices()
    known = {*table.order, *table.labels}
    if roles is not None and not isinstance(roles, Mapping):
        raise ConfigError(f"roles must be a dictionary from names of columns to roles, not {type(roles).__name__}")
    for key, role in (roles or {}).items():
        name = _known(key, known, table)
        if isinstance(role, (list, tuple)) and role and all(isinstance(level, (str, int, float)) for level in role):
            choices.orders[name] = tuple(str(level) for level in role)
            role = "ordinal"
        elif isinstance(role, str) and "<" in role:
            choices.orders[name] = tuple(level.strip() for level in role.split("<"))
            role = "ordinal"
        if not isinstance(role, str) or role.strip().lower() not in ROLES:
            raise ConfigError(
                f"the role {safe_text(role)[:60]!r} of {name!r} is unknown; roles: {', '.join(ROLES)}, "
                "or the levels of an ordinal column from low to high"
            )
        choices.roles[name] = role.strip().lower()
    for name in _excluded(exclude, known, table):
        if choices.roles.get(name, "ignored") != "ignored":
            raise ConfigError(f"the column {name!r} is excluded and has the role {choices.roles[name]!r}; choose one")
        choices.roles[name] = "ignored"
    return choices


def _excluded(exclude: Any, known: set[str], table: Table) -> list[str]:
    if exclude is None:
        return []
    if isinstance(exclude, str):
        exclude = [exclude]
    try:
        entries = list(exclude)
    except TypeError as error:
        raise ConfigError(f"exclude must be a list of names of columns, not {type(exclude).__name__}") from error
    found = []
    for entry in entries:
        if isinstance(entry, str) and clean_name(entry) not in known and "," in entry:  # a list in one string
            found += [_known(part, known, table) for part in entry.split(",") if part.strip()]
        else:
            found.append(_known(entry, known, table))
    return found


def _known(name: Any, known: set[str], table: Table) -> str:
    cleaned = clean_name(name)
    if cleaned not in known:
        raise DataError(
            f"there is no column {cleaned!r} in the data" + suggestion(cleaned, [*table.order, *table.labels])
        )
    return cleaned


def guess_roles(table: Table, choices: Choices) -> list[ColumnRole]:
    """The role of every column of the table, in its order, then those of row annotations."""
    guessed = {**_numeric_roles(table), **_text_roles(table, choices)}
    for name in table.labels:
        guessed.setdefault(name, ColumnRole(name, "ignored", _ANNOTATION))
    chosen = choices.roles
    order = dict.fromkeys([*table.order, *table.labels])
    return [ColumnRole(name, chosen[name], _CHOSEN) if name in chosen else guessed[name] for name in order]


_WHY = {
    ColumnKind.CONTINUOUS: "numbers",
    ColumnKind.COUNT: "whole numbers",
    ColumnKind.BINARY: "two distinct values",
    ColumnKind.ORDINAL: "consecutive whole numbers, few of them",
    ColumnKind.NOMINAL: "codes without an order",
    ColumnKind.ENVIRONMENT: "the environment of each row",
}


def _numeric_roles(table: Table) -> dict[str, ColumnRole]:
    kinds = numeric_kinds(table)
    words = {kind: (kind.name.lower(), _WHY[kind]) for kind in ColumnKind}
    found = {
        name: ColumnRole(name, *words[ColumnKind(int(kind))]) for name, kind in zip(table.names, kinds, strict=True)
    }
    for name in table.names:
        column = table.columns.get(name)
        if column is not None and column.limits:
            found[name] = found[name]._replace(
                why=f"numbers; {column.limits} cells are limits such as {column.limit_example!r}"
            )
    if table.guess_roles and len(table.values) > 1:
        found |= _identifiers(table)
    return found


def _identifiers(table: Table) -> dict[str, ColumnRole]:
    """Columns of numbers that only identify rows."""
    n, d = table.values.shape
    distinct, consecutive = row_numbers(table.values, table.missing)
    named = np.array([_is_id_name(name) for name in table.names], dtype=bool)
    found = {}
    numbering = np.flatnonzero(consecutive & ~named)
    # Ranks number the rows, too: a table of ranks has many such columns, a table with an identifier has one.
    if n >= _ROWS_FOR_NUMBERING and (len(numbering) == 1 or len(numbering) <= 0.2 * d):
        for j in numbering:
            found[table.names[j]] = ColumnRole(table.names[j], "ignored", "it only numbers the rows", "continuous")
    for j in np.flatnonzero(named):
        name = table.names[j]
        column = table.column(name)
        if distinct[j] or _is_repeated_id(column, name):
            found[name] = ColumnRole(name, "ignored", "it identifies rows and measures nothing", "continuous")
    return found


def _is_id_name(name: str) -> bool:
    return bool(_CAMEL_ID.fullmatch(name) or _ID_NAME.fullmatch(name) or _UNIT_NAME.fullmatch(name))


def _is_repeated_id(column: np.ndarray, name: str) -> bool:
    """Whether a column named like an identifier holds whole numbers of which many differ, as with repeated visits."""
    seen = column[~np.isnan(column)] if column.dtype.kind == "f" else column
    if len(seen) < _ROWS_FOR_NUMBERING or not (seen == np.floor(seen)).all():
        return False
    return len(np.unique(seen)) > max(20, 0.1 * len(seen))


def _text_roles(table: Table, choices: Choices) -> dict[str, ColumnRole]:
    variables = set(table.names)
    has_targets = table.interventions is not None or bool(choices.named("intervention"))
    found = {}
    for name in table.text:
        column = table.columns[name]
        if name in choices.roles:
            continue
        if column.problem is not None:
            raise DataError(column.problem)
        labels = table.labels[name]
        levels = list(dict.fromkeys(label for label in labels if label is not None))
        present = sum(label is not None for label in labels)
        if not has_targets and names_variables(levels, variables, name):
            found[name] = ColumnRole(name, "ignored", "it names variables", "intervention")
        else:
            found[name] = _text_role(name, column.is_date, column.ordered, column.levels is not None, levels, present)
    return found


def _text_role(
    name: str, is_date: bool, ordered: bool, is_category: bool, levels: Sequence[str], present: int
) -> ColumnRole:
    k = len(levels)
    if is_date:
        return ColumnRole(name, "ignored", "it holds dates or times", "continuous")
    if k <= 1:
        return ColumnRole(name, "ignored", "it holds the same text in every row" if k else "it is empty")
    if ordered:
        return ColumnRole(name, "ordinal", f"an ordered category of {k} levels")
    if k == 2 and present > 2:
        return ColumnRole(name, "binary", "text with two levels")
    if k <= MAX_LEVELS and (is_category or 2 * k <= present):
        return ColumnRole(name, "nominal", f"{'a category' if is_category else 'text'} with {k} levels")
    if k == present and (_is_id_name(name) or all(len(level) <= 40 and " " not in level for level in levels)):
        return ColumnRole(name, "ignored", "every row has its own text, as identifiers have", "nominal")
    return ColumnRole(name, "ignored", "it holds free text or too many levels", "nominal")


def names_variables(levels: Sequence[str], variables: set[str], name: str) -> bool:
    """Whether texts are names of variables, as in a column of intervention targets."""
    entries = [level for level in levels[:5000] if level in variables or not is_control(level)]
    named = sum(any(part in variables for part in split_targets(level, variables)) for level in entries)
    return named > 0 and (named >= 0.5 * len(entries) or _TARGET_NAME.search(name) is not None)


def role_option(name: str, role: str) -> str:
    """How a role is given in Python and on the command line."""
    return f"roles={{{name!r}: {role!r}}} (--role {in_shell(f'{name}={role}')})"


def ignored_sentences(roles: Sequence[ColumnRole]) -> list[str]:
    """Sentences about the columns that were ignored by a guess: which, why, and how to keep them."""
    groups: dict[tuple[str, str], list[str]] = {}
    for role in roles:
        if role.role == "ignored" and role.why not in (_CHOSEN, _ANNOTATION):
            groups.setdefault((role.why, role.keep), []).append(role.name)
    found = []
    for (why, keep), names in groups.items():
        if keep == "intervention":
            found += [_proposal(name) for name in names]
            continue
        many = len(names) > 1
        reason = _plural(why) if many else why
        sentence = f"{listed(names, 20)}: left out because {reason}"
        if keep:
            as_days = " as days since the first" if "dates" in why else ""
            sentence += f"; to keep {'one' if many else 'it'}{as_days}, pass {role_option(names[0], keep)}"
        found.append(sentence)
    return found


def _plural(why: str) -> str:
    for one, many in (("it holds", "they hold"), ("it only numbers", "they only number"), ("it is", "they are"),
                      ("it identifies rows and measures", "they identify rows and measure")):  # fmt: skip
        if why.startswith(one):
            return many + why.removeprefix(one)
    return why


def _proposal(name: str) -> str:
    return (
        f"{name!r}: left out because it names variables; if it holds the targets of interventions, "
        f"pass interventions={name!r} (--interventions {in_shell(name)})"
    )
