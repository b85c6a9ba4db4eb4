"""From a run to a model: what its file says of the training, and how to take one from a run that is still going."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from presage.errors import ConfigError
from presage.networks.network import Network, build_network
from presage.training.checkpoints import latest_checkpoint, read_checkpoint
from presage.training.config import TrainConfig

__all__ = ["check_resumable", "model_of_run", "read_config", "run_metadata"]


def run_metadata(
    name: str, config: TrainConfig, progress: Mapping[str, Any], scores: Mapping[str, float]
) -> dict[str, Any]:
    """What a model file says of the run behind it."""
    return {
        "name": name,
        "kind": config.domain.kind,
        "acyclic": config.domain.acyclic,
        "domain": config.domain.to_json(),
        "train": {
            "config": config.to_json(),
            **progress,
            "core_minutes": progress["cpu_seconds"] * progress["processes"] / 60.0,
            "validation": dict(scores),
        },
    }


def read_config(folder: Path) -> TrainConfig:
    """The configuration of the run in a folder."""
    try:
        return TrainConfig.from_json(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} holds no run with a readable configuration: {error}") from error


RESUMABLE = ("steps", "minutes", "clock", "memory", "validation", "max_checkpoints")
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


def model_of_run(folder: Path) -> tuple[Network, dict[str, Any]]:
    """The averaged weights of a run's newest checkpoint and their metadata; reads only, so the run may go on."""
    newest = latest_checkpoint(folder / "checkpoints")
    if newest is None:
        raise ConfigError(f"{folder} holds no run with a checkpoint")
    tensors, state = read_checkpoint(newest)
    config = read_config(folder)
    network = build_network(config.net, config.seed)
    prefix = "ema/module."
    network.load_state_dict({name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)})
    step = state["progress"]["step"]
    scores: dict[str, float] = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["event"] == "validation" and entry["step"] <= step:
            scores = {name: value for name, value in entry.items() if name.startswith(("auprc", "f1"))}
    return network.eval(), run_metadata(folder.name, config, state["progress"], scores)
