"""The layers of a configuration: defaults < recipe < configuration file < single settings < flags.

A layer is JSON data with some of the fields of a `TrainConfig`, nested as they are. A later layer wins field by field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from presage.config import to_json
from presage.domain.catalog import open_domain
from presage.domain.domain import Domain
from presage.errors import ConfigError
from presage.files import parse_json, read_bytes
from presage.networks.model_header import read_metadata
from presage.networks.network import NetConfig, network_config
from presage.training.config import RECIPES, TrainConfig

__all__ = ["build_config", "merge", "parse_settings", "read_layer"]

DEFAULT_DOMAIN = "scm"

Layer = dict[str, Any]


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Layer:
    """The lower layer with the fields of the upper one; objects are merged field by field unless their types differ.

    >>> merge({"optim": {"lr": 0.1, "clip": 1.0}, "steps": 5}, {"optim": {"lr": 0.2}})
    {'optim': {'lr': 0.2, 'clip': 1.0}, 'steps': 5}
    """
    found = dict(lower)
    if upper.get("steps") is not None or upper.get("minutes") is not None:  # one budget replaces the other
        found = {name: value for name, value in found.items() if name not in ("steps", "minutes")}
    for name, value in upper.items():
        below = found.get(name)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            same = value.get("type", below.get("type")) == below.get("type")
            value = merge(below, value) if same else dict(value)
        found[name] = value
    return found


def parse_settings(settings: Iterable[str]) -> Layer:
    """The layer of settings such as "net.width=96": dotted field names, and values as JSON or plain text.

    >>> parse_settings(["net.width=96", "rows.n=[60, 600]", "optim.name=adamw"])
    {'net': {'width': 96}, 'rows': {'n': [60, 600]}, 'optim': {'name': 'adamw'}}
    """
    layer: Layer = {}
    for setting in settings:
        path, equals, text = setting.partition("=")
        names = path.strip().split(".")
        if not equals or not all(names):
            raise ConfigError(f"a setting is written as field=value, for example net.width=96, not {setting!r}")
        try:
            value: Any = parse_json(text)
        except ValueError:
            value = text
        for name in reversed(names):
            value = {name: value}
        layer = merge(layer, _expanded(value))
    return layer


def read_layer(path: Path) -> Layer:
    """The layer of a configuration file: a JSON object with any fields of a `TrainConfig`."""
    try:
        data = parse_json(read_bytes(path))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the configuration {path}: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"the configuration {path} must be a JSON object")
    return _expanded(data)


def build_config(*layers: Layer, recipe: str = "default", stored: TrainConfig | None = None) -> TrainConfig:
    """The configuration of some layers, lowest first, above a recipe, or above the configuration of a stored run."""
    upper: Layer = {}
    for layer in layers:
        upper = merge(upper, _expanded(layer))
    if stored is not None:
        return TrainConfig.from_json(merge(stored.to_json(), upper))
    if recipe not in RECIPES:
        raise ConfigError(f"there is no recipe {recipe!r}; choose one of: {', '.join(RECIPES)}")
    default = open_domain(DEFAULT_DOMAIN).to_json()
    domain = Domain.from_json(merge({"domain": default}, {"domain": upper.get("domain", {})})["domain"])
    asked = upper.get("net")
    kind = asked.get("type") if isinstance(asked, Mapping) else None
    net = {} if kind is None else {"net": NetConfig.from_json({"type": kind}).net}
    base = {name: to_json(value) for name, value in RECIPES[recipe](domain, **net).items()}
    if upper.get("init_from") is not None:  # its network, unless a layer asks for another one
        base = merge(base, {"net": read_metadata(str(upper["init_from"]))["network"]})
        base = merge(base, {"net": {"type": kind}} if net else {})
    return TrainConfig.from_json(merge(base, upper))


def _expanded(layer: Layer) -> Layer:
    """A layer whose domain and network, if given by name, are JSON objects."""
    found = dict(layer)
    if isinstance(found.get("domain"), str):
        found["domain"] = open_domain(found["domain"]).to_json()
    if isinstance(found.get("net"), str):
        found["net"] = {"type": network_config(found["net"]).__name__}
    return found
