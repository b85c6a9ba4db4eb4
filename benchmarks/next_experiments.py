"""Choosing intervention targets by `next_experiments` against choosing them at random, on simulated systems.

    python benchmarks/next_experiments.py
    python benchmarks/next_experiments.py --domains rff --systems 10 --json next.json

Each system is a structural causal model with observational rows. An experiment adds rows in which one further variable
is set from outside; then the model predicts again. Both strategies see the same systems, the same rows for each target
and never choose a target twice. Random choice is averaged over `--repeats` orders. The structural Hamming distance
(SHD) is that of the edges above 0.5. The goal of a system is halfway between its SHD without experiments and its SHD
with all variables intervened on; the script prints how many experiments each strategy needs to reach it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

import presage
from presage.domain.catalog import get_domain
from presage.domain.domain import ScmDomain
from presage.inference.model import Model
from presage.metrics.structure import shd
from presage.metrics.summary import mean_and_error
from presage.simulators.interventions import Interventions

LABELS = {"information": "targets by information", "random": "targets at random"}

Choice = Callable[[np.ndarray, Sequence[int]], int]
"""From edge probabilities [d, d] and the variables still available to the next target."""


class System:
    """A simulated system: observational rows and, for every variable, rows in which it is set from outside."""

    def __init__(self, model: Model, dataset: presage.Dataset) -> None:
        self.model = model
        self.dataset = dataset
        self.answers: dict[frozenset[int], np.ndarray] = {}

    def probabilities(self, targets: Sequence[int]) -> np.ndarray:
        """Edge probabilities given the observational rows and the experiments on these targets."""
        key = frozenset(targets)
        if key not in self.answers:
            mask = self.dataset.interventions
            chosen = self.dataset.take(~mask.any(axis=1) | mask[:, sorted(key)].any(axis=1))
            self.answers[key] = self.model.probabilities(chosen.x, chosen.interventions)
        return self.answers[key]

    def distance(self, targets: Sequence[int]) -> int:
        """SHD of the edges above 0.5."""
        return shd(np.asarray(self.dataset.graph), self.probabilities(targets) > 0.5)

    def run(self, choose: Choice, steps: int) -> list[int]:
        """SHD after 0, 1, ..., steps experiments."""
        targets: list[int] = []
        found = [self.distance(targets)]
        for _ in range(steps):
            left = [v for v in range(self.dataset.d) if v not in targets]
            targets.append(choose(self.probabilities(targets), left))
            found.append(self.distance(targets))
        return found


def by_information(probabilities: np.ndarray, left: Sequence[int]) -> int:
    """The target that `Result.next_experiments` ranks first."""
    names = tuple(str(v) for v in range(len(probabilities)))
    result = presage.Result(unconstrained=probabilities, names=names)
    done = [names[v] for v in range(len(names)) if v not in left]
    return int(result.next_experiments(1, exclude=done)["variable"][0])


def at_random(seed: int) -> Choice:
    rng = np.random.default_rng(seed)
    return lambda _, left: int(rng.choice(left))


def experiments_needed(distances: Sequence[int], goal: float) -> int:
    """Number of experiments until the SHD is at most the goal; one more than were made if it never is."""
    return next((step for step, distance in enumerate(distances) if distance <= goal), len(distances))


def systems(name: str, options: argparse.Namespace) -> list[System]:
    domain = get_domain(name)
    assert isinstance(domain, ScmDomain)
    every = replace(domain, interventions=Interventions(share=1.0))  # every variable can be a target
    touched = options.variables * options.rows
    batch = presage.simulate(
        every,
        d=options.variables,
        n=options.observational + touched,
        n_interventional=touched,
        seed=options.seed,
        size=options.systems,
    )
    model = presage.load_model(options.model or name)
    return [System(model, dataset) for dataset in batch]


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Mean SHD curves and experiments needed, by strategy."""
    strategies: dict[str, list[Choice]] = {
        "information": [by_information],
        "random": [at_random(seed) for seed in range(options.repeats)],
    }
    curves: dict[str, list[np.ndarray]] = {strategy: [] for strategy in strategies}
    needed: dict[str, list[float]] = {strategy: [] for strategy in strategies}
    for system in systems(name, options):
        goal = (system.distance([]) + system.distance(range(system.dataset.d))) / 2
        for strategy, choices in strategies.items():
            runs = [system.run(choose, options.steps) for choose in choices]
            curves[strategy].append(np.mean(runs, axis=0))
            needed[strategy].append(float(np.mean([experiments_needed(run, goal) for run in runs])))
    saved = [b - a for a, b in zip(needed["information"], needed["random"], strict=True)]
    return {
        "shd": {strategy: [mean_and_error(values) for values in zip(*curves[strategy])] for strategy in strategies},
        "needed": {strategy: mean_and_error(needed[strategy]) for strategy in strategies},
        "saved": mean_and_error(saved),
    }


def draw(found: dict[str, Any], options: argparse.Namespace) -> None:
    """Plot SHD against the number of experiments, one panel for each domain."""
    from matplotlib.figure import Figure

    from presage.report.plots import figure_bytes

    figure = Figure(figsize=(4.6 * len(found), 3.6), layout="constrained")
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for axes, (domain, part) in zip(panels, found.items(), strict=True):
        for (strategy, values), colour in zip(part["shd"].items(), ("#0b3c6f", "#c2571a"), strict=True):
            mean = np.array([value.mean for value in values])
            error = np.array([value.error for value in values])
            steps = np.arange(len(mean))
            axes.plot(steps, mean, marker="o", markersize=4, color=colour, label=LABELS[strategy])
            axes.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
        axes.set_xlabel(f"experiments ({options.rows} rows each)")
        axes.set_ylabel("structural Hamming distance")
        axes.set_title(f"{options.systems} {domain} systems, {options.variables} variables", fontsize=10)
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    Path(options.plot).write_bytes(figure_bytes(figure, dpi=110))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", default="linear,rff", help="domains of structural causal models to simulate")
    parser.add_argument("--model", help="model; by default that of the domain's name")
    parser.add_argument("--systems", type=int, default=40, help="systems per domain")
    parser.add_argument("--variables", type=int, default=20)
    parser.add_argument("--observational", type=int, default=200, help="observational rows")
    parser.add_argument("--rows", type=int, default=20, help="rows per experiment")
    parser.add_argument("--steps", type=int, default=10, help="experiments per run")
    parser.add_argument("--repeats", type=int, default=4, help="random orders per system")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", help="write the figure to this file")
    parser.add_argument("--json", help="write the measurements to this file")
    options = parser.parse_args()
    found = {name: measure(name, options) for name in options.domains.split(",")}
    for name, part in found.items():
        for strategy, values in part["shd"].items():
            needed = part["needed"][strategy]
            print(
                f"{name:<8} {strategy:<12} SHD after 0, 1, ... experiments:", *(f"{value.mean:.1f}" for value in values)
            )
            print(f"{name:<8} {strategy:<12} experiments to the goal: {needed.mean:.2f} ± {needed.error:.2f}")
        print(f"{name:<8} saved by information: {part['saved'].mean:.2f} ± {part['saved'].error:.2f} experiments")
    if options.plot:
        draw(found, options)
    if options.json:
        text = json.dumps({"options": vars(options), **found}, indent=1, default=asdict)
        Path(options.json).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
