"""Validation on held-out datasets of the training domain: AUPRC, F1 and likelihood, for each stratum of the domain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from scipy.special import expit

from presage.data.buffer import TrainBatch
from presage.data.fresh import encode_batch
from presage.data.row_statistics import Columns
from presage.domain.domain import Domain
from presage.metrics import auprc, precision_recall_f1
from presage.networks.network import Network, Prediction
from presage.rng import Stream, generator
from presage.training.config import TrainConfig

__all__ = ["Validator"]


class Validator:
    """Datasets of the validation stream, the same for every run on a domain.

    Without strata there are two sets, observational and interventional. With strata there is one for each; only the
    stratum "interventional" has interventional rows, and "large_n" has few variables and four times the rows.
    """

    def __init__(self, config: TrainConfig) -> None:
        settings = config.validation
        n_interventional = settings.n_interventional
        self.sets: dict[str, TrainBatch] = {}
        strata = config.domain.strata()
        if not strata:
            self.sets["obs"] = _sample(config.domain, settings.d, settings.n, 0, settings.datasets)
            if n_interventional:
                self.sets["int"] = _sample(config.domain, settings.d, settings.n, n_interventional, settings.datasets)
            return
        for name, domain in strata.items():
            some = n_interventional if name == "interventional" else 0
            self.sets[name] = _sample(domain, settings.d, settings.n, some, settings.datasets)
        self.sets["large_n"] = _sample(
            config.domain, max(2, settings.d // 2), 4 * settings.n, 0, max(1, settings.datasets // 2)
        )

    def precision_gap(self, network: Network) -> float:
        """Largest difference between edge probabilities in fp32 and in bf16, on the first dataset."""
        batch = next(iter(self.sets.values()))
        device = next(network.parameters()).device
        exact = torch.sigmoid(next(_predictions(network, batch)).edge)
        with torch.autocast(device.type, torch.bfloat16):
            rough = torch.sigmoid(next(_predictions(network, batch)).edge)
        return float((exact - rough).abs().max())

    def evaluate(self, network: Network) -> dict[str, float]:
        """Means over the datasets of each set, named for example auprc_obs; with strata also over all sets."""
        found: dict[str, float] = {}
        for name, batch in self.sets.items():
            found |= {f"{metric}_{name}": value for metric, value in _scores(network, batch).items()}
        if "obs" not in self.sets:
            for metric in sorted({name.split("_", 1)[0] for name in found}):
                values = [found[f"{metric}_{name}"] for name in self.sets if f"{metric}_{name}" in found]
                found[metric] = float(np.mean(values))
        return found


def _sample(domain: Domain, d: int, n: int, n_interventional: int, datasets: int) -> TrainBatch:
    drawn = [
        domain.draw(generator(0, Stream.VALIDATION, k), d=d, n=n, n_interventional=n_interventional)
        for k in range(datasets)
    ]
    return encode_batch(drawn, domain)


def _predictions(network: Network, batch: TrainBatch) -> Iterator[Prediction]:
    device = next(network.parameters()).device

    def tensor(values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values).to(device)

    for k in range(len(batch.x)):
        missing = None if batch.missing is None else tensor(batch.missing[k])
        columns = None
        if batch.columns is not None:
            columns = Columns(**{name: tensor(values[k]) for name, values in batch.columns.items()})
        yield network.predict_outputs(tensor(batch.x[k]), tensor(batch.u[k]), missing, columns)


def _scores(network: Network, batch: TrainBatch) -> dict[str, float]:
    """AUPRC, F1 and mean negative log-likelihood of edges; AUPRC of hidden causes; sign and size of effects."""
    rows: dict[str, list[float]] = {}
    effects: list[np.ndarray] = []
    for k, prediction in enumerate(_predictions(network, batch)):
        graph = batch.graph[k]
        logits = _array(prediction.edge)
        probability = expit(logits)
        np.fill_diagonal(probability, 0.0)
        off = ~np.eye(len(graph), dtype=bool)
        nll = np.logaddexp(0.0, np.where(graph[off] > 0, -logits[off], logits[off])).mean()
        values = {
            "auprc": auprc(graph, probability),
            "f1": precision_recall_f1(graph, probability > 0.5)[2],
            "nll": nll,
        }
        if prediction.confounded is not None and batch.confounded is not None and batch.confounded[k].any():
            confounded = expit(_array(prediction.confounded))
            np.fill_diagonal(confounded, 0.0)
            values["confounded"] = auprc(batch.confounded[k].astype(np.int8), confounded)
        for name, value in values.items():
            rows.setdefault(name, []).append(float(value))
        if prediction.effect is not None and batch.effects is not None:
            known = np.isfinite(batch.effects[k])
            effects.append(np.stack([_array(prediction.effect)[known], batch.effects[k][known]]))
    found = {name: float(np.mean(values)) for name, values in rows.items()}
    if effects and (pairs := np.concatenate(effects, axis=1)).shape[1] > 2:
        found["sign"] = float((np.sign(pairs[0]) == np.sign(pairs[1])).mean())
        found["effect"] = float(np.corrcoef(pairs[0], np.clip(pairs[1], -3.0, 3.0))[0, 1])
    return found


def _array(values: torch.Tensor) -> np.ndarray:
    return values.double().cpu().numpy()
