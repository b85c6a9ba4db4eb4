"""DAG-GNN and NOTEARS through the package gcastle, DAGMA through the package dagma."""

from __future__ import annotations

import logging

import numpy as np

from presage.baselines.api import Estimate, Problem
from presage.baselines.orientation import graph_row_to_column

__all__ = ["dag_gnn", "dagma", "notears"]


def _values(problem: Problem, standardize: bool) -> np.ndarray:
    """Least squares finds a causal order by the scale of the noise; standardized data no longer shows it."""
    return problem.x if standardize else problem.raw - problem.raw.mean(axis=0)


def dag_gnn(
    problem: Problem, *, threshold: float, hidden: int, epochs: int, standardize: bool, holdout: bool
) -> Estimate:
    """DAG-GNN; with holdout=True it is fitted to 80% of the rows and scored by the ELBO of the others."""
    import torch
    from castle.algorithms import DAG_GNN
    from castle.algorithms.gradient.dag_gnn.torch.utils import functions

    logging.disable(logging.INFO)
    values = _values(problem, standardize)
    train, held = problem.split() if holdout else (np.arange(len(problem.x)), np.arange(0))
    model = DAG_GNN(
        encoder_hidden=hidden,
        decoder_hidden=hidden,
        graph_threshold=threshold,
        epochs=epochs,
        seed=problem.seed % 2**32,
    )
    model.learn(values[train])
    score = None
    if len(held):
        with torch.no_grad():
            x = torch.from_numpy(values[held])[:, :, None].double()  # [n, d, 1]
            code, adjacency = model.encoder(x)
            guess = model.decoder(code, adj_A=adjacency, wa=model.encoder.wa)
            score = -float(functions.nll_gaussian(guess, x) + functions.kl_gaussian_sem(code))
    return graph_row_to_column(np.asarray(model.causal_matrix), score=score)


def notears(problem: Problem, *, penalty: float, threshold: float, standardize: bool) -> Estimate:
    """NOTEARS with linear mechanisms."""
    from castle.algorithms import Notears

    logging.disable(logging.INFO)
    model = Notears(lambda1=penalty, w_threshold=threshold)
    model.learn(_values(problem, standardize))
    return graph_row_to_column(np.asarray(model.causal_matrix))


def dagma(problem: Problem, *, penalty: float, threshold: float, standardize: bool) -> Estimate:
    """DAGMA with linear mechanisms."""
    import contextlib
    import io

    from dagma.linear import DagmaLinear

    values = _values(problem, standardize)
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that cannot be turned off
        weights = DagmaLinear(loss_type="l2").fit(values, lambda1=penalty, w_threshold=threshold)
    return graph_row_to_column(weights)
