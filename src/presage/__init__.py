"""Presage: which variable causes which, from a table of measurements, in one forward pass."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public names and their modules; imported on first use, so that `import presage` stays quick and torch-free.
_HOMES = {
    "Dataset": "presage.types",
    "InputError": "presage.errors",
    "Knowledge": "presage.inference.knowledge",
    "Model": "presage.inference.model",
    "PresageDiscovery": "presage.estimator",
    "PresageError": "presage.errors",
    "Result": "presage.inference.result",
    "TrainConfig": "presage.training.config",
    "discover": "presage.inference.discovery",
    "domains": "presage.domain.catalog",
    "load_avici_checkpoint": "presage.inference.hub",
    "load_example": "presage.data.examples",
    "load_model": "presage.inference.hub",
    "load_sachs": "presage.data.examples",
    "metrics": "presage.metrics",
    "models": "presage.inference.hub",
    "read_inputs": "presage.inference.inputs",
    "simulate": "presage.domain.catalog",
    "train": "presage.training.loop",
}

__all__ = ["__version__", *_HOMES]
__all__.sort()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'presage' has no attribute {name!r}")
    if name == "metrics":
        return importlib.import_module("presage.metrics")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
