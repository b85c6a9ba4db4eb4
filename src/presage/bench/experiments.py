"""One declaration per table and figure of the paper: data, methods and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from presage.baselines.registry import BASELINES, get_baseline
from presage.errors import ConfigError

__all__ = ["EXPERIMENTS", "Experiment", "Method", "Section", "Setting", "default_settings", "get_experiment"]

Section = Literal["observational", "interventional"]
Kind = Literal["table", "calibration", "radar", "scaling", "sachs", "illustration", "folder"]
FAMILIES = ("linear", "rff", "grn")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where instances come from. column: the heading in tables and the model to use; domain: a catalog name.

    path: an npz file with its own graph, whose name is then the domain and whose group is the column.
    """

    column: str
    domain: str
    section: Section
    d: int
    n: int
    n_interventional: int
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method as requested: "ges", or "presage:rff" for our network of that name ("presage": that of the column)."""

    name: str
    model: str | None = None

    @classmethod
    def parse(cls, text: str) -> Method:
        """Read "ges", "presage" or "presage:NAME"."""
        name, _, model = text.strip().partition(":")
        get_baseline(name)
        if model and name != "presage":
            raise ConfigError(f"only presage takes a model after the colon, not {name!r}")
        return cls(name=name, model=model or None)

    def __str__(self) -> str:
        return f"{self.name}:{self.model}" if self.model else self.name

    def runs_in(self, section: Section) -> bool:
        """Methods that use targets run on interventional data, the others on observational; our networks on both."""
        return self.name == "presage" or get_baseline(self.name).interventions == (section == "interventional")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure. methods: what `--methods all` means here. paper: the label of its table in the paper."""

    name: str
    title: str
    kind: Kind
    settings: tuple[Setting, ...]
    metrics: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    instances: int = 30
    bootstrap: int = 0
    paper: str = ""


def _interventional(column: str, domain: str, d: int = 30, n: int = 1000) -> Setting:
    """Datasets of which half of the rows are interventional."""
    return Setting(column=column, domain=domain, section="interventional", d=d, n=n, n_interventional=n // 2)


def _benchmark(suffix: str, d: int) -> tuple[Setting, ...]:
    return tuple(
        Setting(
            column=family,
            domain=family + suffix,
            section=section,
            d=d,
            n=1000,
            n_interventional=500 if section == "interventional" else 0,
        )
        for section in ("observational", "interventional")
        for family in FAMILIES
    )


_GENERAL = {name: item for name, item in BASELINES.items() if not item.specialised}
_POINT = (*(name for name, item in _GENERAL.items() if item.point_estimate), "presage")
_ALL = (*(name for name in _GENERAL if name != "presage"), "presage")
_NOT_BOOTSTRAPPED = ("empty", "random")  # resampling rows says nothing about them
_PROBABLE = tuple(name for name in _ALL if name not in _NOT_BOOTSTRAPPED)
_SHIFTS = (
    "",
    "+graph",
    "+mechanism",
    "+noise",
    "+graph+mechanism",
    "+graph+noise",
    "+mechanism+noise",
    "-ood",
)

_DECLARED = (
    Experiment(
        name="table-30",
        title="Benchmarking results (d = 30 variables), out of distribution",
        kind="table",
        settings=_benchmark("-ood", 30),
        metrics=("sid", "f1"),
        methods=_POINT,
        paper="tab:benchmark-30",
    ),
    Experiment(
        name="table-30-indist",
        title="In-distribution benchmarking results (d = 30 variables)",
        kind="table",
        settings=_benchmark("", 30),
        metrics=("sid", "f1"),
        methods=_POINT,
        paper="tab:benchmark-30-indist",
    ),
    Experiment(
        name="table-100",
        title="Benchmarking results (d = 100 variables), out of distribution",
        kind="table",
        settings=_benchmark("-ood", 100),
        metrics=("sid", "f1"),
        methods=_POINT,
        paper="tab:benchmark-100",
    ),
    Experiment(
        name="table-30-prob",
        title="Probabilistic metrics for the benchmark (d = 30 variables), out of distribution",
        kind="table",
        settings=_benchmark("-ood", 30),
        metrics=("auroc", "auprc"),
        methods=_PROBABLE,
        instances=10,
        bootstrap=10,
        paper="tab:benchmark-30-prob",
    ),
    Experiment(
        name="calibration",
        title="Uncertainty calibration (d = 30 variables), out of distribution",
        kind="calibration",
        settings=_benchmark("-ood", 30),
        metrics=("ece",),
        methods=_PROBABLE,
        instances=10,
        bootstrap=10,
        paper="fig:calibration-avici",
    ),
    Experiment(
        name="radar",
        title="Performance under increasing distribution shift (d = 30, n = 1000)",
        kind="radar",
        settings=tuple(_interventional(family, family + shift) for family in FAMILIES for shift in _SHIFTS),
        metrics=("shd", "sid", "f1", "auroc", "auprc", "acyclic"),
        methods=("presage",),
        instances=15,
    ),
    Experiment(
        name="scaling",
        title="In-distribution AUPRC against the number of rows and variables",
        kind="scaling",
        settings=tuple(
            _interventional(family, family, d, n)
            for family in FAMILIES
            for d in (10, 20, 30, 50, 80, 100)
            for n in (10, 30, 100, 300, 1000)
        ),
        metrics=("auprc",),
        methods=("presage",),
        instances=15,
    ),
    Experiment(
        name="transfer",
        title="Generalizing from linear to rff and vice versa (d = 30 variables)",
        kind="table",
        settings=tuple(setting for setting in _benchmark("-ood", 30) if setting.column != "grn"),
        metrics=("shd", "f1", "auroc", "auprc"),
        methods=("presage:linear", "presage:rff"),
        paper="tab:benchmark-transfer-linear-rff",
    ),
    Experiment(
        name="sachs",
        title="Proteomics data of Sachs et al. (2005), 17-edge reference graph",
        kind="sachs",
        settings=tuple(
            Setting(column="sachs", domain="sachs", section=section, d=11, n=5846, n_interventional=4091)
            for section in ("observational", "interventional")
        ),
        metrics=("shd", "sid", "f1", "edges"),
        methods=(*_POINT[:-1], "dibs", "presage:linear", "presage:rff", "presage:scm", "presage:general"),
        instances=1,
        paper="tab:sachs",
    ),
    Experiment(
        name="ablation",
        title="Ablations of the network on interventional rff data (d = 30 variables)",
        kind="table",
        settings=tuple(_interventional(domain, domain) for domain in ("rff", "rff-ood")),
        metrics=("sid", "auprc"),
        methods=("presage:rff",),
        instances=100,
        paper="tab:ablation",
    ),
    Experiment(
        name="illustration",
        title="Graphs, mechanisms and noise of the rff domain, in and out of distribution",
        kind="illustration",
        settings=(),
        instances=0,
    ),
)

EXPERIMENTS = {experiment.name: experiment for experiment in _DECLARED}


def get_experiment(name: str) -> Experiment:
    """The experiment of a name."""
    if name not in EXPERIMENTS:
        raise ConfigError(f"there is no experiment {name!r}; choose one of: {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def default_settings(method: str, column: str) -> dict[str, Any]:
    """Settings that follow from the domain, as in the paper: DiBS uses the linear score on linear data only."""
    if method == "dibs" and column != "linear":
        return {"likelihood": "nonlinear"}
    return {}
