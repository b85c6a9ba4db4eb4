"""Roles of columns on the page: guessed, shown with the reason, changed, and passed on to `discover`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("dash", reason="the page needs the extra web")
pytest.importorskip("dash_cytoscape", reason="the page needs the extra web")

import presage
from models_for_tests import save_tiny
from page_for_tests import Here, Recorder, key, post_file, start_run
from presage.inference.inputs import ROLES, read_inputs
from presage.web.app import create_app
from presage.web.column_guess import MAX_LISTED, columns_of, roles_from_page
from presage.web.column_panel import columns_part
from presage.web.data_callbacks import prepare_run, settings_changed
from presage.web.exports import python_code
from presage.web.sessions import Analysis, Session
from presage.web.sources import Example, Upload
from presage.web.view import View
from presage.web.worker import answer


def clinic(rows: int = 80) -> pd.DataFrame:
    """A table with a column of every sort."""
    rng = np.random.default_rng(1)
    age = rng.normal(50.0, 9.0, size=rows).round(1)
    return pd.DataFrame(
        {
            "patient_id": rng.permutation(np.arange(100_001, 100_001 + rows)),
            "visit": [f"2024-0{1 + k % 9}-11" for k in range(rows)],
            "sex": rng.choice(["female", "male"], size=rows),
            "site": rng.choice(["Bonn", "Graz", "Basel", "Jena"], size=rows),
            "dose": rng.choice(["placebo", "full", "half"], size=rows),
            "age": age,
            "pressure": (90.0 + 0.8 * age + rng.normal(0.0, 5.0, size=rows)).round(1),
            "drug": ["pressure" if k % 4 == 0 else "control" for k in range(rows)],
        }
    )


def as_csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("models") / "tiny.safetensors")


def test_every_column_has_the_role_that_discover_gives_it_and_a_reason(tmp_path) -> None:
    preview = Upload("clinic.csv", as_csv(clinic())).preview
    (tmp_path / "clinic.csv").write_bytes(as_csv(clinic()))
    guessed = {role.name: (role.role, role.why) for role in read_inputs(tmp_path / "clinic.csv").roles}
    assert {column.name: (column.role, column.why) for column in preview.roles} == guessed
    assert guessed["patient_id"][0] == guessed["visit"][0] == "ignored"
    assert guessed["sex"][0] == "binary"
    assert guessed["site"][0] == "nominal"
    assert preview.guess == "drug"


def test_columns_that_need_attention_come_first_and_text_offers_no_roles_of_numbers() -> None:
    frame = clinic()
    frame["marker"] = ["broken" if k in (3, 5) else f"{k / 7:.2f}" for k in range(len(frame))]
    columns = {column.name: column for column in Upload("clinic.csv", as_csv(frame)).preview.roles}
    assert next(iter(columns)) == "marker"
    assert columns["marker"].role == ""  # discover refuses it until the user decides
    assert "'broken' in row 4" in columns["marker"].why
    assert "exclude" not in columns["marker"].why
    assert list(columns)[-2:] == ["age", "pressure"]
    assert columns["age"].options == ROLES
    assert not {"continuous", "count"} & set(columns["site"].options)
    assert "continuous" in columns["visit"].options
    assert columns["dose"].order == "full < half < placebo"
    text = str(columns_part(list(columns.values())))
    assert text.count("Select(") == len(columns)
    assert "choose …" in text


def test_levels_in_a_known_order_are_shown_from_low_to_high() -> None:
    frame = clinic()
    frame["grade"] = np.resize(["low", "high", "medium"], len(frame))
    frame["group"] = np.resize(["<5", "5-9", ">9"], len(frame))
    columns = {column.name: column for column in Upload("clinic.csv", as_csv(frame)).preview.roles}
    assert columns["grade"].order == "low < medium < high"
    assert columns["group"].order == ""  # a level contains the sign that separates levels


def test_wide_tables_list_text_first_and_count_the_rest() -> None:
    from presage.inference.inputs import read_table

    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, MAX_LISTED + 20)))
    frame.columns = [f"gene{j}" for j in range(frame.shape[1])]
    frame["site"] = np.resize(["a", "b", "c"], 30)
    columns = columns_of(read_table(frame))
    assert len(columns) == MAX_LISTED
    assert columns[0].name == "site"
    assert "21 more columns" in str(columns_part(columns, frame.shape[1] - len(columns)))


def test_roles_from_the_page_answer_like_discover(model, tmp_path) -> None:
    recorder = Recorder()
    app = create_app(extra_models=[str(model)], runner=recorder, reader=Here(), local=True)
    client, path = app.server.test_client(), tmp_path / "clinic.csv"
    path.write_bytes(as_csv(clinic()))
    assert post_file(client, path.name, path.read_bytes(), key(1)) == {"ok": True}
    roles = {"patient_id": "continuous", "age": "ignored", "dose": "placebo < half < full", "site": "environment"}
    assert start_run(client, key(1), "column:drug", "general", roles) is None
    found = answer(recorder.tasks[-1], lambda *what: None)
    expected = presage.discover(path, "drug", roles=roles)
    assert found.names == expected.names == ("patient_id", "sex", "dose", "pressure", "site")
    np.testing.assert_allclose(found.matrix, expected.matrix, atol=1e-6)
    assert found.data["column_kinds"] == expected.data["column_kinds"]


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"site": "binary"}, "has 4 levels"),
        ({"nothing": "nominal"}, "there is no column 'nothing'"),
        ({"age": "nonsense"}, "the role 'nonsense' of 'age' is unknown"),
        ({"dose": "half < full"}, "lacks the levels 'placebo'"),
        ({"sex": "intervention", "site": "intervention"}, "only one column can hold the interventions"),
    ],
)
def test_impossible_roles_are_sentences_beside_the_button(model, roles, message) -> None:
    recorder = Recorder()
    app = create_app(extra_models=[str(model)], runner=recorder, reader=Here(), local=True)
    client = app.server.test_client()
    post_file(client, "clinic.csv", as_csv(clinic()), key(1))
    found = start_run(client, key(1), "none", str(model), roles)
    assert found is not None
    assert message.lower() in found.lower()
    assert recorder.tasks == []


@pytest.mark.parametrize("odd", [None, 3, "text", [], [["a"]], {"age": 3}, {"age": ["x"]}, True])
def test_odd_roles_of_a_browser_count_as_none(odd) -> None:
    assert roles_from_page(odd) == {}


def test_changed_roles_make_an_answer_stale_and_are_part_of_its_code(model, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clinic.csv").write_bytes(as_csv(clinic()))
    session = Session("k", 0.0, source=Upload("clinic.csv", as_csv(clinic())))
    settings = ("column:drug", None, str(model), "look")
    # A role of the column that holds the interventions gives way.
    task, run = prepare_run(session, *settings, {"age": "ignored", "drug": "nominal"}, offered={str(model)})
    assert run.arguments["roles"] == {"age": "ignored"}
    found = presage.discover(task["inputs"], model=model)
    session.analysis = Analysis(**vars(run), result=found)
    assert not settings_changed(session, *settings, {"age": "ignored", "drug": "nominal"})
    assert settings_changed(session, *settings, {})
    assert settings_changed(session, *settings, {"age": "ordinal"})
    code = python_code(session.analysis, None, View(), 0.5)
    assert "roles={'age': 'ignored'}" in code
    scope: dict = {}
    exec(compile(code, "reproduce.py", "exec"), scope)
    assert scope["result"].names == found.names == ("sex", "pressure")
    session.replace_source(Example("linear"))
    assert (session.roles, session.choice) == ({}, None)
    assert session.source is not None
    assert session.source.preview.roles == []  # simulated data has no roles to guess


def test_previews_show_numbers_as_they_are_written() -> None:
    preview = Upload("clinic.csv", as_csv(clinic())).preview
    first = dict(zip(preview.columns, preview.rows[0], strict=True))
    assert first["patient_id"] == str(clinic()["patient_id"][0])
    assert first["visit"] == "2024-01-11"
