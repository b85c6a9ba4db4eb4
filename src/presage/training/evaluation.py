"""Evaluation of a trained network for its release: scores on held-out datasets, calibration, temperature.

All datasets are of the validation stream. Temperature, scores and validation during training use different indices, so
no score is measured on data that was used to choose anything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from presage.domain.catalog import domain_name
from presage.domain.domain import Domain
from presage.metrics import calibration_curve, evaluate, mean_and_error
from presage.metrics.calibration import CalibrationCurve
from presage.networks.network import Network
from presage.training.config import ValidationConfig
from presage.training.validation import HeldOut, effect_scores, held_out_sets, predict_held_out

__all__ = [
    "Calibration",
    "Evaluation",
    "evaluate_network",
    "fit_temperature",
    "format_curve",
    "format_scores",
    "weak_spots",
]

CALIBRATION_START = 1_000_000
SCORES_START = 2_000_000
"""First index of the datasets of the temperature fit and of the scores; validation in training starts at 0."""

METRICS = ("f1", "auprc", "auroc", "ece", "shd", "acyclic")
WEAK_F1 = 0.5
_NAMES = {"obs": "observational", "int": "interventional"}
_TITLES = {
    "n_interventional": "interventional rows",
    "nll": "NLL",
    "confounded_auprc": "AUPRC of hidden causes",
    "effect_sign": "sign of effects",
    "effect_correlation": "correlation of effects",
}
"""Names of scores on a card, where they differ from the keys."""
_LOG_TEMPERATURES = (-1.5, 1.5)

Notify = Callable[[str], None]
"""Called with a line on what is being computed."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The fitted temperature, and the negative log-likelihood of other datasets without and with it."""

    temperature: float
    nll_before: float
    nll_after: float

    @property
    def improves(self) -> bool:
        """Whether the temperature lowers the negative log-likelihood of datasets it was not fitted on."""
        return self.nll_after < self.nll_before


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores of a network on held-out datasets, as JSON data.

    scores: one entry for each set, with the mean of each metric and its standard error (`f1`, `f1_error`, ...).
    calibration_curve: one entry for each bin of probabilities, over all ordered pairs of all sets.
    """

    scores: list[dict[str, Any]] = field(default_factory=list)
    calibration_curve: list[dict[str, Any]] = field(default_factory=list)


def fit_temperature(network: Network, domain: Domain, settings: ValidationConfig) -> Calibration:
    """Fit the temperature of the edge logits on half of the datasets, and measure it on the other half."""
    from scipy.optimize import minimize_scalar

    predicted = [
        one
        for _, batch in held_out_sets(domain, settings, start=CALIBRATION_START)
        for one in predict_held_out(network, batch)
    ]
    fitted, others = predicted[::2], predicted[1::2]
    best = minimize_scalar(
        lambda log: _mean_nll(fitted, float(np.exp(log))), bounds=_LOG_TEMPERATURES, method="bounded"
    )
    temperature = round(float(np.exp(best.x)), 4)
    return Calibration(
        temperature=temperature, nll_before=_mean_nll(others, 1.0), nll_after=_mean_nll(others, temperature)
    )


def evaluate_network(
    network: Network,
    domains: Sequence[Domain],
    settings: ValidationConfig,
    *,
    variables: Sequence[int] = (),
    temperature: float = 1.0,
    notify: Notify = lambda text: None,
) -> Evaluation:
    """Scores on held-out datasets of some domains, for each of their strata, and the calibration over all of them.

    variables: numbers of variables; those of the settings by default. F1 and SHD are those of the most probable acyclic
    graph if the domain is acyclic; `acyclic` is the share of datasets whose edges above 0.5 form an acyclic graph.
    """
    scores: list[dict[str, Any]] = []
    predicted: list[HeldOut] = []
    for domain in domains:
        for d in variables or (settings.d,):
            sized = dataclasses.replace(settings, d=d)
            for name, batch in held_out_sets(domain, sized, start=SCORES_START):
                found = predict_held_out(network, batch)
                size, n, width = batch.x.shape
                entry = {
                    "domain": domain_name(domain) or "custom",
                    "set": _NAMES.get(name, name),
                    "d": width,
                    "n": n,
                    "n_interventional": int(batch.u.any(axis=2).sum(axis=1).max()),
                    "datasets": size,
                    **_scores(found, temperature, domain.acyclic),
                }
                scores.append(entry)
                predicted += found
                notify(f"{entry['domain']}, {entry['set']}, d = {width}: F1 {entry['f1']:.3f}")
    return Evaluation(scores=scores, calibration_curve=_curve(predicted, temperature))


def format_scores(scores: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Scores as a card prints them: "mean ± standard error"."""
    errors = {name for entry in scores for name in entry if name.endswith("_error")}
    return [
        {
            _TITLES.get(name, name): _format(entry, name)
            for name in entry
            if name not in errors and entry[name] is not None
        }
        for entry in scores
    ]


