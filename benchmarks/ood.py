"""How often data is flagged as out of distribution: each model's own domain (false alarms), others (detection).

    python benchmarks/ood.py [--domains scm,linear,rff] [--datasets 200] [--models scm] [--seed 0]

Fits a reference for every domain of --domains, as a release does, or uses those of the models in --models, and
prints one Markdown table: rows are references, columns the domains that held-out datasets come from. A quarter of the
datasets each: d=10 n=100, d=30 n=200 with 50 interventional rows, d=20 n=500, d=50 n=300 with 100 interventional rows.
Models for real values get counts as real values. Cells: share of datasets flagged as out of distribution.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from presage.domain.catalog import get_domain
from presage.inference.hub import load_model
from presage.ood.check import compare, fit_reference
from presage.types import Dataset

SIZES = ((10, 100, 0), (30, 200, 50), (20, 500, 0), (50, 300, 100))
OTHERS = ("scm", "linear", "rff", "linear-ood", "rff-ood", "grn", "grn-ood")


def held_out(domain: str, datasets: int, seed: int) -> list[Dataset]:
    found = []
    for d, n, n_interventional in SIZES:
        size = max(1, datasets // len(SIZES))
        found += list(get_domain(domain).sample(d=d, n=n, n_interventional=n_interventional, seed=seed, size=size))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", default="")
    parser.add_argument("--models", default="")
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--reference", type=int, default=2000, help="datasets each reference is fitted on")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    references = {}
    for name in filter(None, options.models.split(",")):
        references[f"model {name}"] = load_model(name).metadata["summaries"]
    for name in filter(None, options.domains.split(",")):
        start = time.perf_counter()
        references[name] = fit_reference(name, options.seed, datasets=options.reference)
        print(f"fitted {name} in {time.perf_counter() - start:.0f} s", flush=True)
    print("\n| trained on | " + " | ".join(OTHERS) + " |")
    print("| --- |" + " --- |" * len(OTHERS), flush=True)
    columns = {}
    for other in OTHERS:
        # Gene expression is slow to simulate, and the effect is large: fewer datasets suffice.
        datasets = held_out(other, options.datasets // (8 if other.startswith("grn") else 1), options.seed + 1)
        columns[other] = datasets
    for name, reference in references.items():
        cells = []
        for other in OTHERS:
            flagged = []
            for dataset in columns[other]:
                if reference["kind"] == "counts" and dataset.kind != "counts":
                    continue  # such data is refused before the check
                if reference["kind"] == "real" and dataset.kind == "counts":
                    dataset = dataset.with_kind("real")
                flagged.append(compare(reference, dataset).is_ood)
            cells.append(f"{np.mean(flagged):.1%} ({len(flagged)})" if flagged else "refused")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
