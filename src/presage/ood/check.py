"""Is this dataset like those the model was trained on? One score, and which properties lie outside and how far.

`fit_reference` draws datasets of many sizes from the training domain and describes the joint distribution of their
summaries: each one's location and scale given the size of the dataset, its distribution around that, and a Gaussian
mixture of all of them together. The result is plain JSON data that travels in the model file.

The score of a dataset is its surprise (minus log density) on a scale where 0 is the median of the training domain and
1 the level that 95 % of fresh datasets of the training domain stay below. Above 1 the check fires.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.domain.catalog import get_domain
from presage.domain.domain import Domain
from presage.errors import ModelFileError
from presage.ood.summaries import FLOORS, LABELS, summarize
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
    """One property outside the range of the training domain: value, range (0.5 % to 99.5 % at this size), distance."""

    name: str
    value: float
    low: float
    high: float
    distance: float
    """How far outside, in half-widths of the range; always above 0."""

    def __str__(self) -> str:
        side = "above" if self.value > self.high else "below"
        return (
            f"{LABELS.get(self.name, self.name)} {self.value:.2f}, {side} the usual {self.low:.2f} to {self.high:.2f}"
        )


@dataclass(frozen=True, kw_only=True)
class OODReport:
    """What the check found. `score` above 1 means that the data is foreign to the model."""

    score: float
    findings: tuple[Finding, ...]
    """Properties outside, the farthest first; a few may lie outside even when the whole is not foreign."""

    @property
    def is_ood(self) -> bool:
        """Whether the user should be warned."""
        return self.score > 1.0

    def sentence(self, model: str) -> str:
        """The warning."""
        text = f"the data is unlike what the model {model!r} was trained on (score {self.score:.1f}; usual is below 1)"
        if not self.findings:
            return f"{text}: each property on its own is usual, but not their combination"
        return f"{text}: " + "; ".join(str(finding) for finding in self.findings[:3])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        found = [{**vars(finding), "label": LABELS.get(finding.name, finding.name)} for finding in self.findings]
        return {"score": self.score, "is_ood": self.is_ood, "findings": found}


def fit_reference(
    domain: str | Domain,
    seed: int = 0,
    *,
    datasets: int = 2000,
    variables: tuple[int, int] = (2, 100),
    rows: tuple[int, int] = (30, 1000),
) -> dict[str, Any]:
    """The reference of a model trained on `domain`: JSON data for its file's metadata under "summaries".

    datasets: how many to draw (training stream). variables, rows: smallest and largest size, drawn log-uniformly;
    half of the datasets have interventions in up to half of their rows.
    """
    source = get_domain(domain)
    found: list[dict[str, float]] = []
    sizes = []
    for k in range(datasets):
        rng = generator(seed, Stream.TRAIN, 10_000_019, k)  # an address of its own, far from training's batches
        d, n = (int(np.exp(rng.uniform(np.log(low), np.log(high + 1)))) for low, high in (variables, rows))
        share = 0.0 if rng.random() < 0.5 else float(rng.uniform(0.05, 0.5))
        touched = int(share * n)
        raw = source.draw(rng, d=d, n=n, n_interventional=touched)
        dataset = Dataset(x=raw["x"], interventions=raw["interventions"], kind=source.kind)
        found.append(summarize(dataset))
        sizes.append((n, d, touched / n))
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
        a, b = _line(basis[ok], table[ok, f])
        residuals[ok, f] = (table[ok, f] - basis[ok] @ a) / _spread(basis[ok], b, names[f])
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
    # The mixture is fitted on two thirds and its level set on the rest, which it has not seen.
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
    surprise = _surprise(reference, scores[order[cut:]])
    reference["median"] = float(np.median(surprise))
    reference["level"] = float(np.quantile(surprise, _LEVEL))
    return reference


def compare(reference: Mapping[str, Any], dataset: Dataset) -> OODReport:
    """How a dataset compares with the training domain that `reference` (of `fit_reference`) describes."""
    try:
        if reference.get("version") != VERSION:
            raise ModelFileError(f"the model's summaries are of version {reference.get('version')}, not {VERSION}")
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
    spread = np.array([_spread(basis, np.array(b), name)[0] for b, name in zip(reference["scale"], names, strict=True)])
    residual = (values - location) / spread
    quantiles = np.array(reference["quantiles"])
    scores = _normal_scores(residual[None], quantiles)
    scores = np.where(np.isfinite(scores), scores, 0.0)
    surprise = float(_surprise(reference, scores)[0])
    score = (surprise - reference["median"]) / max(reference["level"] - reference["median"], 1e-9)
    findings = []
    low_at, high_at = _QUANTILES.index(0.005), _QUANTILES.index(0.995)
    for f, name in enumerate(names):
        if not np.isfinite(values[f]):
            continue
        low, high = (float(location[f] + spread[f] * quantiles[f, at]) for at in (low_at, high_at))
        low, high = low - FLOORS.get(name, 0.0), high + FLOORS.get(name, 0.0)
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


def _line(basis: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of location and of log spread given the size."""
    ridge = 1e-6 * len(values) * np.eye(basis.shape[1])

    def solve(target: np.ndarray) -> np.ndarray:
        return np.linalg.solve(basis.T @ basis + ridge, basis.T @ target)

    location = solve(values)
    away = np.abs(values - basis @ location)
    floor = 1e-3 + 0.05 * away.mean()
    return location, solve(np.log(away + floor))


def _spread(basis: np.ndarray, coefficients: np.ndarray, name: str) -> np.ndarray:
    return np.maximum(np.exp(np.clip(basis @ coefficients, -20, 20)), FLOORS.get(name, 1e-3))


def _normal_scores(residuals: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Residuals [M, F] to a normal scale through their quantiles [F, Q]; straight lines beyond the outermost ones."""
    from scipy.special import ndtri

    levels = ndtri(np.array(_QUANTILES))
    out = np.empty_like(residuals)
    for f in range(residuals.shape[1]):
        q = np.maximum.accumulate(quantiles[f] + 1e-9 * np.arange(len(levels)))
        r = residuals[:, f]
        inner = np.interp(r, q, levels)
        width = max(float(q[-1] - q[0]), 1e-2) / (levels[-1] - levels[0])
        outer = np.maximum(r - q[-1], 0.0) - np.maximum(q[0] - r, 0.0)
        out[:, f] = inner + np.clip(outer / width, -30, 30)
    return out


def _surprise(reference: Mapping[str, Any], scores: np.ndarray) -> np.ndarray:
    """Minus log density [M] of normal scores [M, F] under the mixture."""
    from scipy.special import logsumexp

    mixture = reference["mixture"]
    parts = []
    for weight, mean, precision in zip(mixture["weights"], mixture["means"], mixture["precisions"], strict=True):
        root = np.array(precision)
        white = (scores - np.array(mean)) @ root
        parts.append(np.log(weight + 1e-300) - 0.5 * (white**2).sum(axis=1) + np.log(np.abs(np.diag(root))).sum())
    return -logsumexp(np.array(parts), axis=0)


def _rounded(values: Any) -> list[Any]:
    """Six significant digits, as plain lists."""
    return np.vectorize(lambda v: float(f"{v:.6g}"))(np.array(values)).tolist()
