"""Compare two models on the same new validation datasets, with paired differences.

    python benchmarks/compare_models.py general runs/general/model.safetensors --domains general,linear,rff
    python benchmarks/compare_models.py rff runs/rff/model.safetensors --domains rff,rff-ood --datasets 24

Domains with strata are compared stratum by stratum, and so are JSON files that hold a domain. Odd-numbered datasets are
half interventional (all of the strata "interventional" and "pooled", none of the others). The F1 is that of the most
probable acyclic graph, the negative log-likelihood (NLL) is per ordered pair. For deciding on a release: the test
stream is not touched.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from presage.domain.catalog import open_domain
from presage.domain.domain import Domain
from presage.inference.hub import load_model
from presage.inference.model import Model
from presage.metrics import evaluate
from presage.metrics.summary import mean_and_error
from presage.rng import Stream, generator

SEED = 4242
N = 1000
METRICS = ("auprc", "f1", "ece", "nll")


def sets(names: list[str]) -> Iterator[tuple[str, Domain, float | None]]:
    """Title, domain and share of datasets with interventions (None: every second one)."""
    for name in names:
        domain = open_domain(name)
        strata = domain.strata()
        for title, stratum in strata.items():
            yield f"{name}: {title}", stratum, float(title in domain.interventional_strata)
        if not strata:
            yield name, domain, None


def scores(model: Model, domain: Domain, d: int, number: int, interventional: bool) -> list[float]:
    """The metrics of one model on one dataset."""
    rng = generator(SEED, Stream.VALIDATION, d, number)
    data = domain.draw(rng, d=d, n=N, n_interventional=N // 2 if interventional else 0)
    probabilities = model.probabilities(
        data["x"], data["interventions"], data.get("missing"), column_kinds=data.get("column_kinds")
    )
    found = evaluate(data["graph"], probabilities, acyclic=True)
    pairs = ~np.eye(d, dtype=bool)
    edge = data["graph"][pairs] == 1
    right = np.where(edge, probabilities[pairs], 1.0 - probabilities[pairs])
    return [*(float(found[name]) for name in METRICS[:3]), float(-np.log(np.maximum(right, 1e-7)).mean())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--domains", default="general", help="names or JSON files, separated by commas")
    parser.add_argument("--datasets", type=int, default=40)
    parser.add_argument("-d", "--variables", type=int, default=20)
    options = parser.parse_args()
    models = [load_model(options.before), load_model(options.after)]
    titles = [title for name in METRICS for title in (name.upper(), "difference")]
    print(f"| domain | {' | '.join(titles)} |\n|{' --- |' * (len(titles) + 1)}")
    for title, domain, share in sets(options.domains.split(",")):
        table = []
        for number in range(options.datasets):
            interventional = bool(number % 2) if share is None else share > 0
            table.append([scores(model, domain, options.variables, number, interventional) for model in models])
        values = np.array(table)  # [datasets, 2, metrics]
        cells = []
        for k in range(len(METRICS)):
            before, after = values[:, 0, k], values[:, 1, k]
            known = np.isfinite(before) & np.isfinite(after)  # the AUPRC of a graph without edges is undefined
            change = mean_and_error((after - before)[known].tolist())
            cells += [f"{before[known].mean():.4f} -> {after[known].mean():.4f}"]
            cells += [f"{change.mean:+.4f} ± {change.error:.4f}"]
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
