"""GIES through the package gies."""

from __future__ import annotations

import warnings
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from presage.baselines.api import Estimate, Problem
from presage.baselines.orientation import cpdag_row_to_column
from presage.errors import require_extra

__all__ = ["gies"]


def gies(problem: Problem) -> Estimate:
    """Greedy interventional equivalence search with the Gaussian BIC."""
    require_extra("gies", "baselines", "GIES")
    groups, targets = problem.environments()
    x = problem.regular()
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        import gies as package

        found, _ = package.fit(_score([x[rows] for rows in groups], targets))
    return cpdag_row_to_column(found)


def _score(data: list[np.ndarray], targets: list[list[int]]) -> Any:
    """The package's score with one intercept per variable over all environments that do not intervene on it.

    The package centres every environment on its own, which discards how interventions shift means: on the Sachs
    data it then finds 9 edges. With one intercept it finds the 46 edges the paper reports, with the same SHD, SID, F1.
    """
    from gies.scores.gauss_int_l0_pen import GaussIntL0Pen

    score = GaussIntL0Pen(data, targets)
    for k in range(score.p):
        rows = np.concatenate([part for part, target in zip(data, targets, strict=True) if k not in target])
        score.part_sample_cov[k] = np.cov(rows, rowvar=False, ddof=0)
    return score
