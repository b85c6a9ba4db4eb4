"""What the way rows are read is worth: the same weights, asked with values and rows drawn in by different amounts.

    python benchmarks/readings.py linear [--domains linear,linear-ood] [--reaches 0,4,2,1] [--tails 3] [--datasets 20]

MODEL is a bundled name or a file; its own reading is the first line of every group. No weight changes, so what differs
is what the network can see. Datasets of the validation stream (seed 21 unless said otherwise), d = 30, n = 1000.
"""

from __future__ import annotations

import argparse
import dataclasses

from judging import score

from presage.domain.catalog import get_domain
from presage.inference.hub import load_model
from presage.inference.model import Model
from presage.networks.network import build_network
from presage.networks.pair import PairNetwork
from presage.rng import Stream


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def with_reading(model: Model, tails: float, reach: float) -> Model:
    """The same weights behind another reading."""
    network = build_network(dataclasses.replace(model.network.config, winsorize_sd=tails, row_clip_sd=reach))
    network.warm_start(model.network)
    return Model(network, model.metadata)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--domains", help="default: the model's own and its -ood")
    parser.add_argument("--reaches", type=numbers, default=[0.0, 4.0, 2.0, 1.0])
    parser.add_argument("--tails", type=numbers, default=[3.0])
    parser.add_argument("--datasets", type=int, default=20)
    parser.add_argument("--seed", type=int, default=21)
    options = parser.parse_args()
    model = load_model(options.model)
    if not isinstance(model.network, PairNetwork):
        parser.error(f"{options.model} is no pair network")
    own = model.network.config
    readings = [(own.tails, own.reach)]
    readings += [(t, r) for t in options.tails for r in options.reaches if (t, r) != readings[0]]
    for domain in (options.domains or f"{model.name},{model.name}-ood").split(","):
        for hits in (500, 0):
            batch = get_domain(domain).sample(
                d=30,
                n=1000,
                n_interventional=hits,
                seed=options.seed,
                size=options.datasets,
                stream=Stream.VALIDATION,
            )
            print(f"{domain}, {'half interventional' if hits else 'observational'}")
            for tails, reach in readings:
                asked = with_reading(model, tails, reach)
                found = score([(one.graph, asked.probabilities(one.x, one.interventions)) for one in batch])
                print(
                    f"  tails {tails:g}, reach {reach:g}: F1 {found['f1']}, AUPRC {found['auprc']}, ECE {found['ece']}"
                )


if __name__ == "__main__":
    main()
