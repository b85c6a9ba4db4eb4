"""The out-of-distribution check: how much accuracy a table may cost that differs from the training domain.

`fit_reference` samples datasets from the training domain and models each summary given the size of a dataset. It then
shifts further datasets in many ways (`presage.ood.shifts`) and regresses the loss of AUPRC on the summaries: on their
place within the usual range, and on how far they leave it. A shift that costs no accuracy (rounding, say) gets little
weight. The result is plain JSON data, stored in the model file.

The score of a dataset is its expected loss of AUPRC against a usual dataset of its size, from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from presage.domain.catalog import get_domain
from presage.domain.domain import Domain
from presage.errors import ModelFileError
from presage.metrics.ranking import auprc
from presage.ood.shifts import COUNT_SHIFTS, SHIFTS
from presage.ood.summaries import LABELS, Summary, summarize
from presage.rng import Stream, generator
from presage.types import Dataset

__all__ = ["Finding", "OODReport", "compare", "fit_reference", "measure_shifts", "shift_datasets"]

VERSION = 3
_TAG = 10_000_019
"""Address of the check's datasets in the training stream, unused by training."""
_START, _CAP = 1.0, 4.0
"""Deviations from the median, in quarters of the usual range, are an additional feature between these two limits."""
_INSIDE = 3.0
_RIDGE = 300.0
_USUAL = 3.0
"""Weight of a dataset of the training domain, whose loss is 0, relative to a shifted one."""
_ALARM = 0.1
"""Smallest expected loss of AUPRC that is worth a warning."""
_HARMLESS = 0.05
"""Largest loss of AUPRC of a dataset that should get no warning."""
_SPECIFICITY = 0.97
"""Share of harmless datasets of the training domain that get no warning."""

