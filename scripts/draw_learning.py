"""Draw the learning curve of the model `general` by stratum: docs/images/general-learning.png.

    python scripts/draw_learning.py [METRICS]

METRICS is the metrics.jsonl of a run (default: that of the released model). Prints what a doubling of the training
datasets changed, by least squares of the mean over the strata on the logarithm of the number of datasets. Only points
after the dotted line count: the validation datasets were sampled anew there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import linregress

ROOT = Path(__file__).resolve().parents[1]
LINE_COLOURS = plt.get_cmap("tab10").colors  # type: ignore[attr-defined]


RESAMPLED = 195_000
"""The number of training datasets at which the validation datasets were sampled anew."""


def per_doubling(datasets: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Slope of values against log2(datasets), with its standard error."""
    found = linregress(np.log2(datasets), values)
    return float(found.slope), float(found.stderr)


def main() -> None:
    """Draw the curve and print the extrapolation."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "records" / "general" / "1" / "metrics.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    points = [record for record in records if record["event"] == "validation"]
    datasets = np.array([point["datasets"] for point in points])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    strata = [key.removeprefix("nll_") for key in points[-1] if key.startswith("nll_")]
    for axes, metric, title in ((left, "nll", "negative log-likelihood per pair"), (right, "auprc", "AUPRC")):
        for stratum, colour in zip(strata, LINE_COLOURS, strict=False):
            values = [point[f"{metric}_{stratum}"] for point in points]
            axes.plot(datasets, values, color=colour, linewidth=1, label=stratum.replace("_", " "))
        axes.plot(datasets, [point[metric] for point in points], color="black", linewidth=2, label="mean")
        axes.axvline(RESAMPLED, color="grey", linestyle="dotted", linewidth=1)
        axes.set(xscale="log", xlabel="training datasets", title=title)
        axes.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False, fontsize=7)
    for axes in (left, right):
        axes.set_xticks(
            [25_000, 50_000, 100_000, 200_000, 400_000], ["25k", "50k", "100k", "200k", "400k"], minor=False
        )
        axes.minorticks_off()
    figure.savefig(ROOT / "docs" / "images" / "general-learning.png", dpi=110)
    late = datasets > RESAMPLED
    print(f"{datasets[-1]:,} datasets: NLL {points[-1]['nll']:.4f}, AUPRC {points[-1]['auprc']:.3f}")
    for metric in ("nll", "auprc", "f1", "sign", "confounded"):
        values = np.array([point[metric] for point in points])
        print("{}: {:+.4f} ± {:.4f} per doubling".format(metric, *per_doubling(datasets[late], values[late])))


if __name__ == "__main__":
    main()
