"""The gene expression domain."""

import json

import numpy as np
import pytest

from presage.config import from_json, to_json
from presage.domain.catalog import SHIFTS, domains, get_domain, simulate
from presage.domain.genes import GeneDomain, grn_domain
from presage.errors import ConfigError
from presage.graphs.ops import is_acyclic
from presage.graphs.random import ErdosRenyi, ScaleFreeOut
from presage.graphs.regulatory import BetaSigns, NetworkSigns, RegulatorySubgraph, load_network
from presage.rng import Stream, generator
from presage.simulators.grn import Dynamics

NAMES = ["grn", "grn-ood", "grn+graph", "grn+mechanism", "grn+noise"]
NAMES += ["grn+graph+mechanism", "grn+graph+noise", "grn+mechanism+noise"]


def test_all_shifts_are_in_the_catalog() -> None:
    assert [name for name in domains() if name.startswith("grn")] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_dataset_is_counts_of_named_genes_with_knockouts(name: str) -> None:
    dataset = simulate(name, d=12, n=60, n_interventional=24, seed=1)
    assert dataset.kind == "counts"
    assert dataset.x.shape == (60, 12)
    assert np.array_equal(dataset.x, np.floor(dataset.x))
    assert dataset.graph is not None
    assert is_acyclic(dataset.graph)
    assert not dataset.interventions[:36].any()
    assert (dataset.interventions[36:].sum(axis=1) == 1).all()
    assert (dataset.interventions.sum(axis=0) == 2).all()  # every gene is a target
    assert not dataset.x[dataset.interventions].any()  # a knocked-out gene has no counts
    types = 10 if "mechanism" in name or name == "grn-ood" else 5
    assert set(dataset.annotations["cell_type"]) == set(range(types))
    real = {gene for network in ("ecoli", "yeast") for gene in load_network(network).genes}
    if "graph" in name or name == "grn-ood":
        assert set(dataset.names) <= real
    else:
        assert dataset.names == tuple(f"g{j}" for j in range(12))


def test_domains_match_the_papers_table() -> None:
    inside, outside = grn_domain(frozenset()), grn_domain(frozenset(SHIFTS))
    assert inside.graphs == (ErdosRenyi(), ScaleFreeOut(power=(0.5, 0.8, 1.0, 1.2, 1.5)))
    assert inside.dynamics == Dynamics(
        cell_types=(5,),
        decay=(0.7, 0.8, 0.9),
        noise=(0.9, 1.0, 1.1),
        hill=(1.9, 2.0, 2.1),
        basal=((1.0, 3.0),),
        strength=((1.0, 5.0),),
        signs=(BetaSigns(a=1.0, b=1.0), BetaSigns(a=0.5, b=0.5)),
    )
    assert [platform.name for platform in inside.platforms] == ["10x-chromium"]
    assert outside.graphs == (RegulatorySubgraph(network=("ecoli",)), RegulatorySubgraph(network=("yeast",)))
    numbers = {"decay": (0.5, 1.5), "noise": (0.5, 1.5), "hill": (1.5, 2.5), "cell_types": (10,)}
    ranges = {"basal": ((0.5, 2.0), (2.0, 4.0)), "strength": ((1.0, 3.0), (3.0, 7.0))}
    assert outside.dynamics == Dynamics(**numbers, **ranges, signs=(NetworkSigns(a=0.2588, b=0.2499),))
    assert [platform.name for platform in outside.platforms] == ["illumina-hiseq2000", "drop-seq", "smart-seq"]
    for domain in (inside, outside):
        assert (domain.kind, domain.acyclic) == ("counts", False)
        assert (domain.dynamics.half_response, domain.dynamics.perturbation) == ("experiment", "knockout")


def test_partial_shifts_replace_their_component_only() -> None:
    inside, outside = grn_domain(frozenset()), grn_domain(frozenset(SHIFTS))
    for shift, field in (("graph", "graphs"), ("mechanism", "dynamics"), ("noise", "platforms")):
        domain = grn_domain(frozenset({shift}))
        for other in ("graphs", "dynamics", "platforms"):
            source = outside if other == field else inside
            assert getattr(domain, other) == getattr(source, other)


def test_dataset_does_not_depend_on_its_batch() -> None:
    domain = get_domain("grn-ood")
    batch = domain.sample(d=6, n=30, n_interventional=12, seed=5, size=4)
    alone = domain.draw(generator(5, Stream.TEST, 3), d=6, n=30, n_interventional=12)
    assert np.array_equal(batch[3].x, alone["x"])
    assert batch[3].names == alone["names"]
    assert not np.array_equal(batch[2].x, batch[3].x)


@pytest.mark.parametrize(("d", "n", "perturbed"), [(1, 5, 0), (2, 1, 1), (7, 9, 9), (5, 40, 0), (30, 20, 7)])
def test_extreme_sizes(d: int, n: int, perturbed: int) -> None:
    for name in ("grn", "grn-ood"):
        dataset = simulate(name, d=d, n=n, n_interventional=perturbed, seed=2)
        assert dataset.x.shape == (n, d)
        assert dataset.interventions.any(axis=1).sum() == perturbed
        assert set(np.flatnonzero(dataset.interventions.any(axis=1))) == set(range(n - perturbed, n))


def test_domains_round_trip_through_json() -> None:
    for name in NAMES:
        domain = get_domain(name)
        assert from_json(json.loads(json.dumps(to_json(domain)))) == domain


def test_too_many_genes_raise() -> None:
    with pytest.raises(ConfigError, match="connected set"):
        GeneDomain(graphs=(RegulatorySubgraph(network=("ecoli",)),)).draw(
            np.random.default_rng(0), d=1500, n=5, n_interventional=0
        )
    with pytest.raises(ConfigError, match="platforms"):
        GeneDomain(graphs=(ErdosRenyi(),), platforms=())


def test_knockdown_domain_leaves_some_expression() -> None:
    domain = GeneDomain(graphs=(ErdosRenyi(edges_per_node=(1.0,)),), dynamics=Dynamics(perturbation="knockdown"))
    raw = domain.draw(np.random.default_rng(0), d=10, n=400, n_interventional=400)
    assert raw["x"][raw["interventions"]].any()


def test_cycles_of_real_networks_can_be_kept() -> None:
    graphs = RegulatorySubgraph(network=("ecoli",), acyclic=False)
    domain = GeneDomain(graphs=(graphs,), dynamics=Dynamics(cyclic=True))

    def has_cycle(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        rng.integers(1)  # the domain chooses among its one graph model
        return not is_acyclic(graphs.extract(rng, 12).graph)

    raw = domain.draw(np.random.default_rng(next(filter(has_cycle, range(200)))), d=12, n=40, n_interventional=12)
    assert not is_acyclic(raw["graph"])
    assert not raw["graph"].diagonal().any()
    assert raw["x"].any()
    assert not raw["x"][raw["interventions"]].any()


def test_listing_domains_does_not_load_the_compiler() -> None:
    import subprocess
    import sys

    code = "import sys; from presage.domain.catalog import domains; domains(); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
