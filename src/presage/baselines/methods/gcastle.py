"""NOTEARS through the package gcastle, DAGMA through the package dagma."""

from __future__ import annotations

import logging

import numpy as np

from presage.baselines.api import Estimate, Problem
from presage.baselines.orientation import graph_row_to_column

__all__ = ["dagma", "notears"]


def notears(problem: Problem, *, penalty: float, threshold: float, standardize: bool) -> Estimate:
    """NOTEARS with linear mechanisms."""
    from castle.algorithms import Notears

    logging.disable(logging.INFO)
    model = Notears(lambda1=penalty, w_threshold=threshold)
    model.learn(problem.centred(standardize))
    return graph_row_to_column(np.asarray(model.causal_matrix))


def dagma(problem: Problem, *, penalty: float, threshold: float, standardize: bool) -> Estimate:
    """DAGMA with linear mechanisms."""
    import contextlib
    import io

    from dagma.linear import DagmaLinear

    values = problem.centred(standardize)
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that cannot be turned off
        weights = DagmaLinear(loss_type="l2").fit(values, lambda1=penalty, w_threshold=threshold)
    return graph_row_to_column(weights)
