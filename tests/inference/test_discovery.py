"""`discover`: properties of its results, and a fuzz test that allows only results and errors of the package."""

from __future__ import annotations

from pathlib import Path

import hypothesis.extra.numpy as hnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import presage
from models_for_tests import save_tiny
from presage.errors import ConfigError, PresageError


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> presage.Model:
    path = tmp_path_factory.mktemp("models") / "tiny.safetensors"
    return presage.load_model(save_tiny(path, with_summaries=True))


@pytest.fixture(scope="module")
def dataset() -> presage.Dataset:
    return presage.simulate("linear", d=6, n=120, n_interventional=40, seed=3)


def test_probabilities_are_those_of_the_model(model: presage.Model, dataset: presage.Dataset) -> None:
    result = presage.discover(dataset.x, dataset.interventions, model=model)
    expected = model.probabilities(dataset.x, dataset.interventions)
    np.testing.assert_array_equal(result.probabilities.to_numpy(), expected)
    assert (expected > 0).sum() == 30  # no probability is 0
    assert result.data == {
        "rows": 120, "variables": 6, "interventional_rows": 40, "targets": 3, "soft_targets": [],
            "missing_share": 0.0, "missing_shares": [0.0] * 6, "kind": "real",
            "column_kinds": ["continuous"] * 6,
    }  # fmt: skip


def test_units_and_order_of_rows_do_not_matter(model: presage.Model, dataset: presage.Dataset) -> None:
    base = presage.discover(dataset, model=model).matrix
    order = np.random.default_rng(0).permutation(dataset.n)
    for x, u in (
        (dataset.x * 1000 - 5, dataset.interventions),
        (dataset.x[order], dataset.interventions[order]),
    ):
        np.testing.assert_allclose(presage.discover(x, u, model=model).matrix, base, atol=1e-5)


def test_names_stay_with_their_columns(model: presage.Model, dataset: presage.Dataset) -> None:
    names = list("fbadce")
    frame = pd.DataFrame(dataset.x, columns=names)
    targets = [names[int(row.argmax())] if row.any() else None for row in dataset.interventions]
    one = presage.discover(frame.assign(t=targets), "t", model=model).probabilities
    two = presage.discover(frame[sorted(names)], targets, model=model).probabilities
    pd.testing.assert_frame_equal(one.loc[sorted(names), sorted(names)], two, atol=1e-5)


def test_a_file_gives_what_its_table_gives(model: presage.Model, dataset: presage.Dataset, tmp_path: Path) -> None:
    frame = pd.DataFrame(dataset.x, columns=list(dataset.names))
    frame.to_csv(tmp_path / "t.csv", index=False)
    one = presage.discover(str(tmp_path / "t.csv"), model=model).matrix
    np.testing.assert_allclose(one, presage.discover(frame, model=model).matrix, atol=1e-6)


def test_missing_values_reach_the_network(model: presage.Model, dataset: presage.Dataset) -> None:
    x = dataset.x.copy()
    x[::7, 2] = np.nan
    with_mask = presage.discover(x, model=model).matrix
    expected = model.probabilities(np.nan_to_num(x), missing=np.isnan(x))
    np.testing.assert_allclose(with_mask, expected, atol=1e-6)
    assert np.abs(with_mask - model.probabilities(np.nan_to_num(x))).max() > 1e-6


