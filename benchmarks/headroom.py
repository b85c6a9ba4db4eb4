"""How much of what the rff model misses is still in the data.

    python benchmarks/headroom.py [--model rff] [--datasets 30] [--seed 11] [--observational]

For every pair about which the model is unsure (probability 0.02 to 0.98): the log marginal likelihood of the child's
values under a Gaussian process with that parent and without it, all other parents as the model sees them. The process
knows what the model does not: the kernel that made the data and the values before standardization; scales are the best
of a grid over the domain's ranges. A logistic regression of the truth on the model's logit and this difference, fitted
to the other half of the datasets, then gives new probabilities. What they gain is what a better network could gain, at
least. Datasets of the validation stream, d = 30, n = 1000, half interventional.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.spatial.distance import pdist, squareform
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from presage.domain.catalog import get_domain
from presage.inference.hub import load_model
from presage.metrics import evaluate, mean_and_error
from presage.rng import Stream
from presage.types import Dataset

UNSURE = (0.02, 0.98)
LENGTHS, OUTPUTS, NOISES = (7.5, 9.5), (12.0, 18.0), (0.2, 0.5, 1.0, 1.8)
BIAS = 3.0


@dataclass
class Judged:
    """One dataset: the truth, the model's logits, and for the unsure pairs what the process says."""

    graph: np.ndarray
    logits: np.ndarray
    unsure: np.ndarray
    gains: np.ndarray

    def features(self) -> np.ndarray:
        """One row per unsure pair."""
        return np.stack([self.logits[self.unsure], np.arcsinh(self.gains[self.unsure])], axis=-1)


def log_evidence(parents: np.ndarray, child: np.ndarray, length: float, output: float) -> float:
    """Log marginal likelihood (up to a constant) of child [n] given parents [n, p], at the best of the noises."""
    squares = squareform(pdist(parents, "sqeuclidean")) if parents.shape[1] else np.zeros((len(child), len(child)))
    kernel = output**2 * np.exp(squares / (-2.0 * length**2)) + BIAS**2
    best = -np.inf
    for noise in NOISES:
        try:
            factor = cho_factor(kernel + noise**2 * np.eye(len(child)), lower=True)
        except LinAlgError:
            continue
        best = max(best, float(-0.5 * child @ cho_solve(factor, child) - np.log(np.diag(factor[0])).sum()))
    return best


def judge(data: Dataset, probabilities: np.ndarray) -> Judged:
    """Hold every unsure pair of a dataset against the process."""
    p = np.clip(probabilities, 1e-6, 1.0 - 1e-6)
    unsure = (p > UNSURE[0]) & (p < UNSURE[1]) & ~np.eye(len(p), dtype=bool)
    gains = np.zeros_like(p)
    x = np.asarray(data.x, dtype=np.float64)
    touched = np.asarray(data.interventions, dtype=bool)
    for child in np.flatnonzero(unsure.any(axis=0)):
        rows = ~touched[:, child]
        values = x[rows, child]
        believed = [int(i) for i in np.flatnonzero(p[:, child] > 0.5) if i != child]
        found = {scales: log_evidence(x[rows][:, believed], values, *scales) for scales in product(LENGTHS, OUTPUTS)}
        scales = max(found, key=lambda key: found[key])
        for parent in np.flatnonzero(unsure[:, child]):
            others = [i for i in believed if i != parent]
            if parent in believed:
                gain = found[scales] - log_evidence(x[rows][:, others], values, *scales)
            else:
                gain = log_evidence(x[rows][:, [*others, parent]], values, *scales) - found[scales]
            gains[parent, child] = gain
    return Judged(np.asarray(data.graph), logit(p), unsure, gains)


def fitted(judged: list[Judged]) -> LogisticRegression:
    """The truth about unsure pairs, from the model's logit and what the process says."""
    return LogisticRegression().fit(
        np.concatenate([one.features() for one in judged]),
        np.concatenate([one.graph[one.unsure] for one in judged]),
    )


def corrected(one: Judged, fit: LogisticRegression) -> np.ndarray:
    """Probabilities of a dataset once the process was heard."""
    logits = one.logits.copy()
    if one.unsure.any():
        logits[one.unsure] = fit.decision_function(one.features())
    return expit(logits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="rff")
    parser.add_argument("--datasets", type=int, default=30)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--observational", action="store_true")
    options = parser.parse_args()
    model = load_model(options.model)
    batch = get_domain("rff").sample(
        d=30,
        n=1000,
        n_interventional=0 if options.observational else 500,
        seed=options.seed,
        stream=Stream.VALIDATION,
        size=options.datasets,
    )
    judged = [judge(data, model.probabilities(data.x, data.interventions)) for data in batch]
    fits = fitted(judged[1::2]), fitted(judged[::2])  # each for the datasets it has not seen
    rows: dict[str, list[dict]] = {"the model": [], "with the process": []}
    for k, one in enumerate(judged):
        rows["the model"].append(evaluate(one.graph, expit(one.logits)))
        rows["with the process"].append(evaluate(one.graph, corrected(one, fits[k % 2])))
    unsure = sum(int(one.unsure.sum()) for one in judged)
    print(f"{len(judged)} datasets, {unsure} unsure pairs\n\n| | F1 | AUPRC |\n| --- | --- | --- |")
    for name, scores in rows.items():
        cells = [mean_and_error([float(score[metric]) for score in scores]) for metric in ("f1", "auprc")]
        print("|", name, "|", " | ".join(f"{cell.mean:.3f} ± {cell.error:.3f}" for cell in cells), "|")
    gain = mean_and_error(
        [float(b["f1"]) - float(a["f1"]) for a, b in zip(rows["the model"], rows["with the process"], strict=True)]
    )
    print(f"\nF1 gained on the same datasets: {gain.mean:.4f} ± {gain.error:.4f}")


if __name__ == "__main__":
    main()
