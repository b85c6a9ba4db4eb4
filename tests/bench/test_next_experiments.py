"""The simulation of chosen against random experiments: what it counts and which rows it uses."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from models_for_tests import save_tiny


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "next_experiments.py"
    spec = importlib.util.spec_from_file_location("next_experiments", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def options(tmp_path: Path) -> argparse.Namespace:
    model = save_tiny(tmp_path / "tiny.safetensors")
    return argparse.Namespace(
        model=model, systems=2, variables=4, observational=12, rows=3, steps=4, repeats=2, seed=5, plot=None
    )


def test_experiments_needed_counts_up_to_the_goal(script: ModuleType) -> None:
    assert script.experiments_needed([5, 4, 2, 3], 2.5) == 2
    assert script.experiments_needed([5, 4], 5) == 0
    assert script.experiments_needed([5, 4], 1) == 2


def test_an_experiment_adds_the_rows_of_its_target(script: ModuleType, options: argparse.Namespace) -> None:
    (system, _) = script.systems("linear", options)
    mask = system.dataset.interventions
    assert mask.sum(axis=0).tolist() == [3, 3, 3, 3]
    rows = ~mask.any(axis=1) | mask[:, 2]
    expected = system.model.probabilities(system.dataset.x[rows], mask[rows])
    np.testing.assert_array_equal(system.probabilities([2]), expected)


def test_targets_are_never_chosen_twice(script: ModuleType, options: argparse.Namespace) -> None:
    for system in script.systems("linear", options):
        for choose in (script.by_information, script.at_random(0)):
            seen = []
            system.run(lambda found, left, choose=choose, seen=seen: seen.append(choose(found, left)) or seen[-1], 4)
            assert sorted(seen) == [0, 1, 2, 3]


def test_the_most_informative_target_is_chosen(script: ModuleType) -> None:
    matrix = np.zeros((4, 4))
    matrix[1, 2] = matrix[1, 3] = 0.5
    assert script.by_information(matrix, [0, 1, 2, 3]) == 1
    assert script.by_information(matrix, [0, 2, 3]) != 1


def test_curves_start_at_the_same_distance(script: ModuleType, options: argparse.Namespace, tmp_path: Path) -> None:
    found = script.measure("linear", options)
    first = {curve[0].mean for curve in found["shd"].values()}
    last = {curve[-1].mean for curve in found["shd"].values()}
    assert len(first) == len(last) == 1  # after all four experiments the order does not matter
    options.plot = str(tmp_path / "plot.png")
    script.draw({"linear": found}, options)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
