"""Checkpoints of a run: one safetensors file holds weights, averages, optimiser state and every counter.

Files are written atomically, so that a run killed at any moment resumes from the newest file. A checksum in its
header covers state and tensors; a run whose newest file is damaged resumes from the one before. Random streams need no
stored state: everything random about step t is addressed by (seed, t).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from presage.errors import ModelFileError
from presage.files import atomic_write, parse_json

__all__ = ["Checkpoint", "find_checkpoints", "load_newest", "read_checkpoint", "write_checkpoint"]

_NAME = re.compile(r"step-(\d{8,})\.safetensors")


class Checkpoint(NamedTuple):
    """A checkpoint: its file, tensors and state, and the newer files that are damaged."""

    path: Path
    tensors: dict[str, Tensor]
    state: dict[str, Any]
    damaged: tuple[Path, ...] = ()

    @property
    def warning(self) -> str | None:
        """The sentence about the damaged files, if there are any."""
        if not self.damaged:
            return None
        names = ", ".join(path.name for path in self.damaged)
        return f"the checkpoint {names} is damaged; the run continues from the one before, {self.path.name}"


def write_checkpoint(folder: Path, step: int, tensors: dict[str, Tensor], state: dict[str, Any], keep: int) -> Path:
    """Write the checkpoint of a step, then drop all but the newest `keep`."""
    from safetensors.torch import save

    path = folder / f"step-{step:08d}.safetensors"
    flat = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(state)
    with atomic_write(path) as file:
        file.write(save(flat, metadata={"state": text, "sha256": _digest(flat, text)}))
    for old in find_checkpoints(folder)[:-keep]:
        old.unlink(missing_ok=True)
    return path


def find_checkpoints(folder: Path) -> list[Path]:
    """The checkpoint files in a folder, the newest last."""
    found = [path for path in folder.glob("step-*.safetensors") if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def load_newest(folder: Path) -> Checkpoint | None:
    """The newest undamaged checkpoint of a folder; None if there is no file at all."""
    damaged: list[Path] = []
    for path in reversed(find_checkpoints(folder)):
        try:
            return Checkpoint(path, *read_checkpoint(path), tuple(damaged))
        except ModelFileError:
            damaged.append(path)
    if damaged:
        raise ModelFileError(
            f"all checkpoints in {folder} are damaged ({', '.join(path.name for path in damaged)}); start a new run in "
            "another folder"
        )
    return None


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and state of a checkpoint; a damaged one raises `ModelFileError`."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():  # opening a pipe would wait for ever
        raise ModelFileError(f"the checkpoint {path} is not a file")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: torch.as_tensor(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
            header = file.metadata()
        state = parse_json(header["state"])
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise ModelFileError(f"the checkpoint {path} is damaged: {error}") from error
    # A checkpoint of a run that began before there were checksums has none.
    if "sha256" in header and header["sha256"] != _digest(tensors, header["state"]):
        raise ModelFileError(f"the checkpoint {path} is damaged: its checksum does not match")
    return tensors, state


def _digest(tensors: Mapping[str, Tensor], state: str) -> str:
    digest = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        digest.update(f"\n{name}:{tensors[name].dtype}:{tuple(tensors[name].shape)}\n".encode())
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()
