"""All metrics of one prediction, and their averages and comparisons over instances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.errors import ConfigError
from presage.graphs.acyclic import best_acyclic, log_odds
from presage.graphs.ops import is_acyclic
from presage.metrics.calibration import ece
from presage.metrics.checks import as_graph, as_probabilities
from presage.metrics.ranking import auprc, auroc
from presage.metrics.structure import orient_favourably, precision_recall_f1, shd, sid

__all__ = ["Mean", "evaluate", "highlight", "mean_and_error", "welch_p_value"]


def evaluate(
    true_graph: Any,
    probabilities: Any,
    *,
    threshold: float = 0.5,
    equivalence_class: bool = False,
    acyclic: bool = False,
) -> dict[str, Any]:
    """Every metric of one prediction: shd, sid, f1, precision, recall, auroc, auprc, ece, acyclic, edges.

    true_graph: [d, d] of 0/1; probabilities: [d, d] between 0 and 1, row causes column; the diagonal is ignored. SHD,
    SID, precision, recall, F1, `acyclic` and `edges` use the edges above `threshold`. SID needs an acyclic graph: a
    cyclic prediction is first made acyclic by `presage.graphs.ops.project_to_dag`, and a cyclic true graph gives NaN.
    With acyclic=True they use the most probable acyclic graph, as `Result.graph` does; `acyclic` still says whether
    the edges above the threshold form an acyclic graph.
    With equivalence_class=True the prediction is 0/1 with both entries set where an edge is undirected, and it is
    oriented by `orient_favourably`: an undirected edge counts as correct if the true graph has it. Edge cases are
    documented in the single functions.

    >>> import numpy as np
    >>> found = evaluate(np.array([[0, 1], [0, 0]]), np.array([[0.0, 0.9], [0.2, 0.0]]))
    >>> found["shd"], found["sid"], found["f1"], found["auprc"], round(found["ece"], 3), found["acyclic"]
    (0, 0, 1.0, 1.0, 0.075, True)
    """
    if not 0.0 <= threshold < 1.0:
        raise ConfigError(f"the threshold must be at least 0 and below 1, not {threshold!r}")
    truth = as_graph(true_graph)
    prediction = as_probabilities(probabilities, len(truth))
    if equivalence_class:
        prediction = orient_favourably(truth, as_graph(prediction, "equivalence class")).astype(np.float64)
    above = (prediction > threshold).astype(np.int8)
    graph = best_acyclic(log_odds(prediction, threshold))[0] if acyclic else above
    precision, recall, harmonic = precision_recall_f1(truth, graph)
    return {
        "shd": shd(truth, graph),
        "sid": sid(truth, graph if acyclic else prediction, threshold) if is_acyclic(truth) else math.nan,
        "f1": harmonic,
        "precision": precision,
        "recall": recall,
        "auroc": auroc(truth, prediction),
        "auprc": auprc(truth, prediction),
        "ece": ece(truth, prediction),
        "acyclic": is_acyclic(above),
        "edges": int(graph.sum()),
    }


@dataclass(frozen=True, kw_only=True)
class Mean:
    """Mean over instances with its standard error; NaN values are ignored."""

    mean: float
    error: float
    count: int


def mean_and_error(values: Sequence[float] | np.ndarray) -> Mean:
    """Mean and standard error (sample standard deviation / sqrt(count); NaN for fewer than two values).

    >>> mean_and_error([1.0, 2.0, 3.0, float("nan")])
    Mean(mean=2.0, error=0.5773502691896258, count=3)
    """
    kept = np.asarray(values, dtype=np.float64)
    kept = kept[~np.isnan(kept)]
    count = len(kept)
    error = float(kept.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    return Mean(mean=float(kept.mean()) if count else math.nan, error=error, count=count)


def welch_p_value(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> float:
    """Two-sided p-value of the unequal variances t-test for equal means; NaN if either has fewer than two values.

    If both samples have zero variance, p is 1 for equal means and 0 otherwise.
    """
    first, second = (np.asarray(v, dtype=np.float64) for v in (a, b))
    first, second = first[~np.isnan(first)], second[~np.isnan(second)]
    if len(first) < 2 or len(second) < 2:
        return math.nan
    one, two = first.var(ddof=1) / len(first), second.var(ddof=1) / len(second)
    gap = float(first.mean() - second.mean())
    if one + two == 0.0:
        return float(gap == 0.0)
    dof = (one + two) ** 2 / (one**2 / (len(first) - 1) + two**2 / (len(second) - 1))
    from scipy import special

    # Student's t through the incomplete beta function: scipy.stats takes a second to import.
    t2 = gap * gap / (one + two)
    return float(special.betainc(dof / 2.0, 0.5, dof / (dof + t2)))


def highlight(
    samples: Mapping[str, Sequence[float] | np.ndarray], *, higher_is_better: bool, level: float = 0.95
) -> set[str]:
    """Names to print in bold: the best mean, and all that do not differ significantly from it (Welch t-test).

    >>> sorted(highlight({"a": [1.0, 2.0, 3.0], "b": [2.0, 2.5, 2.8], "c": [90.0, 91.0, 92.0]}, higher_is_better=False))
    ['a', 'b']
    """
    means = {name: mean_and_error(values).mean for name, values in samples.items()}
    means = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    if not means:
        return set()
    best = max(means, key=lambda name: means[name] if higher_is_better else -means[name])
    chosen = set()
    for name, mean in means.items():
        p = welch_p_value(samples[best], samples[name])
        if mean == means[best] or (not math.isnan(p) and p > 1.0 - level):
            chosen.add(name)
    return chosen
