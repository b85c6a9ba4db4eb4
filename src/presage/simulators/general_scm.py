"""Ancestral sampling of structural causal models with variables of every kind, as nodes that can be re-evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from presage.columns import ColumnKind
from presage.config import Range
from presage.graphs.ops import topological_order
from presage.simulators.categorical import CategoricalMechanism, ParentInfo, Switched
from presage.simulators.columns import ColumnKinds
from presage.simulators.environments import Environments
from presage.simulators.interventions_general import InterventionPlan, MixedInterventions
from presage.simulators.mechanisms import Mechanism
from presage.simulators.mechanisms_general import WeightedSum
from presage.simulators.nodes import Counts, Cuts, Encoding, Node, NumericNode, moments
from presage.simulators.noise_general import NoiseFamily
from presage.simulators.structure import Structure

__all__ = ["MechanismStyle", "Sampled", "sample_general"]

NOMINAL = (int(ColumnKind.NOMINAL), int(ColumnKind.ENVIRONMENT))


@dataclass
class MechanismStyle:
    """Properties shared by the mechanisms of one dataset.

    mechanisms: with options resolved; each variable samples one. families: one noise family, or several of which each
    variable samples one. explained: range of the share of explained variance; None means raw scales, with noise scaled
    by `noise_scale`. multiplicative, heteroscedastic: probabilities for a variable with parents. latent_share: share of
    binary and ordinal variables that are discretized latent numbers instead of samples of a `categorical` mechanism.
    """

    mechanisms: tuple[Mechanism, ...]
    families: tuple[NoiseFamily, ...]
    explained: Range | None = (0.1, 0.99)
    noise_scale: Range = (0.2, 2.0)
    multiplicative: float = 0.0
    heteroscedastic: float = 0.0
    categorical: tuple[CategoricalMechanism, ...] = ()
    latent_share: float = 1.0


@dataclass
class Sampled:
    """Sampled variables. columns: [m, rows]; nodes, parents, order: for re-evaluation; mean, sd: [m], observational."""

    columns: np.ndarray
    nodes: list[Node | None]
    parents: list[np.ndarray]
    order: list[int]
    mean: np.ndarray
    sd: np.ndarray
    inverse_sd: np.ndarray = field(default_factory=lambda: np.ones(0))


def sample_general(
    rng: np.random.Generator,
    structure: Structure,
    style: MechanismStyle,
    kinds: ColumnKinds,
    *,
    n: int,
    fit: int,
    interventions: MixedInterventions,
    plan: InterventionPlan,
    environments: Environments,
) -> Sampled:
    """Sample n rows. The first `fit` are observational and determine all constants. plan: masks [n, m]."""
    graph, m = structure.graph, len(structure.graph)
    order = topological_order(graph).tolist()
    effects, causes = np.nonzero(graph.T)
    if structure.environment is not None:
        kept = causes != structure.environment
        effects, causes = effects[kept], causes[kept]
    first = np.searchsorted(effects, np.arange(m + 1)).tolist()
    parents = [causes[first[j] : first[j + 1]] for j in range(m)]
    done = Sampled(np.empty((m, n)), [None] * m, parents, order, np.zeros(m), np.ones(m), np.ones(m))
    maker = _NodeMaker(rng, structure, style, kinds, environments, n, done)
    whole = slice(None)
    measured: dict[int, np.ndarray] = {}
    for j in order:
        if j == structure.environment and structure.environments is not None:
            values = structure.environments.codes.astype(np.float64)
        else:
            values = maker.sample(j, done.columns.take(parents[j], axis=0), whole, fit)
        mean, sd = moments(values[:fit])
        done.mean[j], done.sd[j] = mean, sd
        done.inverse_sd[j] = 1.0 / sd if sd > 0 else 0.0
        if j in plan.modes:
            rows = np.flatnonzero(plan.done[:, j])
            if len(rows):
                raw = style.explained is None
                if plan.modes[j] == "activity":
                    measured[j] = values
                values = values.copy()  # a root's values may be the noise itself, which is kept
                values[rows] = interventions.apply(
                    rng,
                    values[rows],
                    plan.modes[j],
                    kind=int(structure.kinds[j]),
                    levels=structure.levels[j],
                    mean=0.0 if raw else mean,
                    sd=1.0 if raw and not structure.kinds[j] else sd,
                )
        done.columns[j] = values
    for j, values in measured.items():  # now that the children have seen the altered values
        done.columns[j] = values
    return done


class _NodeMaker:
    """Samples nodes one by one in causal order."""

    def __init__(
        self,
        rng: np.random.Generator,
        structure: Structure,
        style: MechanismStyle,
        kinds: ColumnKinds,
        environments: Environments,
        n: int,
        done: Sampled,
    ) -> None:
        self.rng, self.structure, self.style, self.kinds = rng, structure, style, kinds
        self.environments, self.n, self.done = environments, n, done
        self.codes = structure.environments.codes if structure.environments is not None else None
        m = len(structure.graph)
        one_family = len(style.families) == 1
        self.noise = style.families[0].standard(rng, (m, n)) if one_family else None
        # Numeric values are already standardized or used on their raw scale; codes and counts are standardized here.
        self.read_scaled = np.array([kind != 0 and kind not in NOMINAL for kind in structure.kinds.tolist()])
        self.read_nominal = np.isin(structure.kinds, NOMINAL)
        self.any_discrete = bool(structure.kinds.any())

    def sample(self, j: int, values: np.ndarray, rows: slice, fit: int) -> np.ndarray:
        """Sample a node for variable j, store it, and return the values of all rows."""
        kind, levels = int(self.structure.kinds[j]), self.structure.levels[j]
        latent = kind == ColumnKind.BINARY or kind == ColumnKind.ORDINAL
        categorical = kind in NOMINAL or (latent and self.rng.random() >= self.style.latent_share)
        if categorical and self.style.categorical:
            return self._categorical(j, kind, levels, values, rows, fit)
        node = self._numeric(j, kind, levels, values)
        result = node.evaluate(values, rows, fit)
        if node.flat:  # for example all rows on one side of every threshold
            node.function = WeightedSum().function(self.rng, len(values))
            result = node.evaluate(values, rows, fit)
        self.done.nodes[j] = node
        return result

    def _encoding(self, parents: np.ndarray) -> Encoding:
        if not self.any_discrete or not len(parents):
            return Encoding(None, None)
        scaled = self.read_scaled[parents]
        tables = [
            (k, self.rng.standard_normal(self.structure.levels[int(parents[k])]))
            for k in np.flatnonzero(self.read_nominal[parents]).tolist()
        ]
        if not scaled.any():
            return Encoding(None, None, tables)
        loc = np.where(scaled, self.done.mean[parents], 0.0)[:, None]
        inverse = np.where(scaled, self.done.inverse_sd[parents], 1.0)[:, None]
        return Encoding(loc, inverse, tables)

    def _numeric(self, j: int, kind: int, levels: int, values: np.ndarray) -> NumericNode:
        rng, style, p = self.rng, self.style, len(values)
        mechanism = style.mechanisms[int(rng.random() * len(style.mechanisms))]
        if self.noise is not None:
            noise = self.noise[j]
        else:
            noise = style.families[int(rng.random() * len(style.families))].standard(rng, self.n)
        output: Cuts | Counts | None = None
        if levels:
            output = self.kinds.cuts(rng, levels, nominal=kind in NOMINAL)
        elif kind == ColumnKind.COUNT:
            output = self.kinds.counts(rng, self.n)
        form, strength = "additive", 0.0
        if p:
            pick = rng.random()
            if pick < style.multiplicative and style.explained is not None:
                form, strength = "multiplicative", rng.random()
            elif pick < style.multiplicative + style.heteroscedastic:
                form, strength = "heteroscedastic", rng.uniform(0.4, 1.5)
        changes = []
        if self.structure.environments is not None:
            codes = self.structure.environments.changed.get(j, ())
            changes = [self.environments.change(rng, code, mechanism, p) for code in codes]
        return NumericNode(
            mechanism.function(rng, p),
            self._encoding(self.done.parents[j]),
            noise,
            explained=rng.uniform(*style.explained) if style.explained is not None else 0.5,
            scale=rng.uniform(*style.noise_scale) if style.explained is None else None,
            form=form,
            form_strength=strength,
            output=output,
            changes=changes,
            environment=self.codes,
        )

    def _categorical(
        self, j: int, kind: int, levels: int, values: np.ndarray, rows: slice, fit: int, attempts: int = 4
    ) -> np.ndarray:
        rng, done = self.rng, self.done
        parents = done.parents[j]
        info = ParentInfo(
            [self.structure.levels[i] for i in parents.tolist()], done.mean[parents], done.inverse_sd[parents]
        )
        mechanism = self.style.categorical[int(rng.random() * len(self.style.categorical))]
        noise = mechanism.noise(rng, levels, self.n)
        ordered = kind == ColumnKind.ORDINAL
        changed = self.structure.environments.changed.get(j) if self.structure.environments is not None else None
        for _ in range(attempts):
            node = mechanism.node(rng, info, levels, noise, ordered=ordered)
            if changed and self.codes is not None:
                others = [(code, mechanism.node(rng, info, levels, noise, ordered=ordered)) for code in changed]
                node = Switched(node, others, self.codes)
            result = node.evaluate(values, rows, fit)
            counts = np.bincount(result[:fit].astype(np.intp), minlength=levels)
            if counts.max() < 0.985 * fit:
                break
        done.nodes[j] = node
        return result
