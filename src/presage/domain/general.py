"""The domain `general`: tables with hidden variables, columns of every kind, environments and imperfect measurement.

A dataset first samples its `Style` and then everything else, so that the columns of one table resemble each other.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from presage.columns import ColumnKind
from presage.config import Range, register
from presage.domain.domain import Domain
from presage.domain.general_defaults import (
    DISCRETE_GRAPHS,
    EXPRESSION_GRAPHS,
    EXPRESSION_MEASUREMENT,
    EXPRESSION_NOISES,
    GRAPHS,
    MECHANISMS,
    NOISES,
    RAW_MECHANISMS,
    SMALL_GRAPHS,
    TEXTBOOK_INTERVENTIONS,
)
from presage.errors import ConfigError
from presage.graphs.latent import latent_projection
from presage.graphs.layered import Empty
from presage.graphs.limits import limit_density, limit_parents
from presage.graphs.random import GraphModel
from presage.simulators.categorical import CategoricalMechanism, LogitSampling, ProbabilityTable
from presage.simulators.columns import ColumnKinds, KindPlan
from presage.simulators.draws import check_shares, log_uniform
from presage.simulators.effects import direct_effects
from presage.simulators.environments import Environments
from presage.simulators.feedback import Feedback
from presage.simulators.general_scm import MechanismStyle, Sampled, sample_general
from presage.simulators.interventions_general import InterventionPlan, MixedInterventions
from presage.simulators.measurement import Measurement
from presage.simulators.mechanisms import Mechanism
from presage.simulators.noise_general import NoiseFamily
from presage.simulators.regulation import Regulation
from presage.simulators.structure import Structure, choose_hidden, design_variables

__all__ = ["GeneralDomain", "Style"]

REFERENCE_ROWS = 64
"""Means and cut points are estimated from at least this many observational rows. Extra rows are dropped."""


@dataclass
class Style:
    """Properties shared by all columns of one dataset, sampled first.

    kinds: kinds of all simulated variables, including hidden ones. n_hidden: number of hidden variables. batch: one of
    the hidden variables is a batch. environment: one column is an environment. measurement: None if the columns have
    no measurement errors. graphs: models of graphs with more than `small` variables. interventions: how targets change.
    """

    kinds: KindPlan
    n_hidden: int
    prefer_confounders: bool
    batch: bool
    environment: bool
    mechanism: MechanismStyle
    measurement: Measurement | None
    graphs: tuple[GraphModel, ...]
    interventions: MixedInterventions


@register
@dataclass(frozen=True, kw_only=True)
class GeneralDomain(Domain):
    """A mixture of many types of tables. Shares are probabilities per dataset unless stated otherwise.

    hidden: share with hidden variables, up to hidden_part times the number of observed variables.
    prefer_confounders: share of these in which variables with two or more children are hidden first.
    batch: share of these in which a hidden batch acts on several columns.
    environment: share of datasets without interventional rows in which one column is an environment.
    textbook: share of tables as the paper simulates them: continuous, raw scales, no hidden variables, environments or
    measurement errors. The other shares refer to the remaining datasets. textbook_interventions: their interventions.
    raw: share with raw scales as in the paper instead of standardized variables (never if all columns are discrete).
    measured_raw: share of these with measurement errors.
    expression: share of steady-state gene expression among the other datasets, unless all columns are discrete; its
    parents explain more (expression_explained), noise is multiplicative more often (expression_multiplicative), and its
    graphs, noise families and measurement are expression_graphs, expression_noises and expression_measurement.
    regulation: the mechanism of these datasets.
    explained: range of the share of variance that the parents explain.
    precise, expression_precise: share of datasets, and of expression tables, that are nearly deterministic: the share
    that the parents do not explain is log-uniform within `unexplained`, as in physical instruments and in models of
    regulation at steady state.
    mixture: share with two to four mechanism families in one dataset.
    own_noise: share in which each variable samples its own noise family.
    multiplicative, heteroscedastic: share in which some or all variables have such noise.
    graphs: graph models, chosen uniformly; small_graphs for up to `small` variables, discrete_graphs if all columns are
    discrete.
    empty: share of graphs without edges. max_density: largest share of adjacent pairs.
    feedback: share of cyclic systems at equilibrium; the graphs of all other datasets are acyclic.
    effect_rows: number of observational rows over which effects are averaged.
    """

    kinds: ColumnKinds = field(default_factory=lambda: ColumnKinds(continuous=0.41, discrete=0.235))
    hidden: float = 0.5
    hidden_part: float = 1.0 / 3.0
    prefer_confounders: float = 0.5
    batch: float = 0.15
    environment: float = 0.17
    textbook: float = 0.2
    textbook_interventions: MixedInterventions = TEXTBOOK_INTERVENTIONS
    raw: float = 0.3
    mixture: float = 0.35
    own_noise: float = 0.2
    multiplicative: float = 0.08
    heteroscedastic: float = 0.15
    measured_raw: float = 0.5
    expression: float = 0.18
    expression_explained: Range = (0.6, 0.998)
    expression_multiplicative: float = 0.5
    expression_graphs: tuple[GraphModel, ...] = EXPRESSION_GRAPHS
    expression_noises: tuple[NoiseFamily, ...] = EXPRESSION_NOISES
    expression_measurement: Measurement = EXPRESSION_MEASUREMENT
    regulation: Regulation = field(default_factory=Regulation)
    explained: Range = (0.1, 0.99)
    precise: float = 0.08
    expression_precise: float = 0.5
    unexplained: Range = (1e-4, 0.05)
    small: int = 7
    max_density: float = 0.65
    max_discrete_parents: int = 4
    graphs: tuple[GraphModel, ...] = GRAPHS
    small_graphs: tuple[GraphModel, ...] = SMALL_GRAPHS
    discrete_graphs: tuple[GraphModel, ...] = DISCRETE_GRAPHS
    empty: float = 0.02
    mechanisms: tuple[Mechanism, ...] = MECHANISMS
    mechanism_weights: tuple[float, ...] = (3.0, 4.0, 2.0, 1.5, 1.0, 1.5, 0.5, 1.0)
    raw_mechanisms: tuple[Mechanism, ...] = RAW_MECHANISMS
    raw_noise_scales: tuple[Range, ...] = ((0.2, 2.0), (0.05, 0.5), (1.0, 4.0))
    noises: tuple[NoiseFamily, ...] = NOISES
    noise_weights: tuple[float, ...] = (0.4, 0.1, 0.1, 0.08, 0.08, 0.08, 0.06, 0.08, 0.02)
    categorical: tuple[CategoricalMechanism, ...] = (ProbabilityTable(), LogitSampling())
    interventions: MixedInterventions = field(default_factory=lambda: MixedInterventions(unlabelled=0.12))
    environments: Environments = field(default_factory=Environments)
    measurement: Measurement = field(default_factory=Measurement)
    feedback: float = 0.04
    cycles: Feedback = field(default_factory=Feedback)
    effect_rows: int = 128

    def check(self) -> None:
        check_shares(self, "hidden", "hidden_part", "prefer_confounders", "batch", "environment", "raw", "mixture")
        check_shares(self, "own_noise", "multiplicative", "heteroscedastic", "measured_raw", "max_density", "empty")
        check_shares(self, "feedback", "expression", "expression_multiplicative", "textbook")
        check_shares(self, "precise", "expression_precise")
        for name in ("explained", "expression_explained", "unexplained"):
            low, high = getattr(self, name)
            if not 0.0 < low <= high < 1.0:
                raise ConfigError(f"GeneralDomain.{name} needs 0 < low <= high < 1")
        for components, weights in (("mechanisms", "mechanism_weights"), ("noises", "noise_weights")):
            if len(getattr(self, components)) != len(getattr(self, weights)):
                raise ConfigError(f"GeneralDomain.{weights} needs one weight for each of {components}")
            if min(getattr(self, weights), default=0.0) < 0 or sum(getattr(self, weights)) <= 0:
                raise ConfigError(f"GeneralDomain.{weights} must be at least 0, and not all 0")
        for name, kind in (
            ("graphs", GraphModel),
            ("small_graphs", GraphModel),
            ("discrete_graphs", GraphModel),
            ("expression_graphs", GraphModel),
            ("expression_noises", NoiseFamily),
            ("mechanisms", Mechanism),
            ("raw_mechanisms", Mechanism),
            ("noises", NoiseFamily),
            ("categorical", CategoricalMechanism),
        ):
            components = getattr(self, name)
            if not isinstance(components, tuple) or not components or not all(isinstance(c, kind) for c in components):
                raise ConfigError(f"GeneralDomain.{name} must be a tuple of at least one {kind.__name__}")
        if self.effect_rows < 1 or self.max_discrete_parents < 1 or not self.raw_noise_scales:
            raise ConfigError("GeneralDomain.effect_rows and .max_discrete_parents must be at least 1")

    @property
    def soft_interventions(self) -> bool:
        return self.interventions.soft > 0

    @property
    def several_targets(self) -> bool:
        return self.interventions.two_targets > 0 or self.interventions.factorial > 0

    def strata(self) -> dict[str, Domain]:
        """The domain restricted to each stratum, by name."""
        return {name: self.stratum(name, self) for name in _STRATA}

    @classmethod
    def stratum(cls, name: str, base: GeneralDomain | None = None) -> GeneralDomain:
        """A copy of the domain (the default one unless `base` is given) restricted to one stratum.

        Interventional rows are requested in `draw`; "interventional" is the stratum to use with them, and "pooled",
        in which their targets are not recorded.

        >>> domain = GeneralDomain.stratum("discrete")
        >>> domain.kinds.discrete, domain.hidden
        (1.0, 0.0)
        """
        if name not in _STRATA:
            raise ConfigError(f"there is no stratum {name!r}; choose one of: {', '.join(_STRATA)}")
        base = cls() if base is None else base
        changes = dict(_STRATA[name])
        for component in ("kinds", "interventions"):
            if component in changes:
                changes[component] = dataclasses.replace(getattr(base, component), **changes[component])
        return dataclasses.replace(base, **changes)

    def style(self, rng: np.random.Generator, *, d: int, n_interventional: int) -> Style:
        """Sample the style of a dataset with d columns."""
        hidden, batch, confounders, environment, raw, latent, textbook = rng.random(7)
        if textbook < self.textbook:
            return self._textbook(rng, d)
        has_environment = bool(n_interventional == 0 and d >= 3 and environment < self.environment)
        n_hidden = 0
        if hidden < self.hidden and d > 1:
            n_hidden = 1 + int(rng.random() * max(1, int((d - has_environment) * self.hidden_part)))
        kinds = self.kinds.sample(rng, d - has_environment + n_hidden)
        discrete = bool(kinds.levels.all())
        is_raw = bool(raw < self.raw and not discrete)
        is_expression = bool(self.expression and not is_raw and not discrete and rng.random() < self.expression)
        return Style(
            kinds=kinds,
            n_hidden=n_hidden,
            prefer_confounders=bool(confounders < self.prefer_confounders),
            batch=bool(n_hidden and batch < self.batch),
            environment=has_environment,
            mechanism=self._mechanism_style(rng, is_raw, is_expression, latent),
            measurement=self._style_measurement(rng, is_raw, is_expression),
            graphs=self.discrete_graphs if discrete else self.expression_graphs if is_expression else self.graphs,
            interventions=self.interventions,
        )

    def _textbook(self, rng: np.random.Generator, d: int) -> Style:
        return Style(
            kinds=dataclasses.replace(self.kinds, continuous=1.0, discrete=0.0).sample(rng, d),
            n_hidden=0,
            prefer_confounders=False,
            batch=False,
            environment=False,
            mechanism=self._mechanism_style(rng, True, False, 0.0),
            measurement=None,
            graphs=self.graphs,
            interventions=self.textbook_interventions,
        )

    def _style_measurement(self, rng: np.random.Generator, raw: bool, expression: bool) -> Measurement | None:
        if raw and rng.random() >= self.measured_raw:
            return None
        return self.expression_measurement if expression else self.measurement

    def _mechanism_style(self, rng: np.random.Generator, raw: bool, expression: bool, latent: float) -> MechanismStyle:
        noises, weights = self.noises, self.noise_weights
        if expression:
            mechanisms: tuple[Mechanism, ...] = (self.regulation,)
            noises, weights = self.expression_noises, (1.0,) * len(self.expression_noises)
        elif raw:
            mechanisms = (_choose(rng, self.raw_mechanisms),)
        else:
            count = 2 + int(rng.random() * 3) if rng.random() < self.mixture else 1
            mechanisms = tuple(_weighted(rng, self.mechanisms, self.mechanism_weights) for _ in range(count))
        count = 4 if rng.random() < self.own_noise else 1
        families = tuple(_weighted(rng, noises, weights) for _ in range(count))
        explained = None if raw else self.expression_explained if expression else self.explained
        if explained and rng.random() < (self.expression_precise if expression else self.precise):
            low, high = sorted(1.0 - log_uniform(rng, self.unexplained) for _ in range(2))
            explained = (low, high)
        elif explained and rng.random() < 0.6:  # a narrower range, because the columns of a table are often similar
            low, high = sorted(rng.uniform(*explained, 2).tolist())
            explained = (low, high)
        form, share = rng.random(2)
        multiplicative = form < (self.expression_multiplicative if expression else self.multiplicative)
        heteroscedastic = not multiplicative and form < self.multiplicative + self.heteroscedastic
        return MechanismStyle(
            mechanisms=tuple(mechanism.resolve(rng) for mechanism in mechanisms),
            families=families,
            explained=explained,
            noise_scale=_choose(rng, self.raw_noise_scales),
            multiplicative=share if multiplicative else 0.0,
            heteroscedastic=share if heteroscedastic else 0.0,
            categorical=self.categorical if rng.random() < 0.4 else (_choose(rng, self.categorical),),
            latent_share=1.0 if latent < 0.35 else 0.0 if latent < 0.7 else rng.random(),
        )

    def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        """One dataset: x [n, d], interventions [n, d], graph [d, d], kinds, confounded, effects and missing.

        kinds: int8 [d], see `ColumnKind`. confounded: bool [d, d], symmetric; True for a hidden common cause. effects:
        float32 [d, d], signed standardized direct effects, see `direct_effects`; NaN if undefined. missing: bool
        [n, d]; x is 0 there. The first n - n_interventional rows are observational. graph and confounded are the
        latent projection.
        """
        for _ in range(3):  # constant columns are rare, except in tables of few rows
            result = self._draw(rng, d=d, n=n, n_interventional=n_interventional)
            if n < 20 or not _has_constant_column(result["x"], result["missing"]):
                break
        return result

    def _draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        # Small tables get extra observational rows to estimate constants and effects. They are dropped afterwards.
        extra = max(0, REFERENCE_ROWS - (n - n_interventional))
        n, fit = n + extra, n + extra - n_interventional
        style = self.style(rng, d=d, n_interventional=n_interventional)
        if self.feedback and rng.random() < self.feedback:
            return self._draw_feedback(rng, style, d=d, n=n, fit=fit, extra=extra)
        graph = self._graph(rng, style, len(style.kinds.kinds) - style.batch)
        hidden = choose_hidden(rng, graph, style.n_hidden - style.batch, prefer_confounders=style.prefer_confounders)
        environments = self.environments if style.environment else None
        structure = design_variables(rng, graph, style.kinds, hidden, batch=style.batch, environments=environments, n=n)
        plan = self._plan(rng, style, structure, n=n, fit=fit)
        sampled = sample_general(
            rng,
            structure,
            style.mechanism,
            self.kinds,
            n=n,
            fit=fit,
            interventions=style.interventions,
            plan=plan,
            environments=self.environments,
        )
        # Observed variables are listed in random order, so that positions carry no information about causes.
        observed = rng.permutation(np.flatnonzero(~structure.hidden))
        directed, confounded = latent_projection(structure.graph, structure.hidden)
        place = (np.cumsum(~structure.hidden) - 1)[observed]
        kinds = structure.measured_kinds[observed]
        columns = self._discretize(rng, style, structure, sampled, observed, fit)
        effects = self._effects(structure, sampled, fit)
        return {
            **self._measured(rng, style, columns, kinds, extra),
            "interventions": np.ascontiguousarray(plan.labels[extra:, observed]),
            "graph": directed[np.ix_(place, place)],
            "confounded": confounded[np.ix_(place, place)],
            "effects": effects[np.ix_(observed, observed)].astype(np.float32),
        }

    def _plan(
        self, rng: np.random.Generator, style: Style, structure: Structure, *, n: int, fit: int
    ) -> InterventionPlan:
        targets = np.flatnonzero(~structure.hidden)
        targets = targets[targets != structure.environment]
        return style.interventions.plan(rng, targets, n=n, m=len(structure.graph), n_interventional=n - fit)

    def _graph(self, rng: np.random.Generator, style: Style, m: int) -> np.ndarray:
        if rng.random() < self.empty:
            return Empty().sample(rng, m)
        models = self.small_graphs if m <= self.small else style.graphs
        graph = limit_density(rng, _choose(rng, models).sample(rng, m), self.max_density)
        return limit_parents(rng, graph, self.max_discrete_parents) if style.kinds.levels.all() else graph

    def _discretize(
        self,
        rng: np.random.Generator,
        style: Style,
        structure: Structure,
        sampled: Sampled,
        observed: np.ndarray,
        fit: int,
    ) -> np.ndarray:
        """Columns [d, n] of the observed variables, discretized if the model uses continuous values."""
        columns: np.ndarray = sampled.columns[observed]
        if style.kinds.inside:
            return columns
        everything = slice(None)
        for k, j in enumerate(observed.tolist()):
            kind, levels = structure.measured_kinds[j], structure.measured_levels[j]
            if levels and kind != ColumnKind.ENVIRONMENT:
                cuts = self.kinds.cuts(rng, levels, nominal=kind == ColumnKind.NOMINAL)
                columns[k] = cuts(columns[k], everything, fit)
            elif kind == ColumnKind.COUNT:
                standard = (columns[k] - sampled.mean[j]) * sampled.inverse_sd[j]
                columns[k] = self.kinds.counts(rng, columns.shape[1])(standard, everything, fit)
        return columns

    def _measured(
        self, rng: np.random.Generator, style: Style, columns: np.ndarray, kinds: np.ndarray, extra: int
    ) -> dict[str, np.ndarray]:
        x, missing = columns, np.zeros(columns.shape, dtype=bool)
        if style.measurement is not None:
            x, missing = style.measurement.apply(rng, columns, kinds)
        return {
            "x": np.ascontiguousarray(x[:, extra:].T),
            "missing": np.ascontiguousarray(missing[:, extra:].T),
            "column_kinds": kinds,
        }

    def _effects(self, structure: Structure, sampled: Sampled, fit: int) -> np.ndarray:
        rows = np.linspace(0, fit - 1, min(fit, self.effect_rows)).astype(np.intp)
        nominal = np.isin(structure.measured_kinds, (ColumnKind.NOMINAL, ColumnKind.ENVIRONMENT))
        return direct_effects(
            structure.graph,
            structure.hidden,
            sampled.order,
            sampled.parents,
            sampled.nodes,
            sampled.columns,
            rows,
            levels=structure.levels,
            nominal=nominal,
            sd=sampled.sd,
        )

    def _draw_feedback(
        self, rng: np.random.Generator, style: Style, *, d: int, n: int, fit: int, extra: int
    ) -> dict[str, Any]:
        graph = self.cycles.graph(rng, self._graph(rng, style, d))
        plan = style.interventions.plan(rng, np.arange(d), n=n, m=d, n_interventional=n - fit)
        noise = np.stack([_choose(rng, style.mechanism.families).standard(rng, n) for _ in range(d)])
        system = self.cycles.sample(rng, graph, noise, fit, style.interventions, plan)
        return {
            **self._measured(rng, style, system.columns, np.zeros(d, dtype=np.int8), extra),
            "interventions": np.ascontiguousarray(plan.labels[extra:]),
            "graph": graph,
            "confounded": np.zeros((d, d), dtype=bool),
            "effects": system.effects.astype(np.float32),
        }


_ACYCLIC = {"environment": 0.0, "feedback": 0.0}
_MEASURED = {**_ACYCLIC, "textbook": 0.0}
_STRATA: dict[str, dict[str, Any]] = {
    "continuous": {"kinds": {"continuous": 1.0, "discrete": 0.0}, "hidden": 0.0, **_ACYCLIC},
    "discrete": {"kinds": {"continuous": 0.0, "discrete": 1.0}, "hidden": 0.0, **_MEASURED},
    "mixed": {"kinds": {"continuous": 0.0, "discrete": 0.0}, "hidden": 0.0, **_MEASURED},
    "confounded": {"hidden": 1.0, "prefer_confounders": 1.0, **_MEASURED},
    "interventional": {**_ACYCLIC, "interventions": {"unlabelled": 0.0}},
    "pooled": {**_MEASURED, "interventions": {"unlabelled": 1.0}},
    "environment": {**_MEASURED, "environment": 1.0},
    "expression": {"kinds": {"continuous": 1.0, "discrete": 0.0}, "raw": 0.0, "expression": 1.0, **_MEASURED},
    "feedback": {"feedback": 1.0},
}


def _has_constant_column(x: np.ndarray, missing: np.ndarray) -> bool:
    same = x == x[:1]
    if missing.any():  # compare with the first observed cell, among observed cells
        first = np.take_along_axis(x, np.argmin(missing, axis=0)[None], axis=0)
        same = (x == first) | missing
    return bool(same.all(axis=0).any())


def _choose(rng: np.random.Generator, components: tuple[Any, ...]) -> Any:
    return components[int(rng.random() * len(components))]


def _weighted(rng: np.random.Generator, components: tuple[Any, ...], weights: tuple[float, ...]) -> Any:
    left = rng.random() * sum(weights)
    for component, weight in zip(components, weights, strict=True):
        left -= weight
        if left < 0:
            return component
    return components[-1]