Predict = Callable[[Dataset], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A summary outside the usual range of the training domain (95 % of datasets of this size)."""

    name: str
    value: float
    low: float
    high: float
    loss: float
    """The part of the expected loss of AUPRC that is due to it."""

    def __str__(self) -> str:
        side = "above" if self.value > self.high else "below"
        return f"{LABELS[self.name]} is {self.value:.2f}, {side} the usual {self.low:.2f} to {self.high:.2f}"


@dataclass(frozen=True, kw_only=True)
class OODReport:
    """Result of the check. `score`: expected loss of AUPRC, from 0 to 1; `is_ood`: whether it is worth a warning."""

    score: float
    is_ood: bool
    findings: tuple[Finding, ...]
    """Summaries outside their usual range that cost accuracy, most costly first."""
    subsampled: bool = False
    """Whether the summaries were computed on some of the rows, because training had fewer."""

    def sentence(self, model: str) -> str:
        """The warning for out-of-distribution data: what is unusual, what it may cause, what to do."""
        listed = "; ".join(str(finding) for finding in self.findings[:2]) or "a combination of many small deviations"
        return (
            f"the table is unusual for the model {model!r}: {listed}. Tables this unusual lose about "
            f"{self.score:.1f} AUPRC: expect wrong and missing edges among the probable ones. Look for errors, "
            "outliers and mixed groups of rows, or compare with another model"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        found = [{**vars(finding), "label": LABELS[finding.name]} for finding in self.findings]
        return {"score": self.score, "is_ood": self.is_ood, "subsampled": self.subsampled, "findings": found}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> OODReport:
        """The report that `to_json` wrote."""
        names = [item.name for item in fields(Finding)]
        findings = tuple(Finding(**{name: item[name] for name in names}) for item in data["findings"])
        return OODReport(score=data["score"], is_ood=data["is_ood"], subsampled=data["subsampled"], findings=findings)


class Shifted(NamedTuple):
    """A shifted dataset: the name of the shift, the loss of AUPRC it causes, and its summary."""

    shift: str
    loss: float
    summary: Summary


def fit_reference(
    domain: str | Domain,
    predict: Predict,
    seed: int = 0,
    *,
    datasets: int = 400,
    variables: tuple[int, int] = (3, 30),
    rows: tuple[int, int] = (50, 1000),
) -> dict[str, Any]:
    """Fit the check of a model trained on `domain`: JSON data, stored as "summaries" in the model's metadata.

    predict: edge probabilities [d, d] of a dataset. datasets: how many to sample for the usual ranges; a sixteenth as
    many are shifted in every way. variables, rows: smallest and largest size, sampled log-uniformly; half of the
    datasets have interventions in up to half of their rows.
    """
    source = get_domain(domain)
    usual = [
        summarize(data, rows[1]).with_prediction(predict(data))
        for data in _sample(source, seed, 0, datasets, variables, rows)
    ]
    names = [name for name in LABELS if any(np.isfinite(item.values.get(name, np.nan)) for item in usual)]
    reference: dict[str, Any] = {
        "version": VERSION,
        "kind": source.kind,
        "names": names,
        "rows": [float(min(item.rows for item in usual)), float(max(item.rows for item in usual))],
        "variables": [float(min(item.variables for item in usual)), float(max(item.variables for item in usual))],
        "share": max(item.share for item in usual),
        "datasets": len(usual),
    }
    reference |= _ranges(_basis(usual, reference), _table(usual, names))
    shifted = measure_shifts(source, predict, seed, datasets=max(4, datasets // 16), variables=variables, rows=rows)
    inside = _features(reference, usual)
    outside = _features(reference, [item.summary for item in shifted])
    weights, offset = _regress(outside, np.array([item.loss for item in shifted]), inside)
    reference |= {"weights": _rounded(weights), "offset": offset}
    reference["alarm"] = _alarm(reference, source, predict, seed, datasets, variables, rows)
    return reference


def _alarm(
    reference: Mapping[str, Any],
    source: Domain,
    predict: Predict,
    seed: int,
    datasets: int,
    variables: tuple[int, int],
    rows: tuple[int, int],
) -> float:
    """The score from which on a table gets a warning: a quantile over new datasets, rounded as tables often are.

    Datasets that lose accuracy by rounding do not count, since a warning about them is right.
    """
    scores = []
    for k, data in enumerate(_sample(source, seed, 2, datasets, variables, rows)):
        if data.graph is None or not data.graph.any():
            continue
        before = auprc(data.graph, predict(data))
        if source.kind != "counts":
            data = SHIFTS[f"rounded to {1 + k % 4} digits"](data, generator(seed, Stream.TRAIN, _TAG, 2, k, 1))
        probabilities = predict(data)
        if before - auprc(np.asarray(data.graph), probabilities) < _HARMLESS:
            summary = summarize(data, rows[1]).with_prediction(probabilities)
            scores.append(_compare({**reference, "alarm": 1.0}, summary).score)
    return max(_ALARM, float(np.quantile(scores, _SPECIFICITY))) if scores else _ALARM


def measure_shifts(
    domain: str | Domain,
    predict: Predict,
    seed: int = 0,
    *,
    datasets: int = 24,
    variables: tuple[int, int] = (3, 30),
    rows: tuple[int, int] = (50, 1000),
    number: int = 1,
) -> list[Shifted]:
    """Shift datasets of a domain in every way and measure the loss of AUPRC; `number` selects other datasets."""
    source = get_domain(domain)
    sampled = _sample(source, seed, number, datasets, variables, rows)
    return shift_datasets(sampled, predict, seed, counts=source.kind == "counts", max_rows=rows[1], number=number)


def shift_datasets(
    datasets: Sequence[Dataset], predict: Predict, seed: int = 0, *, counts: bool, max_rows: int, number: int = 1
) -> list[Shifted]:
    """Shift the given datasets, which have graphs, in every way and measure the loss of AUPRC."""
    found = []
    for k, data in enumerate(datasets):
        if data.graph is None or not data.graph.any():
            continue
        before = auprc(data.graph, predict(data))
        for name, shift in (COUNT_SHIFTS if counts else SHIFTS).items():
            moved = shift(data, generator(seed, Stream.TRAIN, _TAG, number, k, 1))
            probabilities = predict(moved)
            summary = summarize(moved, max_rows).with_prediction(probabilities)
            found.append(Shifted(name, before - auprc(data.graph, probabilities), summary))
    return found


def _sample(
    source: Domain, seed: int, number: int, datasets: int, variables: tuple[int, int], rows: tuple[int, int]
) -> list[Dataset]:
    found = []
    for k in range(datasets):
        rng = generator(seed, Stream.TRAIN, _TAG, number, k)
        d, n = (int(np.exp(rng.uniform(np.log(low), np.log(high + 1)))) for low, high in (variables, rows))
        share = 0.0 if rng.random() < 0.5 else float(rng.uniform(0.05, 0.5))
        found.append(source.sample_one(rng, d=d, n=n, n_interventional=int(share * n)))
    return found


def compare(reference: Mapping[str, Any], summary: Summary) -> OODReport:
    """Compare the summary of a dataset with the training domain described by `reference` (see `fit_reference`)."""
    try:
        if reference.get("version") != VERSION:
            raise ModelFileError(f"the model's summaries have version {reference.get('version')}, not {VERSION}")
        return _compare(reference, summary)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ModelFileError(f"the model's summaries of its training domain are damaged ({error})") from error


def _compare(reference: Mapping[str, Any], summary: Summary) -> OODReport:
    names = list(reference["names"])
    losses = _features(reference, [summary])[0] * np.reshape(reference["weights"], 3 * len(names))
    score = float(np.clip(losses.sum() + float(reference["offset"]), 0.0, 1.0))
    by_name = losses.reshape(3, len(names)).sum(axis=0)
    centre = (_basis([summary], reference) @ np.array(reference["location"]).T)[0]
    findings = []
    for f in np.argsort(-by_name, kind="stable"):
        value, (low, _, high) = summary.values.get(names[f], np.nan), np.array(reference["quantiles"][f]) + centre[f]
        if by_name[f] > 0 and not low <= value <= high:
            findings.append(
                Finding(name=names[f], value=float(value), low=float(low), high=float(high), loss=float(by_name[f]))
            )
    return OODReport(
        score=score,
        is_ood=score > float(reference["alarm"]),
        findings=tuple(findings),
        subsampled=summary.subsampled,
    )


def _table(summaries: list[Summary], names: list[str]) -> np.ndarray:
    return np.array([[item.values.get(name, np.nan) for name in names] for item in summaries])


def _basis(summaries: list[Summary], reference: Mapping[str, Any]) -> np.ndarray:
    """Functions of the size of a dataset: [M, 8]; sizes beyond those of the reference count as its largest."""
    n = np.clip([item.rows for item in summaries], *reference["rows"])
    d = np.clip([item.variables for item in summaries], *reference["variables"])
    share = np.minimum([item.share for item in summaries], reference["share"])
    a, b = np.log(n / 200.0), np.log(d / 20.0)
    return np.stack([np.ones_like(a), a, b, a * a, b * b, a * b, share, 1.0 / d], axis=-1)


def _ranges(basis: np.ndarray, table: np.ndarray) -> dict[str, Any]:
    """Location of each summary given the size, and quantiles (2.5 %, 50 %, 97.5 %) of what is left."""
    location, quantiles = [], []
    for values in table.T:
        ok = np.isfinite(values)
        design = basis[ok]
        ridge = 1e-6 * len(design) * np.eye(basis.shape[1])
        found = np.linalg.solve(design.T @ design + ridge, design.T @ values[ok])
        location.append(found)
        quantiles.append(np.quantile(values[ok] - design @ found, (0.025, 0.5, 0.975)))
    return {"location": _rounded(location), "quantiles": _rounded(quantiles)}


def _features(reference: Mapping[str, Any], summaries: list[Summary]) -> np.ndarray:
    """Place of summaries in their range, and how far they leave its middle upwards and downwards: [M, 3 F]."""
    names = list(reference["names"])
    location, quantiles = np.array(reference["location"]), np.array(reference["quantiles"])  # [F, 8], [F, 3]
    residual = _table(summaries, names) - _basis(summaries, reference) @ location.T - quantiles[:, 1]
    up, down = (np.maximum(np.abs(quantiles[:, k] - quantiles[:, 1]), 1e-3) for k in (2, 0))
    place = np.nan_to_num(2.0 * residual / np.where(residual > 0, up, down))
    beyond = [np.clip(side - _START, 0.0, _CAP) for side in (place, -place)]
    return np.concatenate([np.clip(place, -_INSIDE, _INSIDE), *beyond], axis=1)


def _regress(outside: np.ndarray, losses: np.ndarray, inside: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights and offset of a ridge regression: shifted datasets lose `losses`, those of the domain nothing."""
    features = np.concatenate([outside, inside])
    target = np.concatenate([losses, np.zeros(len(inside))])
    share = np.concatenate([np.ones(len(outside)), np.full(len(inside), _USUAL)])
    scale = outside.std(axis=0) + 1e-6
    centre, mean = np.average(features, axis=0, weights=share), float(np.average(target, weights=share))
    design = (features - centre) / scale
    gram = design.T @ (share[:, None] * design) + _RIDGE * np.eye(design.shape[1])
    weights = np.linalg.solve(gram, design.T @ (share * (target - mean))) / scale
    return weights, mean - float(centre @ weights)


def _rounded(values: Any) -> list[Any]:
    """Plain lists of numbers with six significant digits."""
    return list(np.vectorize(lambda v: float(f"{v:.6g}"))(np.array(values)).tolist())
