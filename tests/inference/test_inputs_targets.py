"""Interventions beside text columns, on unmeasured targets, and columns that name variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import presage
from presage.columns import ColumnKind
from presage.errors import DataError
from presage.inference.inputs import read_inputs

N = 30
RNG = np.random.default_rng(0)
GENES = pd.DataFrame(RNG.poisson(4.0, (N, 4)) + 0.5, columns=["GATA1", "KLF1", "SPI1", "TAL1"])
GUIDES = ["non-targeting"] * 10 + ["GATA1"] * 5 + ["KLF1+ctrl"] * 5 + ["CEBPA"] * 6 + ["MYC+SPI1"] * 4


def test_unmeasured_targets_become_an_environment() -> None:
    found = read_inputs(GENES.assign(guide=GUIDES), "guide")
    names = found.dataset.names
    assert names == (*GENES.columns, "unmeasured target")
    assert found.dataset.interventions.sum(axis=0).tolist() == [5, 5, 4, 0, 0]
    assert found.levels["unmeasured target"] == ("CEBPA", "MYC", "reference")
    assert found.column_kinds[-1] == ColumnKind.ENVIRONMENT
    assert found.dataset.x[:, -1].tolist() == [2.0] * 20 + [0.0] * 6 + [1.0] * 4
    assert found.notes == (
        "10 rows have interventions on 2 targets that are not among the variables ('CEBPA', 'MYC'); each such target "
        "became an environment of its rows; unmeasured_targets='drop' (--unmeasured-targets drop) leaves the rows out",
    )


def test_rows_with_unmeasured_targets_can_be_left_out() -> None:
    found = read_inputs(GENES.assign(guide=GUIDES), "guide", unmeasured_targets="drop")
    assert found.dataset.names == tuple(GENES.columns)
    np.testing.assert_array_equal(found.dataset.x, GENES.to_numpy()[:20])
    assert found.dataset.interventions.sum(axis=0).tolist() == [5, 5, 0, 0]
    assert "10 rows" in found.notes[0]
    assert "these rows were left out" in found.notes[0]
    with pytest.raises(DataError, match="fewer than two rows"):
        read_inputs(GENES, ["CEBPA"] * N, unmeasured_targets="drop")


def test_unmeasured_targets_join_a_given_environment() -> None:
    batch = ["one", "two"] * (N // 2)
    found = read_inputs(GENES.assign(guide=GUIDES, batch=batch), "guide", environment="batch")
    assert found.dataset.names == (*GENES.columns, "batch")
    assert set(found.levels["batch"]) == {
        "one", "two", "one / CEBPA", "two / CEBPA", "one / MYC", "two / MYC"
    }  # fmt: skip
    assert {role.name: role.role for role in found.roles}["batch"] == "environment"


def test_models_that_read_only_numbers_get_no_environment() -> None:
    found = read_inputs(GENES.assign(guide=GUIDES), "guide").for_model(False)
    assert found.dataset.names == tuple(GENES.columns)
    assert found.dataset.interventions.shape == GENES.shape
    assert "this model does not read environments; model='general' (--model general)" in found.notes[-1]


def test_a_misspelt_target_gets_a_suggestion() -> None:
    found = read_inputs(GENES, ["gata1"] + [None] * (N - 1))
    assert "('gata1'; did you mean 'GATA1'?)" in found.notes[0]


@pytest.mark.parametrize("name", ["guide", "x"])
def test_a_column_that_names_variables_is_proposed(name: str) -> None:
    found = read_inputs(GENES.assign(**{name: ["ctrl"] * 10 + ["GATA1"] * 10 + ["TAL1"] * 10}))
    assert found.dataset.names == tuple(GENES.columns)
    assert found.notes == (
        f"'{name}': left out because it names variables; if it holds the targets of interventions, "
        f"pass interventions='{name}' (--interventions {name})",
    )


def test_a_role_can_name_the_column_of_targets() -> None:
    frame = GENES.assign(guide=GUIDES)
    by_role, by_name = read_inputs(frame, roles={"guide": "intervention"}), read_inputs(frame, "guide")
    np.testing.assert_array_equal(by_role.dataset.interventions, by_name.dataset.interventions)
    with pytest.raises(presage.InputError, match="has the role 'intervention', too"):
        read_inputs(frame, np.zeros((N, 4)), roles={"guide": "intervention"})


def masks() -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    polars = pytest.importorskip("polars")
    from scipy.sparse import csr_array, dok_array

    mask = np.zeros((N, 4))
    mask[:5, 1] = 1
    names = list(GENES.columns)
    return {
        "array": mask,
        "objects": mask.astype(object),
        "lists": mask.astype(int).tolist(),
        "frame": pd.DataFrame(mask, columns=names),
        "series": pd.Series(["KLF1"] * 5 + [None] * 25),
        "sparse": csr_array(mask),
        "tensor": torch.tensor(mask),
        "bfloat16": torch.tensor(mask, dtype=torch.bfloat16),
        "sparse tensor": torch.tensor(mask).to_sparse(),
        "polars": polars.DataFrame({name: mask[:, j] for j, name in enumerate(names)}),
        "polars series": polars.Series(["KLF1"] * 5 + [None] * 25),
        "array of names": np.array(["KLF1"] * 5 + [""] * 25),
        "sparse matrix of keys": dok_array(mask),
        "polars query": polars.LazyFrame({name: mask[:, j] for j, name in enumerate(names)}),
        "columns in another order": pd.DataFrame(mask, columns=names)[names[::-1]],
        "other row labels": pd.DataFrame(mask, columns=names, index=range(100, 100 + N)),
        "memory view": memoryview(mask),
        "index": pd.Index(["KLF1"] * 5 + [None] * 25),
        "category": pd.Categorical(["KLF1"] * 5 + [None] * 25),
        "nullable text": pd.array(["KLF1"] * 5 + [None] * 25, dtype="string"),
        "column of names": pd.DataFrame({"target": ["KLF1"] * 5 + [None] * 25}),
        "0-d arrays": [np.array("KLF1")] * 5 + [np.array(None)] * 25,
        "0-d numbers": [np.array(2)] * 5 + [np.array(-1)] * 25,
    }


def test_every_mask_fits_a_table_with_text_and_identifiers() -> None:
    frame = GENES.assign(site=["a", "b", "c"] * 10)
    frame.insert(0, "cell_id", RNG.permutation(N))
    for form, given in masks().items():
        found = read_inputs(frame, given).dataset
        assert found.names == (*GENES.columns, "site"), form
        assert found.interventions.sum(axis=0).tolist() == [0, 5, 0, 0, 0], form


def test_a_mask_over_all_columns_keeps_its_places() -> None:
    frame = GENES.copy()
    frame.insert(0, "cell_id", RNG.permutation(N))
    mask = np.zeros((N, 5))
    mask[:3, 2] = 1
    assert read_inputs(frame, mask).dataset.interventions.sum(axis=0).tolist() == [0, 3, 0, 0]
    positions = [2] * 3 + [-1] * 27
    assert read_inputs(frame, positions).dataset.interventions.sum(axis=0).tolist() == [0, 3, 0, 0]


HOLDS_ITSELF: list[Any] = []
HOLDS_ITSELF += [HOLDS_ITSELF] * N
ODD = {
    "0-d number": np.array(1),
    "0-d text": np.array("GATA1"),
    "0-d object": np.array(None),
    "scalar": np.float64(1.0),
    "three axes": np.zeros((2, 2, 2)),
    "nested lists": [[[0]]] * N,
    "objects": [object()] * N,
    "dictionaries": [{"a": 1}] * N,
    "a list that holds itself": HOLDS_ITSELF,
    "masked cells": np.ma.masked_array(np.zeros((N, 4)), np.eye(N, 4)),
    "a long name": "n" * 10**5,
    "a column of words that is a variable": pd.DataFrame({"GATA1": ["yes", "no"] * (N // 2)}),
}


@pytest.mark.parametrize("given", ODD.values(), ids=ODD)
def test_odd_interventions_get_one_sentence(given: Any) -> None:
    with pytest.raises(DataError) as caught:
        read_inputs(GENES, given)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_infinite_values_in_a_column_of_targets_get_one_sentence() -> None:
    frame = GENES.assign(guide=[np.inf] * 5 + [np.nan] * 25)
    with pytest.raises(DataError) as caught:
        read_inputs(frame, "guide")
    assert "inf" in str(caught.value)


def test_anndata_annotations_serve_as_environment_and_targets() -> None:
    anndata = pytest.importorskip("anndata")
    index = [f"cell{k}" for k in range(N)]
    obs = pd.DataFrame({"guide": pd.Categorical(GUIDES), "batch": [1, 2] * 15, "age": RNG.normal(size=N)}, index=index)
    counts = RNG.poisson(0.4, (N, 4)).astype(np.float32)
    adata = anndata.AnnData(X=counts, obs=obs, var=pd.DataFrame(index=list(GENES.columns)))
    found = read_inputs(adata, "guide", environment="batch", roles={"age": "continuous"}, unmeasured_targets="drop")
    assert found.dataset.names == (*GENES.columns, "age", "batch")
    assert found.column_kinds.tolist() == [ColumnKind.COUNT] * 4 + [ColumnKind.CONTINUOUS, ColumnKind.ENVIRONMENT]
    assert found.dataset.n == 20
    assert found.countlike
