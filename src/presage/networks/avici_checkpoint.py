"""Load public checkpoints of the original implementation into our axial network.

A folder holds one `checkpoint_*.pkl` (the training state with the parameters) and `kwargs.json` (the configuration).
The pickle is parsed, never executed: see `restricted_pickle`. JAX, Haiku and optax are not needed.

The original applies separate layer norms to the inputs of queries, keys and values. The three norms see the same values
and differ only in scale and offset per channel, which can be folded into the following linear layer. The resulting
network computes the same function with one norm.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from presage.errors import ConfigError, ModelFileError, reason
from presage.files import parse_json, read_bytes
from presage.networks.axial import AxialConfig, AxialNetwork
from presage.networks.restricted_pickle import Record, read_pickle

__all__ = ["read_avici_checkpoint"]

Parameters = dict[str, dict[str, np.ndarray]]

LARGEST_FILE = 2 << 30
"""Upper bound in bytes (2 GiB); published checkpoints are below 100 MB."""


def read_avici_checkpoint(folder: str | os.PathLike[str], counts: bool = False) -> tuple[AxialNetwork, dict[str, Any]]:
    """Load a public checkpoint folder: the network and a dict of metadata.

    counts: whether the model was trained on counts; the checkpoint does not record it.
    The metadata are `source`, `file`, `kind` ("real" or "counts"), `mask_diag` (True if the diagonal must be set to 0),
    `step` and `parameters` (their number).
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ModelFileError(f"there is no checkpoint folder {str(folder)!r}")
    files = sorted(file for file in folder.glob("checkpoint_*.pkl") if file.is_file())
    if not files:
        raise ModelFileError(f"the folder {str(folder)!r} holds no checkpoint_*.pkl")
    file = files[-1]  # names hold the zero-padded step, so the last one is the newest
    settings = _read_settings(folder / "kwargs.json")
    content = _read_content(file)
    state = read_pickle(content)
    parameters = _parameters(state)
    # A pickle can refer to one array many times; the network would then be arbitrarily larger than the file.
    if sum(array.nbytes for module in parameters.values() for array in module.values()) > len(content):
        raise ModelFileError(f"{file.name} uses the same array more than once, for different parameters; refused")
    network_settings = settings.get("neural_net_kwargs", {})
    network_settings = network_settings.get("model_kwargs", network_settings)  # older files nest them
    network = _network(parameters, network_settings)
    mask_diag = settings.get("inference_model_kwargs", {}).get("mask_diag", True)
    if not isinstance(mask_diag, bool):
        raise ModelFileError("kwargs.json: mask_diag must be true or false")
    info = {
        "source": "avici",
        "file": file.name,
        "kind": "counts" if counts else "real",
        "mask_diag": mask_diag,
        "step": _step(state),
        "parameters": sum(array.size for module in parameters.values() for array in module.values()),
    }
    return network, info


def _read_content(file: Path) -> bytes:
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise ModelFileError(f"{file.name} is larger than any public checkpoint (2 GiB); refused")
        return read_bytes(file)
    except OSError as error:
        raise ModelFileError(f"{file.name} cannot be read: {reason(error)}") from error


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        settings: dict[str, Any] = parse_json(read_bytes(path))
    except FileNotFoundError:
        raise ModelFileError(
            f"the folder {str(path.parent)!r} holds no kwargs.json, which a checkpoint needs"
        ) from None
    except (OSError, ValueError) as error:
        raise ModelFileError(f"kwargs.json is not readable JSON: {error}") from error
    valid = isinstance(settings, dict)
    for key in ("neural_net_kwargs", "inference_model_kwargs"):
        valid = valid and isinstance(settings.get(key, {}), dict)
    if not valid or not isinstance(settings.get("neural_net_kwargs", {}).get("model_kwargs", {}), dict):
        raise ModelFileError("kwargs.json must hold objects: neural_net_kwargs and inference_model_kwargs")
    return settings


def _parameters(state: Any) -> Parameters:
    """The network parameters of a training state: its first entry that is a dict of dicts of arrays."""
    candidates = state.args if isinstance(state, Record) else [state]
    for value in candidates:
        if type(value) is dict and value and all(_is_module(module) for module in value.values()):
            # Module names start with the name of the network, "BaseModel"; the rest identifies the module.
            if len({str(name).partition("/")[0] for name in value}) != 1:
                raise ModelFileError("the checkpoint holds parameters of more than one network")
            return {str(name).partition("/")[2]: module for name, module in value.items()}
    raise ModelFileError("the checkpoint holds no network parameters in its training state")


def _is_module(value: Any) -> bool:
    return type(value) is dict and bool(value) and all(isinstance(array, np.ndarray) for array in value.values())


def _step(state: Any) -> int | None:
    first = state.args[0] if isinstance(state, Record) and state.args else None
    if isinstance(first, np.ndarray) and first.size == 1 and first.dtype.kind in "iu":
        return int(first.reshape(()))
    return first if type(first) is int else None


