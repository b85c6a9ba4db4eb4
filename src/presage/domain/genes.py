"""The gene domain of the paper: regulatory networks, stochastic expression, sequencing noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from presage.config import register
from presage.domain.domain import Domain
from presage.errors import ConfigError
from presage.graphs.random import ErdosRenyi, GraphModel, ScaleFreeOut
from presage.graphs.regulatory import NetworkSigns, RegulatorySubgraph, Subgraph
from presage.simulators.grn import Dynamics, design_cells, simulate_expression
from presage.simulators.sequencing import PLATFORMS, Platform
from presage.types import Kind

__all__ = ["GeneDomain", "grn_domain"]

_TRAINING = Dynamics()


@register
@dataclass(frozen=True, kw_only=True)
class GeneDomain(Domain):
    """Counts of a single-cell experiment: each dataset draws a graph model, kinetics and a platform, uniformly.

    Interventions are perturbations of one gene each (knockouts, unless `dynamics` says otherwise), in equal shares
    over all genes.
    """

    kind: ClassVar[Kind] = "counts"
    acyclic: ClassVar[bool] = False

    graphs: tuple[GraphModel, ...]
    dynamics: Dynamics = _TRAINING
    platforms: tuple[Platform, ...] = (PLATFORMS["10x-chromium"],)

    def check(self) -> None:
        for name, kind in (("graphs", GraphModel), ("platforms", Platform)):
            parts = getattr(self, name)
            if not isinstance(parts, tuple) or not parts or not all(isinstance(part, kind) for part in parts):
                raise ConfigError(f"{name} must be a tuple of at least one {kind.__name__}")

    def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        model = self.graphs[int(rng.integers(len(self.graphs)))]
        if isinstance(model, RegulatorySubgraph):
            subgraph = model.extract(rng, d)
        else:
            subgraph = Subgraph(model.sample(rng, d), tuple(f"g{j}" for j in range(d)))
        kinetics = self.dynamics.kinetics(rng, subgraph)
        layout = design_cells(rng, d=d, cell_types=kinetics.basal.shape[1], n=n, n_perturbed=n_interventional)
        clean = simulate_expression(
            rng,
            subgraph.graph,
            kinetics,
            layout,
            half_response=self.dynamics.half_response,
            perturbation=self.dynamics.perturbation,
            cyclic=self.dynamics.cyclic,
        )
        mask = layout.target[:, None] == np.arange(d)  # [n, d]
        platform = self.platforms[int(rng.integers(len(self.platforms)))]
        return {
            "x": platform.measure(rng, clean),
            "interventions": mask,
            "graph": subgraph.graph,
            "names": subgraph.names,
            "annotations": {"cell_type": layout.cell_type},
        }


# Table "Specification of the training and out-of-distribution data-generating processes" of the Gene domain.
_GRAPHS: dict[bool, tuple[GraphModel, ...]] = {
    False: (ErdosRenyi(), ScaleFreeOut(power=(0.5, 0.8, 1.0, 1.2, 1.5))),
    True: (RegulatorySubgraph(network=("ecoli",)), RegulatorySubgraph(network=("yeast",))),
}
_DYNAMICS = {
    False: _TRAINING,
    True: Dynamics(
        cell_types=(10,),
        decay=(0.5, 1.5),
        noise=(0.5, 1.5),
        hill=(1.5, 2.5),
        basal=((0.5, 2.0), (2.0, 4.0)),
        strength=((1.0, 3.0), (3.0, 7.0)),
        signs=(NetworkSigns(),),
    ),
}
_PLATFORMS = {
    False: (PLATFORMS["10x-chromium"],),
    True: tuple(PLATFORMS[name] for name in ("illumina-hiseq2000", "drop-seq", "smart-seq")),
}


def grn_domain(shifts: frozenset[str]) -> GeneDomain:
    """The paper's gene domain with some of its parts ("graph", "mechanism", "noise") out of distribution.

    Effect signs belong to the mechanism: with a shifted mechanism alone, graphs have no published signs and each gene
    draws its own share of activating effects from the fit to E. coli.
    """
    return GeneDomain(
        graphs=_GRAPHS["graph" in shifts],
        dynamics=_DYNAMICS["mechanism" in shifts],
        platforms=_PLATFORMS["noise" in shifts],
    )