def test_knowledge_fixes_probabilities(model: presage.Model, dataset: presage.Dataset) -> None:
    known = presage.Knowledge(
        required=[("x0", "x1"), ("x1", "x2")], forbidden=[("x3", "x4")], tiers=[["x0", "x1"], ["x5"]], roots=["x3"]
    )
    free = presage.discover(dataset, model=model).probabilities
    found = presage.discover(dataset, model=model, known=known).probabilities
    assert found.loc["x0", "x1"] == found.loc["x1", "x2"] == 1
    for cause, effect in (("x1", "x0"), ("x2", "x1"), ("x2", "x0"), ("x3", "x4"), ("x5", "x0"), ("x5", "x1")):
        assert found.loc[cause, effect] == 0
    assert (found["x3"] == 0).all()
    untouched = [("x0", "x2"), ("x4", "x5"), ("x3", "x0"), ("x2", "x4")]
    for cause, effect in untouched:
        assert found.loc[cause, effect] == free.loc[cause, effect] > 0


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"required": [("a", "b")], "forbidden": [("a", "b")]}, "both required and forbidden"),
        ({"required": [("a", "b")], "roots": ["b"]}, "root, which has no causes"),
        ({"required": [("b", "a")], "tiers": [["a"], ["b"]]}, "later tier"),
        ({"required": [("a", "a")]}, "to itself"),
        ({"tiers": [["a"], ["a"]]}, "tiers twice"),
        ({"required": "ab"}, "must be a list"),
        ({"required": ["ab"]}, "pairs"),
        ({"required": [("a", "b", "c")]}, "pairs"),
        ({"roots": [3]}, "names of variables"),
        ({"tiers": ["ab"]}, "must be a list"),
    ],
)
def test_contradictions_get_a_sentence(parts: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        presage.Knowledge(**parts)


def test_required_cycles_are_refused_only_for_acyclic_models(model: presage.Model, dataset: presage.Dataset) -> None:
    known = presage.Knowledge(required=[("x0", "x1"), ("x1", "x0")])
    with pytest.raises(ConfigError, match="form a cycle"):
        presage.discover(dataset, model=model, known=known)
    required, forbidden = known.masks(dataset.names, acyclic=False)
    assert required.sum() == 2
    assert not (required & forbidden).any()


def test_knowledge_survives_json() -> None:
    known = presage.Knowledge(required=[("a", "b")], forbidden=[("b", "c")], tiers=[["a"], ["b", "c"]], roots=["a"])
    assert presage.Knowledge.from_json(known.to_json()) == known
    with pytest.raises(ConfigError, match="no field 'require'"):
        presage.Knowledge.from_json({"require": []})


def test_cycles_give_a_warning(model: presage.Model) -> None:
    x = np.random.default_rng(0).normal(size=(50, 6))
    result = presage.discover(x, model=model)
    from presage.graphs.ops import is_acyclic

    warned = any("form a cycle" in warning for warning in result.warnings)
    assert warned == (not is_acyclic(result.adjacency(acyclic=False)))


numbers = st.floats(allow_nan=True, allow_infinity=True, width=64)
tables = st.one_of(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, max_side=6), elements=numbers),
    hnp.arrays(np.float64, st.tuples(st.integers(2, 8), st.integers(1, 4)), elements=st.floats(-1e3, 1e3, width=16)),
    hnp.arrays(
        st.sampled_from([np.int64, np.uint8, np.bool_, object]), st.tuples(st.integers(0, 6), st.integers(0, 4))
    ),
    st.lists(st.lists(st.one_of(numbers, st.integers(), st.none(), st.text(max_size=3)), max_size=4), max_size=5),
    st.dictionaries(st.text(max_size=3), st.lists(st.one_of(numbers, st.text(max_size=2)), max_size=4), max_size=4),
)
targets = st.one_of(
    st.none(),
    st.text(max_size=3),
    st.lists(
        st.one_of(st.none(), st.text(max_size=2), st.integers(-2, 5), st.just("x0"), st.lists(st.just("x1"))),
        max_size=8,
    ),
    hnp.arrays(np.int64, st.tuples(st.integers(2, 8), st.integers(1, 4)), elements=st.integers(0, 1)),
)


@settings(max_examples=250)
@given(data=tables, interventions=targets, counts=st.sampled_from([None, True, False]))
def test_any_input_gives_a_result_or_an_error_of_the_package(model: presage.Model, data, interventions, counts) -> None:
    try:
        result = presage.discover(data, interventions, model=model, counts=counts)
    except PresageError as error:
        assert str(error).strip()  # noqa: PT017 - both outcomes are allowed
        return
    matrix = result.matrix
    assert np.isfinite(matrix).all()
    assert ((matrix >= 0) & (matrix <= 1)).all()
    assert (np.diag(matrix) == 0).all()
    assert result.probabilities.shape == (len(result.names),) * 2
