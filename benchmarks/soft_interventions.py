"""How a model should read soft interventions: as targets, as environments, or not at all.

AUPRC of the model `general` on tables of its domain with only hard or only soft interventions:

    nice python benchmarks/soft_interventions.py --out records/general/soft_interventions.csv
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd

from presage.columns import ColumnKind
from presage.domain.catalog import get_domain
from presage.domain.general import GeneralDomain
from presage.files import atomic_write
from presage.inference.hub import load_model
from presage.inference.model import Model
from presage.metrics.ranking import auprc
from presage.types import Dataset


def with_environment(model: Model, data: Dataset) -> np.ndarray:
    """Edge probabilities [d, d] with one environment per target instead of intervention labels."""
    label = np.where(data.interventions.any(axis=1), data.interventions.argmax(axis=1) + 1, 0)
    codes = np.unique(label, return_inverse=True)[1][:, None].astype(np.float64)
    missing = np.pad(data.missing, ((0, 0), (0, 1)))
    kinds = np.append(data.column_kinds, ColumnKind.ENVIRONMENT).astype(np.int8)
    return model.probabilities(np.hstack([data.x, codes]), None, missing, column_kinds=kinds)[:-1, :-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=60)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    model, base = load_model("general"), get_domain("general")
    assert isinstance(base, GeneralDomain)
    rows = []
    for kind, soft in (("hard", 0.0), ("soft", 1.0)):
        plain = dataclasses.replace(base.interventions, soft=soft, mislabelled=0.0, two_targets=0.0)
        domain = dataclasses.replace(GeneralDomain.stratum("interventional", base), interventions=plain)
        found = []
        for data in domain.sample(d=12, n=600, n_interventional=300, seed=5, size=options.datasets):
            if data.graph is None or not data.graph.any():
                continue
            read = (
                model.probabilities(data.x, data.interventions, data.missing, column_kinds=data.column_kinds),
                with_environment(model, data),
                model.probabilities(data.x, None, data.missing, column_kinds=data.column_kinds),
            )
            found.append([auprc(data.graph, probabilities) for probabilities in read])
        for name, values in zip(("targets", "environments", "not at all"), np.array(found).T, strict=True):
            error = values.std(ddof=1) / np.sqrt(len(values))
            rows.append((kind, name, len(values), round(float(values.mean()), 4), round(float(error), 4)))
            print(f"{kind} interventions read as {name}: AUPRC {values.mean():.3f} ({len(values)} tables)", flush=True)
    if options.out is not None:
        frame = pd.DataFrame(rows, columns=["interventions", "read_as", "datasets", "auprc", "standard_error"])
        with atomic_write(options.out) as file:
            file.write(frame.to_csv(index=False).encode())


if __name__ == "__main__":
    main()
