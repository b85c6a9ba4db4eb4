"""Validation on held-out datasets of the training domain: AUPRC, F1 and likelihood, for each stratum of the domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
from presage.training.config import TrainConfig, ValidationConfig

__all__ = ["HeldOut", "Validator", "effect_scores", "held_out_sets", "predict_held_out"]


@dataclass(frozen=True)
class HeldOut:
    """True and predicted graph of one held-out dataset; None where the domain or the network has no such output."""

    graph: np.ndarray
    """[d, d] of 0/1."""
    logits: np.ndarray
    """Edge logits, float64 [d, d]."""
    confounded: np.ndarray | None = None
    """[d, d] bool: pairs with a hidden common cause."""
    confounded_logits: np.ndarray | None = None
    effects: np.ndarray | None = None
    """True and predicted effect of every pair with a defined effect: float64 [2, pairs]."""

    def probabilities(self, temperature: float = 1.0) -> np.ndarray:
        """Edge probabilities [d, d] with diagonal 0."""
        return _probabilities(self.logits / temperature)

    def nll(self, temperature: float = 1.0) -> float:
        """Mean negative log-likelihood of the ordered pairs of different variables."""
        off = ~np.eye(len(self.graph), dtype=bool)
        logits = self.logits[off] / temperature
        return float(np.logaddexp(0.0, np.where(self.graph[off] > 0, -logits, logits)).mean())

    def confounded_auprc(self) -> float | None:
        """AUPRC of hidden common causes; None if there are none or the network does not predict them."""
        if self.confounded is None or self.confounded_logits is None or not self.confounded.any():
            return None
        return auprc(self.confounded.astype(np.int8), _probabilities(self.confounded_logits))


def held_out_sets(domain: Domain, settings: ValidationConfig, *, start: int = 0) -> Iterator[tuple[str, TrainBatch]]:
    """Named sets of datasets start, start + 1, ... of the validation stream.

    Without strata there are two sets, "obs" and "int". With strata there is one for each, some of them with
    interventional rows (`Domain.interventional_strata`), and "large_n" has few variables and four times the rows.
    """
    d, n, some, count = settings.d, settings.n, settings.n_interventional, settings.datasets
    strata = domain.strata()
    if not strata:
        yield "obs", _sample(domain, d, n, 0, start, count)
        if some:
            yield "int", _sample(domain, d, n, some, start, count)
        return
    for name, stratum in strata.items():
        yield name, _sample(stratum, d, n, some if name in domain.interventional_strata else 0, start, count)
    yield "large_n", _sample(domain, max(2, d // 2), 4 * n, 0, start, max(1, count // 2))


def predict_held_out(network: Network, batch: TrainBatch) -> list[HeldOut]:
    """True and predicted graphs of each dataset of a set."""
    found = []
    for k, prediction in enumerate(_predictions(network, batch)):
        effects = None
        if prediction.effect is not None and batch.effects is not None:
            known = np.isfinite(batch.effects[k])
            effects = np.stack([batch.effects[k][known].astype(np.float64), _array(prediction.effect)[known]])
        found.append(
            HeldOut(
                graph=batch.graph[k],
                logits=_array(prediction.edge),
                confounded=None if batch.confounded is None else batch.confounded[k],
                confounded_logits=None if prediction.confounded is None else _array(prediction.confounded),
                effects=effects,
            )
        )
    return found


def effect_scores(predicted: list[HeldOut]) -> dict[str, float]:
    """Share of effects with the right sign, and correlation with the true effects, over all pairs of all datasets."""
    known = [one.effects for one in predicted if one.effects is not None]
    if not known or (pairs := np.concatenate(known, axis=1)).shape[1] < 3:
        return {}
    return {
        "sign": float((np.sign(pairs[0]) == np.sign(pairs[1])).mean()),
        "effect": float(np.corrcoef(np.clip(pairs[0], -3.0, 3.0), pairs[1])[0, 1]),
    }


class Validator:
    """Datasets of the validation stream, the same for every run on a domain."""

    def __init__(self, config: TrainConfig) -> None:
        self.sets = dict(held_out_sets(config.domain, config.validation))

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


def _sample(domain: Domain, d: int, n: int, n_interventional: int, start: int, datasets: int) -> TrainBatch:
    drawn = [
        domain.draw(generator(0, Stream.VALIDATION, start + k), d=d, n=n, n_interventional=n_interventional)
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
    predicted = predict_held_out(network, batch)
    values: dict[str, list[float]] = {}
    for one in predicted:
        probabilities = one.probabilities()
        hidden = one.confounded_auprc()
        scores = {
            "auprc": auprc(one.graph, probabilities),
            "f1": precision_recall_f1(one.graph, probabilities > 0.5)[2],
            "nll": one.nll(),
            **({} if hidden is None else {"confounded": hidden}),
        }
        for name, value in scores.items():
            values.setdefault(name, []).append(value)
    return {**{name: float(np.mean(items)) for name, items in values.items()}, **effect_scores(predicted)}


def _probabilities(logits: np.ndarray) -> np.ndarray:
    probabilities: np.ndarray = expit(logits)
    np.fill_diagonal(probabilities, 0.0)
    return probabilities


def _array(values: torch.Tensor) -> np.ndarray:
    return values.double().cpu().numpy()
