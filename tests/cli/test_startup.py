"""What the command line imports: heavy packages only where they are used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from models_for_tests import save_tiny

PROGRAM = """
import json, sys
from presage.cli import run
code = run(json.loads(sys.argv[1]))
print(json.dumps({"code": code, "modules": sorted(sys.modules)}))
"""
NEVER = {"dash", "flask", "matplotlib.pyplot", "networkx", "scipy", "sklearn", "tkinter", "torch.utils.tensorboard"}


def modules_after(*arguments: str) -> set[str]:
    """The modules that a command has imported when it ends."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["code"] == 0
    return set(found["modules"])


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("startup")
    values = np.random.default_rng(0).standard_normal((60, 4)).cumsum(axis=1)
    np.savetxt(folder / "small.csv", values, delimiter=",", header="a,b,c,d", comments="")
    model = save_tiny(folder / "tiny.safetensors", with_summaries=True)
    return ["discover", str(folder / "small.csv"), "--model", str(model)]


def test_discover_imports_neither_statistics_nor_drawing_nor_the_page(arguments: list[str]) -> None:
    found = modules_after(*arguments)
    assert {"torch", "pandas"} <= found  # the list is not empty
    assert not found & (NEVER | {"matplotlib", "jinja2", "rich"})


def test_the_report_is_drawn_without_pyplot_and_networkx(arguments: list[str], tmp_path: Path) -> None:
    found = modules_after(*arguments, "--out", str(tmp_path / "out"))
    assert "matplotlib.figure" in found
    assert not found & NEVER


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["discover", "--help"], ["train", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    assert not modules_after(*arguments) & (NEVER | {"torch", "pandas", "numpy", "matplotlib"})
