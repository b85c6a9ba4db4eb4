"""What a card and a record say about a model: scores on held-out data, calibration, learning curve, weak spots.

Judged on datasets 0, 1, ... of the test stream (seed 0), which training never draws from.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from presage.data.examples import load_sachs
from presage.domain.catalog import get_domain
from presage.errors import PresageError
from presage.inference.model import Model
from presage.metrics import calibration_curve, evaluate, mean_and_error

METRICS = ("f1", "auprc", "auroc", "ece", "shd", "acyclic")
PLACES = {name: (name, f"{name}-ood") for name in ("linear", "rff", "grn")}
PLACES["scm"] = ("scm", "linear", "linear-ood", "rff", "rff-ood")
LARGE = {name: (f"{name}-ood",) for name in ("linear", "rff", "grn")} | {"scm": ("linear-ood", "rff-ood")}
CALIBRATED = {name: f"{name}-ood" for name in ("linear", "rff", "grn")} | {"scm": "scm"}
CURVES = {
    "auprc_obs": "AUPRC observational",
    "auprc_int": "AUPRC interventional",
    "f1_obs": "F1 observational",
    "f1_int": "F1 interventional",
}
"""What a validation logs, and how a card calls it."""
WEAK = 0.5
"""Below this F1 a card calls a place weak."""

Answers = list[tuple[np.ndarray, np.ndarray]]
"""Pairs of true graph and edge probabilities."""


def answers(model: Model, domain: str, *, interventional: bool, instances: int, d: int, n: int = 1000) -> Answers:
    batch = get_domain(domain).sample(
        d=d, n=n, n_interventional=n // 2 if interventional else 0, seed=0, size=instances
    )
    return [(np.asarray(one.graph), model.probabilities(one.x, one.interventions)) for one in batch]


def score(found: Answers) -> dict[str, str]:
    """Mean ± standard error of each metric."""
    table = [evaluate(graph, probabilities) for graph, probabilities in found]
    row = {}
    for name in METRICS:
        summary = mean_and_error([float(scores[name]) for scores in table])
        row[name] = f"{summary.mean:.2f}" if name == "acyclic" else f"{summary.mean:.3f} ± {summary.error:.3f}"
    return row


def calibration(found: Answers) -> list[dict[str, Any]]:
    """How often what was said came true, over all pairs of all datasets together."""
    curve = calibration_curve([graph for graph, _ in found], [probabilities for _, probabilities in found])
    edges = np.linspace(0.0, 1.0, len(curve.count) + 1)
    return [
        {
            "probability": f"{low:.1f} to {high:.1f}",
            "said on average": f"{said:.3f}" if count else "",
            "true": f"{true:.3f}" if count else "",
            "pairs": int(count),
        }
        for low, high, said, true, count in zip(
            edges, edges[1:], curve.predicted, curve.empirical, curve.count, strict=False
        )
    ]


def sachs(model: Model) -> list[dict[str, Any]]:
    """SHD and F1 on the measured proteins, without and with their targets; nothing if the data is not at hand."""
    try:
        data = load_sachs()
    except PresageError as error:
        print(f"Sachs et al. left out: {error}")
        return []
    rows = []
    for kind, targets in (("targets not told", None), ("targets told", data.interventions)):
        found = evaluate(data.graph, model.probabilities(data.x, targets))
        rows.append({"rows": kind, "f1": f"{found['f1']:.3f}", "shd": int(found["shd"]), "edges": int(found["edges"])})
    return rows


def measure(model: Model, name: str, *, instances: int, large: int) -> dict[str, list[dict[str, Any]]]:
    """Everything that is measured anew when a model is ema_network."""
    places = [(domain, kind, instances, 30) for domain in PLACES.get(name, (name,)) for kind in (False, True)]
    places += [(domain, True, large, 100) for domain in LARGE.get(name, ()) if large]
    measured: dict[str, list[dict[str, Any]]] = {"scores": [], "calibration": [], "sachs": []}
    for domain, interventional, count, d in places:
        found = answers(model, domain, interventional=interventional, instances=count, d=d)
        kind = "interventional" if interventional else "observational"
        measured["scores"].append({"domain": domain, "d": d, "rows": kind, "datasets": count, **score(found)})
        print(measured["scores"][-1], flush=True)
        if (domain, interventional, d) == (CALIBRATED.get(name, name), True, 30):
            measured["calibration"] = calibration(found)
    if name == "scm":
        measured["sachs"] = sachs(model)
        print(*measured["sachs"], sep="\n")
    return measured


def learning_curve(runs: Sequence[Path], stages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The validations of all stages, one after the other."""
    rows, before = [], 0.0
    for run, stage in zip(runs, stages, strict=True):
        events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        # The first logs counted one of two processes; what a stage cost says its record.
        share = stage["core_minutes"] / events[-1]["core_minutes"]
        for event in events:
            if event.get("event") == "validation":
                minutes = f"{before + share * event['core_minutes']:.0f}"
                rows.append({"core-minutes": minutes} | {title: f"{event[key]:.3f}" for key, title in CURVES.items()})
        before += stage["core_minutes"]
    return rows


def weak_spots(scores: Sequence[dict[str, Any]]) -> list[str]:
    """Where more than half of what one looks for is missed or wrong."""
    return [
        f"{row['domain']}, d = {row['d']}, {row['rows']}: F1 {row['f1']}"
        for row in scores
        if float(row["f1"].split(" ")[0]) < WEAK
    ]
