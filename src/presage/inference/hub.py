"""Models by name, file or folder: bundled ones, your own, published ones, and public avici checkpoints."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from presage.data.standardize import standardize
from presage.errors import ConfigError, DataError, ModelFileError, require_extra
from presage.types import Kind

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from presage.networks.network import Network
    from presage.report.card import ModelCard

__all__ = ["BUNDLED", "Model", "Prepared", "load_avici_checkpoint", "load_model", "models"]

BUNDLED = Path(__file__).parents[1] / "assets" / "models"
"""The folder of models that come with the package."""

SUFFIX = ".safetensors"
_COLUMNS_AT_ONCE = 8


class Prepared(NamedTuple):
    """Standardized values [n, d] float32, intervention mask and missing mask (or None), as the network takes them."""

    x: Tensor
    interventions: Tensor
    missing: Tensor | None


class Model:
    """A trained network together with what it needs to know about values and what is known about it."""

    def __init__(self, network: Network, metadata: Mapping[str, Any], *, keep_diagonal: bool = False) -> None:
        from presage.report.card import make_card

        self.network = network
        self.metadata: dict[str, Any] = dict(metadata)
        self.name = str(metadata.get("name", "unnamed"))
        kind = metadata.get("kind", "real")
        if kind not in ("real", "counts"):
            raise ModelFileError(f"the model {self.name!r} takes {kind!r}, which is neither 'real' nor 'counts'")
        self.kind: Kind = kind
        self.acyclic = bool(metadata.get("acyclic", True))
        self.temperature = _temperature(metadata.get("temperature"), self.name)
        self._keep_diagonal = keep_diagonal
        parameters = sum(parameter.numel() for parameter in network.parameters())
        self.card: ModelCard = make_card(metadata, network.config.to_json(), parameters)

    def probabilities(
        self,
        x: np.ndarray,
        interventions: np.ndarray | None = None,
        missing: np.ndarray | None = None,
        *,
        rows: int | None = None,
    ) -> np.ndarray:
        """Edge probabilities [d, d] (row causes column) of raw values x [n, d]; exact for any n.

        interventions, missing: masks [n, d] or None. NaN cells of x count as missing. `rows` bounds how many rows
        are worked on at once and does not change the answer. The diagonal is 0.
        """
        return self.answer(self.prepare(x, interventions, missing), rows=rows)

    def logits(
        self,
        x: np.ndarray,
        interventions: np.ndarray | None = None,
        missing: np.ndarray | None = None,
        *,
        rows: int | None = None,
    ) -> np.ndarray:
        """What the network says before temperature and sigmoid: float64 [d, d]."""
        return self._predict(self.prepare(x, interventions, missing), rows)

    def prepare(
        self, x: np.ndarray, interventions: np.ndarray | None = None, missing: np.ndarray | None = None
    ) -> Prepared:
        """What the network reads of raw values: half their memory, so that the caller may let go of them."""
        import torch

        x, interventions, missing = _checked(x, interventions, missing)
        values = torch.from_numpy(_standardized(x, self.kind, missing))
        u = torch.zeros(1, dtype=torch.bool).expand(x.shape) if interventions is None else torch.tensor(interventions)
        return Prepared(values, u, None if missing is None else torch.tensor(missing))

    def answer(self, prepared: Prepared, *, rows: int | None = None) -> np.ndarray:
        """Edge probabilities [d, d] of prepared values."""
        return self._sigmoid(self._predict(prepared, rows))

    def _predict(self, prepared: Prepared, rows: int | None) -> np.ndarray:
        _refuse_what_cannot_fit(prepared.x.shape[1], self.network.bytes_per_pair(), _available_memory())
        try:
            logits = self.network.predict(*prepared, rows=rows)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "alloc" not in str(error).lower():
                raise
            n, d = prepared.x.shape
            raise DataError(
                f"{n:,} rows x {d:,} variables do not fit into memory; ask about fewer variables at a time"
            ) from error
        return logits.double().numpy()

    def _sigmoid(self, logits: np.ndarray) -> np.ndarray:
        from scipy.special import expit

        if self.temperature is not None:
            logits = logits / self.temperature
        if not np.isfinite(logits).all():
            raise ModelFileError(f"the model {self.name!r} answered with values that are not finite; it is unusable")
        probabilities = expit(logits)
        if not self._keep_diagonal:
            np.fill_diagonal(probabilities, 0.0)
        return probabilities

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {self.kind}, {self.card.parameters:,} parameters)"


def _available_memory() -> float | None:
    """Bytes that can be had without pushing others out, where the system tells."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _refuse_what_cannot_fit(d: int, per_pair: float, available: float | None) -> None:
    """Better a sentence than a process that the system ends."""
    if available is None or per_pair * d * d <= max(available, 1e9):
        return
    fits = int((available / per_pair) ** 0.5)
    raise DataError(
        f"{d:,} variables need about {per_pair * d * d / 2**30:.0f} GiB of memory, but {available / 2**30:.0f} GiB are "
        f"available; about {fits:,} variables would fit"
    )


