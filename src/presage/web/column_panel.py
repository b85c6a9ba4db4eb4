"""The panel of column roles: every column of an upload with its role, changeable, and the reason for the guess.

The script of the page keeps the changed roles in the store `roles`; see column_roles.js.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import html

from presage.inference.inputs.roles import VARIABLES
from presage.web.column_guess import Column
from presage.web.layout import data
from presage.web.result_layout import aria

__all__ = ["columns_part"]

_LABELS = {"environment": "environment (batch, site)", "intervention": "intervention target"}


def columns_part(columns: Sequence[Column], left_off: int = 0, proposed: str | None = None) -> list[Any]:
    """The table of columns. left_off: how many more there are. proposed: the column proposed for interventions."""
    if not columns:
        return []
    head = html.Tr([html.Th("column"), html.Th("role"), html.Th("reason")])
    parts: list[Any] = [
        html.Div(
            html.Table(
                [html.Thead(head), html.Tbody([_row(column, column.name == proposed) for column in columns])],
                className="roles",
            ),
            className="scroll roles-scroll",
        )
    ]
    if left_off:
        parts.append(html.P(f"{left_off:,} more columns of numbers are variables.", className="soft small"))
    return parts


def _row(column: Column, proposed: bool) -> html.Tr:
    options: list[Any] = [html.Option("choose …", value="")] if not column.role else []
    groups = (
        ("Variable", [role for role in column.options if role in VARIABLES]),
        ("Other", [role for role in column.options if role not in VARIABLES]),
    )
    for label, roles in groups:
        choices = [html.Option(_LABELS.get(role, role), value=role) for role in roles]
        options.append(html.Optgroup(choices, label=label))
    choice: list[Any] = [
        html.Select(
            options,
            **data(column=column.name, guess=column.role, order=column.order, proposed="yes" if proposed else ""),
            **aria(label=f"Role of {column.name}"),
        )
    ]
    reason = html.Td(column.why, className="soft", **data(why=column.why))
    return html.Tr([html.Td(column.name, title=column.name), html.Td(choice), reason], className="role-row")
