"""Our own networks as a method of the benchmark."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from presage.baselines.api import Estimate, Problem

if TYPE_CHECKING:
    from presage.inference.model import Model

__all__ = ["presage_model"]


@lru_cache(maxsize=8)
def _loaded(model: str) -> Model:
    from presage.inference.hub import load_model

    return load_model(model)


def presage_model(problem: Problem, *, model: str) -> Estimate:
    """The edge probabilities of a trained network; it standardizes the measured values itself."""
    network = _loaded(model)
    found = network.predict(network.prepare(problem.raw, problem.mask, problem.missing, problem.column_kinds))
    return Estimate(
        matrix=found.probabilities, kind="probabilities", confounded=found.confounded, note=f"model {model}"
    )
