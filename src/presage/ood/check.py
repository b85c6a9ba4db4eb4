"""The out-of-distribution check: one score for a dataset, and the summaries that lie outside their usual range.

`fit_reference` samples datasets of many sizes from the training domain and models the joint distribution of their
summaries: location and scale of each summary given the size of the dataset, quantiles of the residuals, and a Gaussian
mixture of all summaries together. The result is plain JSON data, stored in the model file.

The score of a dataset is its negative log density, scaled so that 0 is the median of the training domain and 1 its
95 % quantile on held-out datasets. A dataset with a score above 1 is out of distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any

import numpy as np

from presage.domain.catalog import get_domain
from presage.domain.domain import Domain
from presage.errors import ModelFileError
from presage.ood.summaries import LABELS, MIN_SCALES, summarize
from presage.rng import Stream, generator
from presage.types import Dataset

__all__ = ["Finding", "OODReport", "compare", "fit_reference"]

VERSION = 1
_LEVEL = 0.95
_QUANTILES = (
    0.002,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.2,
    0.3,
    0.4,
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
    0.95,
    0.975,
    0.99,
    0.995,
    0.998,
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A summary outside the range of the training domain (0.5 % to 99.5 % quantile at this size)."""

    name: str
    value: float
    low: float
    high: float
    distance: float
    """Distance from the range in half-widths of the range; always above 0."""

    def __str__(self) -> str:
        side = "above" if self.value > self.high else "below"
        return (
            f"{LABELS.get(self.name, self.name)} {self.value:.2f}, {side} the usual {self.low:.2f} to {self.high:.2f}"
        )


@dataclass(frozen=True, kw_only=True)
class OODReport:
    """Result of the check. A `score` above 1 means that the data is out of distribution."""

    score: float
    findings: tuple[Finding, ...]
    """Summaries outside their range, farthest first; in-distribution data may have a few, too."""

    @property
    def is_ood(self) -> bool:
        """Whether the data is out of distribution."""
        return self.score > 1.0

    def sentence(self, model: str) -> str:
        """The warning for out-of-distribution data."""
        text = (
            f"the data is out of distribution for the model {model!r} (score {self.score:.1f}; 95 % of datasets from "
            "its training domain score below 1)"
        )
        if not self.findings:
            return f"{text}: every summary is in its usual range, but their combination is unusual"
        return f"{text}: " + "; ".join(str(finding) for finding in self.findings[:3])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        found = [{**vars(finding), "label": LABELS.get(finding.name, finding.name)} for finding in self.findings]
        return {"score": self.score, "is_ood": self.is_ood, "findings": found}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> OODReport:
        """The report that `to_json` wrote."""
        names = [item.name for item in fields(Finding)]
        findings = tuple(Finding(**{name: item[name] for name in names}) for item in data["findings"])
        return OODReport(score=data["score"], findings=findings)


def fit_reference(
    domain: str | Domain,
    seed: int = 0,
    *,
    datasets: int = 2000,
    variables: tuple[int, int] = (2, 100),
    rows: tuple[int, int] = (30, 1000),
) -> dict[str, Any]:
    """Fit the reference of a model trained on `domain`: JSON data, stored as "summaries" in the model's metadata.

    datasets: how many to sample (training stream). variables, rows: smallest and largest size, sampled log-uniformly;
    half of the datasets have interventions in up to half of their rows.
    """
    source = get_domain(domain)
    found: list[dict[str, float]] = []
    sizes = []
    for k in range(datasets):
        rng = generator(seed, Stream.TRAIN, 10_000_019, k)  # a key of its own, unused by training
        d, n = (int(np.exp(rng.uniform(np.log(low), np.log(high + 1)))) for low, high in (variables, rows))
        share = 0.0 if rng.random() < 0.5 else float(rng.uniform(0.05, 0.5))
        n_interventional = int(share * n)
        raw = source.draw(rng, d=d, n=n, n_interventional=n_interventional)
        dataset = Dataset(x=raw["x"], interventions=raw["interventions"], kind=source.kind)
        found.append(summarize(dataset))
        sizes.append((n, d, n_interventional / n))
    names = [name for name in LABELS if any(name in item for item in found)]
    table = np.array([[item.get(name, np.nan) for name in names] for item in found])  # [M, F]
    return _fit(names, table, np.array(sizes, dtype=np.float64), source.kind, seed)