class _Source:
    """Parameters by name; checks their shapes and tracks which have not been used."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.unused = {(module, key) for module, arrays in parameters.items() for key in arrays}

    def take(self, module: str, key: str, *shape: int | None) -> Tensor:
        try:
            array = self.parameters[module][key]
        except KeyError:
            raise ModelFileError(f"the checkpoint lacks the parameter {module}/{key}") from None
        if len(array.shape) != len(shape) or any(want not in (None, got) for want, got in zip(shape, array.shape)):
            wanted = " x ".join("any" if size is None else str(size) for size in shape)
            raise ModelFileError(f"the parameter {module}/{key} has shape {array.shape}; expected {wanted}")
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ModelFileError(f"the parameter {module}/{key} holds values that are not finite real numbers")
        self.unused.discard((module, key))
        return torch.from_numpy(array.astype(np.float64))

    def linear(self, module: str, inputs: int, outputs: int | None = None) -> tuple[Tensor, Tensor]:
        """Weight [out, in] and bias [out]; the original stores [in, out]."""
        weight = self.take(module, "w", inputs, outputs)
        return weight.T, self.take(module, "b", weight.shape[1])

    def norm(self, module: str, width: int) -> tuple[Tensor, Tensor]:
        return self.take(module, "scale", width), self.take(module, "offset", width)


def _numbered(name: str, index: int) -> str:
    """Haiku's names: linear, linear_1, linear_2, ..."""
    return name if index == 0 else f"{name}_{index}"


def _network(parameters: Parameters, settings: dict[str, Any]) -> AxialNetwork:
    source = _Source(parameters)
    config = _config(source, settings)
    weights: dict[str, Tensor] = {}

    def put(name: str, pair: tuple[Tensor, Tensor]) -> None:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = pair

    width, inner = config.width, config.heads * config.key_size
    put("embed", source.linear("linear", 2, width))
    for block in range(2 * config.layers):
        attention = _numbered("multi_head_attention", block)
        projections = []
        for offset, role in enumerate(("query", "key", "value")):
            scale, shift = source.norm(_numbered("layer_norm", 4 * block + offset), width)
            weight, bias = source.linear(f"{attention}/{role}", width, inner)
            projections.append((weight * scale, bias + weight @ shift))
        here = f"blocks.{block}"
        put(f"{here}.attention.norm", (torch.ones(width), torch.zeros(width)))
        put(f"{here}.attention.qkv", (torch.cat([w for w, _ in projections]), torch.cat([b for _, b in projections])))
        put(f"{here}.attention.out", source.linear(f"{attention}/linear", inner, width))
        put(f"{here}.feed.0", source.norm(_numbered("layer_norm", 4 * block + 3), width))
        put(f"{here}.feed.1", source.linear(_numbered("linear", 2 * block + 1), width, config.hidden))
        put(f"{here}.feed.3", source.linear(_numbered("linear", 2 * block + 2), config.hidden, width))
    norms, linears = 8 * config.layers, 4 * config.layers + 1
    put("norm", source.norm(_numbered("layer_norm", norms), width))
    for offset, name in enumerate(("cause", "effect")):
        put(f"head.{name}.0", source.norm(_numbered("layer_norm", norms + 1 + offset), width))
        put(f"head.{name}.1", source.linear(_numbered("linear", linears + offset), width, config.out_width))
    weights["head.log_scale"] = source.take("", "learned_temp", 1, 1, 1).reshape(())
    weights["head.bias"] = source.take("", "final_matrix_bias", 1, 1, 1).reshape(())
    if source.unused:
        module, key = sorted(source.unused)[0]
        raise ModelFileError(f"the checkpoint holds the parameter {module}/{key}, which the network does not have")
    with torch.device("meta"):  # skip initialisation: every weight comes from the file
        network = AxialNetwork(config)
    network.load_state_dict({name: value.float() for name, value in weights.items()}, assign=True)
    return network.eval()


def _config(source: _Source, settings: dict[str, Any]) -> AxialConfig:
    """Derive sizes from the arrays, so that the settings cannot claim more than the file holds."""
    blocks = sum(1 for name in source.parameters if name.endswith("/query"))
    if blocks < 2 or blocks % 2:
        raise ModelFileError(f"the checkpoint holds {blocks} attention modules; a network has an even number of them")
    width = source.linear("linear", 2)[0].shape[0]
    inner = source.linear("multi_head_attention/query", width)[0].shape[0]
    heads = settings.get("num_heads", 8)
    if type(heads) is not int or heads < 1 or inner % heads:
        raise ModelFileError(
            f"kwargs.json: num_heads is {heads!r}, which does not divide the {inner} channels of a query"
        )
    for key, found in {"layers": blocks // 2, "dim": width, "key_size": inner // heads}.items():
        if settings.get(key, found) != found:
            raise ModelFileError(f"kwargs.json says {key} = {settings[key]!r}, but the parameters say {found}")
    if settings.get("ln_axis", -1) != -1:
        raise ModelFileError("kwargs.json has layer norms over an axis other than the last; not supported")
    try:
        return AxialConfig(
            layers=blocks // 2,
            width=width,
            heads=heads,
            key_size=inner // heads,
            hidden=source.linear("linear_1", width)[0].shape[0],
            dropout=settings.get("dropout", 0.1),
            out_width=source.linear(_numbered("linear", 2 * blocks + 1), width)[0].shape[0],
        )
    except (ConfigError, TypeError) as error:
        raise ModelFileError(f"kwargs.json does not describe a network: {error}") from error
