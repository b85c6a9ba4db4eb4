"""Redraw the figures of docs/tutorial.md and docs/gallery.md with the default model.

    python scripts/draw_pages.py

The figures of the tutorial need the Sachs data, which `presage.load_sachs` downloads once.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import presage
from presage.report.plots import calibration_figure, figure_bytes

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
COLOURS = {"observational": "#2f6fad", "other targets": "#c3cad4", "target": "#c2571a"}
DATASETS = 20


def scatter_figure(dataset: presage.Dataset, target: str, others: tuple[str, ...]) -> Figure:
    """Scatter plots of a target of interventions and other variables; rows coloured by what was intervened on."""
    i = dataset.names.index(target)
    anything, chosen = dataset.interventions.any(axis=1), dataset.interventions[:, i]
    groups = {"other targets": anything & ~chosen, "observational": ~anything, "target": chosen}
    figure = Figure(figsize=(9.0, 3.9), layout="constrained")
    for panel, other in zip(figure.subplots(1, len(others)), others, strict=True):
        y = dataset.x[:, dataset.names.index(other)]
        for name, rows in groups.items():
            label = f"{target} intervened on" if name == "target" else name
            panel.scatter(dataset.x[rows, i], y[rows], s=4, alpha=0.4, color=COLOURS[name], label=label, linewidths=0)
        panel.set(xlabel=target, ylabel=other)
        panel.legend(frameon=False, fontsize=8, markerscale=3)
    return figure


def ranking_figure(result: presage.Result, truth: np.ndarray) -> Figure:
    """True edges among the k most probable ones, compared with a random ranking."""
    names = list(result.names)
    edges = result.top(40)
    correct = [bool(truth[names.index(a), names.index(b)]) for a, b in zip(edges["source"], edges["target"])]
    k = np.arange(1, len(correct) + 1)
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.step(k, np.cumsum(correct), where="post", color="#0b3c6f", label=f"model {result.model}")
    axes.plot(k, k * truth.sum() / (len(truth) * (len(truth) - 1)), "--", color="#8a94a3", label="random ranking")
    axes.set_xlabel("most probable edges")
    axes.set_ylabel("of which in the consensus graph")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def pooled_calibration(domain: str) -> Figure:
    """Calibration of the default model over several test datasets of a domain."""
    batch = presage.simulate(domain, d=20, n=300, n_interventional=100, seed=7, size=DATASETS)
    predicted = np.stack([presage.discover(dataset).matrix for dataset in batch])
    return calibration_figure(predicted, batch.graph)


def write(name: str, figure: Figure, dpi: int = 80) -> None:
    """Write a figure to docs/images."""
    (IMAGES / f"{name}.png").write_bytes(figure_bytes(figure, dpi=dpi))
    print(f"wrote {name}.png")


def main() -> None:
    """Write all figures."""
    for name in ("linear", "rff-ood"):
        write(f"gallery-{name}", presage.discover(presage.load_example(name)).plot())
    write("gallery-grn", presage.discover(presage.load_example("grn"), model="grn").plot())
    write("gallery-calibration", pooled_calibration("rff"))
    proteins = presage.load_sachs()
    result = presage.discover(proteins)
    write("sachs-scatter", scatter_figure(proteins, "mek", ("raf", "erk")))
    write("sachs-result", result.plot())
    write("sachs-ranking", ranking_figure(result, np.asarray(proteins.graph)))


if __name__ == "__main__":
    main()
