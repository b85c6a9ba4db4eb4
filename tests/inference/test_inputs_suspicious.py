"""Suspicious and bad inputs, one line each: the user gets a result with a warning, or one clear sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import presage
from models_for_tests import save_tiny
from presage.errors import InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
FRAME = pd.DataFrame(X, columns=list("abcd"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> presage.Model:
    return presage.load_model(save_tiny(tmp_path_factory.mktemp("models") / "tiny.safetensors"))


@pytest.fixture(scope="module")
def count_model(tmp_path_factory: pytest.TempPathFactory) -> presage.Model:
    return presage.load_model(save_tiny(tmp_path_factory.mktemp("models") / "tinyc.safetensors", kind="counts"))


def with_cell(value: Any, row: int = 2, column: str = "b") -> pd.DataFrame:
    frame = FRAME.astype(object) if isinstance(value, str) else FRAME.copy()
    frame.loc[row, column] = value
    return frame


def mask(value: float = 1.0) -> np.ndarray:
    u = np.zeros(X.shape)
    u[0, 0] = value
    return u


REFUSED: dict[str, tuple[Callable[[], tuple[Any, ...]], str]] = {
    "nothing": (lambda: (None,), "there is no data"),
    "one axis": (lambda: (X[:, 0],), "1 axes"),
    "three axes": (lambda: (X[None],), "3 axes"),
    "a number": (lambda: (3.0,), "0 axes"),
    "a series": (lambda: (FRAME["a"],), "single series"),
    "ragged rows": (lambda: ([[1.0, 2.0], [3.0]],), "different lengths"),
    "no rows": (lambda: (X[:0],), "no rows"),
    "no columns": (lambda: (X[:, :0],), "no column"),
    "one row": (lambda: (X[:1],), "single row"),
    "empty frame": (lambda: (pd.DataFrame(),), "no column"),
    "only text": (lambda: (pd.DataFrame({"a": ["u", "v"]}),), "no column of numbers"),
    "only dates": (lambda: (pd.DataFrame({"a": pd.date_range("2020", periods=3)}),), "no column of numbers"),
    "a typo among numbers": (lambda: (with_cell("1.2.3"),), "'1.2.3' in row 3"),
    "infinity": (lambda: (with_cell(np.inf),), "'b' is infinite in 1 cells"),
    "minus infinity": (lambda: (with_cell(-np.inf),), "infinite"),
    "complex": (lambda: (X.astype(complex),), "complex"),
    "complex column": (lambda: (FRAME.assign(a=1j),), "complex"),
    "dates in an array": (lambda: (np.zeros((3, 2), dtype="M8[s]"),), "dates"),
    "strings in an array": (lambda: (np.array([["a", "b"], ["c", "d"]]),), "not numbers"),
    "numbers too large": (lambda: ([[10**400, 1], [2, 3]],), "not numbers"),
    "all missing": (lambda: (np.full((5, 3), np.nan),), "every cell"),
    "duplicate names": (lambda: (pd.DataFrame(X, columns=["a", "b", "a", "c"]),), "more than once: 'a'"),
    "unequal columns": (lambda: ({"a": [1, 2], "b": [1, 2, 3]},), "do not form a table"),
    "layer of an array": (lambda: (X, None, {"layer": "counts"}), "only in AnnData"),
    "mask of wrong shape": (lambda: (X, mask()[:10]), r"shape \(10, 4\)"),
    "transposed mask": (lambda: (X, mask().T), "transposed"),
    "mask of twos": (lambda: (X, mask(2.0)), "only 0"),
    "mask with NaN": (lambda: (X, mask(np.nan)), "only 0"),
    "mask of words": (lambda: (X, mask().astype(str)), "only 0"),
    "mask with other names": (lambda: (FRAME, pd.DataFrame(mask(), columns=list("abcx"))), "not variables: 'x'"),
    "too few entries": (lambda: (FRAME, ["a", None]), "2 entries of interventions for 40 rows"),
    "position out of range": (lambda: (FRAME, [9] + [None] * 39), "counted from 0 to 3"),
    "flags instead of targets": (lambda: (FRAME, [0, 1] * 20), "names of the targets"),
    "a number as target": (lambda: (FRAME, [1.5] + [None] * 39), "should be a name"),
    "unknown column": (lambda: (FRAME, "target"), "no column 'target'"),
    "interventions of a strange type": (lambda: (FRAME, 3), "cannot be int"),
    "interventions are the only column": (lambda: (FRAME[["a"]], "a"), "no column besides"),
    "counts that are none": (lambda: (X, None, {"counts": True}), "not counts"),
    "counts neither true nor false": (lambda: (X, None, {"counts": "yes"}), "True, False or None"),
    "counts for a model of real values": (
        lambda: (RNG.poisson(3, (20, 3)), None, {"counts": True}),
        "takes real values",
    ),
    "knowledge of another type": (lambda: (X, None, {"known": {"roots": ["a"]}}), "presage.Knowledge"),
    "knowledge about strangers": (
        lambda: (FRAME, None, {"known": presage.Knowledge(roots=["x"])}),
        "not a variable of the data",
    ),
    "absent model": (lambda: (X, None, {"model": "no-such-model"}), "no model 'no-such-model'"),
    "model of a strange type": (lambda: (X, None, {"model": 3}), "not 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_inputs_get_one_sentence(name: str, model: presage.Model) -> None:
    make, sentence = REFUSED[name]
    data, interventions, options, *_ = (*make(), None, {})[:3] if len(make()) < 3 else make()
    if not isinstance(options, dict):
        options = {}
    with pytest.raises(InputError, match=sentence) as caught:
        presage.discover(data, interventions, **{"model": model, **options})
    assert "\n" not in str(caught.value)


ACCEPTED: dict[str, tuple[Callable[[], tuple[Any, ...]], str | None]] = {
    "plain": (lambda: (X,), None),
    "read-only array": (lambda: (np.broadcast_to(X[:, :1], (40, 1)),), "only one variable"),
    "one column": (lambda: (X[:, :1],), "only one variable"),
    "constant column": (lambda: (FRAME.assign(b=7.0),), "'b': the value never changes"),
    "all constant": (lambda: (np.ones((5, 3)),), "never changes"),
    "never measured": (lambda: (FRAME.assign(b=np.nan),), "'b': never measured"),
    "missing cells": (lambda: (with_cell(np.nan),), "0.6% of the cells are missing"),
    "duplicate columns": (lambda: (FRAME.assign(e=X[:, 0]),), "'a' and 'e': equal up to scale"),
    "scaled copy": (lambda: (FRAME.assign(e=-3 * X[:, 0] + 1),), "equal up to scale"),
    "another unit, rounded": (lambda: (FRAME.assign(e=np.round(X[:, 0] * 12, 1)),), "'a' and 'e': nearly equal up to"),
    "another unit, gaps": (
        lambda: (with_cell(np.nan, column="a").assign(e=703 * X[:, 0]),),
        "'a' and 'e': equal up to",
    ),
    "collinear columns": (lambda: (FRAME.assign(e=X[:, 0] + X[:, 1]),), "'a', 'b', 'e': exactly collinear"),
    "fewer rows than variables": (lambda: (RNG.normal(size=(5, 9)),), "fewer rows"),
    "two rows": (lambda: (X[:2],), "fewer rows"),
    "text column": (lambda: (FRAME.assign(cell="T"),), "'cell': left out because it holds the same text"),
    "dates": (lambda: (FRAME.assign(day=pd.Timestamp("2020-01-01")),), "'day': left out because it holds dates"),
    "categories": (lambda: (FRAME.assign(kind=pd.Categorical(["u", "v"] * 20)),), None),
    "unknown target": (lambda: (FRAME, ["aa"] + [None] * 39), "1 row has an intervention on a target that is not"),
    "truth values": (lambda: (FRAME.assign(b=X[:, 1] > 0),), None),
    "numbers as text": (lambda: (FRAME.astype(str),), None),
    "whole numbers as names": (lambda: (pd.DataFrame(X),), None),
    "two levels of names": (
        lambda: (pd.DataFrame(X, columns=pd.MultiIndex.from_product([["g", "h"], ["x", "y"]])),),
        None,
    ),
    "strange names": (lambda: (pd.DataFrame(X, columns=["", "$x_{$", "\x00", "a\nb"]),), "control characters"),
    "huge values": (lambda: (X * 1e300,), None),
    "tiny values": (lambda: (X * 1e-300,), None),
    "float16": (lambda: (X.astype(np.float16),), None),
    "unsigned": (lambda: (RNG.integers(0, 255, (40, 4)).astype(np.uint8),), "look like counts"),
    "counts": (lambda: (RNG.poisson(4.0, (40, 4)),), "look like counts"),
    "counts confirmed as real": (lambda: (RNG.poisson(4.0, (40, 4)), None, {"counts": False}), None),
    "zeros and ones": (lambda: (X > 0,), None),
    "every row intervened": (lambda: (FRAME, ["a", "b"] * 20), "every row has an intervention"),
    "always the same target": (lambda: (FRAME, ["a"] * 40), "'a': intervened on in every row"),
    "several targets": (lambda: (FRAME, [["a", "b"]] * 3 + [None] * 37), "more than one target"),
    "no interventions after all": (lambda: (FRAME, [None] * 40), "no row has any"),
    "words for control": (lambda: (FRAME, ["control"] * 39 + [" A ".lower()]), None),
    "text and targets": (lambda: (FRAME.assign(t="none", u="v"), "t"), "'u': left out because it holds the same text"),
    "not contiguous": (lambda: (X[::2, ::-1],), None),
    "big-endian": (lambda: (X.astype(">f8"),), None),
    "Fortran order": (lambda: (np.asfortranarray(X),), None),
    "saved index": (lambda: (FRAME.reset_index(names="Unnamed: 0"),), "unnamed column"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_suspicious_inputs_get_a_result(name: str, model: presage.Model) -> None:
    make, warning = ACCEPTED[name]
    arguments = make()
    options = arguments[2] if len(arguments) > 2 else {}
    result = presage.discover(*arguments[:2], model=model, **options)
    matrix = result.probabilities.to_numpy()
    assert np.isfinite(matrix).all()
    assert ((matrix >= 0) & (matrix <= 1)).all()
    assert (np.diag(matrix) == 0).all()
    found = [sentence for sentence in result.warnings if "form a cycle" not in sentence]
    if warning is None:
        assert found == []
    else:
        assert any(warning in sentence for sentence in found), found


def test_there_are_enough_of_them() -> None:
    assert len(REFUSED) + len(ACCEPTED) + len(FILES) >= 40


def test_constant_columns_have_no_edges_and_change_no_others(model: presage.Model) -> None:
    with_constant = presage.discover(FRAME.assign(k=2.0), model=model).probabilities
    without = presage.discover(FRAME, model=model).probabilities
    assert (with_constant.loc["k"] == 0).all()
    assert (with_constant["k"] == 0).all()
    np.testing.assert_allclose(with_constant.loc[list("abcd"), list("abcd")], without, atol=1e-6)


def test_count_models_require_counts(count_model: presage.Model) -> None:
    counts = RNG.poisson(4.0, (30, 4))
    assert presage.discover(counts, model=count_model).data["kind"] == "counts"
    assert presage.discover(counts, model=count_model, counts=True).warnings == []
    with pytest.raises(InputError, match="takes counts"):
        presage.discover(X, model=count_model)
    with pytest.raises(InputError, match="read as real values"):
        presage.discover(counts, model=count_model, counts=False)


FILES: dict[str, tuple[str, bytes, str]] = {
    "absent": ("absent.csv", b"", "there is no file"),
    "empty": ("t.csv", b"", "is empty"),
    "blank line": ("t.csv", b"\n\n", "first line"),
    "header only": ("t.csv", b"a,b\n", "no rows"),
    "ragged": ("t.csv", b"a,b\n1,2\n3,4,5\n6,7\n", "not a table"),
    "long rows": ("t.csv", b"a,b\n1,2,3\n4,5,6\n", "more cells"),
    "repeated names": ("t.csv", b"a,b,a\n1,2,3\n4,5,6\n", "more than once: 'a'"),
    "a letter among numbers": ("t.csv", "a,b\n1,2\n3,é\n3,5\n".encode("latin-1"), "'é' in row 2 is the first"),
    "binary": ("t.csv", b"\x00\x01\x02\n", "not a text file"),
    "unknown suffix": ("t.sav", b"x", "format"),
    "old Excel": ("t.xls", b"x", "save it as .xlsx"),
    "broken xlsx": ("t.xlsx", b"x", "cannot be read as xlsx"),
    "broken ods": ("t.ods", b"x", "cannot be read as ods"),
    "broken parquet": ("t.parquet", b"PAR1 nothing", "cannot be read as parquet"),
    "broken npz": ("t.npz", b"PK nothing", "cannot be read as npz"),
    "broken h5ad": ("t.h5ad", b"nothing", "cannot be read as h5ad"),
    "broken gzip": ("t.csv.gz", b"nothing", "cannot be read as csv.gz"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files_get_one_sentence(name: str, tmp_path: Path, model: presage.Model) -> None:
    file, content, sentence = FILES[name]
    if file.endswith(".h5ad"):
        pytest.importorskip("anndata")
    if name != "absent":
        (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=sentence) as caught:
        presage.discover(tmp_path / file, model=model)
    assert "\n" not in str(caught.value)


def test_more_bad_files(tmp_path: Path, model: presage.Model) -> None:
    np.savez(tmp_path / "two.npz", u=X, v=X)
    np.savez(tmp_path / "stack.npz", x=np.stack([X, X]))
    np.savez(tmp_path / "names.npz", x=X, names=np.array(["a"]))
    np.savez(tmp_path / "pickled.npz", x=np.array([{"a": 1}], dtype=object))
    np.savez(tmp_path / "missing.npz", x=X, missing=np.zeros(3))
    for file, sentence in (
        ("two.npz", "under the key 'x'"),
        ("stack.npz", "holds 2 datasets"),
        ("names.npz", "4 columns but 1 names"),
        ("pickled.npz", "Python objects"),
        ("missing.npz", "missing mask has shape"),
        ("", "is a folder"),
    ):
        with pytest.raises(InputError, match=sentence):
            presage.discover(tmp_path / file, model=model)
