"""The named domains: the paper's linear and rff, in- and out-of-distribution with every partial shift, and `scm`.

`rff+graph+noise` is rff with the graphs and the noise of rff-ood; interventions are shifted together with
the noise. The gene domains are defined in `presage.domain.genes`.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any, overload

from presage.domain.domain import Domain, ScmDomain
from presage.errors import ConfigError, reason
from presage.files import parse_json, read_bytes
from presage.graphs.random import (
    ErdosRenyi,
    Geometric,
    GraphModel,
    ScaleFreeIn,
    ScaleFreeOut,
    StochasticBlock,
    WattsStrogatz,
)
from presage.simulators.interventions import Interventions
from presage.simulators.mechanisms import Linear, Mechanism, RandomFourier
from presage.simulators.noise import Heteroscedastic, Homoscedastic, Noise
from presage.types import Batch, Dataset

__all__ = ["SHIFTS", "domain_name", "domains", "get_domain", "open_domain", "simulate", "summary"]

SHIFTS = ("graph", "mechanism", "noise")
"""Components of a domain that can be shifted separately. The -ood variant of a domain shifts all of them."""

# Table "Specification of the training and out-of-distribution data-generating processes" of the paper.
_GRAPHS: dict[bool, tuple[GraphModel, ...]] = {
    False: (ErdosRenyi(), ScaleFreeIn(), ScaleFreeOut()),
    True: (
        ScaleFreeOut(edges_per_node=(2,), power=(0.5, 1.5)),
        WattsStrogatz(),
        StochasticBlock(),
        Geometric(),
    ),
}
_MECHANISMS: dict[str, dict[bool, Mechanism]] = {
    "linear": {False: Linear(), True: Linear(weights=((0.5, 2.0), (2.0, 4.0)))},
    "rff": {
        False: RandomFourier(),
        True: RandomFourier(length_scale=((5.0, 8.0), (8.0, 12.0)), output_scale=((8.0, 12.0), (18.0, 22.0))),
    },
}
_NOISES: dict[bool, Noise] = {False: Homoscedastic(), True: Heteroscedastic()}
_INTERVENTIONS = {False: Interventions(), True: Interventions(values=((1.0, 5.0),))}


def _scm(family: str, shifts: frozenset[str]) -> ScmDomain:
    return ScmDomain(
        graphs=_GRAPHS["graph" in shifts],
        mechanisms=(_MECHANISMS[family]["mechanism" in shifts],),
        noises=(_NOISES["noise" in shifts],),
        interventions=_INTERVENTIONS["noise" in shifts],
    )


def _broad() -> ScmDomain:
    """The broad domain: every graph family, mechanism and noise, with ranges wider than in the paper."""
    families: Any = ("gaussian", "laplace", "cauchy")
    ranges = ((0.2, 2.0), (0.05, 0.5), (1.0, 4.0))
    return ScmDomain(
        graphs=(
            ErdosRenyi(edges_per_node=(0.5, 1.0, 1.5, 2.0, 3.0, 4.0)),
            ScaleFreeIn(edges_per_node=(1, 2, 3, 4), power=(0.5, 1.0, 1.5)),
            ScaleFreeOut(edges_per_node=(1, 2, 3, 4), power=(0.5, 1.0, 1.5)),
            WattsStrogatz(dimension=(1, 2, 3), rewire=(0.1, 0.3, 0.6)),
            StochasticBlock(edges_per_node=(1.0, 2.0, 3.0), blocks=(2, 5, 10), damping=(0.05, 0.1, 0.3)),
            Geometric(radius=(0.08, 0.1, 0.15, 0.2)),
        ),
        mechanisms=(
            Linear(weights=((1.0, 3.0), (0.5, 2.0), (2.0, 4.0), (0.25, 1.0))),
            RandomFourier(
                length_scale=((7.0, 10.0), (5.0, 8.0), (8.0, 12.0), (3.0, 6.0), (10.0, 20.0)),
                output_scale=((10.0, 20.0), (8.0, 12.0), (18.0, 22.0), (2.0, 8.0), (20.0, 30.0)),
            ),
        ),
        noises=(
            Homoscedastic(family=families, scale=ranges),
            Heteroscedastic(family=families, length_scale=(10.0, 5.0), output_scale=(2.0, 4.0)),
        ),
        interventions=Interventions(
            values=((1.0, 3.0), (1.0, 5.0), (0.0, 2.0), (0.0, 10.0)), softness=((0.0, 0.0), (0.0, 1.0))
        ),
    )


def _grn(shifts: frozenset[str]) -> Domain:
    from presage.domain.genes import grn_domain  # imports numba, which most callers do not need

    return grn_domain(shifts)


def _names() -> dict[str, tuple[str, frozenset[str]]]:
    """Every name with its family and its shifts."""
    names: dict[str, tuple[str, frozenset[str]]] = {}
    for family in _FAMILIES:
        names[family] = (family, frozenset())
        names[f"{family}-ood"] = (family, frozenset(SHIFTS))
        for size in (1, 2):
            for shifts in combinations(SHIFTS, size):
                names["+".join((family, *shifts))] = (family, frozenset(shifts))
    names["scm"] = ("scm", frozenset())
    names["general"] = ("general", frozenset())
    return names


@cache
def _make(family: str, shifts: frozenset[str]) -> Domain:
    if family == "scm":
        return _broad()
    if family == "general":
        from presage.domain.general import GeneralDomain  # many components, which most callers do not need

        return GeneralDomain()
    return _grn(shifts) if family == "grn" else _scm(family, shifts)


_FAMILIES = {
    "linear": "linear structural causal models",
    "rff": "nonlinear structural causal models (random Fourier features)",
    "grn": "single-cell gene expression counts",
}


def summary(name: str) -> str:
    """A one-line description of a named domain.

    >>> summary("rff+graph+noise")
    'nonlinear structural causal models (random Fourier features), with shifted graph, noise'
    """
    family, shifts = _names()[name]
    if family == "scm":
        return "broad mixture of structural causal models, for real-valued data users bring"
    if family == "general":
        return "tables as people bring them: columns of all kinds, hidden variables, interventions, environments"
    shifted = ", ".join(shift for shift in SHIFTS if shift in shifts)
    return _FAMILIES[family] + (f", with shifted {shifted}" if shifted else "")


def domains() -> list[str]:
    """Names of all domains, for `simulate` and `presage simulate`."""
    return list(_names())


def get_domain(name: str | Domain) -> Domain:
    """The domain of a name; a `Domain` is returned as it is."""
    if isinstance(name, Domain):
        return name
    names = _names()
    if not isinstance(name, str) or name not in names:
        raise ConfigError(f"there is no domain {name!r}; choose one of: {', '.join(names)}")
    return _make(*names[name])


def domain_name(domain: Domain) -> str | None:
    """The name of a domain, or None for a custom domain."""
    return next(
        (
            name
            for name in domains()
            if (name.startswith("grn") == (domain.kind == "counts")) and get_domain(name) == domain
        ),
        None,
    )


def open_domain(name: str) -> Domain:
    """The domain of a name, or of a JSON file as `presage domains NAME --json` prints it."""
    if name in _names() or not name.endswith(".json"):
        return get_domain(name)
    try:
        return Domain.from_json(parse_json(read_bytes(name)))
    except OSError as error:
        raise ConfigError(f"cannot read the domain file {name}: {reason(error)}") from error
    except ConfigError as error:
        raise ConfigError(f"{name}: {error} (`presage domains rff --json` prints an example)") from error
    except ValueError as error:
        raise ConfigError(f"the domain file {name} is not valid JSON: {error}") from error


@overload
def simulate(
    domain: str | Domain, *, d: int = ..., n: int = ..., n_interventional: int = ..., seed: int = ..., size: None = ...
) -> Dataset: ...
@overload
def simulate(
    domain: str | Domain, *, d: int = ..., n: int = ..., n_interventional: int = ..., seed: int = ..., size: int
) -> Batch: ...
def simulate(
    domain: str | Domain,
    *,
    d: int = 30,
    n: int = 200,
    n_interventional: int = 0,
    seed: int = 0,
    size: int | None = None,
) -> Dataset | Batch:
    """One simulated `Dataset` with its true graph, or a `Batch` of `size` of them.

    n counts all rows; the last n_interventional of them are interventional. Dataset k of a batch does not depend on
    `size`. The random stream is separate from that of training.

    >>> simulate("rff", d=5, n=100, n_interventional=20, seed=1)
    Dataset(100 rows (20 interventional) x 5 variables, real, 7 edges)
    """
    batch = get_domain(domain).sample(
        d=d, n=n, n_interventional=n_interventional, seed=seed, size=1 if size is None else size
    )
    return batch[0] if size is None else batch
