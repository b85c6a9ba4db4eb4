"""Draw the learning curve of the model `general` by stratum: docs/images/general-learning.png.

    python scripts/draw_learning.py [FOLDER]

FOLDER holds the stages of a model, 1/metrics.jsonl and so on (default: records/general). Validation datasets were
sampled anew at the dotted lines, so only points between two lines are comparable. For each such part that doubles the
training datasets the script prints what a doubling changed, by least squares of the mean over the strata on the
logarithm of the number of datasets.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import linregress

ROOT = Path(__file__).resolve().parents[1]
LINE_COLOURS = plt.get_cmap("tab10").colors  # type: ignore[attr-defined]
RESAMPLED = 195_000
"""Training datasets of the first stage after which the domain, and thus the validation datasets, changed."""
MIN_GROWTH = 2.0
"""Parts with a smaller ratio of the last to the first number of datasets say nothing about a doubling."""

Point = dict[str, Any]


def read_parts(folder: Path) -> list[list[Point]]:
    """Validations with comparable datasets; "datasets" counts those of all stages up to a point."""
    parts: list[list[Point]] = []
    earlier = 0
    for number in range(1, 1 + len([path for path in folder.iterdir() if path.name.isdigit()])):
        lines = (folder / str(number) / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        entries = [json.loads(line) for line in lines]
        points = [entry for entry in entries if entry["event"] == "validation"]
        split = RESAMPLED if number == 1 else 0
        for part in ([p for p in points if p["datasets"] <= split], [p for p in points if p["datasets"] > split]):
            if part:
                parts.append([{**point, "datasets": earlier + point["datasets"]} for point in part])
        earlier += entries[-1]["datasets"]
    return parts


def per_doubling(datasets: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Slope of values against log2(datasets), with its standard error."""
    found = linregress(np.log2(datasets), values)
    return float(found.slope), float(found.stderr)


def draw(parts: list[list[Point]], path: Path) -> None:
    """Curves of every stratum and their mean, a line per part."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    strata = [key.removeprefix("nll_") for key in parts[-1][-1] if key.startswith("nll_")]
    for axes, metric, title in ((left, "nll", "negative log-likelihood per pair"), (right, "auprc", "AUPRC")):
        for part in parts:
            datasets = [point["datasets"] for point in part]
            for stratum, colour in zip(strata, LINE_COLOURS, strict=False):
                if f"{metric}_{stratum}" in part[0]:
                    values = [point[f"{metric}_{stratum}"] for point in part]
                    label = stratum.replace("_", " ") if part is parts[-1] else None
                    axes.plot(datasets, values, color=colour, linewidth=1, label=label)
            label = "mean" if part is parts[-1] else None
            axes.plot(datasets, [point[metric] for point in part], color="black", linewidth=2, label=label)
            if part is not parts[0]:
                axes.axvline(part[0]["datasets"], color="grey", linestyle="dotted", linewidth=1)
        axes.set(xlabel="training datasets (thousands)", title=title)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:.0f}")
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*right.get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Draw the curve and print the slopes."""
    parts = read_parts(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "records" / "general")
    draw(parts, ROOT / "docs" / "images" / "general-learning.png")
    for part in parts:
        datasets = np.array([point["datasets"] for point in part])
        first, last = part[0], part[-1]
        print(
            f"{datasets[0]:,} to {datasets[-1]:,} datasets: NLL {first['nll']:.4f} -> {last['nll']:.4f}, "
            f"AUPRC {first['auprc']:.3f} -> {last['auprc']:.3f}"
        )
        if datasets[-1] < MIN_GROWTH * datasets[0]:
            continue
        for metric in ("nll", "auprc", "f1", "sign", "confounded"):
            if metric in first:
                values = np.array([point[metric] for point in part])
                print("  {}: {:+.4f} ± {:.4f} per doubling".format(metric, *per_doubling(datasets, values)))


if __name__ == "__main__":
    main()
