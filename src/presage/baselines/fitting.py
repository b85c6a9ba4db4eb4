"""Fit a method and measure its time, in a child process or in this one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from presage.baselines.api import Baseline
from presage.baselines.bootstrap import resamples
from presage.types import Dataset

__all__ = ["fit_and_time"]


def fit_and_time(
    baseline: Baseline, data: Dataset, settings: Mapping[str, Any], *, seed: int, bootstrap: int
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Metadata of the run (JSON data) and its arrays: matrices and, if the method finds hidden causes, confounded.

    Both are [k, d, d]: one estimate per resample, or one without bootstrap.
    """
    baseline.function()  # a missing library must fail before the clock starts
    started, started_cpu = time.monotonic(), time.process_time()
    estimates = [
        baseline.fit(sample, seed=seed + number, **settings)
        for number, sample in enumerate(resamples(data, bootstrap, seed=seed) if bootstrap else [data])
    ]
    meta = {
        "status": "ok",
        "kind": estimates[0].kind,
        "scores": [estimate.score for estimate in estimates],
        "seconds": time.monotonic() - started,
        "cpu_seconds": time.process_time() - started_cpu,
        "note": estimates[0].note,
        "message": "",
    }
    arrays = {"matrices": np.stack([estimate.matrix for estimate in estimates])}
    confounded = [estimate.confounded for estimate in estimates if estimate.confounded is not None]
    if confounded:
        arrays["confounded"] = np.stack(confounded)
    return meta, arrays
