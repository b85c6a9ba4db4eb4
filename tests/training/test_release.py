"""Releases: held-out scores, calibration, the out-of-distribution check, card, record and checksums."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import presage
from models_for_tests import tiny_network
from presage.domain.catalog import get_domain
from presage.errors import ConfigError, ModelFileError
from presage.networks.network import Network, Prediction, build_network
from presage.training.checkpoints import find_checkpoints
from presage.training.config import TrainConfig, ValidationConfig
from presage.training.evaluation import SCORES_START, Calibration, evaluate_network, fit_temperature
from presage.training.loop import train
from presage.training.release import release
from presage.training.validation import held_out_sets
from runs_for_tests import TINY, short_config

SETTINGS = ValidationConfig(d=4, n=30, n_interventional=10, datasets=4, minutes=100.0)
CONFIG = short_config(validation=SETTINGS, steps=20, ood_datasets=100)
SMALL: dict[str, Any] = {"datasets": 4, "ood_datasets": 100}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two stages."""
    folder = tmp_path_factory.mktemp("runs")
    first = train(CONFIG, folder / "first")
    return train(dataclasses.replace(CONFIG, init_from=str(first)), folder / "second").parent


@pytest.fixture(scope="module")
def released(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("released")
    release(run, "mine", out=out, domains=["linear-ood"], variables=[4, 5], **SMALL)
    return out


def test_a_release_is_a_model_with_card_and_check(released: Path) -> None:
    model = presage.load_model(released / "mine.safetensors")
    assert model.name == "mine"
    assert model.metadata["summaries"]["names"]
    card = str(model.card)
    for text in ("linear-ood", "interventional", "Learning curve", "Calibration", "±"):
        assert text in card
    data = presage.simulate("linear", d=4, n=50, seed=3)
    assert presage.discover(data.x, model=model).probabilities.shape == (4, 4)


def test_the_record_holds_scores_counters_and_checksums(released: Path, run: Path) -> None:
    record = json.loads((released / "records" / "mine" / "record.json").read_text())
    sha = hashlib.sha256((released / "mine.safetensors").read_bytes()).hexdigest()
    assert record["model_sha256"] == sha
    assert (released / "mine.safetensors.sha256").read_text() == f"{sha}  mine.safetensors\n"
    places = {(row["domain"], row["set"], row["d"], row["n_interventional"]) for row in record["scores"]}
    assert places == {
        (domain, kind, d, some)
        for domain in ("linear", "linear-ood")
        for kind, some in (("observational", 0), ("interventional", 10))
        for d in (4, 5)
    }
    for row in record["scores"]:
        assert 0.0 <= row["auprc"] <= 1.0
        assert row["auprc_error"] >= 0.0
        assert 0.0 <= row["ece"] <= 1.0
    assert [stage["step"] for stage in record["stages"]] == [20, 20]
    assert record["datasets"] == sum(stage["datasets"] for stage in record["stages"])
    assert sum(row["pairs"] for row in record["calibration_curve"]) == 4 * 2 * 2 * (16 + 25)
    for number, stage in ((1, "first"), (2, "second")):
        folder = released / "records" / "mine" / str(number)
        assert (folder / "metrics.jsonl").read_text() == (run.parent / stage / "metrics.jsonl").read_text()
        config = json.loads((folder / "config.json").read_text())
        assert config["init_from"] is None  # a path of this machine otherwise
        assert TrainConfig.from_json(config) == CONFIG


def test_an_existing_model_is_not_overwritten_unasked(released: Path, run: Path) -> None:
    before = (released / "mine.safetensors").read_bytes()
    with pytest.raises(ConfigError, match="already exists"):
        release(run, "mine", out=released, **SMALL)
    assert (released / "mine.safetensors").read_bytes() == before


def test_a_model_file_is_evaluated_anew(released: Path, tmp_path: Path) -> None:
    record = release(released / "mine.safetensors", "again", out=tmp_path, **SMALL)
    one, two = (presage.load_model(path) for path in (released / "mine.safetensors", tmp_path / "again.safetensors"))
    x = presage.simulate("linear", d=4, n=50, seed=3).x
    np.testing.assert_array_equal(one.probabilities(x), two.probabilities(x))
    before = json.loads((released / "records" / "mine" / "record.json").read_text())
    assert record["calibration"] == before["calibration"]  # the same weights on the same held-out datasets
    assert record["scores"][0] == before["scores"][0]
    assert "Learning curve" in str(two.card)


def test_the_newest_checkpoint_of_a_run_counts_and_a_damaged_one_is_named(run: Path, tmp_path: Path) -> None:
    longer = tmp_path / "run"
    train(dataclasses.replace(CONFIG, steps=3), longer)
    train(dataclasses.replace(CONFIG, steps=5), longer, resume=True)
    newest = find_checkpoints(longer / "checkpoints")[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    said: list[str] = []
    release(longer, "mine", out=tmp_path, notify=said.append, **SMALL)
    assert presage.load_model(tmp_path / "mine.safetensors").metadata["train"]["step"] == 3
    assert any(newest.name in text and "damaged" in text for text in said)
    assert newest.exists()  # a run is only read


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"run": "nowhere"}, "neither a run folder"),
        ({"name": "../mine"}, "name consists of"),
        ({"domains": ["nope"]}, "no domain 'nope'"),
        ({"domains": ["grn"]}, "takes real values"),
        ({"variables": [1]}, "at least two variables"),
        ({"datasets": 1}, "at least 2 datasets"),
        ({"ood_datasets": 5}, "ood_datasets must be 0 or at least 100"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_written(
    run: Path, tmp_path: Path, arguments: dict[str, Any], sentence: str
) -> None:
    asked = {"run": run, "name": "mine", "out": tmp_path / "out", **SMALL, **arguments}
    with pytest.raises(ConfigError, match=sentence):
        release(asked.pop("run"), asked.pop("name"), **asked)
    assert not (tmp_path / "out").exists()


def test_a_run_without_a_checkpoint_and_one_of_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(dataclasses.replace(CONFIG, steps=1), folder)
    (checkpoint,) = find_checkpoints(folder / "checkpoints")
    checkpoint.write_bytes(b"nothing")
    with pytest.raises(ModelFileError, match="all checkpoints"):
        release(folder, "mine", out=tmp_path, **SMALL)
    checkpoint.unlink()
    with pytest.raises(ConfigError, match="no run with a checkpoint"):
        release(folder, "mine", out=tmp_path, **SMALL)


def _constant(logit: float) -> Network:
    """A network that predicts the same probability for every edge."""
    network = tiny_network()

    def predict_outputs(x: torch.Tensor, *arguments: Any, **options: Any) -> Prediction:
        return Prediction(torch.full((x.shape[1], x.shape[1]), logit))

    network.predict_outputs = predict_outputs  # type: ignore[method-assign]
    return network


def test_the_temperature_undoes_overconfidence() -> None:
    domain, settings = get_domain("linear"), dataclasses.replace(SETTINGS, d=8, datasets=40)
    mild, sure = (fit_temperature(_constant(logit), domain, settings) for logit in (-1.5, -3.0))
    assert sure.temperature == pytest.approx(2.0 * mild.temperature, rel=0.01)
    assert sure.improves
    assert sure.nll_after == pytest.approx(mild.nll_after, rel=1e-3)
    calibrated = fit_temperature(_constant(-3.0 / sure.temperature), domain, settings)
    assert calibrated.temperature == pytest.approx(1.0, abs=0.01)


def test_a_temperature_that_does_not_help_is_not_written(run: Path, tmp_path: Path, monkeypatch: Any) -> None:
    for nll_after, written in ((0.6, False), (0.4, True)):
        found = Calibration(temperature=2.0, nll_before=0.5, nll_after=nll_after)
        monkeypatch.setattr("presage.training.release.fit_temperature", lambda *_, found=found: found)
        record = release(run, "mine", out=tmp_path, force=True, datasets=2, ood_datasets=0)
        assert record["calibration"]["applied"] is written
        assert presage.load_model(tmp_path / "mine.safetensors").temperature == (2.0 if written else None)


def test_strata_hidden_causes_and_effects_are_scored() -> None:
    net = dataclasses.replace(TINY, column_kinds=True, hidden_causes=True, effects=True)
    settings = dataclasses.replace(SETTINGS, d=5, n=40, datasets=2)
    domain = get_domain("general")
    found = evaluate_network(build_network(net), [domain], settings)
    rows = {row["set"]: row for row in found.scores}
    assert set(rows) == {*domain.strata(), "large_n"}
    assert rows["large_n"]["n"] == 4 * settings.n
    assert rows["interventional"]["n_interventional"] > 0
    assert 0.0 <= rows["confounded"]["confounded_auprc"] <= 1.0
    assert 0.0 <= rows["continuous"]["effect_sign"] <= 1.0
    assert -1.0 <= rows["continuous"]["effect_correlation"] <= 1.0


def test_scores_are_measured_on_datasets_that_decided_nothing() -> None:
    """Training validates on other datasets of the same stream."""
    domain = get_domain("linear")
    (_, validated), (_, scored) = (next(held_out_sets(domain, SETTINGS, start=start)) for start in (0, SCORES_START))
    assert not (torch.from_numpy(validated.x)[:, None] == torch.from_numpy(scored.x)[None]).any()


def test_the_command_releases(run: Path, tmp_path: Path, presage_cli: Any) -> None:
    options = ["--out", tmp_path, "--datasets", 2, "--ood-datasets", 0, "--domains", "linear-ood", "--variables", "3"]
    code, out, err = presage_cli("release", run, "mine", *options)
    assert code == 0, err
    assert "linear-ood, interventional, d = 3" in out
    code, out, err = presage_cli("release", run, "mine", *options, "--force", "--json")
    assert code == 0, err
    assert json.loads(out)["name"] == "mine"
    assert presage_cli("release", run, "mine", *options)[0] == 2
    code, _, err = presage_cli("release", run, "other", "--out", tmp_path, "--variables", "many")
    assert (code, "--variables takes whole numbers" in err) == (2, True)


def test_a_card_names_the_bundled_model_that_a_run_was_initialised_from(
    run: Path, released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "initialised from" not in str(presage.load_model(released / "mine.safetensors").card)
    monkeypatch.setattr("presage.training.release.BUNDLED", run.parent / "first")
    release(run, "mine", out=tmp_path, datasets=2, ood_datasets=0)
    card = str(presage.load_model(tmp_path / "mine.safetensors").card)
    assert "; initialised from the model model" in card
