"""From a run to a model: the metadata of its file, and the model of a run that has not ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from presage.domain.catalog import domain_name, summary
from presage.domain.domain import Domain
from presage.errors import ConfigError, ModelFileError
from presage.files import parse_json, read_bytes
from presage.networks.network import Network, build_network
from presage.ood.check import fit_reference
from presage.training.checkpoints import load_newest
from presage.training.config import TrainConfig
from presage.training.predicting import predictor
from presage.training.progress import read_log

__all__ = ["about", "check_resumable", "fit_summaries", "model_of_run", "read_config", "run_metadata"]


def run_metadata(
    name: str, config: TrainConfig, progress: Mapping[str, Any], scores: Mapping[str, float]
) -> dict[str, Any]:
    """The metadata of the model file of a run, with a card."""
    return {
        "name": name,
        "kind": config.domain.kind,
        "acyclic": config.domain.acyclic,
        "domain": config.domain.to_json(),
        "train": {
            "config": config.to_json(),
            **progress,
            "core_minutes": progress["core_seconds"] / 60.0,
            "validation": dict(scores),
        },
        "card": {
            "about": about(config.domain),
            f"validation (d = {config.validation.d}, n = {config.validation.n})": {
                key.replace("_", " "): round(value, 3) for key, value in scores.items()
            },
        },
    }


def about(domain: Domain) -> str:
    """One line on what a model is for, from the domain it was trained on."""
    name = domain_name(domain)
    real = "tables with columns of several kinds" if hasattr(domain, "kinds") else "real-valued tables"
    tables = "counts" if domain.kind == "counts" else real
    return f"for {tables}; trained on {'a custom domain' if name is None else f'{name}: {summary(name)}'}"


MAX_OOD_VARIABLES, MAX_OOD_ROWS = 50, 2000
"""Larger datasets take long to predict and add little to the usual ranges."""


def fit_summaries(config: TrainConfig, network: Network) -> dict[str, Any]:
    """The out-of-distribution check of a run, for datasets as large as those of training and validation."""
    counts = [d for d, _ in config.variable_counts]
    low, high = config.rows.n
    return fit_reference(
        config.domain,
        predictor(network),
        datasets=config.ood_datasets,
        variables=(min(counts), min(max(counts), MAX_OOD_VARIABLES)),
        rows=(low, min(max(high, config.validation.n), MAX_OOD_ROWS)),
    )


def read_config(folder: Path) -> TrainConfig:
    """The configuration of the run in a folder."""
    try:
        return TrainConfig.from_json(parse_json(read_bytes(folder / "config.json")))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} holds no run with a readable configuration: {error}") from error


RESUMABLE = ("steps", "minutes", "clock", "memory", "validation", "max_checkpoints", "ood_datasets")
"""Fields that may change when a run is resumed: they decide neither the weights nor the data of a step."""


def check_resumable(stored: TrainConfig, config: TrainConfig) -> None:
    """Raise `ConfigError` if a run cannot be resumed with another configuration; the error names the field."""
    before, now = (_flat(one.to_json()) for one in (stored, config))
    for name in dict.fromkeys((*before, *now)):
        if name.split(".")[0] not in RESUMABLE and before.get(name) != now.get(name):
            values = f"{name} = {now.get(name)!r}, but has {before.get(name)!r}"
            what = values if len(values) < 100 else f"another {name}"
            raise ConfigError(
                f"the run cannot be resumed with {what}; start a new run, for example initialised from this one"
            )


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested fields under dotted names."""
    found: dict[str, Any] = {}
    for name, value in data.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return found


def model_of_run(folder: Path) -> tuple[Network, dict[str, Any], str | None]:
    """The averaged weights of a run's newest checkpoint, their metadata, and a warning if a newer one is damaged.

    The folder is only read, so the run may continue meanwhile.
    """
    saved = load_newest(folder / "checkpoints")
    if saved is None:
        raise ConfigError(f"{folder} holds no run with a checkpoint")
    config = read_config(folder)
    network = build_network(config.net, config.seed)
    prefix = "ema/module."
    weights = {name.removeprefix(prefix): t for name, t in saved.tensors.items() if name.startswith(prefix)}
    try:
        network.load_state_dict(weights)
        progress = dict(saved.state["progress"])
        step = progress["step"]
    except (RuntimeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"the checkpoint {saved.path} does not fit the configuration of its run") from error
    scores: dict[str, float] = {}
    for entry in read_log(folder):
        if entry["event"] == "validation" and entry["step"] <= step:
            scores = {name: value for name, value in entry.items() if name.startswith(("auprc", "f1"))}
    return network.eval(), run_metadata(folder.name, config, progress, scores), saved.warning
