"""Effect of outlier handling in the input: the same weights with other values of `winsorize_sd` and `row_clip_sd`.

    python benchmarks/input_views.py linear [--domains linear,linear-ood] [--winsorize-sd 3] [--row-clip-sd 0,4,2,1]

MODEL is a bundled name or a file. The first line of every group has the model's own configuration. The weights do not
change, so differences show what the network can extract from its input. Datasets of the validation stream (seed 21 by
default), d = 30, n = 1000.
"""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np

from presage.domain.catalog import get_domain
from presage.inference.hub import load_model
from presage.inference.model import Model
from presage.metrics import evaluate
from presage.networks.network import build_network
from presage.networks.pair import PairNetwork
from presage.rng import Stream


def numbers(text: str) -> list[float]:
    return [float(item) for item in text.split(",")]


def reconfigured(model: Model, winsorize_sd: float, row_clip_sd: float) -> Model:
    """The same weights with other input statistics."""
    network = build_network(
        dataclasses.replace(model.network.config, winsorize_sd=winsorize_sd, row_clip_sd=row_clip_sd)
    )
    network.load_state_dict(model.network.state_dict())
    return Model(network, model.metadata)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--domains", help="default: the model's own domain and its -ood variant")
    parser.add_argument("--winsorize-sd", type=numbers, default=[3.0])
    parser.add_argument("--row-clip-sd", type=numbers, default=[0.0, 4.0, 2.0, 1.0])
    parser.add_argument("--datasets", type=int, default=20)
    parser.add_argument("--seed", type=int, default=21)
    options = parser.parse_args()
    model = load_model(options.model)
    if not isinstance(model.network, PairNetwork):
        parser.error(f"{options.model} is not a pair network")
    own = model.network.config
    settings = [(own.winsorize_sd, own.row_clip_sd)]
    settings += [(w, r) for w in options.winsorize_sd for r in options.row_clip_sd if (w, r) != settings[0]]
    for domain in (options.domains or f"{model.name},{model.name}-ood").split(","):
        for n_interventional in (500, 0):
            batch = get_domain(domain).sample(
                d=30,
                n=1000,
                n_interventional=n_interventional,
                seed=options.seed,
                size=options.datasets,
                stream=Stream.VALIDATION,
            )
            print(f"{domain}, {'half interventional' if n_interventional else 'observational'}")
            for winsorize_sd, row_clip_sd in settings:
                changed = reconfigured(model, winsorize_sd, row_clip_sd)
                scores = [evaluate(one.graph, changed.probabilities(one.x, one.interventions)) for one in batch]
                means = ", ".join(
                    f"{name} {np.mean([found[key] for found in scores]):.3f}"
                    for key, name in (("f1", "F1"), ("auprc", "AUPRC"), ("ece", "ECE"))
                )
                print(f"  winsorize_sd {winsorize_sd:g}, row_clip_sd {row_clip_sd:g}: {means}")


if __name__ == "__main__":
    main()
