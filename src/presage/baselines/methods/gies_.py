"""GIES through the package gies."""

from __future__ import annotations

import warnings
from contextlib import redirect_stdout
from io import StringIO

import numpy as np

from presage.baselines.api import Answer, Problem
from presage.baselines.orientation import cpdag_row_to_column
from presage.errors import require_extra

__all__ = ["gies"]


def gies(problem: Problem) -> Answer:
    """Greedy interventional equivalence search with the Gaussian BIC; environments of one row join no fit."""
    package = require_extra("gies", "baselines", "GIES")
    x = problem.regular()
    groups, targets = problem.environments()
    kept = [(rows, target) for rows, target in zip(groups, targets, strict=True) if len(rows) > 1]
    if problem.d == 1 or not kept:
        return cpdag_row_to_column(np.zeros((problem.d, problem.d)))
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        found, _ = package.fit_bic([x[rows] for rows, _ in kept], [target for _, target in kept])
    return cpdag_row_to_column(found)
