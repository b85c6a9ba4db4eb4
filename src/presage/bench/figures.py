"""Pictures of the experiments. Figures are made without pyplot: no window and no global state."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from presage.bench.tables import LOWER, TITLES, is_trivial, method_title, row_labels
from presage.files import atomic_write

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "REFERENCE",
    "calibration_picture",
    "folder_picture",
    "new_figure",
    "radar_picture",
    "sachs_picture",
    "save",
    "scaling_picture",
]

REFERENCE = "reference"
"""The row of the true graph among predicted edges."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, size in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> list[Path]:
    """Write a picture as png and pdf."""
    paths = [path.with_suffix(suffix) for suffix in (".png", ".pdf")]
    for target in paths:
        with atomic_write(target) as file:
            # No date inside: the same results give the same file.
            metadata = {"CreationDate": None} if target.suffix == ".pdf" else {"Software": None}
            figure.savefig(file, format=target.suffix[1:], dpi=150, metadata=metadata)
    return paths


def _colour(number: int) -> Any:
    from matplotlib import colormaps

    return colormaps["tab20"](number % 20)


def calibration_picture(curves: pd.DataFrame, columns: Sequence[str], sections: Sequence[str]) -> Figure:
    """Share of true edges against predicted probability over all test cases; bars count the predictions.

    curves: one row per section, column, row (method) and bin, with predicted, empirical and count.
    """
    figure = new_figure(3.6 * len(columns), 3.4 * len(sections))
    axes = figure.subplots(len(sections), len(columns), squeeze=False)
    labels = sorted(set(curves["row"]), key=lambda label: (label == "presage", label))
    for place, (section, column) in enumerate(product(sections, columns)):
        axis = axes.flat[place]
        axis.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=1)
        panel = curves[(curves["section"] == section) & (curves["column"] == column)]
        for number, label in enumerate(labels):
            curve = panel[panel["row"] == label]
            if not len(curve):
                continue
            filled = curve[curve["count"] > 0]
            ours = label.startswith("presage")
            axis.plot(
                filled["predicted"],
                filled["empirical"],
                marker="o",
                markersize=3,
                color="black" if label == "presage" else _colour(number),
                linewidth=2 if ours else 1,
                label=method_title(label, starred=True),
            )
            if ours:
                share = curve["count"] / curve["count"].sum()
                axis.bar((curve["bin"] + 0.5) / len(curve), share, width=0.9 / len(curve), color="0.85", zorder=0)
        axis.set(xlim=(0, 1), ylim=(0, 1), title=f"{column}, {section}")
        axis.set_xlabel("predicted probability")
        axis.set_ylabel("share of true edges")
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=6, loc="upper left")
    return figure


