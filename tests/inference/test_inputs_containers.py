"""Containers of other packages with odd types, and tables of very many columns."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

import presage
from models_for_tests import save_tiny
from presage.columns import ColumnKind
from presage.errors import ConfigError, DataError
from presage.inference.inputs import read_inputs

N = 24
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))


def polars_frame(**columns: Any) -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame({"a": X[:, 0], "b": X[:, 1], **columns})


def test_an_enum_of_polars_is_ordinal_in_its_own_order() -> None:
    polars = pytest.importorskip("polars")
    levels = polars.Enum(["small", "large", "absent", "huge"])
    found = read_inputs(polars_frame(c=polars.Series(["huge", "small", "large"] * 8, dtype=levels)))
    assert found.column_kinds[2] == ColumnKind.ORDINAL
    assert found.levels["c"] == ("small", "large", "huge")
    assert found.dataset.x[:3, 2].tolist() == [2.0, 0.0, 1.0]


@pytest.mark.parametrize("kind", ["Int128", "UInt64", "Decimal", "Boolean", "Null"])
def test_numbers_of_polars_that_numpy_lacks(kind: str) -> None:
    polars = pytest.importorskip("polars")
    cells = [None] * N if kind == "Null" else [1, None, 0, 1] * (N // 4)
    dtype = polars.Decimal(20, 2) if kind == "Decimal" else getattr(polars, kind)
    found = read_inputs(polars_frame(c=polars.Series(cells).cast(dtype)))
    assert found.dataset.names == ("a", "b", "c")
    expected = np.array([np.nan if cell is None else cell for cell in cells], dtype=float)
    np.testing.assert_array_equal(np.where(found.dataset.missing[:, 2], np.nan, found.dataset.x[:, 2]), expected)


@pytest.mark.parametrize("kind", ["List", "Struct", "Binary", "Object", "Duration", "Time"])
def test_other_types_of_polars_are_levels_or_left_out(kind: str) -> None:
    import datetime

    polars = pytest.importorskip("polars")
    cells: dict[str, list[Any]] = {
        "List": [[1], [2, 3]],
        "Struct": [{"u": 1}, {"u": 2}],
        "Binary": [b"u", b"\xff"],
        "Object": [object(), object()],
        "Duration": [datetime.timedelta(1), datetime.timedelta(2)],
        "Time": [datetime.time(1), datetime.time(2)],
    }
    series = polars.Series(cells[kind] * (N // 2), dtype=polars.Object if kind == "Object" else None)
    found = read_inputs(polars_frame(c=series))
    assert found.dataset.names in (("a", "b"), ("a", "b", "c"))
    assert np.isfinite(found.dataset.x).all()
    if kind in ("Duration", "Time"):
        assert "dates or times" in found.notes[0]


def test_a_query_of_polars_that_fails_is_one_sentence() -> None:
    polars = pytest.importorskip("polars")
    query = polars_frame().lazy().select(polars.col("absent"))
    with pytest.raises(DataError, match=r"the polars query cannot be run: .*absent") as caught:
        read_inputs(query)
    assert "\n" not in str(caught.value)


def test_a_sparse_matrix_of_keys_is_a_matrix_and_no_dictionary() -> None:
    from scipy.sparse import dok_array

    np.testing.assert_array_equal(read_inputs(dok_array(X)).dataset.x, X)


def test_labels_of_environments_in_other_containers() -> None:
    expected = read_inputs(X, environment=["u", "v"] * (N // 2)).dataset.x
    for labels in (pd.Index(["u", "v"] * (N // 2)), pd.array(["u", "v"] * (N // 2), dtype="string")):
        np.testing.assert_array_equal(read_inputs(X, environment=labels).dataset.x, expected)
    with pytest.raises(DataError, match="single text or number"):
        read_inputs(X, environment=pd.DataFrame(X))


def test_a_hundred_thousand_columns_are_read_in_linear_time() -> None:
    frame = pd.DataFrame(RNG.normal(size=(5, 100_000)))
    started = time.process_time()
    assert read_inputs(frame).dataset.d == 100_000
    assert time.process_time() - started < 60.0  # about one second; a quadratic step took minutes


@pytest.mark.slow
def test_many_columns_of_text_are_read_in_linear_time() -> None:
    spent = []
    for d in (25_000, 100_000):
        frame = pd.DataFrame(np.where(RNG.random((5, d)) < 0.5, "u", "v"))
        started = time.process_time()
        read_inputs(frame)
        spent.append(time.process_time() - started)
    assert spent[1] < 7.0 * spent[0], spent


@pytest.mark.parametrize("kind", ["pair", "axial"])
def test_more_variables_than_memory_holds_are_refused_before_anything_is_allocated(
    kind: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = presage.load_model(save_tiny(tmp_path / "tiny.safetensors"))
    monkeypatch.setattr("presage.inference.model._available_memory", lambda: 1e9)
    if kind == "axial":  # its own working memory is negligible, the result's is not
        monkeypatch.setattr(type(model.network), "bytes_per_pair", lambda _: 0.0)
    monkeypatch.setattr("presage.inference.discovery.Moments.of", lambda _: pytest.fail("matrices were allocated"))
    with pytest.raises(DataError, match=r"20,000 variables need about .* GiB of memory"):
        presage.discover(RNG.normal(size=(3, 20_000)), model=model)


@pytest.mark.parametrize("resamples", [10_001, 10**12, 10**5000], ids=["10001", "10**12", "10**5000"])
def test_absurd_numbers_of_resamples_are_refused(resamples: int) -> None:
    with pytest.raises(ConfigError, match="between 2 and 10,000"):
        presage.discover(X, bootstrap=resamples)


def test_long_names_in_knowledge_are_cut_in_messages(tmp_path: Any) -> None:
    known = presage.Knowledge(roots=["n" * 10**5])
    with pytest.raises(ConfigError, match="which is not a variable") as caught:
        presage.discover(X, model=save_tiny(tmp_path / "tiny.safetensors"), known=known)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("role", ["nominal", "ordinal", "binary"])
def test_a_discrete_column_without_any_measured_cell_is_read_for_every_model(role: str) -> None:
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=np.nan)
    found = read_inputs(frame, roles={"c": role}).for_model(False)
    assert found.dataset.names == ("a", "b", "c")
    assert found.dataset.missing[:, 2].all()
