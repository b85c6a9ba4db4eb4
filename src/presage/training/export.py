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

__all__ = ["model_of_run", "run_metadata"]


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


def model_of_run(folder: Path) -> tuple[Network, dict[str, Any]]:
    """The averaged weights of a run's newest checkpoint and their metadata; reads only, so the run may go on."""
    newest = latest_checkpoint(folder / "checkpoints")
    if newest is None:
        raise ConfigError(f"{folder} holds no run with a checkpoint")
    tensors, state = read_checkpoint(newest)
    config = TrainConfig.from_json(json.loads((folder / "config.json").read_text()))
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
