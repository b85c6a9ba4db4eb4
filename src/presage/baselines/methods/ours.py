"""Our own networks as one more method of the benchmark."""

from __future__ import annotations

from presage.baselines.api import Answer, Problem

__all__ = ["presage_model"]


def presage_model(problem: Problem, *, model: str) -> Answer:
    """The edge probabilities of a trained network; it standardizes the measured values itself."""
    import torch

    from presage.hub import load_model

    torch.set_num_threads(1)
    matrix = load_model(model).probabilities(problem.raw, problem.mask if problem.mask.any() else None)
    return Answer(matrix=matrix, kind="probabilities", note=f"model {model}")