def format_curve(curve: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A calibration curve as a card prints it."""
    return [
        {
            "probability": f"{entry['low']:.1f} to {entry['high']:.1f}",
            "mean prediction": f"{entry['predicted']:.3f}",
            "share of edges": f"{entry['empirical']:.3f}",
            "pairs": entry["pairs"],
        }
        for entry in curve
        if entry["pairs"]
    ]


def weak_spots(scores: Sequence[Mapping[str, Any]]) -> list[str]:
    """The sets on which F1 is below one half."""
    return [
        f"{entry['domain']}, {entry['set']}, d = {entry['d']}: F1 {entry['f1']:.3f}"
        for entry in scores
        if entry["f1"] < WEAK_F1
    ]


def _scores(predicted: Sequence[HeldOut], temperature: float, acyclic: bool) -> dict[str, float | None]:
    found: dict[str, list[float]] = {}
    for one in predicted:
        scores = evaluate(one.graph, one.probabilities(temperature), acyclic=acyclic)
        hidden = one.confounded_auprc()
        values = {**{name: float(scores[name]) for name in METRICS}, "nll": one.nll(temperature)}
        for name, value in (values if hidden is None else {**values, "confounded_auprc": hidden}).items():
            found.setdefault(name, []).append(value)
    entry: dict[str, float | None] = {}
    for name, items in found.items():
        summary = mean_and_error(items)
        entry[name] = summary.mean if summary.count else None  # AUROC is undefined for a graph without edges
        entry[f"{name}_error"] = summary.error if summary.count > 1 else None
    effects = effect_scores(list(predicted))
    names = {"sign": "effect_sign", "effect": "effect_correlation"}
    return {**entry, **{names[name]: value for name, value in effects.items()}}


def _curve(predicted: Sequence[HeldOut], temperature: float) -> list[dict[str, Any]]:
    return curve_entries(
        calibration_curve([one.graph for one in predicted], [one.probabilities(temperature) for one in predicted])
    )


def curve_entries(curve: CalibrationCurve) -> list[dict[str, Any]]:
    """A calibration curve as a record holds it: an entry for each bin."""
    edges = np.linspace(0.0, 1.0, len(curve.count) + 1)
    return [
        {
            "low": round(float(low), 6),
            "high": round(float(high), 6),
            "predicted": float(mean) if count else None,
            "empirical": float(share) if count else None,
            "pairs": int(count),
        }
        for low, high, mean, share, count in zip(
            edges[:-1], edges[1:], curve.predicted, curve.empirical, curve.count, strict=True
        )
    ]


def _mean_nll(predicted: Sequence[HeldOut], temperature: float) -> float:
    return float(np.mean([one.nll(temperature) for one in predicted]))


def _format(entry: Mapping[str, Any], name: str) -> Any:
    value, error = entry[name], entry.get(f"{name}_error")
    if not isinstance(value, float):
        return value
    return f"{value:.3f}" if error is None or name == "acyclic" else f"{value:.3f} ± {error:.3f}"
