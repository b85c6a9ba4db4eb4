"""From records to a tidy table: one row per method and instance, with every metric."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from presage.baselines.bootstrap import edge_probabilities
from presage.bench.engine import Record
from presage.bench.gold_standards import base_rate, evaluate_known
from presage.bench.instances import instance, known_pairs
from presage.inference.hub import load_model
from presage.metrics import auprc, auprc_trapezoid, evaluate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["METRICS", "PROVENANCE", "prediction", "tidy"]

PROVENANCE = ("key", "finished", "machine", "engine", "time_limit", "clock", "memory_limit")
"""What the store knows about a run: the name of its result, when and where it ran, and its limits."""
METRICS = ("shd", "sid", "f1", "precision", "recall", "auroc", "auprc", "auprc_trapezoid", "ece", "acyclic", "edges")


def prediction(record: Record, true_graph: np.ndarray) -> np.ndarray | None:
    """Edge probabilities [d, d], with equivalence classes oriented in favour of the truth; None without a result."""
    outcome = record.outcome
    if outcome.status != "ok" or outcome.matrices is None:
        return None
    return edge_probabilities(outcome.matrices, outcome.kind, true_graph)


def _confounded_auprc(record: Record) -> float:
    """AUPRC of hidden common causes over unordered pairs; NaN where the method or the reference does not give them."""
    truth, found = instance(record.task).confounded, record.outcome.confounded
    if truth is None or found is None:
        return math.nan
    pairs = np.triu_indices(len(truth), k=1)
    return auprc(truth[pairs], found.mean(axis=0)[pairs])


def _answers_acyclic(record: Record) -> bool:
    """Whether a method is one of our models of an acyclic domain, which answer with the most probable acyclic graph."""
    name = dict(record.task.settings).get("model")
    return name is not None and _is_acyclic_model(str(name))


@cache
def _is_acyclic_model(name: str) -> bool:
    return load_model(name).acyclic


def tidy(records: Iterable[Record]) -> pd.DataFrame:
    """One row per record. Metrics of runs without a result are NaN; `status` and `message` say why."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for record in records:
        task, outcome, setting = record.task, record.outcome, record.task.setting
        row: dict[str, Any] = {
            "column": setting.column,
            "domain": setting.domain,
            "section": setting.section,
            "d": setting.d,
            "n": setting.n,
            "n_interventional": setting.n_interventional,
            "instance": task.instance,
            "method": task.label,
            "settings": " ".join(f"{name}={value}" for name, value in task.settings),
            "bootstrap": task.bootstrap,
            "status": outcome.status,
            "seconds": outcome.seconds,
            "cpu_seconds": outcome.cpu_seconds,
            "peak_memory": outcome.peak_memory,
            "message": outcome.message,
            **{name: record.provenance.get(name) for name in PROVENANCE},
            "score": np.nanmean([math.nan if s is None else s for s in outcome.scores])
            if any(s is not None for s in outcome.scores)
            else math.nan,
            "base_rate": math.nan,
            "confounded_auprc": math.nan,
        }
        found: dict[str, Any] = dict.fromkeys(METRICS, math.nan)
        if outcome.status == "ok":
            truth, known = np.asarray(instance(task).graph), known_pairs(task)
            row["base_rate"] = base_rate(truth, ~np.eye(len(truth), dtype=bool) if known is None else known)
            row["confounded_auprc"] = _confounded_auprc(record)
            guess = prediction(record, truth)
            if guess is not None and known is not None:
                found = evaluate_known(truth, guess, known, acyclic=_answers_acyclic(record))
            elif guess is not None:
                scores = evaluate(truth, guess, acyclic=_answers_acyclic(record))
                found = {**scores, "auprc_trapezoid": auprc_trapezoid(truth, guess)}
        rows.append({**row, **{name: float(found[name]) for name in METRICS}})
    frame = pd.DataFrame(rows)
    order = ["section", "column", "domain", "d", "n", "method", "instance"]
    return frame.sort_values(order, kind="stable", ignore_index=True) if len(frame) else frame
