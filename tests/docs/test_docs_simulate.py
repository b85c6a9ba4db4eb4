"""The code of docs/simulate.md runs as it stands."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import presage.config

PAGE = Path(__file__).resolve().parents[2] / "docs" / "simulate.md"


def test_the_page_runs(capsys, monkeypatch) -> None:
    monkeypatch.setattr(presage.config, "_REGISTRY", dict(presage.config._REGISTRY))
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 7
    module = ModuleType("docs_simulate")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    for block in blocks:
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), module.__dict__)
    printed = capsys.readouterr().out
    assert "Dataset(150 rows (50 interventional) x 30 variables, real" in printed
    assert "steepness" in printed
    assert "finite number" in printed


def test_the_commands_of_the_page_run(presage_cli, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^    presage (simulate .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands
    for command in commands:
        assert presage_cli(*command.split())[0] == 0
    assert (tmp_path / "ds.npz").exists()


@pytest.mark.parametrize("name", ["linear", "rff-ood", "grn", "rff+graph+noise", "scm"])
def test_the_domains_named_on_the_page_exist(name) -> None:
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")
    assert name in presage.domains()