def folder_picture(frame: pd.DataFrame) -> Figure:
    """Mean AUPRC of every method in every group, one panel per group; a dashed line is the base rate."""
    groups = sorted(set(frame["column"]))
    labels = row_labels(frame)
    width = min(3, len(groups))
    height = -(-len(groups) // width)
    figure = new_figure(4.2 * width, (0.9 + 0.2 * len(labels)) * height)
    axes = list(figure.subplots(height, width, squeeze=False, sharex=True, sharey=True).flat)
    places = np.arange(len(labels))
    for axis, group in zip(axes, groups, strict=False):
        part = frame[frame["column"] == group]
        means = part.groupby("row")["auprc"].mean().reindex(labels)
        axis.barh(places, means.fillna(0.0), height=0.7, color=[_bar_colour(label) for label in labels])
        for place, label in zip(places, labels, strict=True):
            values = part.loc[part["row"] == label, "auprc"]
            axis.plot(values, np.full(len(values), place), ".", color="0.2", markersize=3)
        rate = part.dropna(subset=["base_rate"]).drop_duplicates("domain")["base_rate"]
        if len(rate):
            axis.axvline(rate.mean(), color="0.3", linestyle="--", linewidth=1, label="base rate")
        axis.set_title(f"{group} ({part['domain'].nunique()})", fontsize=9)
        axis.set(xlim=(0, 1))
        axis.set_yticks(places, [method_title(label) for label in labels], fontsize=7)
    if labels:
        axes[0].invert_yaxis()
    for axis in axes[len(groups) :]:
        axis.set_axis_off()
    figure.supxlabel("AUPRC (dots: datasets, dashed: base rate)", fontsize=9)
    return figure


def _bar_colour(label: str) -> str:
    if label.startswith("presage"):
        return "tab:blue"
    return "0.85" if is_trivial(label) else "0.65"


def radar_picture(frame: pd.DataFrame, columns: Sequence[str], metrics: Sequence[str]) -> Figure:
    """Mean metrics under each shift; SHD and SID as in-distribution value over value, so that farther out is better."""
    figure = new_figure(4.6 * len(columns), 5.6)
    angles = np.linspace(0.0, 2.0 * np.pi, len(metrics), endpoint=False)
    for place, column in enumerate(columns):
        axis: Any = figure.add_subplot(1, len(columns), place + 1, projection="polar")
        part = frame[frame["column"] == column]
        means = part.groupby("domain", sort=False)[list(metrics)].mean()
        for number, (domain, row) in enumerate(means.iterrows()):
            values = [_share(metric, float(row[metric]), means, column) for metric in metrics]
            axis.plot(np.append(angles, angles[0]), [*values, values[0]], color=_colour(2 * number), label=str(domain))
        axis.set_xticks(angles, [_radar_name(metric) for metric in metrics])
        axis.set_ylim(0, max(1.05, axis.get_ylim()[1]))
        axis.set_rlabel_position(np.degrees(angles[1] / 2.0))  # between two spokes, where there is no label
        axis.tick_params(axis="y", labelsize=7, labelcolor="0.4")
        axis.tick_params(axis="x", pad=8)
        axis.set_title(column)
        if len(means):
            axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
    return figure


def _radar_name(metric: str) -> str:
    name = {"acyclic": "acyclic share"}.get(metric, TITLES.get(metric, metric))
    return f"{name} ratio" if metric in LOWER else name


def _share(metric: str, value: float, means: pd.DataFrame, column: str) -> float:
    if metric not in LOWER:
        return value
    base = float(means.loc[column, metric]) if column in means.index else float("nan")
    return base / value if value else 1.0


def scaling_picture(frame: pd.DataFrame, columns: Sequence[str]) -> Figure:
    """AUPRC against the number of rows, one line per number of variables; bars are quartiles."""
    figure = new_figure(3.8 * len(columns), 3.4)
    axes = figure.subplots(1, len(columns), squeeze=False)[0]
    for axis, column in zip(axes, columns, strict=True):
        part = frame[frame["column"] == column]
        for number, (d, group) in enumerate(part.groupby("d")):
            grouped = group.groupby("n")["auprc"]
            mean, low, high = grouped.mean(), grouped.quantile(0.25), grouped.quantile(0.75)
            error = np.clip([mean - low, high - mean], 0.0, None)
            axis.errorbar(
                mean.index, mean, yerr=error, color=_colour(2 * number), marker="o", markersize=3, label=f"d = {d}"
            )
        axis.set(xscale="log", ylim=(0, 1), title=column)
        axis.set_xlabel("rows n")
        axis.set_ylabel("AUPRC")
        if len(part):
            axis.legend(fontsize=7)
    return figure


def sachs_picture(edges: pd.DataFrame, sections: Sequence[str]) -> Figure:
    """The prediction of each method; every section begins with the reference graph. Rows cause columns.

    edges: one row per section, row (method, or "reference"), source and target, with probability; others are 0.
    """
    width = 6
    names = list(dict.fromkeys([*edges["source"], *edges["target"]]))
    place_of = {name: place for place, name in enumerate(names)}
    panels: list[tuple[str, np.ndarray] | None] = []
    for section in sections:
        part = edges[edges["section"] == section]
        labels = row_labels(part[part["row"] != REFERENCE])
        for label in [REFERENCE, *labels]:
            matrix = np.zeros((len(names), len(names)))
            mine = part[part["row"] == label]
            matrix[mine["source"].map(place_of), mine["target"].map(place_of)] = mine["probability"]
            title = f"{REFERENCE}\n({section})" if label == REFERENCE else method_title(label)
            panels.append((title, matrix))
        panels += [None] * (-len(panels) % width)  # the next section begins a new line
    height = len(panels) // width
    figure = new_figure(1.75 * width, 1.95 * height + 0.3)
    for place, (axis, panel) in enumerate(zip(figure.subplots(height, width, squeeze=False).flat, panels, strict=True)):
        if panel is None:
            axis.set_axis_off()
            continue
        title, matrix = panel
        axis.imshow(matrix, vmin=0, vmax=1, cmap="Blues")
        axis.set_title(title, fontsize=8)
        axis.set_xticks([])
        axis.set_yticks(range(len(names)) if place % width == 0 else [])
        if place % width == 0:
            axis.set_yticklabels(names, fontsize=5)
    figure.suptitle("rows cause columns", fontsize=8, color="0.4")
    return figure