def _fit(names: list[str], table: np.ndarray, sizes: np.ndarray, kind: str, seed: int) -> dict[str, Any]:
    from sklearn.mixture import GaussianMixture

    basis = _basis(sizes[:, 0], sizes[:, 1], sizes[:, 2])  # [M, K]
    location, scale, quantiles = [], [], []
    residuals = np.full_like(table, np.nan)
    for f in range(len(names)):
        ok = np.isfinite(table[:, f])
        a, b = _fit_size_dependence(basis[ok], table[ok, f])
        residuals[ok, f] = (table[ok, f] - basis[ok] @ a) / _scale(basis[ok], b, names[f])
        location.append(a)
        scale.append(b)
        quantiles.append(np.quantile(residuals[ok, f], _QUANTILES))
    reference: dict[str, Any] = {
        "version": VERSION,
        "kind": kind,
        "names": names,
        "location": _rounded(location),
        "scale": _rounded(scale),
        "quantiles": _rounded(quantiles),
        "rows": [float(sizes[:, 0].min()), float(sizes[:, 0].max())],
        "variables": [float(sizes[:, 1].min()), float(sizes[:, 1].max())],
        "share": float(sizes[:, 2].max()),
        "datasets": len(table),
    }
    scores = _normal_scores(residuals, np.array(quantiles))  # [M, F]
    scores = np.where(np.isfinite(scores), scores, 0.0)
    # The mixture is fitted on two thirds of the datasets; its level is set on the held-out rest.
    order = generator(seed, Stream.TRAIN, 10_000_019).permutation(len(scores))
    cut = 2 * len(scores) // 3
    mixture = GaussianMixture(
        n_components=max(1, min(6, cut // 150)),
        covariance_type="full",
        reg_covar=0.05,
        random_state=seed % 2**32,
        n_init=2,
    ).fit(scores[order[:cut]])
    reference["mixture"] = {
        "weights": _rounded(mixture.weights_),
        "means": _rounded(mixture.means_),
        "precisions": _rounded(mixture.precisions_cholesky_),
    }
    energy = _negative_log_density(reference, scores[order[cut:]])
    reference["median"] = float(np.median(energy))
    reference["level"] = float(np.quantile(energy, _LEVEL))
    return reference


def compare(reference: Mapping[str, Any], dataset: Dataset) -> OODReport:
    """Compare a dataset with the training domain described by `reference` (see `fit_reference`)."""
    try:
        if reference.get("version") != VERSION:
            raise ModelFileError(f"the model's summaries have version {reference.get('version')}, not {VERSION}")
        return _compare(reference, dataset)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ModelFileError(f"the model's summaries of its training domain are damaged ({error})") from error


def _compare(reference: Mapping[str, Any], dataset: Dataset) -> OODReport:
    names = list(reference["names"])
    found = summarize(dataset)
    values = np.array([found.get(name, np.nan) for name in names])
    n = np.clip(dataset.n, *reference["rows"])
    d = np.clip(dataset.d, *reference["variables"])
    share = min(float(dataset.interventions.any(axis=1).mean()), reference["share"])
    basis = _basis(np.array([n]), np.array([d]), np.array([share]))
    location = (basis @ np.array(reference["location"]).T)[0]
    scales = np.array([_scale(basis, np.array(b), name)[0] for b, name in zip(reference["scale"], names, strict=True)])
    residual = (values - location) / scales
    quantiles = np.array(reference["quantiles"])
    scores = _normal_scores(residual[None], quantiles)
    scores = np.where(np.isfinite(scores), scores, 0.0)
    energy = float(_negative_log_density(reference, scores)[0])
    score = (energy - reference["median"]) / max(reference["level"] - reference["median"], 1e-9)
    findings = []
    low_at, high_at = _QUANTILES.index(0.005), _QUANTILES.index(0.995)
    for f, name in enumerate(names):
        if not np.isfinite(values[f]):
            continue
        low, high = (float(location[f] + scales[f] * quantiles[f, at]) for at in (low_at, high_at))
        low, high = low - MIN_SCALES.get(name, 0.0), high + MIN_SCALES.get(name, 0.0)
        outside = max(values[f] - high, low - values[f])
        if outside > 0:
            distance = float(outside / max((high - low) / 2, 1e-3))
            findings.append(Finding(name=name, value=float(values[f]), low=low, high=high, distance=distance))
    findings.sort(key=lambda finding: -finding.distance)
    return OODReport(score=float(score), findings=tuple(findings))


def _basis(n: np.ndarray, d: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Functions of the size of a dataset: [M, 8]."""
    a, b = np.log(n / 200.0), np.log(d / 20.0)
    return np.stack([np.ones_like(a), a, b, a * a, b * b, a * b, share, 1.0 / d], axis=-1)


def _fit_size_dependence(basis: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of location and log scale given the size of a dataset."""
    ridge = 1e-6 * len(values) * np.eye(basis.shape[1])

    def solve(target: np.ndarray) -> np.ndarray:
        return np.linalg.solve(basis.T @ basis + ridge, basis.T @ target)

    location = solve(values)
    away = np.abs(values - basis @ location)
    floor = 1e-3 + 0.05 * away.mean()
    return location, solve(np.log(away + floor))


def _scale(basis: np.ndarray, coefficients: np.ndarray, name: str) -> np.ndarray:
    scale: np.ndarray = np.maximum(np.exp(np.clip(basis @ coefficients, -20, 20)), MIN_SCALES.get(name, 1e-3))
    return scale


def _normal_scores(residuals: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Normal scores of residuals [M, F], interpolated between quantiles [F, Q] and linear beyond the outermost ones."""
    levels = np.array([NormalDist().inv_cdf(level) for level in _QUANTILES])
    out = np.empty_like(residuals)
    for f in range(residuals.shape[1]):
        q = np.maximum.accumulate(quantiles[f] + 1e-9 * np.arange(len(levels)))
        r = residuals[:, f]
        inner = np.interp(r, q, levels)
        width = max(float(q[-1] - q[0]), 1e-2) / (levels[-1] - levels[0])
        outer = np.maximum(r - q[-1], 0.0) - np.maximum(q[0] - r, 0.0)
        out[:, f] = inner + np.clip(outer / width, -30, 30)
    return out


def _negative_log_density(reference: Mapping[str, Any], scores: np.ndarray) -> np.ndarray:
    """Negative log density [M] of normal scores [M, F] under the mixture."""
    mixture = reference["mixture"]
    parts = []
    for weight, mean, precision in zip(mixture["weights"], mixture["means"], mixture["precisions"], strict=True):
        root = np.array(precision)
        white = (scores - np.array(mean)) @ root
        parts.append(np.log(weight + 1e-300) - 0.5 * (white**2).sum(axis=1) + np.log(np.abs(np.diag(root))).sum())
    density: np.ndarray = np.logaddexp.reduce(np.array(parts), axis=0)
    return -density


def _rounded(values: Any) -> list[Any]:
    """Plain lists of numbers with six significant digits."""
    return list(np.vectorize(lambda v: float(f"{v:.6g}"))(np.array(values)).tolist())
