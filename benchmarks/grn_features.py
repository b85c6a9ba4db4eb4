"""Do cell types, or the noise of the platform, help to find regulators in observational expression data?

    python benchmarks/grn_features.py [--datasets 40]

Validation datasets of the domain grn (d = 30, n = 1000). Average precision of adjacent pairs, for absolute correlations
and partial correlations over all cells, within cell types (true ones, and clusters by k-means) and between the means of
cell types; for correlations corrected for the platform's noise (counts divided by library size, variances less those of
Poisson noise), correlations of dropout (zeros beyond those of Poisson noise) and each gene's share of zeros; then for
boosted trees on several of these, fitted on one half of the datasets and evaluated on the other, with and without the
prediction of the model `grn`.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import adjusted_rand_score, average_precision_score

import presage
from presage.data.standardize import standardize
from presage.domain.catalog import get_domain
from presage.inference.model import Model
from presage.rng import Stream, generator

CELL_TYPES, D, N = 5, 30, 1000
PAIRS = np.triu_indices(D, 1)
WHOLE, TRUE = ("correlation", "partial"), ("within types", "partial within types", "between types")
KMEANS = ("within clusters", "partial within clusters", "between clusters")
NOISE = ("corrected", "dropout", "fewer zeros", "more zeros", "lower excess of zeros", "higher excess of zeros")
SETS = (
    *(WHOLE, WHOLE + TRUE, WHOLE + KMEANS, WHOLE + NOISE),
    *(("model",), ("model", *WHOLE), ("model", *WHOLE, *TRUE), ("model", *WHOLE, *NOISE)),
)


def correlation(x: np.ndarray) -> np.ndarray:
    """Correlations of columns, 0 for constant ones."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.corrcoef(x.T))


def partial_correlation(x: np.ndarray, ridge: float = 0.05) -> np.ndarray:
    """Partial correlations given all other columns (with reversed sign), from a ridge-regularised precision matrix."""
    precision = np.linalg.inv(correlation(x) + ridge * np.eye(x.shape[1]))
    own = np.sqrt(np.diag(precision))
    return precision / np.outer(own, own)


def moments(x: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlations and partial correlations within groups of rows, and correlations between their means."""
    centred, means = x.copy(), []
    for group in np.unique(groups):
        means.append(x[groups == group].mean(axis=0))
        centred[groups == group] -= means[-1]
    return correlation(centred), partial_correlation(centred), correlation(np.array(means))


def noise_features(counts: np.ndarray) -> dict[str, np.ndarray]:
    """What the platform's noise says about every pair: corrected correlations, common dropout, shares of zeros."""
    library = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    scale = np.median(library) / library
    normalised = counts * scale
    mean = normalised.mean(axis=0)
    poisson_variance = mean * scale.mean()
    excess_variance = np.maximum(normalised.var(axis=0) - poisson_variance, 0.05 * normalised.var(axis=0) + 1e-9)
    corrected = np.cov(normalised.T) / np.sqrt(np.outer(excess_variance, excess_variance))
    expected_zeros = np.exp(-mean / scale)
    zeros = counts == 0
    excess = zeros - expected_zeros
    share, excess_share = zeros.mean(axis=0), excess.mean(axis=0)
    return dict(
        zip(
            NOISE,
            (
                np.clip(corrected, -1.0, 1.0),
                correlation(excess),
                *(np.minimum.outer(share, share), np.maximum.outer(share, share)),
                *(np.minimum.outer(excess_share, excess_share), np.maximum.outer(excess_share, excess_share)),
            ),
            strict=True,
        )
    )


def features(number: int, model: Model) -> tuple[dict[str, np.ndarray], np.ndarray, float]:
    """Features of every pair of a dataset, whether the pair is adjacent, and how well k-means finds the cell types."""
    rng = generator(77, Stream.VALIDATION, number)
    data = get_domain("grn").draw(rng, d=D, n=N, n_interventional=0)
    x = standardize(data["x"], "counts", None).astype(np.float64)
    types = data["annotations"]["cell_type"]
    clusters = KMeans(CELL_TYPES, n_init=3, random_state=0).fit_predict(x)
    predicted = model.probabilities(data["x"])
    matrices = dict(zip(WHOLE, (correlation(x), partial_correlation(x)), strict=True))
    matrices |= dict(zip(TRUE, moments(x, types), strict=True))
    matrices |= dict(zip(KMEANS, moments(x, clusters), strict=True))
    matrices |= noise_features(data["x"].astype(np.float64))
    matrices["model"] = np.maximum(predicted, predicted.T)
    adjacent = (data["graph"] | data["graph"].T)[PAIRS].astype(bool)
    return (
        {name: np.abs(matrix[PAIRS]) for name, matrix in matrices.items()},
        adjacent,
        adjusted_rand_score(types, clusters),
    )


def boosted(parts: list[tuple[dict[str, np.ndarray], np.ndarray, float]], names: tuple[str, ...]) -> float:
    """Mean average precision of boosted trees on some features, over two halves."""
    found = []
    for half in (0, 1):
        fitted = [part for number, part in enumerate(parts) if number % 2 != half]
        x = np.concatenate([np.stack([part[0][name] for name in names], axis=1) for part in fitted])
        trees = HistGradientBoostingClassifier(max_iter=80, learning_rate=0.06, random_state=0)
        trees.fit(x, np.concatenate([part[1] for part in fitted]))
        for values, adjacent, _ in parts[half::2]:
            score = trees.predict_proba(np.stack([values[name] for name in names], axis=1))[:, 1]
            found.append(average_precision_score(adjacent, score))
    return float(np.mean(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=40)
    options = parser.parse_args()
    model = presage.load_model("grn")
    parts = [part for part in (features(k, model) for k in range(options.datasets)) if part[1].any()]
    print(f"adjusted Rand index of k-means and cell types: {np.mean([part[2] for part in parts]):.3f}")
    print(f"base rate: {np.mean(np.concatenate([part[1] for part in parts])):.3f}")
    print("| features | average precision |\n| --- | --- |")
    for name in parts[0][0]:
        score = np.mean([average_precision_score(adjacent, values[name]) for values, adjacent, _ in parts])
        print(f"| {name} | {score:.3f} |")
    for names in SETS:
        print(f"| trees: {', '.join(names)} | {boosted(parts, names):.3f} |")


if __name__ == "__main__":
    main()
