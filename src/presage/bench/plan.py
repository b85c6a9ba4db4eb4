"""From a declaration and the user's choices to tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from presage.baselines.registry import get_baseline
from presage.bench.experiments import Experiment, Method, Setting, default_settings
from presage.bench.tasks import Task
from presage.errors import ConfigError

__all__ = ["Choice", "choose_methods", "plan", "read_tuned"]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the user may change about an experiment. variables and rows make a quick, smaller version of it."""

    methods: tuple[str, ...] = ()
    instances: int | None = None
    own_instances: int | None = None
    """Instances for our networks, which are much faster than searches; None: as many as for all methods."""
    variables: int | None = None
    rows: int | None = None
    bootstrap: int | None = None
    seed: int = 0
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (("instances", 1), ("own_instances", 1), ("variables", 1), ("rows", 2), ("bootstrap", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"the number of {name} must be at least {least}, not {value!r}")


def choose_methods(experiment: Experiment, wanted: Sequence[str]) -> list[Method]:
    """The requested methods; "all" stands for those of the experiment."""
    names: list[str] = []
    for text in wanted or ("all",):
        names += experiment.methods if text.strip() == "all" else (text,)
    return list(dict.fromkeys(Method.parse(name) for name in names))


def plan(experiment: Experiment, choice: Choice, tuned: Mapping[str, Any] | None = None) -> list[Task]:
    """Tasks, instance by instance, so that an unfinished run has all methods on the first instances."""
    methods = choose_methods(experiment, choice.methods)
    instances = experiment.instances if choice.instances is None else choice.instances
    own = instances if choice.own_instances is None else choice.own_instances
    if experiment.kind in ("sachs", "folder"):
        instances = own = 1
    known = tuple(dict.fromkeys(setting.column for setting in experiment.settings))
    unknown = [column for column in choice.columns if column not in known]
    if unknown:
        raise ConfigError(f"{experiment.name} has no column {unknown[0]!r}; it has: {', '.join(known)}")
    tasks = [
        _task(experiment, choice, method, _sized(setting, experiment, choice), instance, tuned or {})
        for instance in range(max(instances, own))
        for setting in experiment.settings
        for method in methods
        if instance < (own if method.name == "presage" else instances)
        if experiment.kind == "folder" or method.runs_in(setting.section)
        if not choice.columns or setting.column in choice.columns
    ]
    return list(dict.fromkeys(tasks))


def _sized(setting: Setting, experiment: Experiment, choice: Choice) -> Setting:
    if experiment.kind in ("sachs", "scaling", "folder"):
        return setting
    n = setting.n if choice.rows is None else choice.rows
    d = setting.d if choice.variables is None else choice.variables
    return replace(setting, d=d, n=n, n_interventional=round(setting.n_interventional * n / setting.n))


def _task(
    experiment: Experiment, choice: Choice, method: Method, setting: Setting, instance: int, tuned: Mapping[str, Any]
) -> Task:
    baseline = get_baseline(method.name)
    changes = default_settings(method.name, setting.column)
    # The paper uses the settings tuned for rff on Sachs.
    changes |= tuned.get("rff" if setting.column == "sachs" else setting.column, {}).get(method.name, {})
    if method.model:
        changes["model"] = method.model
    elif method.name == "presage" and experiment.kind != "folder":
        changes["model"] = setting.column
    bootstrap = experiment.bootstrap if choice.bootstrap is None else choice.bootstrap
    return Task(
        method=method.name,
        settings=tuple(sorted(baseline.settings(changes).items())),
        setting=setting,
        instance=instance,
        seed=choice.seed,
        bootstrap=bootstrap if baseline.point_estimate else 0,
    )


def read_tuned(path: Path | None) -> dict[str, Any]:
    """Settings per column and method, as `presage bench tune` writes them."""
    if path is None:
        return {}
    try:
        return dict(json.loads(path.read_text())["settings"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} holds no tuned settings; write it with: presage bench tune") from error
