"""`./run demo`: discovery on a bundled example with a bundled model, compared with the true graph."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["main"]

EXAMPLE, MODEL = "rff", "general"


def main(folder: str = "demo") -> None:
    """Print the edges and whether they are in the true graph; write report, tables and pictures to `folder`."""
    import numpy as np

    import presage
    from presage.files import atomic_write
    from presage.report.plots import figure_bytes, reliability_figure

    dataset = presage.load_example(EXAMPLE)
    truth = dataset.graph
    if truth is None:
        raise presage.InputError(f"the example {EXAMPLE!r} has no true graph")
    model = presage.load_model(MODEL)
    result = presage.discover(dataset, model=model)
    print(f"{dataset}, simulated ({EXAMPLE}); model {model.name!r}: {model.metadata.get('card', {}).get('about', '')}")
    print("\nprobability  edge                 truth")
    found = result.adjacency(acyclic=False)
    for source, target, value, *_ in result.edges().itertuples(index=False):
        true = truth[dataset.names.index(source), dataset.names.index(target)]
        print(f"{value:>11.2f}  {source + ' -> ' + target:<20} {'yes' if true else 'no'}")
    missed = [(i, j) for i, j in np.argwhere(truth) if not found[i, j]]
    for i, j in sorted(missed, key=lambda edge: -result.matrix[edge[0], edge[1]]):
        edge = f"{dataset.names[i]} -> {dataset.names[j]}"
        print(f"{result.matrix[i, j]:>11.2f}  {edge:<20} yes, but missed at 0.5")
    scores = presage.metrics.evaluate(truth, result.matrix)
    shown = ("shd", "sid", "f1", "precision", "recall", "auroc", "auprc", "ece")
    print("\n" + "  ".join(f"{key} {scores[key]:.3g}" for key in shown))
    for warning in result.warnings:
        print(f"warning: {warning}")
    out = result.save(folder)
    with atomic_write(out / "calibration.png") as file:
        file.write(figure_bytes(reliability_figure(model.card.calibration)))
    print(f"\nwrote {Path(out) / 'report.html'} (open it in a browser), graph.png, calibration.png, edges.csv and more")


if __name__ == "__main__":
    from presage.errors import PresageError

    try:
        main(*sys.argv[1:2])
    except PresageError as error:
        print(f"presage: {error}", file=sys.stderr)
        sys.exit(2)
