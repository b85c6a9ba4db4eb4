"""The paper's gene expression domain: regulatory networks, stochastic expression, sequencing noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from presage.config import param, register
from presage.domain.domain import Domain
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
    """Single-cell counts; each dataset draws a graph model, kinetic parameters and a platform uniformly.

    Each intervention perturbs one gene (a knockout unless `dynamics` specifies a knockdown), balanced over all genes.
    """

    kind: ClassVar[Kind] = "counts"
    acyclic: ClassVar[bool] = False

    graphs: tuple[GraphModel, ...] = param(min_length=1)
    dynamics: Dynamics = _TRAINING
    platforms: tuple[Platform, ...] = param((PLATFORMS["10x-chromium"],), min_length=1)

    @property
    def soft_interventions(self) -> bool:
        return self.dynamics.perturbation != "knockout"

    def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        model = self.graphs[int(rng.integers(len(self.graphs)))]
        if isinstance(model, RegulatorySubgraph):
            subgraph = model.extract(rng, d)
        else:
            subgraph = Subgraph(model.sample(rng, d), tuple(f"g{j}" for j in range(d)))
        kinetics = self.dynamics.kinetics(rng, subgraph)
        design = design_cells(rng, d=d, cell_types=kinetics.basal.shape[1], n=n, n_perturbed=n_interventional)
        clean = simulate_expression(
            rng,
            subgraph.graph,
            kinetics,
            design,
            half_response=self.dynamics.half_response,
            perturbation=self.dynamics.perturbation,
            cyclic=self.dynamics.cyclic,
        )
        mask = design.target[:, None] == np.arange(d)  # [n, d]
        platform = self.platforms[int(rng.integers(len(self.platforms)))]
        return {
            "x": platform.measure(rng, clean),
            "interventions": mask,
            "graph": subgraph.graph,
            "names": subgraph.names,
            "annotations": {"cell_type": design.cell_type},
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
    """The paper's gene domain with the given components ("graph", "mechanism", "noise") out of distribution.

    Effect signs belong to the mechanism. If only the mechanism is shifted, graphs have no published signs, and each
    gene draws its fraction of activating effects from the distribution fitted to E. coli.
    """
    return GeneDomain(
        graphs=_GRAPHS["graph" in shifts],
        dynamics=_DYNAMICS["mechanism" in shifts],
        platforms=_PLATFORMS["noise" in shifts],
    )
