"""Fit a method and note what it took: in a child process, or right here for methods of our own."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from presage.baselines.api import Baseline
from presage.baselines.bootstrap import resamples
from presage.types import Dataset

__all__ = ["fit_and_note"]


def fit_and_note(
    baseline: Baseline, data: Dataset, settings: Mapping[str, Any], *, seed: int, bootstrap: int
) -> tuple[dict[str, Any], np.ndarray]:
    """What was noted (plain data), and the answers [k, d, d]: one per resample, or one without bootstrap."""
    baseline.function()  # a library that is not there must fail before the clock starts
    started, started_cpu = time.monotonic(), time.process_time()
    answers = [
        baseline.fit(rows, seed=seed + number, **settings)
        for number, rows in enumerate(resamples(data, bootstrap, seed=seed) if bootstrap else [data])
    ]
    meta = {
        "status": "ok",
        "kind": answers[0].kind,
        "scores": [answer.score for answer in answers],
        "seconds": time.monotonic() - started,
        "cpu_seconds": time.process_time() - started_cpu,
        "note": answers[0].note,
        "message": "",
    }
    return meta, np.stack([answer.matrix for answer in answers])
