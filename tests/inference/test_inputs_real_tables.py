"""Four tables as people have them (clinical, gene, German spreadsheet, 150 columns), by library and command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import presage
from models_for_tests import TINY, save_tiny
from presage.columns import ColumnKind
from presage.inference.inputs import read_inputs
from presage.inference.model import Model
from presage.networks.network import build_network

Cli = Callable[..., tuple[int, str, str]]


class Case(NamedTuple):
    """A file, options of `discover`, and what is expected."""

    path: Path
    options: dict[str, Any]
    flags: list[str]
    kinds: dict[str, str]
    ignored: set[str]
    sentences: list[str]


def clinical(folder: Path) -> Case:
    rng = np.random.default_rng(0)
    n = 80
    age = rng.integers(20, 90, n)
    crp = rng.gamma(1.0, 2.0, n)
    frame = pd.DataFrame(
        {
            "patient_id": rng.permutation(n) + 100_500,
            "visit": [f"2024-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in range(n)],
            "sex": rng.choice(["female", "male"], n),
            "smoker": rng.choice(["never", "former", "current", "unknown"], n),
            "stage": rng.integers(1, 5, n),
            "hospital": rng.choice(["north", "south", "west"], n),
            "age": age,
            "crp": ["<0.3" if value < 0.3 else f"{value:.2f}" for value in crp],
            "weight": np.round(60 + 0.3 * age + rng.normal(0, 8, n), 1),
            "comment": [f"seen by doctor {k}, no remarks" for k in range(n)],
        }
    )
    frame.loc[:3, "weight"] = np.nan
    frame.to_csv(folder / "clinical.csv", index=False, na_rep="NA")
    return Case(
        folder / "clinical.csv",
        {"environment": "hospital", "roles": {"smoker": ["never", "former", "current"]}},
        ["--environment", "hospital", "--role", "smoker=never<former<current"],
        {
            "sex": "binary", "smoker": "ordinal", "stage": "ordinal", "age": "count", "crp": "continuous",
            "weight": "continuous", "hospital": "environment",
        },
        {"patient_id", "visit", "comment"},
        [
            "'patient_id': left out because it identifies rows",
            "'visit': left out because it holds dates",
            "--role comment=nominal",
            "'crp': ",
            "missing cells are ignored; no rows were dropped",
        ],
    )  # fmt: skip


def genes(folder: Path) -> Case:
    rng = np.random.default_rng(1)
    n = 90
    names = ["GATA1", "KLF1", "SPI1", "TAL1", "RUNX1"]
    frame = pd.DataFrame(rng.normal(2.0, 1.0, (n, 5)).round(4), columns=names)
    guides = ["non-targeting"] * 30 + ["GATA1"] * 20 + ["SPI1+KLF1"] * 20 + ["CEBPA"] * 20
    frame.insert(0, "barcode", [f"ACGT{k:04d}-1" for k in range(n)])
    frame["guide"] = guides
    frame.to_csv(folder / "genes.tsv", index=False, sep="\t")
    return Case(
        folder / "genes.tsv",
        {"interventions": "guide"},
        ["--interventions", "guide"],
        {**dict.fromkeys(names, "continuous"), "unmeasured target": "environment"},
        {"barcode"},
        ["20 rows have interventions on a target that is not among the variables ('CEBPA')", "'barcode': left out"],
    )


def german(folder: Path) -> Case:
    pytest.importorskip("openpyxl")
    rng = np.random.default_rng(2)
    n = 60
    rows = [["Messwerte der Klinik 2024", *[None] * 5], ["Nr.", "Größe", "Gewicht", "Preis", "Gruppe", "Datum"]]
    for k in range(n):
        price = f"{rng.integers(1, 9)}.{rng.integers(100, 999)},{rng.integers(10, 99)}"
        weight = "k.A." if k == 3 else f"{rng.normal(75, 9):.1f}".replace(".", ",")
        rows.append([k + 1, 150.5 + k % 31, weight, price, rng.choice(["A", "B", "C"]), f"{1 + k % 28:02d}.05.2024"])
    pd.DataFrame(rows).to_excel(folder / "Tabelle.xlsx", header=False, index=False)
    return Case(
        folder / "Tabelle.xlsx",
        {},
        [],
        {"Größe": "continuous", "Gewicht": "continuous", "Preis": "continuous", "Gruppe": "nominal"},
        {"Nr.", "Datum"},
        ["1 row was skipped above the names", "cells with 'k.A.' were read as missing", "'Nr.': left out"],
    )


def wide(folder: Path) -> Case:
    rng = np.random.default_rng(3)
    n = 60
    frame = pd.DataFrame(rng.normal(size=(n, 146)), columns=[f"feature {j}" for j in range(146)])
    frame.insert(0, "id", np.arange(1, n + 1))
    frame["batch"] = rng.choice(["x", "y", "z"], n)
    frame["treated"] = rng.choice([1, 2], n)
    frame["constant"] = 7.0
    frame.to_csv(folder / "wide.csv", index=False, encoding="utf-16")
    return Case(
        folder / "wide.csv",
        {"exclude": ["feature 0", "feature 1"]},
        ["--exclude", "feature 0,feature 1"],
        {**{f"feature {j}": "continuous" for j in range(2, 146)}, "batch": "nominal", "treated": "binary",
         "constant": "continuous"},
        {"id", "feature 0", "feature 1"},
        ["'id': left out because it identifies rows", "'constant': the value never changes", "fewer rows (60)"],
    )  # fmt: skip


CASES = [clinical, genes, german, wide]


@pytest.fixture(scope="module")
def reads_kinds() -> Model:
    return Model(build_network(replace(TINY, column_kinds=True), seed=1), {"name": "kinds", "kind": "real"})


@pytest.mark.parametrize("make", CASES)
def test_every_column_is_used_or_explained(make: Callable[[Path], Case], tmp_path: Path) -> None:
    case = make(tmp_path)
    found = read_inputs(case.path, **case.options)
    kinds = [ColumnKind(kind).name.lower() for kind in found.column_kinds]
    assert dict(zip(found.dataset.names, kinds, strict=True)) == case.kinds
    roles = {role.name: role.role for role in found.roles}
    assert {name for name, role in roles.items() if role == "ignored"} == case.ignored
    chosen = {*case.options.get("exclude", ())}
    for name in case.ignored - chosen:
        assert any(f"'{name}': left out because" in note and "--role" in note for note in found.notes), name
    for name, levels in found.levels.items():
        codes = found.dataset.x[~found.dataset.missing[:, found.dataset.names.index(name)]]
        assert codes[:, found.dataset.names.index(name)].max() == len(levels) - 1


@pytest.mark.parametrize("make", CASES)
def test_library(make: Callable[[Path], Case], tmp_path: Path, reads_kinds: Model) -> None:
    case = make(tmp_path)
    result = presage.discover(case.path, model=reads_kinds, **case.options)
    assert result.names == tuple(read_inputs(case.path, **case.options).dataset.names)
    assert np.isfinite(result.matrix).all()
    for sentence in case.sentences:
        assert any(sentence in warning for warning in result.warnings), (sentence, result.warnings)


@pytest.mark.parametrize("make", CASES)
def test_command_line(make: Callable[[Path], Case], tmp_path: Path, presage_cli: Cli) -> None:
    case = make(tmp_path)
    model = save_tiny(tmp_path / "tiny.safetensors")
    code, out, err = presage_cli("discover", case.path, "--model", model, "--json", *case.flags)
    assert code == 0, err
    numbers = {name for name, kind in case.kinds.items() if kind not in ("nominal", "environment")}
    assert set(json.loads(out)["names"]) == numbers
    for sentence in case.sentences:
        assert f"{sentence}" in err
    for name in set(case.kinds) - numbers:
        assert any(f"'{name}': left out because this model" in line for line in err.splitlines())


def test_the_command_line_shows_the_roles(tmp_path: Path, presage_cli: Cli) -> None:
    case = clinical(tmp_path)
    code, out, err = presage_cli("discover", case.path, "--columns", *case.flags)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "patient_id  ignored       it identifies rows and measures nothing"
    assert lines[2] == "sex         binary        text with two levels"
    assert lines[3] == "smoker      ordinal       as you chose"
    assert len(lines) == 10
    assert "--role patient_id=continuous" in err
    as_json = json.loads(presage_cli("discover", case.path, "--columns", "--json", *case.flags)[1])
    assert {entry["name"]: entry["role"] for entry in as_json if entry["role"] != "ignored"} == case.kinds


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--role", "sex"], "--role takes NAME=ROLE, such as --role sex=nominal, not 'sex'"),
        (["--role", "sex=gender"], "the role 'gender' of 'sex' is unknown"),
        (["--role", "Sex=nominal"], "no column 'Sex' in the data; did you mean 'sex'?"),
        (["--exclude", "id"], "no column 'id' in the data"),
        (["--environment", "ward"], "no column 'ward' that could hold the environment"),
        (["--unmeasured-targets", "keep"], "'environment' or 'drop'"),
    ],
)
def test_wrong_flags_get_one_sentence(flags: list[str], sentence: str, tmp_path: Path, presage_cli: Cli) -> None:
    model = save_tiny(tmp_path / "tiny.safetensors")
    code, out, err = presage_cli("discover", clinical(tmp_path).path, "--model", model, *flags)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_models_that_read_only_numbers_see_the_numbers_of_the_table(tmp_path: Path) -> None:
    case = clinical(tmp_path)
    frame = pd.read_csv(case.path)
    found = read_inputs(case.path, **case.options)
    assert found.dataset.x[:, found.dataset.names.index("stage")].min() == 0
    assert found.levels["stage"] == ("1", "2", "3", "4")
    older = found.for_model(False)
    np.testing.assert_array_equal(older.dataset.x[:, older.dataset.names.index("stage")], frame["stage"])
    np.testing.assert_array_equal(older.dataset.x[:, older.dataset.names.index("age")], frame["age"])
    assert found.for_model(True) is found


def test_count_models_see_only_counts() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.poisson(3.0, (40, 3)), columns=list("abc")).assign(
        two=rng.choice([0, 5], 40), sex=["m", "f"] * 20, kind=["u", "v", "w", "x"] * 10
    )
    found = read_inputs(frame)
    older = found.for_model(False, counts=True)
    assert found.countlike
    assert older.dataset.names == ("a", "b", "c", "two")
    np.testing.assert_array_equal(older.dataset.x, frame[["a", "b", "c", "two"]])
    assert "'sex', 'kind': left out because this model" in older.notes[-1]


def test_environments_are_the_last_column_and_have_no_interventions(tmp_path: Path) -> None:
    found = read_inputs(genes(tmp_path).path, "guide").dataset
    assert found.column_kinds.tolist() == [ColumnKind.CONTINUOUS] * 5 + [ColumnKind.ENVIRONMENT]
    assert not found.interventions[:, -1].any()


def test_columns_can_be_read_in_time_linear_in_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """`DataFrame.dtypes` builds a series of all columns, so it may be read only a few times."""
    reads = 0
    dtypes = pd.DataFrame.dtypes.fget

    def counted(frame: pd.DataFrame) -> Any:
        nonlocal reads
        reads += 1
        return dtypes(frame)

    monkeypatch.setattr(pd.DataFrame, "dtypes", property(counted))
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 3000))).astype(
        {7: "Int64", 8: object}, errors="ignore"
    )
    found = read_inputs(frame.assign(sex=["m", "f", "m", "f", "f"]))
    assert found.dataset.d == 3001
    assert 0 < reads < 20
