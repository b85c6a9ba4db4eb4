"""Text of a graph in Graphviz's DOT language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

__all__ = ["dot", "plain_dot"]


def dot(
    names: Sequence[str],
    graph: np.ndarray,
    probabilities: np.ndarray,
    confounded: Iterable[tuple[str, str, float]] = (),
) -> str:
    """A directed graph [d, d] with the probability of every edge; confounded pairs are dashed double arrows."""
    lines = ["digraph presage {"] + [f"  {_quoted(name)};" for name in names]
    for i, j in np.argwhere(graph):
        value = f"{probabilities[i, j]:.4g}"
        lines.append(f'  {_quoted(names[i])} -> {_quoted(names[j])} [probability={value}, label="{value}"];')
    for first, second, probability in confounded:
        style = f"dir=both, style=dashed, constraint=false, probability={probability:.4g}"
        lines.append(f"  {_quoted(first)} -> {_quoted(second)} [{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def plain_dot(names: Sequence[str], graph: np.ndarray) -> str:
    """A directed graph [d, d] in one line without attributes, as DoWhy reads it.

    >>> plain_dot(["a", "b"], np.array([[0, 1], [0, 0]]))
    'digraph {"a";"b";"a" -> "b";}'
    """
    nodes = "".join(f"{_quoted(name)};" for name in names)
    return (
        f"digraph {{{nodes}{''.join(f'{_quoted(names[i])} -> {_quoted(names[j])};' for i, j in np.argwhere(graph))}}}"
    )


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
