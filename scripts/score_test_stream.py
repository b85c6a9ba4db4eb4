"""Score bundled models on the test stream and write the figures into their records: scores of records/NAME/record.json.

    nice python scripts/score_test_stream.py linear rff grn scm

F1 and SHD are those of the most probable acyclic graph; `acyclic` is the share of graphs above 0.5 without cycles. The
domains, sizes and numbers of datasets are those that the record already lists. Nothing may be chosen by these figures.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from presage.domain.catalog import get_domain
from presage.files import atomic_write
from presage.inference.hub import load_model
from presage.metrics import evaluate
from presage.metrics.summary import mean_and_error
from presage.rng import Stream

ROOT = Path(__file__).resolve().parents[1]
METRICS = ("f1", "auprc", "auroc", "ece", "shd", "acyclic")


def score(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """One entry of the scores of a record, computed anew."""
    model = load_model(name)
    found: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for number in range(entry["datasets"]):
        data = get_domain(entry["domain"]).sample(
            d=entry["d"], n=entry["n"], n_interventional=entry["n_interventional"], seed=0,
            stream=Stream.TEST, start=number,
        )[0]  # fmt: skip
        scores = evaluate(data.graph, model.probabilities(data.x, data.interventions), acyclic=True)
        for metric in METRICS:
            found[metric].append(float(scores[metric]))
    result = {key: entry[key] for key in ("domain", "set", "d", "n", "n_interventional", "datasets")}
    for metric, values in found.items():
        summary = mean_and_error(values)
        result |= {metric: round(summary.mean, 4), f"{metric}_error": round(summary.error, 4)}
    return result


def main() -> None:
    """Score the models named on the command line."""
    for name in sys.argv[1:]:
        path = ROOT / "records" / name / "record.json"
        record = json.loads(path.read_text())
        if record["stream"] != "test":
            raise SystemExit(f"the record of {name} has figures of the stream {record['stream']}")
        for number, entry in enumerate(record["scores"]):
            new = score(name, entry)
            print(name, *(entry[key] for key in ("domain", "set", "d")), end=" ")
            print(*(f"{metric} {entry[metric]} -> {new[metric]}" for metric in METRICS), flush=True)
            record["scores"][number] = new
        with atomic_write(path) as file:
            file.write((json.dumps(record, indent=2) + "\n").encode())


if __name__ == "__main__":
    main()
