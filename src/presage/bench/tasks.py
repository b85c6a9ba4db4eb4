"""Tasks: one method on one instance, with a key that changes whenever the result could change."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from presage.baselines.environments import ENVIRONMENTS
from presage.baselines.registry import get_baseline
from presage.bench.experiments import Setting
from presage.bench.instances import instance_key
from presage.rng import Stream

__all__ = ["Task", "code_version", "model_fingerprint", "task_key"]

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Task:
    """method and settings on instance number `instance` of a setting; bootstrap counts resamples (0: none)."""

    method: str
    settings: tuple[tuple[str, Any], ...]
    setting: Setting
    instance: int
    seed: int = 0
    stream: int = int(Stream.TEST)
    bootstrap: int = 0

    @property
    def label(self) -> str:
        """The method as tables name it."""
        model = dict(self.settings).get("model")
        return f"presage:{model}" if self.method == "presage" else self.method


def _digest(parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


@cache
def code_version(*files: str) -> str:
    """A hash of what Python files under the package do: comments, layout and docstrings do not count."""
    return _digest([_meaning((ROOT / name).read_text(encoding="utf-8")) for name in files])


def _meaning(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body[0].value.value = ""
    return ast.dump(tree)


def _files(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.py")))


def task_key(task: Task) -> str | None:
    """The key of the result of a task; None if the model it needs does not exist."""
    baseline = get_baseline(task.method)
    settings = dict(task.settings)
    module = f"baselines/methods/{baseline.entry.partition(':')[0]}.py"
    files = [module, "baselines/orientation.py", "data/standardize.py", "baselines/bootstrap.py"]
    files += [f"baselines/methods/{name}.py" for name in _SHARED.get(task.method, ())]
    model = ""
    if task.method == "presage":
        found = model_fingerprint(str(settings["model"]))
        if found is None:
            return None
        model = found
        files += [*_files(("networks",)), "data/row_statistics.py"]
    pins = (
        ENVIRONMENTS[baseline.environment].digest if baseline.environment in ENVIRONMENTS else _library(baseline.entry)
    )
    parts = [
        instance_key(task),
        task.instance,
        task.method,
        settings,
        task.bootstrap,
        model,
        pins,
        code_version(*files),
    ]
    return _digest(parts)


_SHARED = {"dag-gnn": ("neural",), "gran-dag": ("pruning",), "lingam": ("trivial",), "pc": ("hsic",), "igsp": ("hsic",)}
"""Modules that an adapter uses besides its own."""
_LIBRARIES = {
    "causal_learn": "causal-learn",
    "gies_": "gies",
    "neural": "torch",
    "dag_gnn": "torch",
    "trivial": "scikit-learn",
    "ica_lingam": "scikit-learn",
}


@cache
def _library(entry: str) -> str:
    """The version of the library behind a method that runs in our own environment."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(_LIBRARIES[entry.partition(":")[0]])
    except (KeyError, PackageNotFoundError):
        return ""


@cache
def model_fingerprint(name: str) -> str | None:
    """A hash of a model's files: a bundled name, a file or a folder. None if there is no such model."""
    from presage.inference.hub import BUNDLED, SUFFIX

    bundled = BUNDLED / f"{name}{SUFFIX}"
    path = bundled if bundled.is_file() else Path(name)
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else []
    if not files:
        return None
    return _digest([(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files])


def describe(task: Task) -> dict[str, Any]:
    """The task as plain data, for result files."""
    return {**asdict(task), "settings": dict(task.settings)}
