"""Four tables as people have them (clinical, gene, German spreadsheet, 150 columns), by library and command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import presage
from models_for_tests import TINY, save_tiny
from presage.columns import ColumnKind
from presage.inference.inputs import read_inputs
from presage.inference.model import Model
from presage.networks.network import build_network
from tables_for_tests import CASES, Case, clinical, genes

Cli = Callable[..., tuple[int, str, str]]


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
