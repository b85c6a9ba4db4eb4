"""The domain `general`: tables as people bring them, with hidden variables, columns of every kind and real blemishes.

A dataset first draws its `Style`, then everything else, so that the columns of one table resemble each other.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from presage.columns import ColumnKind
from presage.config import Range, register
from presage.domain.domain import Domain
from presage.errors import ConfigError
from presage.graphs.latent import latent_projection
from presage.graphs.layered import Empty, Layered, UniformDensity
from presage.graphs.random import (
    ErdosRenyi,
    Geometric,
    GraphModel,
    ScaleFreeIn,
    ScaleFreeOut,
    StochasticBlock,
    WattsStrogatz,
)
from presage.simulators.categorical import CategoricalMechanism, LogitSampling, ProbabilityTable
from presage.simulators.columns import ColumnKinds, KindPlan
from presage.simulators.effects import direct_effects
from presage.simulators.environments import Environments
from presage.simulators.general_scm import MechanismStyle, Sampled, Structure, sample_general
from presage.simulators.interventions_general import InterventionPlan, MixedInterventions
from presage.simulators.measurement import Measurement
from presage.simulators.mechanisms import Linear, Mechanism, RandomFourier
from presage.simulators.mechanisms_general import (
    FourierFeatures,
    MonotoneSum,
    Polynomial,
    RandomMLP,
    Saturating,
    SoftTree,
    Thresholds,
    WeightedSum,
)
from presage.simulators.noise_general import (
    CauchyNoise,
    ExponentialNoise,
    GaussianNoise,
    GumbelNoise,
    LaplaceNoise,
    LogNormalNoise,
    MixtureNoise,
    NoiseFamily,
    StudentNoise,
    UniformNoise,
)

__all__ = ["GeneralDomain", "Style"]

SPARSE = (0.3, 0.5, 0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0)
REFERENCE_ROWS = 64
"""Means and cut points come from at least this many observational rows; those beyond n are dropped."""


@dataclass
class Style:
    """What one dataset has in common: set once, before anything else is drawn.

    kinds: of all simulated variables, hidden ones included; n_hidden: of which so many are hidden; batch: one of the
    hidden variables is a batch; environment: one column is an environment.
    """

    kinds: KindPlan
    n_hidden: int
    prefer_confounders: bool
    batch: bool
    environment: bool
    mechanism: MechanismStyle
    measured: bool


@register
@dataclass(frozen=True, kw_only=True)
class GeneralDomain(Domain):
    """Mixture of all that tables contain. Shares are probabilities of a dataset unless said otherwise.

    hidden: some variables are hidden, up to hidden_part of the observed number. prefer_confounders: of those, hide
    variables with two or more effects where there are any. batch: of those, a hidden batch shifts several columns.
    environment: of datasets without interventional rows, one column is an environment.
    raw: raw scales as in the paper instead of standardized variables. mixture: two to four mechanism families in one
    dataset. own_noise: each variable draws its noise family. graphs: by uniform choice; small_graphs up to `small`
    variables; discrete_graphs where all columns are discrete. max_density: share of pairs that may be joined.
    """

    kinds: ColumnKinds = field(default_factory=ColumnKinds)
    hidden: float = 0.45
    hidden_part: float = 1.0 / 3.0
    prefer_confounders: float = 0.5
    batch: float = 0.15
    environment: float = 0.15
    raw: float = 0.25
    mixture: float = 0.35
    own_noise: float = 0.2
    multiplicative: float = 0.08
    heteroscedastic: float = 0.15
    measured_raw: float = 0.5
    explained: Range = (0.1, 0.99)
    small: int = 7
    max_density: float = 0.65
    max_discrete_parents: int = 4
    graphs: tuple[GraphModel, ...] = (
        ErdosRenyi(edges_per_node=SPARSE),
        ErdosRenyi(edges_per_node=SPARSE),
        ScaleFreeIn(edges_per_node=(1, 1, 2, 3, 4), power=(0.5, 1.0, 1.5)),
        ScaleFreeOut(edges_per_node=(1, 1, 2, 3, 4), power=(0.5, 1.0, 1.5)),
        WattsStrogatz(dimension=(1, 2, 3), rewire=(0.1, 0.3, 0.6)),
        StochasticBlock(edges_per_node=SPARSE, blocks=(2, 5, 10), damping=(0.05, 0.1, 0.3)),
        Geometric(radius=(0.08, 0.1, 0.15, 0.2, 0.25)),
        Layered(edges_per_node=SPARSE),
        Layered(edges_per_node=SPARSE),
    )
    small_graphs: tuple[GraphModel, ...] = (
        UniformDensity(),
        UniformDensity(),
        UniformDensity(),
        ScaleFreeOut(edges_per_node=(1,)),
        Layered(edges_per_node=(0.5, 1.0)),
    )
    discrete_graphs: tuple[GraphModel, ...] = (
        ErdosRenyi(edges_per_node=(0.8, 1.0, 1.3, 1.6, 2.0)),
        ScaleFreeOut(edges_per_node=(1, 1, 2), power=(0.5, 1.0)),
        ScaleFreeIn(edges_per_node=(1,), power=(0.5, 1.0)),
        Layered(tiers=(3, 4), edges_per_node=(0.8, 1.2, 1.6)),
        WattsStrogatz(dimension=(1,), rewire=(0.1, 0.3)),
    )
    empty: float = 0.02
    mechanisms: tuple[Mechanism, ...] = (
        WeightedSum(),
        FourierFeatures(),
        RandomMLP(),
        MonotoneSum(),
        Polynomial(),
        Saturating(),
        Thresholds(),
        SoftTree(),
    )
    mechanism_weights: tuple[float, ...] = (3.0, 4.0, 2.0, 1.5, 1.0, 1.5, 0.5, 1.0)
    raw_mechanisms: tuple[Mechanism, ...] = (
        Linear(weights=((1.0, 3.0), (0.5, 2.0), (2.0, 4.0), (0.25, 1.0))),
        RandomFourier(
            length_scale=((7.0, 10.0), (5.0, 8.0), (8.0, 12.0), (3.0, 6.0), (10.0, 20.0)),
            output_scale=((10.0, 20.0), (8.0, 12.0), (18.0, 22.0), (2.0, 8.0), (20.0, 30.0)),
        ),
    )
    raw_noise_scales: tuple[Range, ...] = ((0.2, 2.0), (0.05, 0.5), (1.0, 4.0))
    noises: tuple[NoiseFamily, ...] = (
        GaussianNoise(),
        LaplaceNoise(),
        StudentNoise(),
        UniformNoise(),
        GumbelNoise(),
        ExponentialNoise(),
        LogNormalNoise(),
        MixtureNoise(),
        CauchyNoise(),
    )
    noise_weights: tuple[float, ...] = (0.4, 0.1, 0.1, 0.08, 0.08, 0.08, 0.06, 0.08, 0.02)
    categorical: tuple[CategoricalMechanism, ...] = (ProbabilityTable(), LogitSampling())
    interventions: MixedInterventions = field(default_factory=MixedInterventions)
    environments: Environments = field(default_factory=Environments)
    measurement: Measurement = field(default_factory=Measurement)
    effect_rows: int = 64

    def check(self) -> None:
        for name in (
            *("hidden", "hidden_part", "prefer_confounders", "batch", "environment", "raw", "mixture", "own_noise"),
            *("multiplicative", "heteroscedastic", "measured_raw", "max_density", "empty"),
        ):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"GeneralDomain.{name} must lie between 0 and 1, not {getattr(self, name)!r}")
        if not 0.0 < self.explained[0] <= self.explained[1] < 1.0:
            raise ConfigError("GeneralDomain.explained needs 0 < low <= high < 1")
        for parts, weights in (("mechanisms", "mechanism_weights"), ("noises", "noise_weights")):
            if not getattr(self, parts) or len(getattr(self, parts)) != len(getattr(self, weights)):
                raise ConfigError(f"GeneralDomain.{weights} needs one weight for each of {parts}")
            if min(getattr(self, weights)) < 0 or sum(getattr(self, weights)) <= 0:
                raise ConfigError(f"GeneralDomain.{weights} must be at least 0, and not all 0")
        for name in ("graphs", "small_graphs", "discrete_graphs", "raw_mechanisms", "categorical"):
            if not getattr(self, name):
                raise ConfigError(f"GeneralDomain.{name} must hold at least one part")
        if self.effect_rows < 1:
            raise ConfigError("GeneralDomain.effect_rows must be at least 1")

    def strata(self) -> dict[str, Domain]:
        """The domain with the shares of one stratum forced, by name."""
        return {name: self.stratum(name, self) for name in _STRATA}

    @classmethod
    def stratum(cls, name: str, base: GeneralDomain | None = None) -> GeneralDomain:
        """A copy of the domain (the default one unless `base` is given) with the shares of one stratum forced.

        Interventional rows are asked for in `draw`; "interventional" is the stratum to ask in.
        """
        if name not in _STRATA:
            raise ConfigError(f"there is no stratum {name!r}; choose one of: {', '.join(_STRATA)}")
        base = cls() if base is None else base
        changes = dict(_STRATA[name])
        if "kinds" in changes:
            changes["kinds"] = dataclasses.replace(base.kinds, **changes["kinds"])
        return dataclasses.replace(base, **changes)

    def style(self, rng: np.random.Generator, *, d: int, n_interventional: int) -> Style:
        """What all columns of a dataset with d columns have in common."""
        hidden, batch, confounders, environment, raw, latent = rng.random(6)
        has_environment = bool(n_interventional == 0 and d >= 3 and environment < self.environment)
        n_hidden = 0
        if hidden < self.hidden and d > 1:
            n_hidden = 1 + int(rng.random() * max(1, int((d - has_environment) * self.hidden_part)))
        kinds = self.kinds.sample(rng, d - has_environment + n_hidden)
        is_raw = bool(raw < self.raw and not kinds.levels.all())
        return Style(
            kinds=kinds,
            n_hidden=n_hidden,
            prefer_confounders=bool(confounders < self.prefer_confounders),
            batch=bool(n_hidden and batch < self.batch),
            environment=has_environment,
            mechanism=self._mechanism_style(rng, is_raw, latent),
            measured=not is_raw or rng.random() < self.measured_raw,
        )

    def _mechanism_style(self, rng: np.random.Generator, raw: bool, latent: float) -> MechanismStyle:
        if raw:
            mechanisms = (_choose(rng, self.raw_mechanisms).resolve(rng),)
        elif rng.random() < self.mixture:
            count = 2 + int(rng.random() * 3)
            mechanisms = tuple(_weighted(rng, self.mechanisms, self.mechanism_weights) for _ in range(count))
        else:
            mechanisms = (_weighted(rng, self.mechanisms, self.mechanism_weights),)
        count = 4 if rng.random() < self.own_noise else 1
        families = tuple(_weighted(rng, self.noises, self.noise_weights) for _ in range(count))
        form = rng.random()
        explained: Range | None = None
        if not raw:
            low, high = self.explained
            explained = self.explained
            if rng.random() < 0.6:
                first, second = sorted(rng.uniform(low, high, 2).tolist())
                explained = (first, second)
        both = len(self.categorical) > 1 and rng.random() < 0.4
        return MechanismStyle(
            mechanisms=tuple(mechanism.resolve(rng) for mechanism in mechanisms),
            families=families,
            explained=explained,
            noise_scale=_choose(rng, self.raw_noise_scales),
            multiplicative=rng.random() if form < self.multiplicative else 0.0,
            heteroscedastic=rng.random()
            if self.multiplicative <= form < self.multiplicative + self.heteroscedastic
            else 0.0,
            categorical=self.categorical if both else (_choose(rng, self.categorical),),
            latent_share=1.0 if latent < 0.35 else 0.0 if latent < 0.7 else rng.random(),
        )

    def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        """One dataset: x [n, d], interventions [n, d], graph [d, d], and what this domain adds.

        kinds: int8 [d], see `ColumnKind`. confounded: bool [d, d], symmetric: a hidden common cause. effects: float32
        [d, d], signed standardized direct effects, NaN where there is none. missing: bool [n, d], where x holds 0.
        The first n - n_interventional rows are observational; graph and confounded are the latent projection.
        """
        for _ in range(3):
            result = self._draw(rng, d=d, n=n, n_interventional=n_interventional)
            x = result["x"]
            if n < 20 or not (x == x[:1]).all(axis=0).any():
                break
        return result

    def _draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        style = self.style(rng, d=d, n_interventional=n_interventional)
        # Small tables get extra observational rows, which settle constants and effects and are then dropped.
        extra = max(0, REFERENCE_ROWS - (n - n_interventional))
        rows, fit = n + extra, n + extra - n_interventional
        structure, hidden, measured_kinds, measured_levels = self._structure(rng, style, rows)
        m = len(hidden)
        observed = rng.permutation(np.flatnonzero(~hidden))
        targets = np.sort(observed[observed != structure.environment])
        plan = self.interventions.plan(rng, targets, n=rows, m=m, n_interventional=n_interventional)
        sampled = sample_general(
            rng,
            structure,
            style.mechanism,
            self.kinds,
            n=rows,
            fit=fit,
            interventions=self.interventions,
            plan=plan,
            environments=self.environments,
        )
        directed, confounded = latent_projection(structure.graph, hidden)
        position = np.cumsum(~hidden) - 1
        place = position[observed]  # the projection lists observed variables in their own order
        kinds = measured_kinds[observed]
        x, missing = self._measure(rng, style, sampled, observed, kinds, measured_levels, fit)
        return {
            "x": np.ascontiguousarray(x[:, extra:].T),
            "interventions": _labels(plan, observed, extra),
            "graph": directed[np.ix_(place, place)],
            "kinds": kinds,
            "confounded": confounded[np.ix_(place, place)],
            "effects": self._effects(structure, sampled, hidden, measured_kinds, observed, fit),
            "missing": np.ascontiguousarray(missing[:, extra:].T),
        }

    def _structure(
        self, rng: np.random.Generator, style: Style, rows: int
    ) -> tuple[Structure, np.ndarray, np.ndarray, np.ndarray]:
        """Graph, hidden variables [m], and kinds and levels [m] of the table; environment and batch come last."""
        kinds, levels = style.kinds.kinds, style.kinds.levels
        total = len(kinds)
        own = total - style.batch
        graph = np.zeros((total + style.environment,) * 2, dtype=np.int8)
        graph[:own, :own] = self._graph(rng, own, bool(levels.all()))
        hidden = np.zeros(len(graph), dtype=bool)
        count = style.n_hidden - style.batch
        if count:
            score = rng.random(own)
            if style.prefer_confounders:
                score += graph[:own, :own].sum(axis=1) >= 2
            hidden[np.argsort(-score)[:count]] = True
        if style.batch:
            kinds, levels = kinds.copy(), levels.copy()
            kinds[own], levels[own] = ColumnKind.NOMINAL, 2 + int(rng.random() * 5)
            hidden[own] = True
            graph[own, rng.permutation(own)[: 2 + int(rng.random() * (1 + own / 3))]] = 1
        environment = None
        plan = None
        if style.environment:
            environment = total
            plan = self.environments.plan(rng, np.flatnonzero(~hidden[:total]), rows)
            graph[environment, list(plan.changed)] = 1
            kinds = np.append(kinds, np.int8(ColumnKind.ENVIRONMENT))
            levels = np.append(levels, int(plan.codes.max()) + 1)
        seen_kinds, seen_levels = kinds, levels
        if not style.kinds.inside:  # continuous until measured; batch and environment are codes always
            seen_kinds, seen_levels = np.zeros_like(kinds), np.zeros_like(levels)
            seen_kinds[own:], seen_levels[own:] = kinds[own:], levels[own:]
            if not style.batch:
                seen_kinds[:total], seen_levels[:total] = 0, 0
        structure = Structure(graph, seen_kinds, seen_levels.tolist(), environment, plan)
        return structure, hidden, kinds, levels

    def _graph(self, rng: np.random.Generator, m: int, discrete: bool) -> np.ndarray:
        if rng.random() < self.empty:
            return Empty().sample(rng, m)
        models = self.small_graphs if m <= self.small else self.discrete_graphs if discrete else self.graphs
        graph = _choose(rng, models).sample(rng, m)
        edges, most = int(graph.sum()), max(1.0, self.max_density * m * (m - 1) / 2)
        if edges > most:
            graph = graph * (rng.random((m, m)) < most / edges)
        if discrete and self.max_discrete_parents:
            # Experts write tables of few parents: surplus parents are dropped at random.
            rank = np.argsort(np.argsort(-(graph * (1.0 + rng.random((m, m)))), axis=0), axis=0)
            graph = graph * (rank < self.max_discrete_parents)
        return graph.astype(np.int8)

    def _measure(
        self,
        rng: np.random.Generator,
        style: Style,
        sampled: Sampled,
        observed: np.ndarray,
        kinds: np.ndarray,
        levels: np.ndarray,
        fit: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        columns = sampled.columns[observed]
        if not style.kinds.inside:
            everything = slice(None)
            for k, j in enumerate(observed.tolist()):
                if levels[j] and kinds[k] != ColumnKind.ENVIRONMENT:
                    cuts = self.kinds.cuts(rng, int(levels[j]), nominal=kinds[k] == ColumnKind.NOMINAL)
                    columns[k] = cuts(columns[k], everything, fit)
                elif kinds[k] == ColumnKind.COUNT:
                    standard = (columns[k] - sampled.mean[j]) * sampled.inverse_sd[j]
                    columns[k] = self.kinds.counts(rng, columns.shape[1])(standard, everything, fit)
        if not style.measured:
            return columns, np.zeros(columns.shape, dtype=bool)
        return self.measurement.apply(rng, columns, kinds)

    def _effects(
        self,
        structure: Structure,
        sampled: Sampled,
        hidden: np.ndarray,
        kinds: np.ndarray,
        observed: np.ndarray,
        fit: int,
    ) -> np.ndarray:
        nominal = np.isin(kinds, (ColumnKind.NOMINAL, ColumnKind.ENVIRONMENT))
        rows = np.arange(fit) if fit <= self.effect_rows else np.linspace(0, fit - 1, self.effect_rows).astype(np.intp)
        effects = direct_effects(
            structure.graph,
            hidden,
            sampled.order,
            sampled.parents,
            sampled.nodes,
            sampled.columns,
            rows,
            levels=structure.levels,
            nominal=nominal,
            sd=sampled.sd,
        )
        return effects[np.ix_(observed, observed)].astype(np.float32)


_STRATA: dict[str, dict[str, Any]] = {
    "continuous": {"kinds": {"continuous": 1.0, "discrete": 0.0}, "hidden": 0.0, "environment": 0.0},
    "discrete": {"kinds": {"continuous": 0.0, "discrete": 1.0}, "hidden": 0.0, "environment": 0.0},
    "mixed": {"kinds": {"continuous": 0.0, "discrete": 0.0}, "hidden": 0.0, "environment": 0.0},
    "confounded": {"hidden": 1.0, "prefer_confounders": 1.0, "environment": 0.0},
    "interventional": {"environment": 0.0},
    "environment": {"environment": 1.0},
}


def _labels(plan: InterventionPlan, observed: np.ndarray, extra: int) -> np.ndarray:
    return np.ascontiguousarray(plan.labels[extra:, observed])


def _choose(rng: np.random.Generator, parts: tuple[Any, ...]) -> Any:
    return parts[int(rng.random() * len(parts))]


def _weighted(rng: np.random.Generator, parts: tuple[Any, ...], weights: tuple[float, ...]) -> Any:
    left = rng.random() * sum(weights)
    for part, weight in zip(parts, weights, strict=True):
        left -= weight
        if left < 0:
            return part
    return parts[-1]
