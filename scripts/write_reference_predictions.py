"""Write tests/fixtures/reference_predictions.npz: fixed small inputs and what every bundled model answers for them.

    python scripts/write_reference_predictions.py

The inputs are kept once they exist, so that only a change in a model or in its statistics changes the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import presage

PATH = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "reference_predictions.npz"
CASES = {"observational": (6, 60, 0), "interventional": (12, 90, 30), "missing": (8, 70, 20)}


def inputs() -> dict[str, np.ndarray]:
    """Values and intervention masks of each case, for models of real values and of counts."""
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


def predictions(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Edge probabilities of every bundled model on the inputs of its kind of values."""
    found = {}
    for name in presage.models()["name"]:
        model = presage.load_model(name)
        for case in CASES:
            x, u = (arrays[f"{model.kind}/{case}/{part}"] for part in ("x", "interventions"))
            found[f"model/{name}/{case}"] = model.probabilities(x, u)
    return found


def main() -> None:
    """Write the file."""
    arrays = inputs()
    np.savez_compressed(PATH, allow_pickle=False, **arrays, **predictions(arrays))
    print(f"wrote {PATH.name}: {PATH.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
