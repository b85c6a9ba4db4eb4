"""Kinds of columns in, hidden causes and effects out: from a dataset through `discover` to a saved result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import presage
from presage.columns import ColumnKind, guess_kinds
from presage.errors import DataError
from presage.inference.model import Model
from presage.inference.result import Result
from presage.networks.network import build_network
from presage.networks.pair import PairConfig
from presage.types import Dataset

SMALL = PairConfig(
    width=16,
    cell_width=8,
    outer=4,
    outer_intervened=4,
    triangle=8,
    heads=2,
    column_kinds=True,
    hidden_causes=True,
    effects=True,
)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(build_network(SMALL, seed=3), {"name": "small", "kind": "real"})


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """A dataset with a nominal column."""
    for seed in range(50):
        found = presage.simulate("general", d=6, n=80, seed=seed)
        if (found.column_kinds == ColumnKind.NOMINAL).any() and not found.missing.any():
            return found
    raise AssertionError("no dataset with a nominal column among 50")


@pytest.fixture(scope="module")
def result(model: Model, dataset: Dataset) -> Result:
    return presage.discover(dataset, model=model)


def test_all_three_answers_come_out(result: Result, model: Model, dataset: Dataset) -> None:
    direct = model.predict(model.prepare(dataset.x, dataset.interventions, dataset.missing, dataset.column_kinds))
    np.testing.assert_allclose(result.matrix, direct.probabilities)
    assert result.confounded is not None
    confounded = result.confounded.to_numpy()
    np.testing.assert_array_equal(confounded, confounded.T)
    assert ((confounded >= 0) & (confounded < 1)).all()
    assert (np.diag(confounded) == 0).all()
    ordered = np.flatnonzero(dataset.column_kinds < ColumnKind.NOMINAL)
    off = ~np.eye(len(ordered), dtype=bool)
    assert result.effect is not None
    assert direct.effect is not None
    np.testing.assert_allclose(
        result.effect[np.ix_(ordered, ordered)][off], direct.effect[np.ix_(ordered, ordered)][off]
    )


def test_effects_of_unordered_levels_are_undefined(result: Result, dataset: Dataset) -> None:
    nominal = dataset.column_kinds == ColumnKind.NOMINAL
    assert result.effect is not None
    assert np.isnan(result.effect[nominal]).all()
    assert np.isnan(result.effect[:, nominal]).all()


def test_edges_carry_effects_with_intervals(result: Result) -> None:
    edges = result.top(30)
    known = edges.dropna()
    assert len(known) > 0
    assert (known["effect_low"] < known["effect"]).all()
    assert (known["effect"] < known["effect_high"]).all()
    source, target = known["source"].iloc[0], known["target"].iloc[0]
    graph = result.graph(threshold=0.0, acyclic=False)
    assert graph.edges[source, target]["effect"] == pytest.approx(known["effect"].iloc[0])


def test_codes_of_nominal_levels_are_exchangeable(model: Model, dataset: Dataset) -> None:
    j = int(np.flatnonzero(dataset.column_kinds == ColumnKind.NOMINAL)[0])
    x = dataset.x.copy()
    levels, codes = np.unique(x[:, j], return_inverse=True)
    x[:, j] = np.roll(levels, 1)[codes]
    kinds = dataset.column_kinds
    before = model.probabilities(dataset.x, dataset.interventions, column_kinds=kinds)
    after = model.probabilities(x, dataset.interventions, column_kinds=kinds)
    np.testing.assert_allclose(before, after, atol=1e-5)


def test_results_survive_saving(result: Result, tmp_path: Path) -> None:
    loaded = Result.load(result.save(tmp_path / "out"))
    for name in ("matrix", "hidden_causes", "effect", "effect_scale"):
        np.testing.assert_allclose(getattr(loaded, name), getattr(result, name))
    assert (tmp_path / "out" / "confounded.csv").is_file()
    assert "style=dashed" in result.to_dot(threshold=0.0)


def test_models_with_one_output_have_no_effects_and_hidden_causes() -> None:
    result = presage.discover(presage.simulate("linear", d=4, n=60), model="linear")
    assert result.confounded is None
    assert result.confounded_pairs() == []
    assert result.edges(0.0)["effect"].isna().all()


def test_datasets_keep_kinds_and_truth(dataset: Dataset, tmp_path: Path) -> None:
    dataset.save(tmp_path / "data.npz")
    loaded = Dataset.load(tmp_path / "data.npz")
    for name in ("column_kinds", "graph", "confounded", "effects", "missing"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(dataset, name))


def test_kinds_of_plain_numbers_are_guessed() -> None:
    rng = np.random.default_rng(0)
    columns = [
        rng.normal(size=100),
        rng.integers(0, 2, 100) * 3.5,
        rng.integers(1, 6, 100),
        rng.poisson(20, 100),
        rng.integers(-30, 30, 100),
        np.ones(100),
        np.repeat([-1e308, 0.0, 1e308, 1.7e308], 25),
    ]
    kinds = guess_kinds(np.stack(columns, axis=1))
    assert [ColumnKind(kind).name for kind in kinds] == [
        "CONTINUOUS",
        "BINARY",
        "ORDINAL",
        "COUNT",
        "CONTINUOUS",
        "CONTINUOUS",
        "CONTINUOUS",
    ]


@pytest.mark.parametrize("bad", [[0, 1], [0, 0, 9], [[0, 0, 0]]])
def test_wrong_kinds_are_refused(bad: list) -> None:
    with pytest.raises(DataError, match="column_kinds"):
        Dataset(x=np.zeros((4, 3)), column_kinds=np.array(bad))
