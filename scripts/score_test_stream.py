"""Score bundled models on the test stream and write the figures into their records and cards; weights are untouched.

    nice python scripts/score_test_stream.py linear rff grn scm

F1 and SHD are those of the most probable acyclic graph; `acyclic` is the share of graphs above 0.5 without cycles. The
domains, sizes and numbers of datasets are those that the record already lists. Nothing may be chosen by these figures.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from presage.domain.catalog import get_domain
from presage.files import atomic_write
from presage.inference.hub import load_model
from presage.inference.model import Model
from presage.metrics import calibration_curve, evaluate
from presage.metrics.summary import mean_and_error
from presage.networks.weights import load_model_file, save_model
from presage.rng import Stream
from presage.training.evaluation import curve_entries, format_curve, format_scores, weak_spots

ROOT = Path(__file__).resolve().parents[1]
METRICS = ("f1", "auprc", "auroc", "ece", "shd", "acyclic")


def score(model: Model, entry: dict[str, Any]) -> tuple[dict[str, Any], list[np.ndarray], list[np.ndarray]]:
    """One entry of the scores of a record, computed anew, and the graphs and probabilities behind it."""
    graphs, probabilities = [], []
    found: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for number in range(entry["datasets"]):
        data = get_domain(entry["domain"]).sample(
            d=entry["d"], n=entry["n"], n_interventional=entry["n_interventional"], seed=0,
            stream=Stream.TEST, start=number,
        )[0]  # fmt: skip
        graphs.append(np.asarray(data.graph))
        probabilities.append(model.probabilities(data.x, data.interventions))
        scores = evaluate(graphs[-1], probabilities[-1], acyclic=True)
        for metric in METRICS:
            found[metric].append(float(scores[metric]))
    result = {key: entry[key] for key in ("domain", "set", "d", "n", "n_interventional", "datasets")}
    for metric, values in found.items():
        summary = mean_and_error(values)
        result |= {metric: round(summary.mean, 4), f"{metric}_error": round(summary.error, 4)}
    return result, graphs, probabilities


def update_card(name: str, record: dict[str, Any]) -> str:
    """Write scores, weak spots and calibration into the card of a bundled model; returns the checksum of the file."""
    path = ROOT / "src" / "presage" / "assets" / "models" / f"{name}.safetensors"
    network, metadata = load_model_file(path)
    card = metadata["card"]
    card["held-out scores (mean ± standard error)"] = format_scores(record["scores"])
    weak = weak_spots(record["scores"])
    if weak or "weak spots" in card:
        card["weak spots"] = weak
    curve = {"calibration (all pairs of all sets above)": format_curve(record["calibration_curve"])}
    metadata["card"] = {title: part for title, part in card.items() if not title.startswith("calibration")} | curve
    save_model(path, network, metadata)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    """Score the models named on the command line."""
    for name in sys.argv[1:]:
        path = ROOT / "records" / name / "record.json"
        record = json.loads(path.read_text())
        record["stream"] = "test"
        graphs, probabilities = [], []
        for number, entry in enumerate(record["scores"]):
            new, true, predicted = score(load_model(name), entry)
            graphs += true
            probabilities += predicted
            print(name, *(entry[key] for key in ("domain", "set", "d")), end=" ")
            print(*(f"{metric} {entry[metric]} -> {new[metric]}" for metric in METRICS), flush=True)
            record["scores"][number] = new
        record["calibration_curve"] = curve_entries(calibration_curve(graphs, probabilities))
        record["model_sha256"] = update_card(name, record)
        with atomic_write(path) as file:
            file.write((json.dumps(record, indent=2) + "\n").encode())


if __name__ == "__main__":
    main()
