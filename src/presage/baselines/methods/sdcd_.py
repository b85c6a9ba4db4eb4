"""SDCD through the package sdcd."""

from __future__ import annotations

from presage.baselines.api import Estimate, Problem
from presage.baselines.orientation import graph_row_to_column

__all__ = ["sdcd"]


def sdcd(problem: Problem, *, epochs: int, sparsity: float) -> Estimate:
    """Stable differentiable causal discovery: two stages, spectral acyclicity; its own scores hold out 20%."""
    import torch
    from sdcd.models import SDCD

    torch.set_num_threads(1)
    kept = torch.from_numpy((~problem.mask).astype("int64"))  # 1 where a variable follows its mechanism
    regime = problem.d - kept.sum(dim=1)
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(problem.x).float(), kept, regime)
    model = SDCD(model_variance_flavor="nn")
    model.train(
        dataset,
        val_fraction=0.2,
        stage1_kwargs={"n_epochs": epochs, "alpha": sparsity},
        stage2_kwargs={"n_epochs": epochs},
        verbose=False,
        log_wandb=False,
        device=torch.device("cpu"),
    )
    return graph_row_to_column(model.get_adjacency_matrix(threshold=True))
