"""What is released fits together: model files, their records and cards, and the README's table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from write_readme import ROOT, fill_in, read_records

import presage

RECORDS = read_records()


@pytest.mark.parametrize("name", RECORDS)
def test_records_name_the_bundled_files(name: str) -> None:
    path = Path(presage.__file__).parent / "assets" / "models" / f"{name}.safetensors"
    assert path.stat().st_size < 25e6
    assert RECORDS[name]["model_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", RECORDS)
def test_cards_say_what_the_records_say(name: str) -> None:
    model = presage.load_model(name)
    train = model.metadata["train"]
    spent = train["core_minutes"] + train["pretraining_core_minutes"]
    assert spent == pytest.approx(RECORDS[name]["core_minutes"], rel=0.01)
    for row in RECORDS[name]["scores"]:
        assert f"{row['auprc']:.3f} ± {row['auprc_error']:.3f}" in str(model.card)


def test_cards_say_whether_some_training_graphs_have_cycles() -> None:
    assert "trained on acyclic graphs but for 4% with cycles;" in str(presage.load_model("general").card)
    assert "trained on acyclic graphs;" in str(presage.load_model("linear").card)
    assert "trained on graphs that may have cycles;" in str(presage.load_model("grn").card)


@pytest.mark.parametrize("name", RECORDS)
def test_records_name_no_paths(name: str) -> None:
    for path in (ROOT / "records" / name).rglob("*.json"):
        strings = [value for value in _values(json.loads(path.read_text())) if isinstance(value, str)]
        assert strings
        assert not [text for text in strings if "/" in text or "\\" in text], path


def _values(data: Any) -> Iterator[Any]:
    if isinstance(data, dict):
        data = list(data.values())
    if not isinstance(data, list):
        yield data
        return
    for item in data:
        yield from _values(item)


@pytest.mark.parametrize("name", RECORDS)
def test_records_keep_every_stage(name: str) -> None:
    stages = RECORDS[name]["stages"]
    for number in range(1, len(stages) + 1):
        folder = ROOT / "records" / name / str(number)
        assert (folder / "config.json").is_file()
        assert (folder / "metrics.jsonl").stat().st_size > 0
    before = RECORDS[name]["core_minutes"] - sum(stage["core_minutes"] for stage in stages)
    first = json.loads((ROOT / "records" / name / "1" / "config.json").read_text())
    if first["init_from"] is None:
        assert before == pytest.approx(0.0, abs=0.5)
    else:  # the training of the model that the first stage was initialised from counts as well
        assert first["init_from"] in RECORDS
        assert before > 60.0


def test_the_readme_shows_the_records() -> None:
    readme = (ROOT / "README.md").read_text()
    assert fill_in(readme, RECORDS) == readme, "run: python scripts/write_readme.py"
