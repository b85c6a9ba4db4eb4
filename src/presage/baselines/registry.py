"""Every method with its manifest: settings, the paper's grid, and where it runs."""

from __future__ import annotations

from presage.baselines.api import Baseline
from presage.errors import ConfigError

__all__ = ["BASELINES", "get_baseline"]

_ALL = (
    Baseline(name="empty", title="Empty", entry="trivial:empty", reference="no edges", trivial=True),
    Baseline(
        name="random",
        title="Random",
        entry="trivial:random_graph",
        reference="a random acyclic graph",
        defaults={"edges_per_node": 2.0},
        trivial=True,
    ),
    Baseline(
        name="var-sort",
        title="VarSort",
        entry="trivial:variance_sort",
        reference="Reisach, Seiler, Weichwald (2021), Beware of the simulated DAG",
        trivial=True,
    ),
    Baseline(
        name="r2-sort",
        title="R2Sort",
        entry="trivial:r2_sort",
        reference="Reisach et al. (2023), A scale-invariant sorting criterion to find a causal order",
        trivial=True,
    ),
    Baseline(
        name="ges",
        title="GES",
        entry="causal_learn:ges",
        reference="Chickering (2003), Optimal structure identification with greedy search",
        extra="baselines",
    ),
    Baseline(
        name="lingam",
        title="LiNGAM",
        entry="ica_lingam:lingam",
        reference="Shimizu et al. (2006), A linear non-Gaussian acyclic model for causal discovery",
        defaults={"threshold": 0.0, "pruning": "blocks"},
    ),
    Baseline(
        name="direct-lingam",
        title="DirectLiNGAM",
        entry="causal_learn:direct_lingam",
        reference="Shimizu et al. (2011), DirectLiNGAM",
        extra="baselines",
        defaults={"threshold": 0.0},
    ),
    Baseline(
        name="pc",
        title="PC",
        entry="causal_learn:pc",
        reference="Spirtes, Glymour, Scheines (2000), Causation, prediction, and search",
        extra="baselines",
        defaults={"alpha": 1e-2, "test": "fisherz"},
        grid={"alpha": (1e-2, 1e-3, 1e-4), "test": ("fisherz", "hsic")},
        selection="truth",
    ),
    Baseline(
        name="ges-bdeu",
        title="GES (BDeu)",
        entry="pgmpy_:ges_bdeu",
        reference="Heckerman, Geiger, Chickering (1995), Learning Bayesian networks; GES for discrete columns",
        environment="classical",
        defaults={"equivalent_sample_size": 10.0},
        specialised=True,
    ),
    Baseline(
        name="ges-cg",
        title="GES (conditional Gaussian)",
        entry="pgmpy_:ges_conditional_gaussian",
        reference="Andrews, Ramsey, Cooper (2018), Scoring Bayesian networks of mixed variables",
        environment="classical",
        specialised=True,
    ),
    Baseline(
        name="fci",
        title="FCI",
        entry="causal_learn:fci",
        reference="Spirtes, Meek, Richardson (1995), Causal inference in the presence of latent variables",
        environment="classical",
        defaults={"alpha": 1e-2, "depth": 4},
        specialised=True,
    ),
    Baseline(
        name="grasp",
        title="GRaSP",
        entry="causal_learn:grasp",
        reference="Lam, Andrews, Ramsey (2022), Greedy relaxations of the sparsest permutation algorithm",
        extra="baselines",
        defaults={"depth": 3},
    ),
    Baseline(
        name="boss",
        title="BOSS",
        entry="causal_learn:boss",
        reference="Andrews et al. (2023), Fast scalable and accurate discovery of DAGs",
        extra="baselines",
    ),
    Baseline(
        name="dag-gnn",
        title="DAG-GNN",
        entry="dag_gnn:dag_gnn",
        reference="Yu et al. (2019), DAG-GNN: DAG structure learning with graph neural networks",
        defaults={"threshold": 0.3, "hidden": 16, "steps": 4000, "standardize": True, "holdout": False},
        grid={"threshold": (0.1, 0.2, 0.3), "hidden": (16, 64)},
        selection="likelihood",
    ),
    Baseline(
        name="notears",
        title="NOTEARS",
        entry="gcastle:notears",
        reference="Zheng et al. (2018), DAGs with NO TEARS",
        environment="gcastle",
        defaults={"penalty": 0.1, "threshold": 0.3, "standardize": True},
    ),
    Baseline(
        name="dagma",
        title="DAGMA",
        entry="gcastle:dagma",
        reference="Bello, Aragam, Ravikumar (2022), DAGMA",
        environment="gcastle",
        defaults={"penalty": 0.03, "threshold": 0.3, "standardize": True},
    ),
    Baseline(
        name="gran-dag",
        title="GraN-DAG",
        entry="neural:gran_dag",
        reference="Lachapelle et al. (2020), Gradient-based neural DAG learning",
        defaults={"hidden": 16, "neighbours": 0.5, "cutoff": 1e-3, "sparsity": 0.01, "steps": 6000, "holdout": False},
        grid={"neighbours": (0.5, 2.0), "hidden": (8, 32), "cutoff": (1e-3, 1e-5)},
        selection="likelihood",
    ),
    Baseline(
        name="gies",
        title="GIES",
        entry="gies_:gies",
        reference="Hauser, Buehlmann (2012), Characterization and greedy learning of interventional Markov equivalence",
        extra="baselines",
        interventions=True,
    ),
    Baseline(
        name="igsp",
        title="IGSP",
        entry="igsp:igsp",
        reference="Wang et al. (2017), Permutation-based causal inference algorithms with interventions",
        interventions=True,
        defaults={"alpha": 1e-3, "alpha_invariance": 1e-3, "depth": 6, "starts": 20, "test": "gaussian"},
        grid={"alpha": (1e-2, 1e-3, 1e-4), "test": ("gaussian", "hsic")},
        selection="truth",
    ),
    Baseline(
        name="dcdi",
        title="DCDI",
        entry="neural:dcdi",
        reference="Brouillard et al. (2020), Differentiable causal discovery from interventional data",
        interventions=True,
        defaults={"hidden": 16, "sparsity": 0.02, "steps": 6000, "holdout": False},
        grid={"sparsity": (1e-2, 1e-1, 1.0), "hidden": (8, 32)},
        selection="likelihood",
    ),
    Baseline(
        name="sdcd",
        title="SDCD",
        entry="sdcd_:sdcd",
        reference="Nazaret et al. (2024), Stable differentiable causal discovery",
        environment="sdcd",
        interventions=True,
        defaults={"epochs": 2000, "sparsity": 1e-2},
    ),
    Baseline(
        name="dibs",
        title="DiBS",
        entry="dibs_:dibs",
        reference="Lorch et al. (2021), DiBS: Differentiable Bayesian structure learning",
        environment="dibs",
        interventions=True,
        defaults={
            "likelihood": "linear",
            "latent_length": 10.0,
            "parameter_length": 300.0,
            "effective_size": 1.0,
            "particles": 10,
            "steps": 3000,
            "hidden": 5,
            "dimensions": None,
            "holdout": False,
        },
        # effective_size is tuned for the linear domains, parameter_length for the others.
        grid={
            "latent_length": (3.0, 10.0, 30.0),
            "effective_size": (0.1, 1.0),
            "parameter_length": (30.0, 300.0, 3000.0),
        },
        selection="likelihood",
        point_estimate=False,
    ),
    Baseline(
        name="presage",
        title="Presage",
        entry="ours:presage_model",
        reference="this package",
        interventions=True,
        defaults={"model": "general"},
        isolated=False,
        point_estimate=False,
    ),
)

BASELINES = {baseline.name: baseline for baseline in _ALL}


def get_baseline(name: str) -> Baseline:
    """The manifest of a name."""
    if name not in BASELINES:
        raise ConfigError(f"there is no method {name!r}; choose one of: {', '.join(BASELINES)}")
    return BASELINES[name]