def _temperature(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < float("inf"):
        raise ModelFileError(f"the model {name!r} has the temperature {value!r}; it must be a number above 0")
    return float(value)


def _checked(x: Any, interventions: Any, missing: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Arrays of one shape; masks as bool, None where they say nothing; NaN cells added to the missing ones."""
    x = np.asarray(x)
    if x.ndim != 2 or 0 in x.shape:
        raise DataError(f"the values must be a table [n, d] of at least one row and one column, not {x.shape}")
    if x.dtype.kind not in "fiub":
        raise DataError(f"the values must be numbers, not {x.dtype}; presage.discover reads tables of other kinds")
    masks: list[np.ndarray | None] = []
    for mask, what in ((interventions, "intervention mask"), (missing, "missing mask")):
        if mask is None:
            masks.append(None)
            continue
        mask = np.asarray(mask)
        if mask.shape != x.shape:
            raise DataError(f"the {what} has shape {mask.shape}, but the values have shape {x.shape}")
        if mask.dtype != bool and (mask.dtype.kind not in "fiu" or not np.isin(mask, (0, 1)).all()):
            raise DataError(f"the {what} must hold only 0 and 1")
        masks.append(mask.astype(bool) if mask.any() else None)
    if x.dtype.kind == "f":
        nan = np.isnan(x)
        if nan.any():
            masks[1] = nan if masks[1] is None else masks[1] | nan
        if np.isinf(x).any():
            raise DataError("the values contain infinities; replace them or mark them as missing (NaN)")
    return x, masks[0], masks[1]


def _standardized(x: np.ndarray, kind: Kind, missing: np.ndarray | None) -> np.ndarray:
    """`standardize` with few temporary copies: real columns do not depend on each other, so a few at a time do."""
    if kind == "counts":
        return standardize(x, kind, missing)
    out = np.empty(x.shape, dtype=np.float32)
    for start in range(0, x.shape[1], _COLUMNS_AT_ONCE):
        part = slice(start, start + _COLUMNS_AT_ONCE)
        out[:, part] = standardize(x[:, part], kind, None if missing is None else missing[:, part])
    return out


def load_model(name: str | os.PathLike[str] | Model) -> Model:
    """A model by the name of a bundled one, by file, by folder, or as "hf://owner/repository[/file]".

    A folder holds one model file (*.safetensors), or is a public avici checkpoint. Checksums are always verified.
    """
    if isinstance(name, Model):
        return name
    if not isinstance(name, (str, os.PathLike)):
        raise ConfigError(f"a model is a name, a file or a folder, not {name!r}")
    text = os.fspath(name)
    if text.startswith("hf://"):
        return _load_file(_download(text))
    bundled = BUNDLED / f"{text}{SUFFIX}"
    if os.sep not in text and bundled.is_file():
        return _load_file(bundled)
    path = Path(text)
    if path.is_file():
        return _load_file(path)
    if path.is_dir():
        return _load_folder(path)
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
    """Fetch a published model file; the hub's cache decides whether a download is needed."""
    hub = require_extra("huggingface_hub", "hub", "models at hf:// addresses")
    parts = address.removeprefix("hf://").split("/")
    if len(parts) < 2 or not all(parts):
        raise ConfigError(f"{address!r} should look like hf://owner/repository or hf://owner/repository/file{SUFFIX}")
    file = "/".join(parts[2:]) or f"model{SUFFIX}"
    try:
        return Path(hub.hf_hub_download(repo_id="/".join(parts[:2]), filename=file))
    except Exception as error:  # the hub raises errors of several packages; all mean the same to the user
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelFileError(f"{address!r} could not be fetched: {reason}") from error


def load_avici_checkpoint(folder: str | os.PathLike[str], counts: bool = False) -> Model:
    """A public avici checkpoint folder as a model. Its pickle is read as data: no code in it can run."""
    from presage.networks.avici_checkpoint import read_avici_checkpoint

    network, info = read_avici_checkpoint(folder, counts=counts)
    metadata = {
        "name": f"avici:{Path(folder).name}",
        "kind": info["kind"],
        "acyclic": bool(info.get("mask_diag", True)),
        "train": {key: value for key, value in info.items() if key in ("source", "file", "step")},
        "card": {"about": "A public checkpoint of the original implementation, read into our network."},
    }
    return Model(network, metadata, keep_diagonal=not info.get("mask_diag", True))


def _bundled_names() -> list[str]:
    return sorted(path.name.removesuffix(SUFFIX) for path in BUNDLED.glob(f"*{SUFFIX}"))


def models() -> pd.DataFrame:
    """The bundled models: name, kind, parameters, megabytes, network and a line about each."""
    import pandas as pd

    from presage.networks.network import NetConfig
    from presage.networks.weights import read_metadata

    rows = []
    for name in _bundled_names():
        path = BUNDLED / f"{name}{SUFFIX}"
        data = read_metadata(path)
        notes = data.get("card") or {}
        rows.append(
            {
                "name": name,
                "kind": data.get("kind", "real"),
                "network": NetConfig.from_json(data["network"]).net,
                "megabytes": round(path.stat().st_size / 1e6, 2),
                "about": str(notes.get("about", "")),
            }
        )
    return pd.DataFrame(rows, columns=["name", "kind", "network", "megabytes", "about"])
