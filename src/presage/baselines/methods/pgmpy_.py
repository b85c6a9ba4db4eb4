"""GES with scores for discrete and for mixed columns, through the package pgmpy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from presage.baselines.api import Estimate, Problem
from presage.baselines.orientation import cpdag_row_to_column
from presage.errors import DataError

__all__ = ["ges_bdeu", "ges_conditional_gaussian"]


def ges_bdeu(problem: Problem, *, equivalent_sample_size: float) -> Estimate:
    """Greedy equivalence search with the BDeu score; every column must be discrete."""
    if not problem.discrete.all():
        number = int((~problem.discrete).sum())
        raise DataError(f"BDeu is a score for discrete columns, but {number} of {problem.d} columns are not discrete")
    from pgmpy.structure_score import BDeu

    return _search(problem, lambda data: BDeu(data, equivalent_sample_size=equivalent_sample_size))


def ges_conditional_gaussian(problem: Problem) -> Estimate:
    """Greedy equivalence search with the BIC of the conditional-Gaussian model of discrete and continuous columns."""
    if problem.discrete.all():
        raise DataError("the conditional-Gaussian score needs a continuous column; use ges-bdeu for discrete columns")
    from pgmpy.structure_score import BICCondGauss

    return _search(problem, BICCondGauss)


def _search(problem: Problem, score: Any) -> Estimate:
    """GES over the columns as a data frame, discrete ones as categories."""
    import pandas as pd
    from pgmpy.causal_discovery import GES

    values = problem.regular()
    names = [f"x{j}" for j in range(problem.d)]
    columns = {
        name: pd.Categorical(problem.raw[:, j]) if discrete else values[:, j]
        for j, (name, discrete) in enumerate(zip(names, problem.discrete, strict=True))
    }
    data = pd.DataFrame(columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = GES(scoring_method=score(data), return_type="pdag").fit(data).causal_graph_
    matrix = np.zeros((problem.d, problem.d))
    place = {name: j for j, name in enumerate(names)}
    for a, b in found.edges:  # undirected edges are listed in both directions
        matrix[place[a], place[b]] = 1.0
    return cpdag_row_to_column(matrix)
