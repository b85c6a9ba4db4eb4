"""Model files: one safetensors file holds the weights, the network's configuration and the metadata of training.

Nothing in such a file is executed. A checksum in the header covers every byte, so that a damaged file is refused with a
sentence that says what differs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from presage.errors import ConfigError, ModelFileError, reason
from presage.files import atomic_write
from presage.networks.model_header import FORMAT, VERSION, header_json, read_header
from presage.networks.network import NetConfig, Network, build_network

__all__ = ["load_model_file", "save_model"]

_READABLE = {torch.float32, torch.float16, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool}


def save_model(path: str | os.PathLike[str], network: Network, metadata: Mapping[str, Any]) -> None:
    """Write a network and its metadata (JSON data) to one file; the file appears whole or not at all."""
    from safetensors.torch import save

    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in network.state_dict().items()}
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise ModelFileError(f"the tensor {name!r} is not finite; nothing was written")
    header = {
        "format": FORMAT,
        "version": str(VERSION),
        "network": json.dumps(network.config.to_json(), sort_keys=True),
        "metadata": json.dumps(dict(metadata)),
    }
    header["sha256"] = _digest(tensors, header)
    with atomic_write(path) as file:
        file.write(save(tensors, metadata=header))


def load_model_file(path: str | os.PathLike[str]) -> tuple[Network, dict[str, Any]]:
    """The network (in evaluation mode, float32) and the metadata of a file that `save_model` wrote.

    Raises `ModelFileError` when the file is damaged, not a model file, of another version, or does not fit
    its own network.
    """
    path = Path(path)
    header = read_header(path)
    tensors = _tensors(path)
    if _digest(tensors, header) != header.get("sha256"):
        raise ModelFileError(f"{path}: the checksum does not match, so the file is damaged; fetch or save it again")
    try:
        config = NetConfig.from_json(header_json(path, header, "network"))
        _check_depth(path, config, len(tensors))
        with torch.device("meta"):  # shapes without memory: a small file can declare an enormous network
            wanted = build_network(config).state_dict()
        _check_tensors(path, tensors, wanted)
        network = build_network(config)
    except (ConfigError, TypeError, OverflowError, RuntimeError) as error:  # torch raises the last three for sizes
        raise ModelFileError(f"{path}: its network cannot be built here: {reason(error)[:300]}") from error
    network.load_state_dict(tensors)  # copies into float32 parameters, whatever the stored precision
    network.eval()
    return network, header_json(path, header, "metadata")


def _check_depth(path: Path, config: NetConfig, tensors: int) -> None:
    """Refuse a network with more modules than there are tensors, before any module is made."""
    if config.depth > tensors:
        raise ModelFileError(
            f"{path}: its configuration declares {config.depth:.3g} repeated layers, but the file holds only "
            f"{tensors} tensors; damaged or hostile"
        )


def _check_tensors(path: Path, stored: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Name the exact tensor that is missing, unexpected or of another shape."""
    for name, tensor in wanted.items():
        if name not in stored:
            raise ModelFileError(f"{path}: the tensor {name!r} of shape {_shape(tensor)} is missing")
        if stored[name].shape != tensor.shape:
            raise ModelFileError(
                f"{path}: the tensor {name!r} has shape {_shape(stored[name])}, but its network needs {_shape(tensor)}"
            )
    for name, tensor in stored.items():
        if name not in wanted:
            raise ModelFileError(f"{path}: the tensor {name!r} of shape {_shape(tensor)} is not part of its network")


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def _tensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors: dict[str, Tensor] = load_file(str(path))
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(f"{path}: not a whole safetensors file (truncated or damaged)") from error
    for name, tensor in tensors.items():
        if tensor.dtype not in _READABLE:
            raise ModelFileError(f"{path}: the tensor {name!r} is stored as {tensor.dtype}, which no model file uses")
    return tensors


def _digest(tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> str:
    """SHA-256 over the header's entries and every tensor's name, type, shape and bytes."""
    digest = hashlib.sha256()
    for key in ("format", "version", "network", "metadata"):
        digest.update(f"{key}={header.get(key, '')}\n".encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}\n".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
