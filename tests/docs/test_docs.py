"""The documentation: every Python block runs, every command exists, and the site builds without warnings."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import presage
from presage.data.examples import cache_folder

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name != "simulate.md")  # test_docs_simulate.py runs it
WITH_CODE = [path for path in (*PAGES, ROOT / "README.md") if "```python" in path.read_text(encoding="utf-8")]
SHARED = ROOT.parent / "shared" / "data"


def blocks(path: Path, language: str = "python") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(path: Path) -> list[str]:
    """Lines of indented blocks that call presage, and inline code that does."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"^    (presage [^#\n]*)", text, re.MULTILINE)
    return found + [" ".join(code.split()) for code in re.findall(r"`(presage [a-z][^`]*)`", text)]


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.name)
def test_the_code_of_a_page_runs(path, tmp_path, monkeypatch, capsys) -> None:
    code = blocks(path)
    if any("load_sachs" in block for block in code):
        if "PRESAGE_DATA" not in os.environ and SHARED.is_dir():
            monkeypatch.setenv("PRESAGE_DATA", str(SHARED))
        if not any((cache_folder() / "sachs").glob("*")):
            pytest.skip("the Sachs data is not in the cache (PRESAGE_DATA)")
    monkeypatch.chdir(tmp_path)
    module = ModuleType("docs_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in code:
        exec(compile(block, str(path), "exec", dont_inherit=True), module.__dict__)


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md"], ids=lambda path: path.name)
def test_the_commands_of_a_page_have_known_names_and_options(path) -> None:
    import typer

    from presage.cli import app

    group = typer.main.get_command(app)
    for line in commands(path):
        name, *words = shlex.split(line)[1:]
        if name.startswith("-") or name == "COMMAND":
            continue
        command = group.commands.get(name)
        assert command is not None, f"{path.name}: there is no command {line!r}"
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for word in words:
            assert not word.startswith("-") or word in known, f"{path.name}: no option {word} in {line!r}"


def test_pages_name_only_extras_that_exist() -> None:
    head = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[project.optional-dependencies]")[1]
    extras = set(re.findall(r"^(\w+) = \[", head.split("[project.scripts]")[0], re.MULTILINE))
    for path in (*PAGES, ROOT / "README.md"):
        for names in re.findall(r"'\.\[([\w,]+)\]'", path.read_text(encoding="utf-8")):
            assert set(names.split(",")) <= extras, path.name


def test_every_page_is_in_the_navigation_and_every_picture_exists() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in DOCS.glob("*.md"):
        assert f": {path.name}\n" in navigation, path.name
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
            assert (DOCS / picture).is_file(), picture
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / picture).is_file(), picture


def test_the_page_about_models_lists_every_bundled_model() -> None:
    from hooks import generated

    text = generated.on_page_markdown((DOCS / "which-model.md").read_text(encoding="utf-8"))
    for name in presage.models()["name"]:
        assert f"| `{name}` |" in text


def test_parameters_in_running_text_become_a_list() -> None:
    pytest.importorskip("griffe", reason="the site needs the extra docs")
    from hooks.parameter_lists import with_lists

    text = "Sum.\n\na, b: numbers. note: this is text.\n\n>>> 1 + 1\n2"
    assert with_lists(text, {"a", "b"}).splitlines() == [
        *("Sum.", "", "Parameters:", "    a: numbers. note: this is text.", "    b: numbers. note: this is text."),
        *("", "```pycon", ">>> 1 + 1", "2", "```"),
    ]
    assert with_lists("Sum of a: one.", {"a"}) == "Sum of a: one."


def test_the_site_builds_without_warnings(tmp_path) -> None:
    pytest.importorskip("mkdocstrings", reason="the site needs the extra docs")
    pytest.importorskip("material", reason="the site needs the extra docs")
    # Not --quiet: it hides warnings from --strict.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "site" / "api" / "index.html").read_text(encoding="utf-8")
    assert "presage.inference.result.Result.edges" in page
    assert "fonts.googleapis" not in page
    start = page.index('id="presage.inference.discovery.discover"')
    section = page[start : page.index('id="presage.inference.result.Result"')]
    listed = re.findall(r'<li class="[^"]*field-body">\s*<b><code>(\w+)</code></b>', section)
    assert listed == list(inspect.signature(presage.discover).parameters)
