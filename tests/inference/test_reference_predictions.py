"""Stored predictions of every bundled model: a change in statistics, networks or weights cannot pass unnoticed."""

from __future__ import annotations

import numpy as np
import pytest
from write_reference_predictions import CASES, PATH, predictions, values_of

import presage

COMMAND = "run: python scripts/write_reference_predictions.py"
MODELS = presage.models()["name"].tolist()


@pytest.fixture(scope="module")
def stored() -> dict[str, np.ndarray]:
    with np.load(PATH) as file:
        return {name: file[name] for name in file.files}


def test_every_bundled_model_has_stored_predictions(stored: dict[str, np.ndarray]) -> None:
    names = {key for key in stored if key.startswith("model/")}
    assert names == {f"model/{name}/{case}" for name in MODELS for case in CASES}, COMMAND


@pytest.mark.parametrize("name", MODELS)
def test_predictions_equal_the_stored_ones(name: str, stored: dict[str, np.ndarray]) -> None:
    for key, probabilities in predictions(stored, [name]).items():
        np.testing.assert_allclose(probabilities, stored[key], rtol=0, atol=1e-6, err_msg=f"{key}; {COMMAND}")


@pytest.mark.parametrize("name", MODELS)
def test_the_comparison_would_notice_a_change_of_the_values(name: str, stored: dict[str, np.ndarray]) -> None:
    model = presage.load_model(name)
    x, interventions = values_of(model, "observational", stored)
    changed = x.copy()
    changed[:, 0] = changed[::-1, 0]
    difference = model.probabilities(changed, interventions) - stored[f"model/{name}/observational"]
    assert np.abs(difference).max() > 1e-3
