"""Docstrings with lists of parameters: an extension of Griffe, which reads docstrings for the API pages.

Docstrings of Presage describe parameters in running text: "name: description. other: description." On the API pages
every parameter becomes an item of a list, and doctests become code blocks.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["ParameterLists", "with_lists"]

_NAME = r"[A-Za-z_]\w*"


def with_lists(text: str, names: set[str]) -> str:
    """The docstring with a Google-style section for the parameters among `names`, and fenced doctests.

    >>> print(with_lists("Add numbers.\\n\\na: first. b: second, which may be\\nnegative.", {"a", "b"}))
    Add numbers.
    <BLANKLINE>
    Parameters:
        a: first.
        b: second, which may be negative.
    """
    entry = re.compile(rf"(?:(?<=[.;] )|(?<=\n)|^)({_NAME}(?:, {_NAME})*): ", re.MULTILINE)
    blocks = []
    for paragraph in text.split("\n\n"):
        if paragraph.lstrip().startswith(">>>"):
            blocks.append(f"```pycon\n{paragraph}\n```")
            continue
        found = [match for match in entry.finditer(paragraph) if set(match[1].split(", ")) <= names]
        if not found:
            blocks.append(paragraph)
            continue
        before = paragraph[: found[0].start()].strip()
        ends = [match.start() for match in found[1:]] + [len(paragraph)]
        items = []
        for match, end in zip(found, ends):
            description = " ".join(paragraph[match.end() : end].split()).rstrip(";").rstrip()
            description = description if description.endswith(".") else f"{description}."
            items += [f"    {name}: {description}" for name in match[1].split(", ")]
        blocks += [before] if before else []
        blocks.append("\n".join(["Parameters:", *items]))
    return "\n\n".join(blocks)


class ParameterLists(griffe.Extension):
    """Rewrite the docstrings of functions and classes as they are collected."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Parameters of a function or method."""
        _rewrite(func, {parameter.name for parameter in func.parameters})

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Fields of a class."""
        _rewrite(cls, {name for name, member in cls.members.items() if member.is_attribute})


def _rewrite(item: griffe.Object, names: set[str]) -> None:
    if item.docstring is not None:
        item.docstring.value = with_lists(item.docstring.value, names)
