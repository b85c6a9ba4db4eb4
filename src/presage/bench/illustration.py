"""Illustration of the domains: graphs, mechanisms and noise, in distribution (top) or out of it (bottom)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from presage.bench.figures import new_figure
from presage.domain.catalog import get_domain
from presage.domain.domain import ScmDomain
from presage.errors import ConfigError
from presage.graphs.ops import topological_order
from presage.rng import Stream, generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["illustrate"]

COVERAGES = (0.66, 0.95, 0.999)
SIDE = 60
DRAWS = 2000


def _scm(name: str) -> ScmDomain:
    domain = get_domain(name)
    if not isinstance(domain, ScmDomain):
        raise ConfigError(f"{name} is not made of graphs, mechanisms and noise, so this figure cannot show it")
    return domain


def _sorted_graph(graph: np.ndarray) -> np.ndarray:
    order = topological_order(graph)
    found: np.ndarray = graph[np.ix_(order, order)]
    return found


def illustrate(family: str = "rff", *, d: int = 30, seed: int = 0) -> Figure:
    """Sorted adjacency matrices, mechanisms of two parents, and noise as a function of one parent."""
    domains = [_scm(family), _scm(f"{family}-ood")]
    graphs = max(len(domain.graphs) for domain in domains)
    figure = new_figure(1.7 * (graphs + 4), 3.8)
    axes = figure.subplots(2, graphs + 4)
    reach = np.linspace(-10.0, 10.0, SIDE)
    inputs = np.stack(np.meshgrid(reach, reach), axis=-1).reshape(-1, 2)  # [SIDE * SIDE, 2]
    for row, domain in enumerate(domains):
        rng = generator(seed, Stream.TEST, row)
        for axis in axes[row]:
            axis.set_xticks([])
            axis.set_yticks([])
        for place in range(graphs):
            if place >= len(domain.graphs):
                axes[row, place].set_axis_off()
                continue
            model = domain.graphs[place]
            axes[row, place].imshow(_sorted_graph(model.sample(rng, d)), cmap="Greys", vmin=0, vmax=1)
            axes[row, place].set_title(type(model).__name__, fontsize=7)
        for place in range(2):
            function = domain.mechanisms[0].resolve(rng).function(rng, 2)
            axes[row, graphs + place].imshow(function(inputs).reshape(SIDE, SIDE), cmap="viridis")
            axes[row, graphs + place].set_title("mechanism", fontsize=7)
        for place in range(2):
            axis = axes[row, graphs + 2 + place]
            draw = domain.noises[0].resolve(rng).sampler(rng, 1)
            values = np.stack([draw(rng, np.full((DRAWS, 1), parent)) for parent in reach])  # [SIDE, DRAWS]
            for coverage in COVERAGES:
                low, high = np.quantile(values, [(1 - coverage) / 2, (1 + coverage) / 2], axis=1)
                axis.plot(reach, low, color="0.3", linestyle="--", linewidth=0.7)
                axis.plot(reach, high, color="0.3", linestyle="--", linewidth=0.7)
            axis.plot(reach, values[:, :20], ".", color="tab:blue", markersize=1)
            axis.set_yscale("symlog")
            axis.set_title("noise", fontsize=7)
        axes[row, 0].set_ylabel("in distribution" if row == 0 else "out of distribution", fontsize=8)
    return figure
