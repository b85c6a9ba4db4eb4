"""The example of `./run demo`: simulate a dataset, print its graph, draw it."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["main"]


def main(folder: str = "demo") -> None:
    """Write graph.png and dataset.npz into `folder` and print the graph."""
    import matplotlib

    matplotlib.use("Agg")
    import networkx as nx
    import numpy as np
    from matplotlib.figure import Figure

    import presage
    from presage.files import atomic_write

    out = Path(folder)
    dataset = presage.simulate("rff", d=10, n=200, n_interventional=100, seed=0)
    graph = dataset.graph
    sources, targets = np.nonzero(graph)
    print(dataset)
    print("true graph, cause -> effect:")
    for i in range(dataset.d):
        effects = ", ".join(dataset.names[j] for j in targets[sources == i])
        if effects:
            print(f"  {dataset.names[i]} -> {effects}")

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    drawn = nx.DiGraph([(dataset.names[i], dataset.names[j]) for i, j in zip(sources, targets, strict=True)])
    drawn.add_nodes_from(dataset.names)
    nx.draw_networkx(drawn, nx.circular_layout(drawn), ax=left, node_color="#d7e3f4", node_size=700, font_size=9)
    left.set_title("true graph")
    left.set_axis_off()
    i, j = int(sources[0]), int(targets[0])
    free = ~dataset.interventions[:, j]
    right.scatter(dataset.x[free, i], dataset.x[free, j], s=12)
    right.set(xlabel=dataset.names[i], ylabel=dataset.names[j], title=f"{dataset.names[i]} causes {dataset.names[j]}")

    with atomic_write(out / "graph.png") as file:
        figure.savefig(file, format="png", dpi=120)
    with atomic_write(out / "dataset.npz") as file:
        np.savez(file, x=dataset.x, interventions=dataset.interventions, graph=graph, names=np.array(dataset.names))
    print(f"wrote {out / 'graph.png'} and {out / 'dataset.npz'}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
