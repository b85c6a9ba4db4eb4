"""Colours of the page, light and dark, and the style of the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["DARK", "LIGHT", "Theme", "stylesheet", "theme_of"]


@dataclass(frozen=True, kw_only=True)
class Theme:
    """Colours of figures and graph; those of everything else are in style.css."""

    ink: str
    soft: str
    line: str
    panel: str
    box: str
    blue: str
    scale: tuple[str, ...]
    """Colours of probabilities from 0 to 1."""
    weak: str
    """Colour of an edge of probability 0; that of probability 1 is the last of the scale."""
    positive: str = "#2f7dc4"
    negative: str = "#c2553d"
    hidden: str = "#8a63b8"
    right: str = "#2e8b57"
    extra: str = "#d9822b"
    missed: str = "#b03a48"
    mark: str = "#f2a100"
    point: str = "#7fa3c9"
    faint: str = "#c9d1db"


LIGHT = Theme(
    ink="#1f2a37", soft="#5d6876", line="#e3e8ef", panel="#ffffff", box="#ffffff", blue="#2f6fad",
    scale=("#ffffff", "#c9d8ea", "#7fa8d1", "#2f6fad", "#0b3c6f"), weak="#cfdcea",
)  # fmt: skip
DARK = Theme(
    ink="#e4e9f0", soft="#a3afbf", line="#334155", panel="#18212e", box="#223044", blue="#6ea8e0",
    scale=("#18212e", "#213d5e", "#2f6fad", "#6fb0ea", "#d3eaff"), weak="#33465e", positive="#63aef0",
    negative="#f0866b", hidden="#b796e0", right="#4fbf83", extra="#f0a050", missed="#e0707e", point="#8fb6de",
    faint="#4d5b6e",
)  # fmt: skip


def theme_of(name: Any) -> Theme:
    """The theme of a name that the browser sent."""
    return DARK if name == "dark" else LIGHT


def stylesheet(theme: Theme) -> list[dict[str, Any]]:
    """Style of the graph for Cytoscape."""
    strong = theme.scale[-1]

    def coloured(selector: str, colour: str) -> dict[str, Any]:
        return {
            "selector": selector,
            "style": {"line-color": colour, "target-arrow-color": colour, "source-arrow-color": colour},
        }

    return [
        {
            "selector": "node",
            "style": {
                "shape": "round-rectangle",
                "label": "data(label)",
                "width": "data(wide)",
                "height": 28,
                "background-color": theme.box,
                "border-width": 1.5,
                "border-color": theme.blue,
                "color": theme.ink,
                "font-size": 14,
                "font-family": "system-ui, sans-serif",
                "text-valign": "center",
                "text-halign": "center",
            },
        },
        {
            "selector": "node.lone",
            "style": {"border-color": theme.faint, "background-color": theme.panel, "color": theme.soft},
        },
        {"selector": "node.root", "style": {"border-style": "double", "border-width": 5}},
        {
            "selector": "edge",
            "style": {
                "curve-style": "unbundled-bezier",
                "control-point-distances": "data(bends)",
                "control-point-weights": "data(weights)",
                "edge-distances": "node-position",
                "width": "data(wide)",
                "line-color": f"mapData(p, 0, 1, {theme.weak}, {strong})",
                "target-arrow-color": f"mapData(p, 0, 1, {theme.weak}, {strong})",
                "target-arrow-shape": "triangle",
                "arrow-scale": 1.1,
            },
        },
        coloured("edge.positive", theme.positive),
        coloured("edge.negative", theme.negative),
        coloured("edge.right", theme.right),
        coloured("edge.extra", theme.extra),
        coloured("edge.missed", theme.missed),
        {"selector": "edge.missed", "style": {"line-style": "dashed", "width": 2}},
        coloured("edge.hidden", theme.hidden),
        {
            "selector": "edge.hidden",
            "style": {
                "line-style": "dashed",
                "line-dash-pattern": [7, 4],
                "source-arrow-shape": "triangle",
            },
        },
        {
            "selector": "edge.required",
            "style": {"source-arrow-shape": "tee", "source-arrow-color": theme.ink},
        },
        {"selector": ".faded", "style": {"opacity": 0.1}},
        {"selector": "node.centre", "style": {"border-color": theme.mark, "border-width": 3}},
        {
            "selector": ".pointed",
            "style": {"overlay-color": theme.mark, "overlay-opacity": 0.22, "overlay-padding": 4},
        },
        {
            "selector": ".chosen",
            "style": {"overlay-color": theme.mark, "overlay-opacity": 0.38, "overlay-padding": 5},
        },
    ]
