"""The package has layers, and imports go in one direction. A new module must be assigned to a layer here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import presage

ROOT = Path(presage.__file__).parent

# From the top down. A module imports from its own layer or from layers above it in this list, never from below.
# Entries are modules or whole folders; the longest entry that fits a module decides.
LAYERS: list[tuple[str, tuple[str, ...]]] = [
    ("base", ("errors", "columns", "types", "rng", "config", "files", "processes")),
    ("graphs", ("graphs",)),
    ("simulators", ("simulators",)),
    ("domain", ("domain",)),
    ("data", ("data",)),
    ("networks", ("networks",)),
    ("metrics", ("metrics",)),  # above training, which validates with them
    ("ood", ("ood",)),  # above training, which fits the check, and inference, which runs it
    ("training", ("training",)),
    ("inference", ("inference", "estimator")),
    ("release", ("training.release", "training.evaluation")),  # evaluates models as users run them
    ("baselines", ("baselines",)),
    ("bench", ("bench",)),
    ("report", ("report",)),
    ("interfaces", ("cli", "web", "__main__")),
]

# Imports inside a function that go down on purpose: convenience methods of a type of an upper layer, with their reason.
CONVENIENCES = {
    ("types", "data.anndata_io"): "Dataset.to_anndata and from_anndata",
    ("inference.result", "report.plots"): "Result.plot and Result.save draw",
    ("inference.result", "report.html"): "Result.save writes a page",
    ("inference.result", "report.text"): "Result.save writes tables for spreadsheets",
    ("inference.model", "report.card"): "Model.card",
    ("inference.result", "report.card"): "the type of Result.card",
}

LEVEL = {entry: level for level, (_, entries) in enumerate(LAYERS) for entry in entries}
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if path != ROOT / "__init__.py"
)


def layer(module: str) -> int | None:
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in LEVEL:
            return LEVEL[".".join(parts[:length])]
    return None


def imports(module: str) -> list[tuple[str, bool]]:
    """Modules of the package that a module imports, each with whether the import is inside a function."""
    folder = ROOT.joinpath(*module.split("."))
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for node in ast.walk(function)
    }
    found = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"presage.{module} uses a relative import; write it in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.startswith("presage."):
                parts = name.split(".")[1:]
                while parts and ".".join(parts) not in MODULES:  # from module import name
                    parts.pop()
                if parts:
                    found.append((".".join(parts), id(node) in inner))
    return found


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_a_layer(module) -> None:
    assert layer(module) is not None, f"assign presage.{module} to a layer in the table of tests/test_layout.py"


@pytest.mark.parametrize("module", [module for module in MODULES if layer(module) is not None])
def test_imports_go_in_one_direction(module) -> None:
    for imported, inside_function in imports(module):
        if (module, imported) in CONVENIENCES and (inside_function or imported == "report.card"):
            continue
        here, there = layer(module), layer(imported)
        assert here is not None
        if there is not None:
            assert there <= here, (
                f"presage.{module} ({LAYERS[here][0]}) imports presage.{imported} ({LAYERS[there][0]}), a layer below"
            )


def test_imports_of_every_form_are_found() -> None:
    """Imports of a module, for typing only, and inside a function."""
    assert ("errors", False) in imports("rng")
    assert ("domain.domain", False) in imports("domain.catalog")
    assert ("domain.genes", True) in imports("domain.catalog")
    assert layer("graphs.random") == LEVEL["graphs"] < LEVEL["domain"]
    assert layer("unknown") is None


def test_the_tests_mirror_the_package() -> None:
    """Every folder of the package has a folder of tests, and no other folder of tests exists."""
    tests = Path(__file__).parent

    def folders(root: Path, pattern: str) -> set[str]:
        return {path.name for path in root.iterdir() if path.is_dir() and any(path.glob(pattern))}

    assert folders(ROOT, "*.py") == folders(tests, "test_*.py") - {"docs"}
