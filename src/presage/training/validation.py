"""Validation: held-out datasets of the training domain, evaluated by AUPRC and F1."""

from __future__ import annotations

import numpy as np
import torch

from presage.data.standardize import standardize
from presage.metrics import auprc, precision_recall_f1
from presage.networks.network import Network
from presage.rng import Stream
from presage.training.config import TrainConfig

__all__ = ["Validator"]


class Validator:
    """Datasets of the validation stream, the same for every run on a domain, observational and interventional."""

    def __init__(self, config: TrainConfig) -> None:
        settings = config.validation
        self.sets: dict[str, list[tuple[torch.Tensor, torch.Tensor, np.ndarray]]] = {}
        for name, n_interventional in (("obs", 0), ("int", settings.n_interventional)):
            if name == "int" and n_interventional == 0:
                continue
            batch = config.domain.sample(
                d=settings.d,
                n=settings.n,
                n_interventional=n_interventional,
                seed=0,
                size=settings.datasets,
                stream=Stream.VALIDATION,
            )
            x = standardize(batch.x, batch.kind)
            self.sets[name] = [
                (torch.from_numpy(x[k]), torch.from_numpy(batch.interventions[k]), batch.graph[k])
                for k in range(len(batch))
            ]

    def precision_gap(self, network: Network) -> float:
        """Largest difference between edge probabilities in fp32 and in bf16, on the first dataset."""
        x, u, _ = next(iter(self.sets.values()))[0]
        device = next(network.parameters()).device
        exact = torch.sigmoid(network.predict(x.to(device), u.to(device)))
        with torch.autocast(device.type, torch.bfloat16):
            rough = torch.sigmoid(network.predict(x.to(device), u.to(device)))
        return float((exact - rough).abs().max())

    def evaluate(self, network: Network) -> dict[str, float]:
        """Mean AUPRC and F1 under the names auprc_obs, f1_obs, auprc_int, f1_int."""
        device = next(network.parameters()).device
        found: dict[str, float] = {}
        for name, datasets in self.sets.items():
            scores = []
            for x, u, graph in datasets:
                logits = network.predict(x.to(device), u.to(device)).float().cpu().numpy()
                probability = 1.0 / (1.0 + np.exp(-logits.astype(np.float64)))
                np.fill_diagonal(probability, 0.0)
                scores.append((auprc(graph, probability), precision_recall_f1(graph, probability > 0.5)[2]))
            found[f"auprc_{name}"], found[f"f1_{name}"] = (float(value) for value in np.mean(scores, axis=0))
        return found
