"""How much information about the graph the rff model leaves unused.

    python benchmarks/headroom.py [--model rff] [--datasets 30] [--seed 11] [--observational]

For every uncertain pair (probability 0.02 to 0.98), compute the log marginal likelihood of the child under a Gaussian
process with that parent and without it; the other parents are those that the model predicts. The Gaussian process is
given the true kernel and the values before standardization; its scales are the best of a grid over the domain's ranges.
A logistic regression of the truth on the model's logit and this difference, fitted on the other half of the datasets,
gives new probabilities. Their improvement is a lower bound on what a better network could gain. Datasets of the
validation stream, d = 30, n = 1000, half interventional.
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

UNCERTAIN = (0.02, 0.98)
LENGTHS, OUTPUTS, NOISES = (7.5, 9.5), (12.0, 18.0), (0.2, 0.5, 1.0, 1.8)
BIAS = 3.0


@dataclass
class Evidence:
    """One dataset: the true graph, the model's logits, and the gain in log evidence of the uncertain pairs."""

    graph: np.ndarray
    logits: np.ndarray
    uncertain: np.ndarray
    gains: np.ndarray

    def features(self) -> np.ndarray:
        """One row per uncertain pair."""
        return np.stack([self.logits[self.uncertain], np.arcsinh(self.gains[self.uncertain])], axis=-1)


def log_evidence(parents: np.ndarray, child: np.ndarray, length: float, output: float) -> float:
    """Log marginal likelihood (up to a constant) of child [n] given parents [n, p], at the best noise scale."""
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


def gather(data: Dataset, probabilities: np.ndarray) -> Evidence:
    """Gain in log evidence of every uncertain pair of a dataset."""
    p = np.clip(probabilities, 1e-6, 1.0 - 1e-6)
    uncertain = (p > UNCERTAIN[0]) & (p < UNCERTAIN[1]) & ~np.eye(len(p), dtype=bool)
    gains = np.zeros_like(p)
    x = np.asarray(data.x, dtype=np.float64)
    intervened = np.asarray(data.interventions, dtype=bool)
    for child in np.flatnonzero(uncertain.any(axis=0)):
        rows = ~intervened[:, child]
        values = x[rows, child]
        predicted = [int(i) for i in np.flatnonzero(p[:, child] > 0.5) if i != child]
        found = {scales: log_evidence(x[rows][:, predicted], values, *scales) for scales in product(LENGTHS, OUTPUTS)}
        scales = max(found, key=lambda key: found[key])
        for parent in np.flatnonzero(uncertain[:, child]):
            others = [i for i in predicted if i != parent]
            if parent in predicted:
                gain = found[scales] - log_evidence(x[rows][:, others], values, *scales)
            else:
                gain = log_evidence(x[rows][:, [*others, parent]], values, *scales) - found[scales]
            gains[parent, child] = gain
    return Evidence(np.asarray(data.graph), logit(p), uncertain, gains)


def fit_regression(evidence: list[Evidence]) -> LogisticRegression:
    """Predict the edges of uncertain pairs from the model's logit and the gain in log evidence."""
    return LogisticRegression().fit(
        np.concatenate([one.features() for one in evidence]),
        np.concatenate([one.graph[one.uncertain] for one in evidence]),
    )


def corrected(one: Evidence, fit: LogisticRegression) -> np.ndarray:
    """Probabilities with the regression applied to uncertain pairs."""
    logits = one.logits.copy()
    if one.uncertain.any():
        logits[one.uncertain] = fit.decision_function(one.features())
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
    evidence = [gather(data, model.probabilities(data.x, data.interventions)) for data in batch]
    fits = fit_regression(evidence[1::2]), fit_regression(evidence[::2])  # each applied to the other half
    rows: dict[str, list[dict]] = {"model": [], "with log evidence": []}
    for k, one in enumerate(evidence):
        rows["model"].append(evaluate(one.graph, expit(one.logits)))
        rows["with log evidence"].append(evaluate(one.graph, corrected(one, fits[k % 2])))
    uncertain = sum(int(one.uncertain.sum()) for one in evidence)
    print(f"{len(evidence)} datasets, {uncertain} uncertain pairs\n\n| | F1 | AUPRC |\n| --- | --- | --- |")
    for name, scores in rows.items():
        cells = [mean_and_error([float(score[metric]) for score in scores]) for metric in ("f1", "auprc")]
        print("|", name, "|", " | ".join(f"{cell.mean:.3f} ± {cell.error:.3f}" for cell in cells), "|")
    gain = mean_and_error(
        [float(b["f1"]) - float(a["f1"]) for a, b in zip(rows["model"], rows["with log evidence"], strict=True)]
    )
    print(f"\nF1 gain on the same datasets: {gain.mean:.4f} ± {gain.error:.4f}")


if __name__ == "__main__":
    main()
