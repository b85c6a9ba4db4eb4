"""Edges, hidden causes, effects and calibration of a model on the strata of the general domain and on gold standards.

    python benchmarks/general.py [--model general] [--datasets 30] [-d 20] [--folder DIR] [--save DIR]

Strata: held-out datasets with n = 1000, with interventional rows in the strata "interventional" and "pooled". Hidden
causes: AUPRC over unordered pairs, and its ratio to the share of confounded pairs. Effects: share of true edges with
the right sign, of all edges and of those with an effect of at least 0.1 standard deviations, and the correlation with
the true effects.
--folder: ECE over the pairs of all datasets of a folder (see docs/gold-standards.md).
--save: write the datasets with hidden causes to a folder, for `presage bench folder DIR --methods presage:general,fci`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import presage
from presage.bench.gold_standards import find_gold_standards, load_gold_standard
from presage.domain.general import GeneralDomain
from presage.inference.model import Estimate, Model
from presage.metrics import calibration_curve
from presage.metrics.ranking import auprc
from presage.types import Dataset

STRATA = tuple(GeneralDomain().strata())
LARGE = 0.1


def predict(model: Model, dataset: Dataset) -> Estimate:
    """The estimate of a model for a dataset with its column kinds."""
    missing = dataset.missing if dataset.missing.any() else None
    return model.predict(model.prepare(dataset.x, dataset.interventions, missing, dataset.column_kinds))


def pooled_ece(truth: list[np.ndarray], probabilities: list[np.ndarray]) -> float:
    """ECE over all pairs of all datasets, given as flat arrays."""
    return calibration_curve(np.concatenate(truth)[None], np.concatenate(probabilities)[None]).ece


def stratum_scores(model: Model, name: str, d: int, datasets: int) -> dict[str, float]:
    """Means over the held-out datasets of a stratum."""
    domain = GeneralDomain.stratum(name)
    share = 300 if name in domain.interventional_strata else 0
    batch = domain.sample(d=d, n=1000, n_interventional=share, size=datasets, seed=0)
    off = ~np.eye(d, dtype=bool)
    edges, hidden, rates, pairs, truth, probabilities = [], [], [], [], [], []
    for k in range(datasets):
        data = batch[k]
        found = predict(model, data)
        graph = np.asarray(data.graph) != 0
        if graph.any():
            edges.append(auprc(graph, found.probabilities))
        truth.append(graph[off])
        probabilities.append(found.probabilities[off])
        if found.confounded is not None and data.confounded is not None and data.confounded.any():
            upper = np.triu(data.confounded != 0, 1)
            hidden.append(auprc(upper, np.triu(found.confounded, 1)))
            rates.append(upper.sum() / (d * (d - 1) / 2))
        if found.effect is not None and data.effects is not None:
            known = graph & np.isfinite(data.effects)
            pairs.append(np.stack([data.effects[known], found.effect[known]]))
    scores = {"auprc": float(np.mean(edges)), "ece": pooled_ece(truth, probabilities)}
    if hidden:
        scores |= {"hidden": float(np.mean(hidden)), "times base rate": float(np.mean(hidden) / np.mean(rates))}
    if pairs and (both := np.concatenate(pairs, axis=1)).shape[1] > 2:
        right, large = np.sign(both[0]) == np.sign(both[1]), np.abs(both[0]) >= LARGE
        scores |= {
            "sign": float(right.mean()),
            "sign of large": float(right[large].mean()),
            "correlation": float(np.corrcoef(np.clip(both[0], -3.0, 3.0), both[1])[0, 1]),
        }
    return scores


def save_confounded(folder: Path, d: int, datasets: int) -> None:
    """Write the held-out datasets of the stratum of hidden causes as gold standards; cells are complete."""
    folder.mkdir(parents=True, exist_ok=True)
    domain = GeneralDomain.stratum("confounded")
    domain = replace(domain, measurement=replace(domain.measurement, missing=0.0))
    batch = domain.sample(d=d, n=1000, size=datasets, seed=0)
    for k in range(datasets):
        data = batch[k]
        np.savez(folder / f"confounded_{k}.npz", x=data.x, graph=data.graph, confounded=data.confounded)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="general")
    parser.add_argument("--datasets", type=int, default=30)
    parser.add_argument("-d", type=int, default=20)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    if options.save is not None:
        save_confounded(options.save, options.d, options.datasets)
        return
    model = presage.load_model(options.model)
    columns = ("auprc", "ece", "hidden", "times base rate", "sign", "sign of large", "correlation")
    print("| stratum | " + " | ".join(columns) + " |\n" + "| --- " * (len(columns) + 1) + "|")
    for name in STRATA:
        scores = stratum_scores(model, name, options.d, options.datasets)
        print(
            f"| {name} | " + " | ".join(f"{scores[c]:.3f}" if c in scores else "" for c in columns) + " |", flush=True
        )
    if options.folder is not None:
        truth, probabilities = [], []
        for path in find_gold_standards(options.folder):
            gold = load_gold_standard(path)
            counted = gold.known & ~np.eye(len(gold.known), dtype=bool)
            truth.append(np.asarray(gold.data.graph)[counted] != 0)
            probabilities.append(predict(model, gold.data).probabilities[counted])
        print(
            f"\nECE over {sum(map(len, truth))} pairs of {len(truth)} datasets: {pooled_ece(truth, probabilities):.4f}"
        )


if __name__ == "__main__":
    main()
