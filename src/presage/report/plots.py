"""Figures: heat map and layered graph of a result, scatter plots, calibration, learning curves.

Figures are made without pyplot: no window, no global state, safe in servers and threads.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from presage.errors import ConfigError, DataError
from presage.graphs.layout import layered_positions
from presage.graphs.ops import topological_order
from presage.graphs.routing import edge_routes
from presage.metrics.calibration import calibration_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from presage.inference.result import Result
    from presage.types import Dataset

__all__ = [
    "calibration_figure",
    "draw_graph",
    "draw_heat_map",
    "figure_bytes",
    "graph_figure",
    "heat_map_figure",
    "learning_curve_figure",
    "new_figure",
    "reliability_figure",
    "result_figure",
    "scatter_figure",
]

_INK, _SOFT, _PAPER = "#1f2a37", "#8a94a3", "#eef2f7"
_COLOURS = ("#c9d8ea", "#7fa8d1", "#2f6fad", "#0b3c6f")
_NEGATIVE = ("#f1d3ca", "#dd967f", "#c2553d", "#7a2c1a")
_HIDDEN = "#8a63b8"
_LABELLED = 60  # more names than this are unreadable on a heat map


def new_figure(**options: Any) -> Figure:
    """A matplotlib figure without pyplot, also where the variable MPLBACKEND names no backend."""
    if "matplotlib" not in sys.modules:
        _import_without_backend()
    from matplotlib.figure import Figure

    return Figure(**options)


def _import_without_backend() -> None:
    """Import matplotlib, which refuses to be imported under a wrong MPLBACKEND; a right one still takes effect."""
    backend = os.environ.pop("MPLBACKEND", None)
    try:
        import matplotlib
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    if backend is not None:
        with contextlib.suppress(ValueError):
            matplotlib.rcParams["backend"] = backend


def result_figure(result: Result, threshold: float = 0.5) -> Figure:
    """The heat map beside the graph of the edges above the threshold."""
    d = len(result.names)
    side = float(np.clip(2.8 + 0.2 * d, 4.6, 10.5))
    figure = new_figure(figsize=(2 * side + 1.2, side), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.08, 1.0])
    draw_heat_map(left, result.matrix, result.names)
    _draw_result(right, result, threshold, np.arange(d), (side, side))
    return figure


def heat_map_figure(result: Result, threshold: float = 0.5) -> Figure:
    """The heat map alone with a label for every variable, from causes to effects; for many variables."""
    order = topological_order(_without_cycles(result.adjacency(threshold, acyclic=False), result.matrix))
    side = float(np.clip(3.0 + 0.16 * len(order), 6.0, 40.0))
    figure = new_figure(figsize=(side + 1.0, side), layout="constrained")
    names = [result.names[j] for j in order]
    draw_heat_map(figure.subplots(), result.matrix[np.ix_(order, order)], names, labelled=len(order))
    return figure


def graph_figure(result: Result, threshold: float = 0.5) -> Figure:
    """The graph alone, of the variables that have edges; for many variables."""
    graph = result.adjacency(threshold, acyclic=False) != 0
    kept = np.flatnonzero(graph.any(axis=0) | graph.any(axis=1))
    positions = layered_positions(_without_cycles(graph, result.matrix)[np.ix_(kept, kept)])
    wide, high = (np.ptp(positions, axis=0) if len(kept) else np.zeros(2)) + 1.0
    size = float(np.clip(0.85 * wide, 8.0, 24.0)), float(np.clip(0.62 * high, 4.0, 30.0))
    figure = new_figure(figsize=size, layout="constrained")
    _draw_result(figure.subplots(), result, threshold, kept, size)
    return figure


def _draw_result(axes: Axes, result: Result, threshold: float, kept: np.ndarray, size: tuple[float, float]) -> None:
    """Draw the graph among the variables `kept` into axes of a size in inches, with a title that counts the edges."""
    inside = np.ix_(kept, kept)
    graph = result.adjacency(threshold, acyclic=False)[inside]
    draw_graph(
        axes,
        graph,
        result.matrix[inside],
        [result.names[j] for j in kept],
        layered_positions(_without_cycles(graph, result.matrix[inside])),
        effect=None if result.effect is None else result.effect[inside],
        hidden_causes=None if result.hidden_causes is None else result.hidden_causes[inside],
        size=size,
    )
    count = int(graph.sum())
    parts = [f"{count} edge{'s' * (count != 1)} above {threshold:g}"]
    if len(kept) < len(result.names):
        parts.append(f"{len(result.names) - len(kept)} variables without edges are not drawn")
    if result.effect is not None and count:
        parts.append("blue raises, red lowers")
    if result.confounded_pairs():
        parts.append("dashed: hidden common cause")
    axes.set_title("; ".join(parts), fontsize=11 if len(parts) == 1 else 9.5, color=_INK)


def scatter_figure(dataset: Dataset, edges: Sequence[tuple[int, int, str]]) -> Figure:
    """Scatter plots of pairs of variables, three in a row. edges: (cause, effect, title).

    Orange diamonds: the cause was intervened on. Violet squares: the effect was.
    """
    columns = min(3, len(edges))
    rows = -(-len(edges) // columns)
    figure = new_figure(figsize=(3.6 * columns, 3.0 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    u = dataset.interventions
    for axes, (i, j, title) in zip(panels, edges, strict=False):
        seen = ~(dataset.missing[:, i] | dataset.missing[:, j])
        groups = (
            (seen & ~u[:, i] & ~u[:, j], _COLOURS[1], "o"),
            (seen & u[:, i], "#d9822b", "D"),
            (seen & u[:, j] & ~u[:, i], _HIDDEN, "s"),
        )
        for mask, colour, marker in groups:
            axes.scatter(dataset.x[mask, i], dataset.x[mask, j], s=9, c=colour, marker=marker, alpha=0.6, linewidths=0)
        axes.set_title(title, fontsize=9.5, color=_INK)
        axes.set_xlabel(_short(dataset.names[i], 28), fontsize=9)
        axes.set_ylabel(_short(dataset.names[j], 28), fontsize=9)
        axes.locator_params(nbins=4)  # small panels; every tick label costs time
        _plain(axes)
    for axes in panels[len(edges) :]:
        axes.set_axis_off()
    return figure


def _without_cycles(graph: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """The edges that decide the layers of the drawing; the least probable ones of cycles are ignored."""
    from presage.graphs.ops import project_to_dag

    return project_to_dag(np.where(graph != 0, probabilities, 0.0))


def _colours(steps: Sequence[str] = _COLOURS) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("presage", ("#ffffff", *steps))


def draw_heat_map(axes: Axes, probabilities: np.ndarray, names: Sequence[str], *, labelled: int = _LABELLED) -> None:
    """Draw a heat map of probabilities: causes in rows, effects in columns.

    A line crosses the cells of the diagonal, which have no probability. labelled: largest number of variables whose
    names are written.
    """
    d = len(names)
    shown = np.ma.masked_where(np.eye(d, dtype=bool), probabilities)
    colours = _colours().with_extremes(bad="white")
    axes.plot([-0.5, d - 0.5], [-0.5, d - 0.5], color=_SOFT, linewidth=0.8, linestyle=":")
    image = axes.imshow(shown, cmap=colours, vmin=0.0, vmax=1.0, interpolation="nearest")
    figure = axes.get_figure()
    if figure is not None:
        bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02)
        bar.set_label("probability that the row causes the column", color=_INK, fontsize=9)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8, color=_SOFT)
    axes.set_xlim(-0.5, d - 0.5)
    axes.set_ylim(d - 0.5, -0.5)
    if d <= labelled:
        size = 7.5 if d > _LABELLED else float(np.clip(260 / max(d, 1), 4.5, 9.5))
        labels = [_short(name) for name in names]
        axes.set_xticks(range(d), labels, rotation=90, fontsize=size)
        axes.set_yticks(range(d), labels, fontsize=size)
        axes.set_xticks(np.arange(d + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(d + 1) - 0.5, minor=True)
        axes.grid(which="minor", color=_PAPER, linewidth=0.6)
    else:
        axes.set_xticks([])
        axes.set_yticks([])
    axes.tick_params(which="both", length=0, pad=5)
    axes.set_xlabel("effect", color=_INK)
    axes.set_ylabel("cause", color=_INK)
    for spine in axes.spines.values():
        spine.set_color(_PAPER)
    if d <= 12:
        for i in range(d):
            for j in range(d):
                if i != j and probabilities[i, j] >= 0.05:
                    dark = probabilities[i, j] > 0.55
                    text = f"{probabilities[i, j]:.2f}".lstrip("0") if probabilities[i, j] < 1 else "1"
                    axes.text(j, i, text, ha="center", va="center", fontsize=7.5, color="white" if dark else _INK)


def draw_graph(
    axes: Axes,
    graph: np.ndarray,
    probabilities: np.ndarray,
    names: Sequence[str],
    positions: np.ndarray,
    *,
    effect: np.ndarray | None = None,
    hidden_causes: np.ndarray | None = None,
    size: tuple[float, float] = (6.0, 6.0),
) -> None:
    """Draw a graph in layers, causes above effects; width and colour of an edge show its probability.

    graph: [d, d] of 0/1; positions: [d, 2] (see `presage.graphs.layout`). effect: [d, d], negative ones are red.
    hidden_causes: [d, d], pairs above 0.5 get a dashed double arrow. size: of the axes in inches.
    """
    d = len(names)
    degree = graph.sum(axis=0) + graph.sum(axis=1)
    letters = float(np.clip(190 / max(d, 1) ** 0.75, 6.0, 10.0))
    low, high = (positions.min(axis=0), positions.max(axis=0)) if d else (np.zeros(2), np.ones(2))
    room = np.maximum(high - low, 1.0)
    axes.set_xlim(low[0] - 0.06 * room[0] - 0.5, high[0] + 0.06 * room[0] + 0.5)
    axes.set_ylim(low[1] - 0.35, high[1] + 0.35)
    axes.set_axis_off()
    boxes = []
    for j, name in enumerate(names):
        linked = degree[j] > 0
        box = axes.text(
            float(positions[j, 0]),
            float(positions[j, 1]),
            _short(name, 14),
            ha="center",
            va="center",
            fontsize=letters,
            color=_INK if linked else _SOFT,
            zorder=3,
            bbox={
                "boxstyle": "round,pad=0.32",
                "facecolor": "white" if linked else _PAPER,
                "edgecolor": _COLOURS[2] if linked else "#d5dbe3",
                "linewidth": 1.0,
            },
        )
        boxes.append(box.get_bbox_patch())
    edges = sorted(np.argwhere(graph).tolist(), key=lambda edge: probabilities[edge[0], edge[1]])
    pairs = [] if hidden_causes is None else np.argwhere(np.triu(hidden_causes, 1) > 0.5).tolist()
    inches = (positions - low) / (room * (1.12, 1.0) + (1.0, 0.7)) * size
    shape = [(letters * (0.62 * len(_short(name, 14)) + 1.6) / 72.0, letters * 2.6 / 72.0) for name in names]
    routed = np.array([*edges, *pairs]).reshape(-1, 2)
    routes = edge_routes(inches, np.array(shape).reshape(-1, 2), routed)
    thin = float(np.clip(70 / max(len(edges), 1), 0.45, 1.0))  # many edges: finer lines
    least = min([0.5, *(float(probabilities[i, j]) for i, j in edges)])
    blue, red = _colours(), _colours(_NEGATIVE)
    for (i, j), route in zip(edges, routes, strict=False):
        strength = (float(probabilities[i, j]) - least) / max(1.0 - least, 1e-9)  # the whole range of widths is used
        scale = red if effect is not None and effect[i, j] < 0 else blue
        style = {"linewidth": thin * (0.7 + 2.0 * strength), "color": scale(0.32 + 0.68 * strength)}
        _arrow(axes, positions, boxes, i, j, route, 6 + 7 * thin, arrowstyle="-|>", **style)
    for (i, j), route in zip(pairs, routes[len(edges) :], strict=True):
        style = {"linewidth": 1.4 * thin, "color": _HIDDEN, "linestyle": (0, (4, 2.5))}
        _arrow(axes, positions, boxes, i, j, route, 6 + 6 * thin, arrowstyle="<|-|>", **style)


def _arrow(
    axes: Axes, positions: np.ndarray, boxes: list[Any], i: int, j: int, route: np.ndarray, head: float, **style: Any
) -> None:
    """Add an arrow along a route: bends and weights [k, 2], see `presage.graphs.routing`."""
    from matplotlib.patches import ConnectionStyle, FancyArrowPatch
    from matplotlib.path import Path as Curve

    class Routed(ConnectionStyle.Arc3):
        def connect(self, a: Any, b: Any) -> Any:
            along = np.subtract(b, a)
            controls = np.asarray(a) + route[:, 1:] * along + route[:, :1] * np.array([-along[1], along[0]])
            joints = [*((controls[1:] + controls[:-1]) / 2.0), b]
            points = [point for pair in zip(controls, joints, strict=True) for point in pair]
            return Curve([a, *points], [Curve.MOVETO, *[Curve.CURVE3] * len(points)])

    axes.add_patch(
        FancyArrowPatch(
            positions[i],
            positions[j],
            patchA=boxes[i],
            patchB=boxes[j],
            shrinkA=1.0,
            shrinkB=2.0,
            mutation_scale=head,
            connectionstyle=Routed(),
            zorder=2,
            **style,
        )
    )


def calibration_figure(probabilities: np.ndarray, truth: np.ndarray, bins: int = 10) -> Figure:
    """Plot the share of true edges among pairs of similar probability; a calibrated model lies on the diagonal.

    probabilities, truth: [d, d] or stacks [m, d, d] of equal shape; the diagonals are ignored.
    """
    p, t = np.asarray(probabilities, dtype=np.float64), np.asarray(truth)
    if p.shape != t.shape or p.ndim not in (2, 3) or p.shape[-1] != p.shape[-2]:
        raise DataError(f"probabilities and truth must be tables [d, d] or stacks of one shape: {p.shape}, {t.shape}")
    pairs = np.broadcast_to(~np.eye(p.shape[-1], dtype=bool), p.shape)
    curve = calibration_curve(t[pairs], p[pairs], bins=bins)
    full = np.flatnonzero(curve.count)
    return reliability_figure([(curve.predicted[b], curve.empirical[b], int(curve.count[b])) for b in full])


def reliability_figure(bins: Sequence[tuple[float, float, int]]) -> Figure:
    """Plot a calibration curve with 95 % intervals. bins: (mean probability, share of true edges, number of pairs).

    Intervals are Wilson's, which count pairs as independent.
    """
    mean, share, count = (np.array(column, dtype=np.float64) for column in zip(*bins, strict=True))
    spread = 1.96**2 / count
    centre = (share + spread / 2.0) / (1.0 + spread)
    reach = np.sqrt(spread * (share * (1.0 - share) + spread / 4.0)) / (1.0 + spread)
    error = np.maximum([share - centre + reach, centre + reach - share], 0.0)  # rounding
    figure = new_figure(figsize=(5.2, 5.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, height_ratios=[4, 1], sharex=True)
    upper.plot([0, 1], [0, 1], color=_SOFT, linewidth=1, linestyle="--")
    upper.errorbar(mean, share, error, fmt="o-", color=_COLOURS[2], ecolor=_COLOURS[1], markersize=5, capsize=2)
    upper.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="share of true edges")
    lower.bar(mean, count, width=0.05, color=_COLOURS[1])
    lower.set(yscale="log", ylabel="pairs", xlabel="probability of the edge")
    for axes in (upper, lower):
        _plain(axes)
    return figure


def learning_curve_figure(source: str | os.PathLike[str] | Sequence[dict[str, Any]]) -> Figure:
    """Plot losses and validation scores of a training run: its metrics.jsonl, its folder, or the records themselves.

    One panel per metric that has at least two values; records are dicts with "step".
    """
    records = _records(source)
    skip = {"step", "time", "seconds", "minutes", "epoch"}
    series: dict[str, tuple[list[float], list[float]]] = {}
    for record in records:
        for key, value in record.items():
            if key in skip or isinstance(value, bool) or not isinstance(value, (int, float)):
                continue
            if np.isfinite(value):
                steps, values = series.setdefault(key, ([], []))
                steps.append(float(record["step"]))
                values.append(float(value))
    series = {key: pair for key, pair in series.items() if len(pair[0]) > 1}
    if not series:
        raise DataError("the training record has no metric with at least two values yet")
    columns = min(3, len(series))
    rows = -(-len(series) // columns)
    figure = new_figure(figsize=(4.2 * columns, 2.9 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (key, (steps, values)) in zip(panels, series.items(), strict=False):
        axes.plot(steps, values, color=_COLOURS[1 if len(values) > 50 else 2], linewidth=1)
        if len(values) > 50:  # noisy: a running mean over a fiftieth of the run on top
            width = max(3, len(values) // 50)
            kernel = np.ones(width) / width
            axes.plot(steps[width - 1 :], np.convolve(values, kernel, mode="valid"), color=_COLOURS[3], linewidth=1.5)
        axes.set_title(key.replace("_", " "), fontsize=10, color=_INK)
        axes.set_xlabel("step", fontsize=8)
        _plain(axes)
    for axes in panels[len(series) :]:
        axes.set_axis_off()
    return figure


def _records(source: str | os.PathLike[str] | Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    if not isinstance(source, (str, os.PathLike)):
        records = list(source)
    else:
        path = Path(source)
        path = path / "metrics.jsonl" if path.is_dir() else path
        if not path.is_file():
            raise ConfigError(f"there is no training record {str(path)!r}")
        records = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            try:
                records.append(json.loads(line))
            except ValueError as error:
                raise DataError(f"{str(path)!r}, line {number}: not JSON") from error
    if not all(isinstance(record, dict) for record in records):
        raise DataError("a training record must be JSON objects, one per line")
    return [record for record in records if "step" in record]


def figure_bytes(figure: Figure, dpi: int = 130) -> bytes:
    """Render a figure as the bytes of a png file."""
    buffer = io.BytesIO()
    # Two passes, as `savefig` does with a layout: arrows end at boxes whose sizes are known after the first one.
    figure.savefig(buffer, format="png", dpi=dpi, facecolor="white")
    return buffer.getvalue()


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_SOFT)
    axes.tick_params(labelsize=8, color=_SOFT)


def _short(name: str, limit: int = 16) -> str:
    """A name that fits, without characters that matplotlib reads as mathematics or cannot draw."""
    clean = "".join(c if c.isprintable() else "?" for c in str(name)).replace("$", r"\$")
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"
