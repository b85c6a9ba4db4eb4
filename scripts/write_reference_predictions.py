"""Write tests/fixtures/reference_predictions.npz: small fixed inputs and the predictions of every bundled model.

    python scripts/write_reference_predictions.py

Existing inputs are kept, so the file changes only if a model or the statistics of its input change. Run this after a
bundled model was added or replaced on purpose; tests/inference/test_reference_predictions.py compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

import presage
from presage.files import atomic_write

PATH = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "reference_predictions.npz"
CASES = {"observational": (6, 60, 0), "interventional": (12, 90, 30), "missing": (8, 70, 20)}


def inputs() -> dict[str, np.ndarray]:
    """Values and intervention masks of each case, for models of real values and for models of counts."""
    if PATH.exists():
        with np.load(PATH) as stored:
            return {name: stored[name] for name in stored.files if name.startswith(("real/", "counts/"))}
    found = {}
    for kind, domain in (("real", "rff-ood"), ("counts", "grn")):
        for case, (d, n, n_interventional) in CASES.items():
            dataset = presage.simulate(domain, d=d, n=n, n_interventional=n_interventional, seed=2026)
            x = dataset.x.copy()
            if case == "missing":
                x[np.random.default_rng(2026).random(x.shape) < 0.1] = np.nan
            found[f"{kind}/{case}/x"], found[f"{kind}/{case}/interventions"] = x, dataset.interventions
    return found


def values_of(model: presage.Model, case: str, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Values and intervention mask [n, d] of a case, of the kind of values that a model takes."""
    kind = "counts" if model.kind == "counts" else "real"
    return arrays[f"{kind}/{case}/x"], arrays[f"{kind}/{case}/interventions"]


def predictions(arrays: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
    """Edge probabilities of the named bundled models for every case."""
    found = {}
    for name in names:
        model = presage.load_model(name)
        for case in CASES:
            found[f"model/{name}/{case}"] = model.probabilities(*values_of(model, case, arrays))
    return found


def main() -> None:
    """Write the file."""
    arrays = inputs()
    with atomic_write(PATH) as file:
        np.savez_compressed(file, **arrays, **predictions(arrays, presage.models()["name"]))
    print(f"wrote {PATH.name}: {PATH.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
