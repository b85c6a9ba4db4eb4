"""Find and load models: bundled ones by name, files, folders, published ones, public avici checkpoints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from presage.errors import ConfigError, ModelFileError, reason, require_extra
from presage.inference.device import find_device
from presage.inference.model import Model

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BUNDLED", "SUFFIX", "bundled_metadata", "load_avici_checkpoint", "load_model", "models"]

DEFAULT_MODEL = "general"
BUNDLED = Path(__file__).parents[1] / "assets" / "models"
"""The folder of models that come with the package."""

SUFFIX = ".safetensors"


def load_model(name: str | os.PathLike[str] | Model, *, device: str | None = None) -> Model:
    """Load a model: a name of `presage.models()`, a file, a folder, or "hf://owner/repository[/file]".

    A folder holds a model file (*.safetensors) or a public avici checkpoint. Checksums are always verified.
    device: where the network runs, for example "cuda" or "mps"; None: where it is, which is the CPU after loading.
    """
    if device is None:
        return _find_model(name)
    place = find_device(device)  # before anything is read
    return _find_model(name).on_device(place)


def _find_model(name: str | os.PathLike[str] | Model) -> Model:
    if isinstance(name, Model):
        return name
    if not isinstance(name, (str, os.PathLike)):
        raise ConfigError(f"a model is a name, a file or a folder, not {name!r}")
    text = os.fsdecode(name)
    if text.startswith("hf://"):
        return _load_file(_download(text))
    try:
        bundled = BUNDLED / f"{text}{SUFFIX}"
        if os.sep not in text and bundled.is_file():
            return _load_file(bundled)
        path = Path(text)
        if path.is_file():
            return _load_file(path)
        if path.is_dir():
            return _load_folder(path)
    except OSError as error:  # a name that is too long, a folder without permission
        raise ConfigError(f"there is no model {text[:100]!r}: {reason(error)}") from error
    known = ", ".join(_bundled_names()) or "none is bundled"
    raise ConfigError(f"there is no model {text!r}; it is neither a file, a folder nor a bundled model ({known})")


def _load_file(path: Path) -> Model:
    from presage.networks.weights import load_model_file

    network, metadata = load_model_file(path)
    return Model(network, {"name": path.stem, **metadata})


def _load_folder(path: Path) -> Model:
    files = sorted(path.glob(f"*{SUFFIX}"))
    if len(files) == 1:
        return _load_file(files[0])
    preferred = path / f"model{SUFFIX}"
    if preferred in files:
        return _load_file(preferred)
    if files:
        raise ConfigError(f"the folder {str(path)!r} has several models; name one: {', '.join(f.name for f in files)}")
    if any(path.glob("checkpoint_*.pkl")):
        return load_avici_checkpoint(path)
    raise ConfigError(f"the folder {str(path)!r} holds no model (*{SUFFIX})")


def _download(address: str) -> Path:
    """Download a published model file, or find it in the cache of the hub."""
    hub = require_extra("huggingface_hub", "hub", "models at hf:// addresses")
    parts = address.removeprefix("hf://").split("/")
    if len(parts) < 2 or not all(parts):
        raise ConfigError(f"{address!r} should look like hf://owner/repository or hf://owner/repository/file{SUFFIX}")
    file = "/".join(parts[2:]) or f"model{SUFFIX}"
    try:
        return Path(hub.hf_hub_download(repo_id="/".join(parts[:2]), filename=file))
    except Exception as error:  # the hub raises errors of several packages
        raise ModelFileError(f"{address!r} could not be downloaded: {reason(error)}") from error


def load_avici_checkpoint(folder: str | os.PathLike[str], counts: bool = False) -> Model:
    """Load the folder of a public avici checkpoint. Its pickle is parsed as data: no code in it can run."""
    from presage.networks.avici_checkpoint import read_avici_checkpoint

    network, info = read_avici_checkpoint(folder, counts=counts)
    metadata = {
        "name": f"avici:{Path(folder).name}",
        "kind": info["kind"],
        "acyclic": bool(info.get("mask_diag", True)),
        "train": {key: value for key, value in info.items() if key in ("source", "file", "step")},
        "card": {"about": "A public checkpoint of the original avici implementation."},
    }
    return Model(network, metadata, keep_diagonal=not info.get("mask_diag", True))


def _bundled_names() -> list[str]:
    return sorted(path.name.removesuffix(SUFFIX) for path in BUNDLED.glob(f"*{SUFFIX}"))


def bundled_metadata() -> dict[str, dict[str, Any]]:
    """The metadata of the bundled models by name; reads headers only and imports neither torch nor pandas."""
    from presage.networks.model_header import read_metadata

    return {name: read_metadata(BUNDLED / f"{name}{SUFFIX}") for name in _bundled_names()}


def models() -> pd.DataFrame:
    """The bundled models: name, kind, network, megabytes and a line about each."""
    import pandas as pd

    from presage.networks.network import NetConfig

    rows = [
        {
            "name": name,
            "kind": data["kind"],
            "network": NetConfig.from_json(data["network"]).net,
            "megabytes": round((BUNDLED / f"{name}{SUFFIX}").stat().st_size / 1e6, 2),
            "about": data["card"]["about"],
        }
        for name, data in bundled_metadata().items()
    ]
    return pd.DataFrame(rows, columns=["name", "kind", "network", "megabytes", "about"])
