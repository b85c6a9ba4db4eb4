"""Checkpoints of a run: one safetensors file holds weights, averages, optimiser state and every counter.

A file appears whole or not at all, so that a run killed at any moment resumes from the newest file. Random streams
need no state of their own: everything random about step t is addressed by (seed, t).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from presage.errors import ModelFileError
from presage.files import atomic_write

__all__ = ["latest_checkpoint", "read_checkpoint", "write_checkpoint"]

_NAME = re.compile(r"step-(\d{8})\.safetensors")


def write_checkpoint(folder: Path, step: int, tensors: dict[str, Tensor], state: dict[str, Any], keep: int) -> Path:
    """Write the checkpoint of a step, then drop all but the newest `keep`."""
    from safetensors.torch import save

    path = folder / f"step-{step:08d}.safetensors"
    flat = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with atomic_write(path) as file:
        file.write(save(flat, metadata={"state": json.dumps(state)}))
    for old in sorted(_found(folder))[:-keep]:
        old.unlink(missing_ok=True)
    return path


def latest_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint of a run, or None."""
    found = sorted(_found(folder))
    return found[-1] if found else None


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and state of a checkpoint."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            state = json.loads(file.metadata()["state"])
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError, OSError) as error:
        raise ModelFileError(
            f"the checkpoint {path} is damaged ({error}); remove it to resume from the one before"
        ) from error
    return {name: torch.as_tensor(tensor) for name, tensor in tensors.items()}, state


def _found(folder: Path) -> list[Path]:
    return [path for path in folder.glob("step-*.safetensors") if _NAME.fullmatch(path.name)] if folder.is_dir() else []
