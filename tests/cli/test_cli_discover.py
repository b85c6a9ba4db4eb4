"""`presage discover`, `models` and `card`: answers, JSON, exit codes, sentences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import presage
import presage.inference.hub
from models_for_tests import save_tiny
from presage.config import to_json
from presage.domain.catalog import get_domain

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save_tiny(tmp_path / "tiny.safetensors")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    dataset = presage.simulate("linear", d=5, n=60, n_interventional=20, seed=0)
    frame = pd.DataFrame(dataset.x, columns=list("abcde"))
    frame["target"] = ["abcde"[int(row.argmax())] if row.any() else "" for row in dataset.interventions]
    frame.to_csv(tmp_path / "cells.csv", index=False)
    pd.DataFrame(dataset.interventions.astype(int), columns=list("abcde")).to_csv(tmp_path / "mask.csv", index=False)
    return tmp_path / "cells.csv"


def test_edges_are_printed_most_probable_first(presage_cli: Cli, table: Path, model: Path) -> None:
    code, out, err = presage_cli("discover", table, "--interventions", "target", "--model", model, "--threshold", 0.01)
    assert (code, err) == (0, "")
    expected = presage.discover(table, "target", model=model).edges(0.01)
    lines = out.splitlines()
    assert lines[0] == f"{len(expected)} edges above 0.01 among 5 variables (model tiny)"
    assert len(expected) > 0
    assert lines[1:] == [f"{p:.3f}  {source} -> {target}" for source, target, p, *_ in expected.itertuples(index=False)]


def test_json_and_both_forms_of_interventions(presage_cli: Cli, table: Path, model: Path) -> None:
    answers = []
    for given in ("target", table.parent / "mask.csv"):
        code, out, _ = presage_cli("discover", table, "--interventions", given, "--model", model, "--json")
        assert code == 0
        answers.append(json.loads(out))
    np.testing.assert_allclose(answers[0]["probabilities"], answers[1]["probabilities"], atol=1e-6)
    assert answers[0]["data"]["interventional_rows"] == 20
    assert answers[0]["names"] == list("abcde")


def test_out_writes_the_report(presage_cli: Cli, table: Path, model: Path, tmp_path: Path) -> None:
    code, out, err = presage_cli("discover", table, "--model", model, "--out", tmp_path / "result")
    assert code == 0
    assert "report.html" in out
    assert "warning: 'target': left out because it names variables" in err
    assert (tmp_path / "result" / "report.html").stat().st_size > 10_000


def test_knowledge_from_a_file(presage_cli: Cli, table: Path, model: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    known.write_text(json.dumps({"required": [["a", "b"]]}))
    code, out, _ = presage_cli("discover", table, "--model", model, "--known", known, "--acyclic")
    assert code == 0
    assert "1.000  a -> b" in out
    assert "most probable acyclic graph" in out


def test_soft_interventions(presage_cli: Cli, table: Path, tmp_path: Path) -> None:
    soft = save_tiny(tmp_path / "soft.safetensors", domain=to_json(get_domain("scm")))
    start = ("discover", table, "--interventions", "target", "--model", soft, "--json", "--intervention-kind")
    targets = sorted({*pd.read_csv(table, keep_default_na=False)["target"]} - {""})
    for given, expected in ((["soft"], targets), ([f"{targets[0]}=soft"], targets[:1]), (["hard"], [])):
        code, out, err = presage_cli(*start, *given)
        assert (code, err) == (0, "")
        assert json.loads(out)["data"]["soft_targets"] == expected


def test_bootstrap_prints_the_stability_of_each_edge(presage_cli: Cli, table: Path, model: Path) -> None:
    options = ("--interventions", "target", "--model", model, "--bootstrap", 2, "--device", "cpu")
    code, out, err = presage_cli("discover", table, *options, "--threshold", 0.01)
    assert (code, err) == (0, "")
    expected = presage.discover(table, "target", model=model, bootstrap=2).edges(0.01)
    assert expected["stability"].max() > 0
    assert out.splitlines()[1:] == [
        f"{edge.probability:.3f} ± {edge.stability:.3f}  {edge.source} -> {edge.target}"
        for edge in expected.itertuples()
    ]
    found = json.loads(presage_cli("discover", table, *options, "--json")[1])
    assert np.array(found["stability"]).shape == (5, 5)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["absent.csv"], "there is no file"),
        (["{table}", "--interventions", "nothing"], "no column 'nothing'"),
        (["{table}", "--model", "nothing"], "no model 'nothing'"),
        (["{table}", "--threshold", "2"], "threshold"),
        (["{table}", "--threshold", "x"], "invalid value for '--threshold'"),
        (["{table}", "--counts"], "not counts"),
        (["{table}", "--known", "absent.json"], "cannot read"),
        (["{table}", "--known", "{table}"], "not JSON"),
        (["{table}", "--seed", "1"], "No such option"),
        (["{table}", "--layer", "x"], "layer"),
        (["{table}", "--out", "{table}"], "cannot write"),
        (["{table}", "--bootstrap", "-1"], "bootstrap"),
        (["{table}", "--device", "abacus"], "the device 'abacus' cannot be used here"),
        (["{table}", "--intervention-kind", "soft"], "the interventions are not"),
        (["{table}", "--interventions", "target", "--intervention-kind", "weak"], "'hard' or 'soft', not 'weak'"),
        (
            ["{table}", "--interventions", "target", "--intervention-kind", "soft"],
            "not trained with soft interventions",
        ),
        (
            ["{table}", "--interventions", "target", "--intervention-kind", "soft", "--intervention-kind", "a=hard"],
            "--intervention-kind takes one kind",
        ),
        ([], "Missing argument"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    presage_cli: Cli, table: Path, model: Path, arguments: list[str], sentence: str
) -> None:
    arguments = [argument.format(table=table) for argument in arguments]
    if "--model" not in arguments:
        arguments += ["--model", str(model)]
    code, out, err = presage_cli("discover", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1 + err.count("warning: ")
    assert sentence.lower() in err.lower()


def test_models_and_card(presage_cli: Cli, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presage.inference.hub, "BUNDLED", model.parent)
    code, out, _ = presage_cli("models")
    assert code == 0
    assert out.startswith("tiny  real    pair")
    assert json.loads(presage_cli("models", "--json")[1])[0]["name"] == "tiny"
    code, out, _ = presage_cli("card", "tiny")
    assert code == 0
    assert out.startswith("# tiny\n")
    assert json.loads(presage_cli("card", "tiny", "--json")[1])["kind"] == "real"
    code, _, err = presage_cli("card", "other")
    assert code == 2
    assert "no model 'other'" in err
    monkeypatch.setattr(presage.inference.hub, "BUNDLED", model.parent / "none")
    assert presage_cli("models")[1] == "no model is bundled\n"


@pytest.mark.parametrize("command", ["discover", "models", "card"])
def test_help_has_an_example(presage_cli: Cli, command: str) -> None:
    code, out, _ = presage_cli(command, "--help")
    assert code == 0
    assert f"Example: presage {command}" in out


def test_completion_is_offered(presage_cli: Cli) -> None:
    assert "--install-completion" in presage_cli("--help")[1]


def test_an_npz_of_presage_simulate_is_taken_as_it_is(presage_cli: Cli, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "ds.npz"
    assert presage_cli("simulate", "linear", "-d", 4, "-n", 50, "--interventional", 10, "-o", file)[0] == 0
    code, out, _ = presage_cli("discover", file, "--model", model, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["data"]["interventional_rows"] == 10
    assert np.array(found["probabilities"]).shape == (4, 4)
