"""Hard and soft interventions: how their kind is given, which models accept soft ones, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import presage
from models_for_tests import save_tiny
from presage.config import to_json
from presage.domain.catalog import get_domain
from presage.errors import ConfigError, PresageError
from presage.inference.inputs import read_inputs

DATASET = presage.simulate("linear", d=4, n=60, n_interventional=20, seed=0)
HIT = [name for name, hit in zip(DATASET.names, DATASET.interventions.any(axis=0), strict=True) if hit]
FREE = [name for name in DATASET.names if name not in HIT]


def soft_model(folder: Path, domain: str = "scm", **metadata: Any) -> presage.Model:
    return presage.load_model(save_tiny(folder / "soft.safetensors", domain=to_json(get_domain(domain)), **metadata))


def test_the_kind_is_given_for_all_targets_or_for_some() -> None:
    mask = DATASET.interventions
    assert read_inputs(DATASET.x, {"targets": mask, "kind": "soft"}).soft_targets == tuple(HIT)
    assert read_inputs(DATASET.x, {"targets": mask, "kind": "hard"}).soft_targets == ()
    assert read_inputs(DATASET.x, {"targets": mask, "kind": {HIT[1]: "soft", HIT[0]: "hard"}}).soft_targets == (HIT[1],)
    assert read_inputs(DATASET, {"kind": "soft"}).soft_targets == tuple(HIT)  # the dataset contains the targets
    assert read_inputs(DATASET).soft_targets == ()


def test_every_form_of_targets_takes_a_kind() -> None:
    names = [DATASET.names[int(row.argmax())] if row.any() else None for row in DATASET.interventions]
    frame = pd.DataFrame(DATASET.x, columns=list(DATASET.names))
    by_column = read_inputs(frame.assign(target=names), {"targets": "target", "kind": "soft"})
    by_role = read_inputs(frame.assign(target=names), {"kind": "soft"}, roles={"target": "intervention"})
    for found in (by_column, by_role, read_inputs(frame, {"targets": names, "kind": "soft"})):
        assert found.soft_targets == tuple(HIT)
        np.testing.assert_array_equal(found.dataset.interventions, DATASET.interventions)


def test_targets_with_a_kind_are_read_like_targets_without(tmp_path: Path) -> None:
    model = soft_model(tmp_path)
    hard = presage.discover(DATASET, model=model)
    soft = presage.discover(DATASET, {"kind": "soft"}, model=model)
    np.testing.assert_array_equal(hard.matrix, soft.matrix)
    assert (hard.data["soft_targets"], soft.data["soft_targets"]) == ([], HIT)
    assert presage.Result.load(soft.save(tmp_path / "out")).data["soft_targets"] == HIT
    assert "targets of soft interventions" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("domain", ["linear", "rff", "grn"])
def test_models_trained_with_hard_interventions_refuse_soft_ones(tmp_path: Path, domain: str) -> None:
    model = soft_model(tmp_path, domain)
    with pytest.raises(ConfigError, match="'soft' was not trained with soft interventions"):
        presage.discover(DATASET, {"kind": "soft"}, model=model)
    with pytest.raises(ConfigError, match="was not trained with soft interventions"):
        presage.discover(read_inputs(DATASET, {"kind": "soft"}), model=model)
    presage.discover(DATASET, {"kind": "hard"}, model=model)


def test_a_model_of_an_unknown_domain_refuses_soft_interventions(tmp_path: Path) -> None:
    path = save_tiny(tmp_path / "other.safetensors", domain={"type": "Elsewhere"})
    with pytest.raises(ConfigError, match="was not trained with soft interventions"):
        presage.discover(DATASET, {"kind": "soft"}, model=path)


@pytest.mark.parametrize(("domain", "soft"), [("general", True), ("scm", True), ("rff-ood", False), ("grn-ood", False)])
def test_domains_know_whether_they_have_soft_interventions(domain: str, soft: bool) -> None:
    assert get_domain(domain).soft_interventions is soft


def test_only_models_of_single_targets_warn_about_several() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    targets = [["v0", "v1"]] * 10 + [None] * 50
    sentence = "10 rows have more than one target"
    for model, warns in (("general", False), ("scm", True)):
        result = presage.discover(pd.DataFrame(x, columns=["v0", "v1", "v2"]), targets, model=model)
        assert any(sentence in warning for warning in result.warnings) is warns


@pytest.mark.parametrize(
    ("interventions", "sentence"),
    [
        ({"targets": DATASET.interventions, "kind": "weak"}, "is 'hard' or 'soft', not 'weak'"),
        ({"targets": DATASET.interventions, "kind": None}, "is 'hard' or 'soft', not None"),
        ({"targets": DATASET.interventions, "kind": {"x0": 1}}, "is 'hard' or 'soft', not 1"),
        ({"targets": DATASET.interventions}, "the kind is missing"),
        ({"target": DATASET.interventions, "kind": "soft"}, "there is no entry 'target'"),
        ({"targets": DATASET.interventions, "kind": {"x9": "soft"}}, "'x9', which is not a variable"),
        ({"kind": "soft"}, "the interventions are not"),
        ({}, "the kind is missing"),
    ],
)
def test_kinds_that_cannot_be_used_are_refused(interventions: Any, sentence: str) -> None:
    with pytest.raises(PresageError, match=sentence):
        read_inputs(DATASET.x, interventions)


def test_a_kind_of_a_variable_that_is_no_target_is_reported() -> None:
    found = read_inputs(DATASET, {"kind": {FREE[0]: "soft"}})
    assert found.soft_targets == ()
    assert found.notes == (f"{FREE[0]!r}: the kind of interventions is given, but no row has any",)
