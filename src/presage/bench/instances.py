"""The datasets of tasks: sampled when needed, and identified by a hash of their values."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from presage.bench.gold_standards import load_gold_standard
from presage.errors import PresageError
from presage.rng import Stream
from presage.types import Dataset

if TYPE_CHECKING:
    from presage.bench.experiments import Setting
    from presage.bench.tasks import Task

__all__ = ["instance", "instance_key", "known_pairs"]


def instance(task: Task) -> Dataset:
    """The dataset of a task with its true graph; the same whatever the method."""
    return _draw(task.setting, task.seed, task.stream, task.instance)


def instance_key(task: Task) -> str:
    """Identify the dataset of a task by its values, so that results survive changes of the simulator's code.

    A dataset that cannot be sampled is identified by its source; running the task records the reason.
    """
    return _key(task.setting, task.seed, task.stream, task.instance)


def known_pairs(task: Task) -> np.ndarray | None:
    """Ordered pairs [d, d] on which a dataset with its own graph is scored; None for simulated data: all."""
    return load_gold_standard(Path(task.setting.path)).known if task.setting.path else None


@lru_cache(maxsize=64)  # of d = 100, n = 1000 that is 50 MB
def _draw(setting: Setting, seed: int, stream: int, number: int) -> Dataset:
    if setting.path:
        return load_gold_standard(Path(setting.path)).data
    if setting.domain == "sachs":
        from presage.data.examples import load_sachs

        data = load_sachs()
        if setting.section == "interventional":
            return data
        return replace(data, interventions=None)  # type: ignore[arg-type]  # all rows, without their targets
    from presage.domain.catalog import get_domain

    batch = get_domain(setting.domain).sample(
        d=setting.d,
        n=setting.n,
        n_interventional=setting.n_interventional,
        seed=seed,
        stream=Stream(stream),
        start=number,
    )
    return batch[0]


@cache
def _key(setting: Setting, seed: int, stream: int, number: int) -> str:
    try:
        data = _draw(setting, seed, stream, number)
    except (PresageError, OSError):
        return hashlib.sha256(repr((setting, seed, stream, number)).encode()).hexdigest()
    digest = hashlib.sha256(repr((data.x.shape, data.kind, data.names)).encode())
    for part in (data.x, data.interventions, np.asarray(data.graph), data.column_kinds):
        digest.update(np.ascontiguousarray(part).tobytes())
    if data.missing.any():
        digest.update(data.missing.tobytes())
    return digest.hexdigest()
