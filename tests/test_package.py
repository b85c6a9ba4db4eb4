from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import presage
from presage import errors

HEAVY = {"torch", "numba", "pandas", "matplotlib", "scipy", "sklearn", "networkx", "pyarrow", "rich", "typer"}
REPOSITORY = Path(__file__).resolve().parents[1]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(code: str) -> set[str]:
    """Which heavy packages a piece of code has imported."""
    out = run(f"import sys\n{code}\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))")
    return set(out.splitlines()[-1].split()) & HEAVY


def test_importing_presage_is_light() -> None:
    assert loaded_by("import presage; dir(presage)") == set()


def test_simulating_is_light() -> None:
    assert loaded_by("import presage; presage.domains(); presage.simulate('scm', d=4, n=8)") == set()


def test_the_command_line_is_light_until_a_command_runs() -> None:
    assert loaded_by("import presage.cli") <= {"typer", "rich"}


def test_the_check_for_heavy_packages_can_fail() -> None:
    assert loaded_by("import scipy") == {"scipy"}


def test_public_names_are_complete_and_sorted() -> None:
    assert presage.__all__ == sorted(set(presage.__all__))
    assert set(presage.__all__) == {"__version__", *presage._HOMES}
    assert dir(presage) == presage.__all__
    assert list(presage._HOMES) == sorted(presage._HOMES)
    promised = {
        "Dataset",
        "Knowledge",
        "TrainConfig",
        "discover",
        "domains",
        "load_avici_checkpoint",
        "load_model",
        "metrics",
        "models",
    }
    assert promised | {"simulate", "train"} <= set(presage.__all__)


@pytest.mark.parametrize("name", [name for name in presage.__all__ if name != "__version__"])
def test_public_names_exist_where_they_are_said_to_live(name) -> None:
    value = getattr(presage, name)
    assert value is not None
    assert value.__doc__


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'discovr'"):
        presage.discovr  # noqa: B018


MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(presage.__path__, "presage.")
    if module.name.startswith(("presage.cli", "presage.graphs", "presage.simulators", "presage.domain", "presage.data"))
    or (module.name.count(".") == 1 and module.name != "presage.__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_all_lists_are_true(name) -> None:
    """That they are sorted, the linter sees to (RUF022)."""
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None)
    if names is None:
        assert module.__file__ is not None
        assert module.__file__.endswith("__init__.py"), f"{name} lists no public names in __all__"
        return
    assert len(names) == len(set(names))
    for entry in names:
        assert hasattr(module, entry), f"{name}.__all__ names {entry}, which does not exist"


def test_errors_form_one_tree() -> None:
    assert errors.__all__ == sorted(errors.__all__)
    for name in errors.__all__:
        value = getattr(errors, name)
        if isinstance(value, type):
            assert issubclass(value, errors.PresageError)
            assert name in (errors.__doc__ or "")
    assert issubclass(errors.InputError, ValueError)
    assert issubclass(errors.MissingExtraError, ImportError)


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(errors.MissingExtraError, match=r"drawing needs the package 'nowhere'; .* 'presage\[web\]'"):
        errors.require_extra("nowhere.at_all", "web", "drawing")
    assert errors.require_extra("json", "web", "reading").loads("1") == 1


def test_the_version_is_the_same_everywhere() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'^version = "(.+)"$', text, re.MULTILINE).group(1) == presage.__version__  # type: ignore[union-attr]
    citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE).group(1) == presage.__version__  # type: ignore[union-attr]


def test_pins_are_inside_the_ranges_of_the_package() -> None:
    """Every dependency has a tested pin, and the pin is one that pyproject.toml allows."""
    from packaging.requirements import Requirement

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins: dict[str, list[str]] = {}
    for line in lines:
        if line and not line.startswith("#"):
            pin = Requirement(line)
            pins.setdefault(pin.name, []).append(next(iter(pin.specifier)).version)
    assert pins["torch"] == ["2.13.0"]
    extras = project["optional-dependencies"]
    assert {"anndata", "baselines", "dev", "ray", "web"} <= set(extras)
    for text in (*project["dependencies"], *extras["dev"], *extras["anndata"], *extras["polars"]):
        wanted = Requirement(text)
        assert wanted.name in pins, f"{wanted.name} has no pin in constraints.txt"
        assert all(wanted.specifier.contains(version) for version in pins[wanted.name])


@pytest.mark.parametrize(("arguments", "code"), [(["help"], 0), (["nonsense"], 2)])
def test_the_run_script_explains_itself(arguments, code) -> None:
    done = subprocess.run([str(REPOSITORY / "run"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "demo" in done.stdout if code == 0 else "./run help" in done.stderr


def test_the_run_script_wants_a_recent_python(tmp_path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = subprocess.run(
        [str(REPOSITORY / "run"), "setup"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHON": str(old), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 2
    assert "version 3.10 or newer" in done.stderr
    assert len(done.stderr.splitlines()) == 1
