"""The house has floors; imports go one way. A new module must be placed here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import presage

ROOT = Path(presage.__file__).parent

# From the top down. A module imports from its own floor or from floors above it in this list, never from below.
# Entries are modules or whole folders; the longest entry that fits a module decides.
FLOORS: list[tuple[str, tuple[str, ...]]] = [
    ("base", ("errors", "columns", "types", "rng", "config", "files", "processes")),
    ("graphs", ("graphs",)),
    ("simulators", ("simulators",)),
    ("domain", ("domain",)),
    ("data", ("data",)),
    ("networks", ("networks",)),
    ("metrics", ("metrics",)),  # above training, which validates with them
    ("ood", ("ood",)),  # above training, which fits the check, and inference, which runs it
    ("training", ("training",)),
    ("inference", ("inference",)),
    ("release", ("training.release", "training.evaluation")),  # evaluates models as users run them
    ("baselines", ("baselines",)),
    ("bench", ("bench",)),
    ("report", ("report",)),
    ("interfaces", ("cli", "web", "__main__")),
]

# Imports inside a function that go down on purpose: conveniences of a type of an upper floor. Each with its reason.
CONVENIENCES = {
    ("types", "data.anndata_io"): "Dataset.to_anndata and from_anndata",
    ("inference.result", "report.plots"): "Result.plot and Result.save draw",
    ("inference.result", "report.html"): "Result.save writes a page",
    ("inference.result", "report.text"): "Result.save writes tables for spreadsheets",
    ("inference.model", "report.card"): "Model.card",
    ("inference.result", "report.card"): "the type of Result.card",
}

HEIGHT = {entry: level for level, (_, entries) in enumerate(FLOORS) for entry in entries}
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if path != ROOT / "__init__.py"
)


def floor(module: str) -> int | None:
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in HEIGHT:
            return HEIGHT[".".join(parts[:length])]
    return None


def imports(module: str) -> list[tuple[str, bool]]:
    """Modules of ours that a module imports, each with whether that happens inside a function."""
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
def test_every_module_has_a_floor(module) -> None:
    assert floor(module) is not None, f"place presage.{module} in the table of tests/test_layout.py"


@pytest.mark.parametrize("module", [module for module in MODULES if floor(module) is not None])
def test_imports_go_one_way(module) -> None:
    for imported, inside_function in imports(module):
        if (module, imported) in CONVENIENCES and (inside_function or imported == "report.card"):
            continue
        here, there = floor(module), floor(imported)
        assert here is not None
        if there is not None:
            assert there <= here, (
                f"presage.{module} ({FLOORS[here][0]}) imports presage.{imported} ({FLOORS[there][0]}), a floor below"
            )


def test_the_reader_of_imports_reads() -> None:
    """The check itself: it must see ordinary, typed-only and function-level imports."""
    assert ("errors", False) in imports("rng")
    assert ("domain.domain", False) in imports("domain.catalog")
    assert ("domain.genes", True) in imports("domain.catalog")
    assert floor("graphs.random") == HEIGHT["graphs"] < HEIGHT["domain"]
    assert floor("unheard") is None
