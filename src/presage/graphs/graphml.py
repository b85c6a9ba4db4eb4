"""GraphML text of a graph, written without networkx, whose import takes longer than a discovery."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

import numpy as np

__all__ = ["graphml"]

# XML 1.0 has no way to write these characters, not even as references.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation='
    '"http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">'
)


def graphml(
    names: Sequence[str], graph: np.ndarray, attributes: Mapping[str, np.ndarray], properties: Mapping[str, str]
) -> str:
    """A directed graph [d, d] with numbers per edge (`attributes`, each [d, d]) and strings of the whole graph.

    Numbers that are not finite are left out. Characters that XML cannot hold appear as escapes such as \\x01.

    >>> text = graphml(["a", "b"], np.array([[0, 1], [0, 0]]), {"probability": np.full((2, 2), 0.9)}, {"model": "m"})
    >>> '<edge source="a" target="b">' in text
    True
    """
    nodes = [_attribute(name) for name in names]
    lines = ["<?xml version='1.0' encoding='utf-8'?>", _HEAD]
    for k, name in enumerate(attributes):
        lines.append(f'  <key id="e{k}" for="edge" attr.name={_attribute(name)} attr.type="double" />')
    for k, name in enumerate(properties):
        lines.append(f'  <key id="g{k}" for="graph" attr.name={_attribute(name)} attr.type="string" />')
    lines.append('  <graph edgedefault="directed">')
    lines += [f'    <data key="g{k}">{escape(_valid(text))}</data>' for k, text in enumerate(properties.values())]
    lines += [f"    <node id={node} />" for node in nodes]
    for i, j in np.argwhere(graph):
        lines.append(f"    <edge source={nodes[i]} target={nodes[j]}>")
        for k, values in enumerate(attributes.values()):
            if np.isfinite(values[i, j]):
                lines.append(f'      <data key="e{k}">{float(values[i, j])!r}</data>')
        lines.append("    </edge>")
    return "\n".join([*lines, "  </graph>", "</graphml>"])


def _valid(text: str) -> str:
    return _NOT_XML.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def _attribute(text: str) -> str:
    """A quoted attribute value; line breaks and tabs as references, which parsers keep."""
    return quoteattr(_valid(text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
