"""A short run of the project's fuzzer (benchmarks/fuzz.py): every family, a few cases each."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from presage.errors import DataError


def load_fuzzer() -> ModuleType:
    path = Path(__file__).parents[1] / "benchmarks" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("fuzz_for_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


FUZZER = load_fuzzer()


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> object:
    return FUZZER.Workspace(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.parametrize("family", list(FUZZER.FAMILIES))
def test_odd_input_is_answered_or_refused_with_a_sentence(family: str, space: object) -> None:
    outcomes = [FUZZER.run_case(family, number, 1, space, 120.0) for number in range(30)]
    assert [text for outcome, text in outcomes if outcome == "failed"] == []


def test_the_fuzzer_sees_what_it_looks_for(space: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking(rng: np.random.Generator, space: object) -> None:
        raise KeyError("x")

    def refusing(rng: np.random.Generator, space: object) -> None:
        raise DataError("this table is empty")

    def hanging(rng: np.random.Generator, space: object) -> None:
        while True:
            pass

    for family, wanted in ((breaking, "failed"), (refusing, "refused"), (hanging, "failed")):
        monkeypatch.setitem(FUZZER.FAMILIES, "arrays", family)
        assert FUZZER.run_case("arrays", 0, 0, space, 0.2)[0] == wanted


def test_cases_are_repeatable(space: object) -> None:
    for family in ("evaluate", "knowledge", "results"):
        first, again = (FUZZER.run_case(family, 7, 3, space, 60.0) for _ in range(2))
        assert first == again
