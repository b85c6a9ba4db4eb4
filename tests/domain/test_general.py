"""The domain `general` as a whole: shapes, seeds, labels, shares, and that nothing leaks."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from presage.columns import ColumnKind
from presage.config import from_json, to_json
from presage.domain.general import GeneralDomain
from presage.errors import ConfigError
from presage.graphs.ops import is_acyclic
from presage.rng import Stream, generator
from presage.simulators.columns import ColumnKinds
from presage.simulators.interventions_general import MixedInterventions
from presage.simulators.measurement import Measurement
from presage.simulators.mechanisms_general import WeightedSum
from presage.simulators.noise_general import GaussianNoise
from presage.simulators.regulation import Regulation

DOMAIN = GeneralDomain()
ACYCLIC = dataclasses.replace(DOMAIN, feedback=0.0)
PLAIN = dataclasses.replace(
    GeneralDomain.stratum("continuous"),
    textbook=0.0,
    raw=0.0,
    mechanisms=(WeightedSum(),),
    mechanism_weights=(1.0,),
    noises=(GaussianNoise(),),
    noise_weights=(1.0,),
    multiplicative=0.0,
    heteroscedastic=0.0,
    precise=0.0,
    expression=0.0,
    measurement=Measurement(clean=1.0),
)
TYPES = {
    "x": np.float64,
    "interventions": bool,
    "graph": np.int8,
    "column_kinds": np.int8,
    "confounded": bool,
    "effects": np.float32,
    "missing": bool,
}


def draw(domain: GeneralDomain, k: int, d: int, n: int, n_interventional: int = 0) -> dict[str, Any]:
    return domain.draw(generator(5, Stream.TEST, d, k), d=d, n=n, n_interventional=n_interventional)


def check(data: dict[str, Any], d: int, n: int, n_interventional: int) -> None:
    shapes = {"x": (n, d), "interventions": (n, d), "missing": (n, d), "column_kinds": (d,)}
    assert set(data) == set(TYPES)
    for name, dtype in TYPES.items():
        assert data[name].shape == shapes.get(name, (d, d))
        assert data[name].dtype == dtype
    x, kinds, graph, effects = data["x"], data["column_kinds"], data["graph"], data["effects"]
    assert np.isfinite(x).all()
    assert (x[data["missing"]] == 0).all()
    assert (data["confounded"] == data["confounded"].T).all()
    assert not data["confounded"].diagonal().any()
    assert not data["interventions"][: n - n_interventional].any()
    nominal = np.isin(kinds, (ColumnKind.NOMINAL, ColumnKind.ENVIRONMENT))
    expected = (graph == 1) & ~nominal[:, None] & ~nominal[None, :]
    assert (np.isfinite(effects) == expected).all()
    environment = kinds == ColumnKind.ENVIRONMENT
    assert environment.sum() <= 1
    assert not graph[:, environment].any()
    assert not data["confounded"][environment].any()
    for kind, most in ((2, 2), (3, 7), (4, 10), (5, 6)):
        codes = x[:, kinds == kind]
        assert ((codes == np.rint(codes)) & (codes >= 0) & (codes < most)).all()
    counts = x[:, kinds == ColumnKind.COUNT]
    assert ((counts == np.rint(counts)) & (counts >= 0)).all()


@pytest.mark.parametrize("stratum", [None, *DOMAIN.strata()])
@pytest.mark.parametrize(
    ("d", "n", "n_interventional"),
    [(1, 2, 0), (1, 3, 1), (2, 2, 0), (2, 2, 2), (3, 5, 5), (3, 60, 0), (7, 90, 30), (12, 200, 0), (30, 100, 100)],
)
def test_datasets_are_well_formed(stratum, d, n, n_interventional) -> None:
    domain = DOMAIN if stratum is None else DOMAIN.strata()[stratum]
    for k in range(12):
        data = draw(domain, k, d, n, n_interventional)
        check(data, d, n, n_interventional)
        assert domain.feedback or is_acyclic(data["graph"])


def test_pooled_tables_differ_only_by_their_labels() -> None:
    """The targets of the pooled tables were set, but they are not recorded."""
    labelled = dataclasses.replace(PLAIN, interventions=MixedInterventions(soft=0.0))
    pooled = dataclasses.replace(labelled, interventions=MixedInterventions(soft=0.0, unlabelled=1.0))
    for k in range(6):
        with_labels, without = draw(labelled, k, 6, 90, 60), draw(pooled, k, 6, 90, 60)
        for name in set(TYPES) - {"interventions"}:
            np.testing.assert_array_equal(with_labels[name], without[name])
        assert with_labels["interventions"][30:].any(axis=1).all()
        assert not without["interventions"].any()
    shares = [draw(DOMAIN, k, 5, 60, 30)["interventions"].any() for k in range(200)]
    assert 0.80 < np.mean(shares) < 0.97  # 12 % of the tables other than the paper's are pooled


def test_a_hundred_variables() -> None:
    for k in range(8):
        check(draw(DOMAIN, k, 100, 120, 40 * (k % 2)), 100, 120, 40 * (k % 2))


def test_draws_are_exact_for_a_seed_and_do_not_depend_on_the_batch_size() -> None:
    for k in range(6):
        first, second = draw(DOMAIN, k, 6, 50, 20), draw(DOMAIN, k, 6, 50, 20)
        for name in TYPES:
            np.testing.assert_array_equal(first[name], second[name])
    whole = DOMAIN.sample(d=5, n=40, n_interventional=10, seed=3, size=6)
    part = DOMAIN.sample(d=5, n=40, n_interventional=10, seed=3, size=2, start=4)
    np.testing.assert_array_equal(whole.x[4:], part.x)
    np.testing.assert_array_equal(whole.graph[4:], part.graph)


def test_the_domain_and_its_strata_round_trip_through_json() -> None:
    for domain in (DOMAIN, *(DOMAIN.strata()[name] for name in DOMAIN.strata())):
        assert from_json(json.loads(json.dumps(to_json(domain), allow_nan=False))) == domain
    assert "mechanism weights" in str(DOMAIN)


def test_strata_force_their_shares() -> None:
    def drawn(name: str, n_interventional: int = 0) -> list[dict[str, Any]]:
        return [draw(DOMAIN.strata()[name], k, 8, 80, n_interventional) for k in range(30)]

    assert all((data["column_kinds"] == 0).all() for data in drawn("continuous"))
    assert all((data["column_kinds"] != 0).all() for data in drawn("discrete"))
    assert 0.1 < np.mean([(data["column_kinds"] == 0).mean() for data in drawn("mixed")]) < 0.9
    assert np.mean([data["confounded"].any() for data in drawn("confounded")]) > 0.7
    assert all(data["interventions"].any() for data in drawn("interventional", 30))
    assert not any(data["interventions"].any() for data in drawn("pooled", 30))
    assert all((data["column_kinds"] == ColumnKind.ENVIRONMENT).sum() == 1 for data in drawn("environment"))
    for name in ("continuous", "discrete", "mixed"):
        assert not any(data["confounded"].any() for data in drawn(name))
    base = dataclasses.replace(DOMAIN, raw=0.0)
    assert GeneralDomain.stratum("discrete", base).raw == 0.0
    with pytest.raises(ConfigError, match="continuous, discrete"):
        GeneralDomain.stratum("cyclic")


def test_few_columns_are_constant() -> None:
    constant = total = 0
    for k in range(120):
        x = draw(DOMAIN, k, 10, 60, 20 * (k % 2))["x"]
        constant += int((x == x[:1]).all(axis=0).sum())
        total += x.shape[1]
    assert constant <= 0.002 * total


def test_shares_of_the_default_domain() -> None:
    drawn = [draw(DOMAIN, k, 12, 40) for k in range(400)]
    continuous = np.mean([np.isin(data["column_kinds"], (0, 5)).all() for data in drawn])
    discrete = np.mean([(data["column_kinds"] != 0).all() for data in drawn])
    environment = np.mean([(data["column_kinds"] == 5).any() for data in drawn])
    assert continuous == pytest.approx(0.5, abs=0.08)
    assert discrete == pytest.approx(0.2, abs=0.07)
    assert environment == pytest.approx(0.15, abs=0.06)
    assert np.mean([not is_acyclic(data["graph"]) for data in drawn]) == pytest.approx(0.04, abs=0.025)
    assert 0.2 < np.mean([data["confounded"].any() for data in drawn]) < 0.45
    edges = [data["graph"].sum() / 12 for data in drawn]
    assert 0.8 < np.median(edges) < 2.0
    assert min(edges) == 0.0
    assert max(edges) > 2.5


def test_neither_variance_nor_explained_variance_grows_along_the_order() -> None:
    """Standardized datasets: columns have unit variance, and R^2 does not rise with the number of ancestors."""
    early, late = [], []
    for k in range(60):
        data = draw(PLAIN, k, 15, 1000)
        x, graph = data["x"], data["graph"]
        np.testing.assert_allclose(x.std(axis=0), 1.0, atol=1e-6)
        ancestors = (np.linalg.matrix_power(np.eye(15) + graph, 15) > 0).sum(axis=0) - 1
        for j in np.flatnonzero(graph.any(axis=0)):
            parents = x[:, graph[:, j] == 1]
            residual = x[:, j] - parents @ np.linalg.lstsq(parents, x[:, j], rcond=None)[0]
            (early if ancestors[j] <= 2 else late).append(1.0 - residual.var())
    assert min(len(early), len(late)) > 100
    assert abs(np.mean(early) - np.mean(late)) < 0.06


def test_precise_tables_are_nearly_deterministic() -> None:
    domain = dataclasses.replace(PLAIN, precise=1.0)
    unexplained = []
    for k in range(30):
        data = draw(domain, k, 6, 400)
        x, graph = data["x"], data["graph"]
        for j in np.flatnonzero(graph.any(axis=0)):
            parents = x[:, graph[:, j] == 1]
            residual = x[:, j] - parents @ np.linalg.lstsq(parents, x[:, j], rcond=None)[0]
            unexplained.append(residual.var() / x[:, j].var())
    assert max(unexplained) < 0.08
    assert min(unexplained) < 0.002


def test_position_says_nothing_about_causes() -> None:
    """Edges run from lower to higher positions as often as back, environments included."""
    forward = total = 0
    for stratum in ("continuous", "environment", "confounded"):
        domain = DOMAIN.strata()[stratum]
        for k in range(120):
            graph = draw(domain, k, 9, 40)["graph"]
            forward += int(np.triu(graph).sum())
            total += int(graph.sum())
    assert forward / total == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(total) + 0.03)
    places = [
        int(np.flatnonzero(draw(domain, k, 9, 40)["column_kinds"] == 5)[0])
        for domain in [DOMAIN.strata()["environment"]]
        for k in range(90)
    ]
    assert len(set(places)) == 9


def test_linear_effects_agree_with_regression() -> None:
    """Without hidden variables the effect is the standardized regression weight on the parents."""
    for k in range(20):
        data = draw(PLAIN, k, 6, 4000)
        x, graph = data["x"], data["graph"]
        for j in np.flatnonzero(graph.any(axis=0)):
            parents = np.flatnonzero(graph[:, j])
            weights, residual, *_ = np.linalg.lstsq(x[:, parents], x[:, j], rcond=None)
            inverse = np.linalg.inv(x[:, parents].T @ x[:, parents])
            error = np.sqrt(residual[0] / 4000 * inverse.diagonal())
            assert (np.abs(data["effects"][parents, j] - weights) < 5 * error + 1e-6).all()


def test_confounded_pairs_depend_on_each_other_and_other_pairs_do_not() -> None:
    domain = dataclasses.replace(PLAIN, hidden=1.0, prefer_confounders=1.0, hidden_part=0.0, max_density=0.25)
    confounded, independent = [], []
    for k in range(150):
        data = draw(domain, k, 5, 500)
        graph = data["graph"]
        reach = np.linalg.matrix_power(np.eye(5) + graph, 5) > 0
        correlation = np.corrcoef(data["x"].T)
        for i in range(5):
            for j in range(i):
                if data["confounded"][i, j] and not (reach[i, j] or reach[j, i]):
                    confounded.append(abs(correlation[i, j]))
                # No common ancestor, observed or hidden, and no path: independent.
                common = (reach[:, i] & reach[:, j]).any()
                linked = (reach[:, i].astype(int) @ data["confounded"] @ reach[:, j].astype(int)) > 0
                if not common and not linked:
                    independent.append(abs(correlation[i, j]))
    assert len(confounded) > 30
    assert np.median(confounded) > 0.1
    assert len(independent) > 100
    assert np.quantile(independent, 0.95) < 2.2 / np.sqrt(500)


def test_environments_change_the_mechanisms_they_point_to() -> None:
    """Residuals on observed parents differ between environments for targets of the environment only."""
    domain = dataclasses.replace(PLAIN, environment=1.0)
    changed, unchanged = [], []
    for k in range(40):
        data = draw(domain, k, 8, 3000)
        x, graph = data["x"], data["graph"]
        e = int(np.flatnonzero(data["column_kinds"] == ColumnKind.ENVIRONMENT)[0])
        codes = x[:, e].astype(int)
        for j in range(8):
            if j == e:
                continue
            parents = x[:, [i for i in np.flatnonzero(graph[:, j]) if i != e]]
            design = np.column_stack([parents, np.ones(len(x))])
            fits = []
            for code in np.unique(codes):
                rows = codes == code
                if rows.sum() > 100:
                    weights = np.linalg.lstsq(design[rows], x[rows, j], rcond=None)[0]
                    spread = (x[rows, j] - design[rows] @ weights).std()
                    fits.append([spread, *weights])
            difference = np.ptp(np.array(fits), axis=0).max()
            (changed if graph[e, j] else unchanged).append(difference)
    assert np.median(unchanged) < 0.1
    assert np.mean(np.array(changed) > 0.25) > 0.8


def test_interventions_cut_targets_from_their_parents() -> None:
    domain = dataclasses.replace(
        PLAIN,
        interventions=dataclasses.replace(
            PLAIN.interventions, soft=0.0, mislabelled=0.0, two_targets=0.0, factorial=0.0
        ),
    )
    inside, outside = [], []
    for k in range(40):
        data = draw(domain, k, 6, 1200, 600)
        x, graph = data["x"], data["graph"]
        for j in np.flatnonzero(graph.any(axis=0)):
            rows = data["interventions"][:, j]
            if rows.sum() > 60 and x[rows, j].std() > 0:
                for i in np.flatnonzero(graph[:, j]):
                    inside.append(abs(np.corrcoef(x[rows, i], x[rows, j])[0, 1]))
                    outside.append(abs(np.corrcoef(x[:600, i], x[:600, j])[0, 1]))
    assert len(inside) > 20
    assert np.median(inside) < 0.1 < 0.25 < np.median(outside)


def test_feedback_gives_cyclic_graphs_with_effects() -> None:
    domain = dataclasses.replace(DOMAIN, feedback=1.0)
    cyclic = 0
    for k in range(30):
        data = draw(domain, k, 8, 100, 40 * (k % 2))
        assert np.isfinite(data["x"]).all()
        assert (np.isfinite(data["effects"]) == (data["graph"] == 1)).all()
        cyclic += not is_acyclic(data["graph"])
    assert cyclic > 20


def test_without_rounding_continuous_columns_have_no_ties() -> None:
    x = draw(PLAIN, 0, 5, 300)["x"]
    assert all(len(np.unique(column)) == 300 for column in x.T)
    measured = dataclasses.replace(DOMAIN, textbook=0.0)
    rounded = [draw(measured, k, 6, 300) for k in range(120)]
    tied = [
        np.mean([len(np.unique(data["x"][:, j])) < 290 for j in np.flatnonzero(data["column_kinds"] == 0)] or [0.0])
        for data in rounded
        if (data["column_kinds"] == 0).any() and not data["missing"].any()
    ]
    assert 0.3 < np.mean(np.array(tied) > 0.5) < 0.7


def test_textbook_tables_are_unmeasured_linear_or_rff_systems_on_raw_scales() -> None:
    domain = dataclasses.replace(ACYCLIC, textbook=1.0, hidden=1.0, environment=1.0, expression=1.0)
    spread = []
    for k in range(30):
        data = draw(domain, k, 8, 200)
        assert (data["column_kinds"] == 0).all()
        assert not data["missing"].any()
        assert not data["confounded"].any()
        assert all(len(np.unique(column)) == 200 for column in data["x"].T)
        style = domain.style(generator(5, Stream.TEST, k), d=8, n_interventional=0)
        (mechanism,) = style.mechanism.mechanisms
        assert isinstance(mechanism, tuple(type(raw) for raw in domain.raw_mechanisms))
        spread.append(data["x"].std(axis=0).max())
    assert np.median(spread) > 2.0


def test_inhibited_activities_change_the_children_and_not_the_target() -> None:
    """Two variables, the cause inhibited: its values keep their distribution, those of the effect move."""

    class Inhibitors(MixedInterventions):
        def _mode(self, rng: np.random.Generator) -> str:
            return "activity"

    interventions = Inhibitors(signed=0.0, single=0.0, factorial=0.0, mislabelled=0.0, share=(1.0, 1.0))
    domain = dataclasses.replace(PLAIN, interventions=interventions, explained=(0.9, 0.99))
    cause, effect = [], []
    for k in range(60):
        data = draw(domain, k, 2, 1000, 600)
        for i, j in np.argwhere(data["graph"]):
            rows = data["interventions"][:, i]
            usual = ~data["interventions"].any(axis=1)
            x = data["x"]
            cause.append(abs(x[rows, i].mean() - x[usual, i].mean()) / x[usual, i].std())
            effect.append(abs(x[rows, j].mean() - x[usual, j].mean()) / x[usual, j].std())
    assert len(cause) > 15
    assert max(cause) < 0.4
    assert np.median(effect) > 0.3


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden": 1.5},
        {"textbook": -0.1},
        {"precise": 1.1},
        {"unexplained": (0.0, 0.1)},
        {"explained": (0.0, 0.5)},
        {"mechanism_weights": (1.0,)},
        {"noises": (), "noise_weights": ()},
        {"graphs": ()},
        {"graphs": (WeightedSum(),)},
        {"effect_rows": 0},
    ],
)
def test_bad_parameters_are_refused(changes) -> None:
    with pytest.raises(ConfigError):
        dataclasses.replace(DOMAIN, **changes)


def test_kinds_of_a_domain_can_be_changed() -> None:
    domain = dataclasses.replace(DOMAIN, kinds=ColumnKinds(continuous=0.0, discrete=1.0, nominal_levels=(3, 3)))
    for k in range(20):
        data = draw(domain, k, 6, 60)
        assert data["x"][:, data["column_kinds"] == ColumnKind.NOMINAL].max(initial=0) <= 2


def test_expression_tables_replace_standardized_continuous_tables() -> None:
    always = dataclasses.replace(ACYCLIC, expression=1.0)
    never = dataclasses.replace(ACYCLIC, expression=0.0)
    changed = 0
    for k in range(20):
        data = draw(always, k, 10, 80)
        check(data, 10, 80, 0)
        style = always.style(generator(5, Stream.TEST, k), d=10, n_interventional=0)
        regulated = any(isinstance(mechanism, Regulation) for mechanism in style.mechanism.mechanisms)
        discrete = bool(style.kinds.levels.all())
        assert regulated == (style.mechanism.explained is not None and not discrete)
        if style.measurement is not None:
            assert (style.measurement == always.expression_measurement) == regulated
        assert (style.graphs == always.expression_graphs) == regulated
        before = never.style(generator(5, Stream.TEST, k), d=10, n_interventional=0)
        assert before.graphs != always.expression_graphs
        changed += regulated
    assert 5 < changed < 20
