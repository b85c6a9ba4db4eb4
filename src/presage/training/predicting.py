"""Edge probabilities of a network for one dataset, without a model file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.special import expit

from presage.data.encode import encode
from presage.data.row_statistics import Columns
from presage.data.standardize import standardize_dataset
from presage.networks.network import Network
from presage.types import Dataset

__all__ = ["predictor"]


def predictor(network: Network) -> Callable[[Dataset], np.ndarray]:
    """A function from datasets to edge probabilities [d, d] with a diagonal of 0."""
    device = next(network.parameters()).device
    reads_kinds = bool(getattr(network.config, "column_kinds", False))

    def tensor(values: np.ndarray) -> torch.Tensor:
        return torch.tensor(values, device=device)

    def predict(dataset: Dataset) -> np.ndarray:
        missing = dataset.missing if dataset.missing.any() else None
        columns = None
        if reads_kinds:
            encoded = encode(dataset.x, dataset.column_kinds, missing)
            x = encoded.x
            columns = Columns(tensor(dataset.column_kinds), tensor(encoded.second), tensor(encoded.association))
        else:
            x = standardize_dataset(dataset)
        hidden = None if missing is None else tensor(missing)
        logits = network.predict_outputs(tensor(x), tensor(dataset.interventions), hidden, columns).edge
        found: np.ndarray = expit(logits.double().cpu().numpy())
        np.fill_diagonal(found, 0.0)
        return found

    return predict
