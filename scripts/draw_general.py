"""Draw twelve datasets of the domain `general` as scatter matrices of five columns: docs/images/general.png.

python scripts/draw_general.py [SEED]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from presage.columns import ColumnKind
from presage.domain.general import GeneralDomain
from presage.rng import Stream, generator

SHOWN = 5
ROWS = 250
SIZES = ((10, 0), (10, 100))  # (d, interventional rows) in turn
COLOURS = {"edge": "#1f4e9e", "confounded": "#b3541e", "none": "#9a9a9a"}


def draw_dataset(axes: np.ndarray, data: dict[str, Any], rng: np.random.Generator) -> None:
    """One scatter matrix: histograms on the diagonal, blue if an edge connects the pair, orange if it is confounded."""
    order = np.argsort(-(data["graph"].sum(axis=0) + data["graph"].sum(axis=1)), kind="stable")[:SHOWN]
    intervened = data["interventions"].any(axis=1)
    for a, i in enumerate(order):
        for b, j in enumerate(order):
            axis = axes[a, b]
            axis.set_xticks([])
            axis.set_yticks([])
            for spine in axis.spines.values():
                spine.set_linewidth(0.4)
            kept = ~data["missing"][:, i] & ~data["missing"][:, j]
            x, y = data["x"][kept, j], data["x"][kept, i]
            if a == b:
                axis.hist(x, bins=24, color="#555555")
                axis.set_title(ColumnKind(int(data["column_kinds"][i])).name.lower(), fontsize=4.5, pad=1)
                continue
            if data["graph"][i, j] or data["graph"][j, i]:
                colour = COLOURS["edge"]
            else:
                colour = COLOURS["confounded" if data["confounded"][i, j] else "none"]
            jitter = 0.12 * rng.standard_normal((2, len(x)))
            x = x + jitter[0] * (data["column_kinds"][j] >= ColumnKind.BINARY)
            y = y + jitter[1] * (data["column_kinds"][i] >= ColumnKind.BINARY)
            alpha = np.where(intervened[kept], 0.25, 0.7)
            axis.scatter(x, y, s=0.7, color=colour, alpha=alpha, linewidths=0)


def main(seed: int, path: Path) -> None:
    """Write the picture."""
    domain, rng = GeneralDomain(), np.random.default_rng(seed)
    figure = plt.figure(figsize=(12, 9.4))
    for k, panel in enumerate(figure.subfigures(3, 4, wspace=0.02, hspace=0.02).ravel()):
        d, n_interventional = SIZES[k % len(SIZES)]
        stream = generator(seed, Stream.TEST, k)
        data = domain.draw(stream, d=d, n=ROWS + n_interventional, n_interventional=n_interventional)
        axes = panel.subplots(SHOWN, SHOWN, gridspec_kw={"wspace": 0.06, "hspace": 0.16})
        panel.subplots_adjust(left=0.03, right=0.97, bottom=0.03, top=0.9)
        draw_dataset(axes, data, rng)
        labels = f"{int(data['graph'].sum())} edges, {int(data['confounded'].sum()) // 2} confounded pairs"
        panel.suptitle(labels + (", interventional rows pale" if n_interventional else ""), fontsize=7, y=0.975)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 0,
        Path(__file__).resolve().parents[1] / "docs" / "images" / "general.png",
    )
