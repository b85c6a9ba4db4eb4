"""Pictures of the experiments. Figures are made without pyplot: no window and no global state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from presage.bench.tables import LOWER, TITLES, method_title
from presage.files import atomic_write
from presage.metrics import calibration_curve

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["calibration_picture", "new_figure", "radar_picture", "sachs_picture", "save", "scaling_picture"]

Predictions = Mapping[tuple[str, str, str], Sequence[tuple[np.ndarray, np.ndarray]]]
"""(section, column, method) -> pairs of true graph and edge probabilities."""


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


def calibration_picture(predictions: Predictions, columns: Sequence[str], sections: Sequence[str]) -> Figure:
    """Share of true edges against predicted probability, all test cases together; bars show how often we say what."""
    figure = new_figure(3.6 * len(columns), 3.4 * len(sections))
    axes = figure.subplots(len(sections), len(columns), squeeze=False)
    labels = sorted({label for _, _, label in predictions}, key=lambda label: (label == "presage", label))
    for row, section in enumerate(sections):
        for place, column in enumerate(columns):
            axis = axes[row, place]
            axis.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=1)
            for number, label in enumerate(labels):
                pairs = predictions.get((section, column, label))
                if not pairs:
                    continue
                curve = calibration_curve([truth for truth, _ in pairs], [guess for _, guess in pairs])
                seen = curve.count > 0
                ours = label.startswith("presage")
                axis.plot(
                    curve.predicted[seen],
                    curve.empirical[seen],
                    marker="o",
                    markersize=3,
                    color="black" if label == "presage" else _colour(number),
                    linewidth=2 if ours else 1,
                    label=method_title(label, starred=True),
                )
                if ours:
                    share = curve.count / curve.count.sum()
                    axis.bar((np.arange(10) + 0.5) / 10, share, width=0.09, color="0.85", zorder=0)
            axis.set(xlim=(0, 1), ylim=(0, 1), title=f"{column}, {section}")
            axis.set_xlabel("predicted probability")
            axis.set_ylabel("share of true edges")
            if axis.get_legend_handles_labels()[0]:
                axis.legend(fontsize=6, loc="upper left")
    return figure


def radar_picture(frame: pd.DataFrame, columns: Sequence[str], metrics: Sequence[str]) -> Figure:
    """Mean metrics under each shift; SHD and SID as in-distribution value over value, so that outside is better."""
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
        axis.set_rlabel_position(np.degrees(angles[1] / 2.0))  # between two spokes, where no name stands
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


def sachs_picture(predictions: Predictions, names: Sequence[str], truth: np.ndarray, sections: Sequence[str]) -> Figure:
    """The prediction of each method; every section begins with the reference graph. Rows cause columns."""
    width = 6
    panels: list[tuple[str, np.ndarray] | None] = []
    for section in sections:
        panels.append((f"reference\n({section})", truth))
        panels += [
            (method_title(label), found[0][1]) for (where, _, label), found in predictions.items() if where == section
        ]
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
