"""Agreement of the gene simulator with the public avici package: same graphs, same parameters, 200 datasets each.

    python benchmarks/compare_grn_avici.py --avici-python avici-env/bin/python

`--avici-python` (or the variable AVICI_PYTHON) is the interpreter of an environment with avici 1.0.7 (pins: jax 0.6.2,
jaxlib 0.6.2, dm-haiku 0.0.17, optax 0.2.8, numpy 1.26.4, pandas 2.3.3, scipy, igraph, scikit-learn, matplotlib). Each
statistic of each gene is averaged over datasets; the difference of the two averages is divided by its standard error.
If the simulators agree, these z scores are standard normal. The averages of avici are written to
tests/fixtures/grn_avici.json, and a test compares ours with them.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

STORED = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "grn_avici.json"
DATASETS = 200

CASES = {
    # A chain with one repressor and many cells.
    "chain": {"d": 5, "edges": [[0, 1], [1, 2], [2, 3], [3, 4]], "repress": [1], "types": 3, "n": 60, "n_ko": 60},
    # Feed-forward loops with activating and repressing regulators.
    "feed-forward": {
        "d": 6,
        "edges": [[0, 2], [1, 2], [0, 3], [2, 3], [2, 4], [1, 5], [4, 5]],
        "repress": [1, 4],
        "types": 5,
        "n": 50,
        "n_ko": 60,
    },
    # A repressing hub, layered regulators, knockouts with a single cell per type.
    "hub": {
        "d": 8,
        "edges": [[0, 1], [0, 2], [0, 3], [0, 4], [1, 5], [2, 5], [3, 6], [4, 6], [5, 7], [6, 7]],
        "repress": [0, 5],
        "types": 4,
        "n": 80,
        "n_ko": 32,
    },
}
DECAY, NOISE, HILL = 0.8, 1.0, 2.0
MEASURED = {"chain": "10x-chromium", "feed-forward": "drop-seq", "hub": "smart-seq"}
# The paper's table lists the library means of 10x Chromium as {4.5, 6.0}; the public package draws 6.0 in two
# of three cases (0.695 +- 0.020 of 600 datasets). Our domain follows the table; this comparison follows the package.
PUBLIC_OPTIONS = {"10x-chromium": {"library_mu": (4.5, 6.0, 6.0)}}


def parameters(case: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Graph, |strength|, basal production and activation probability per regulator, from a fixed seed."""
    d = case["d"]
    graph = np.zeros((d, d), dtype=np.int8)
    for i, j in case["edges"]:
        graph[i, j] = 1
    rng = np.random.default_rng(d)
    strength, basal = rng.uniform(1.0, 5.0, (d, d)), rng.uniform(1.0, 3.0, (d, case["types"]))
    activating = np.ones(d)
    activating[case["repress"]] = 0.0
    return graph, strength, basal, activating


def statistics(x: np.ndarray) -> np.ndarray:
    """Mean, standard deviation and fraction of zeros per gene, then correlations (0 where a gene is constant)."""
    spread = x.std(axis=0)
    scaled = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    pairs = (scaled.T @ scaled / len(x))[np.triu_indices(x.shape[1], k=1)]
    return np.concatenate([x.mean(axis=0), spread, (x == 0).mean(axis=0), pairs])


def labels(d: int) -> list[str]:
    pairs = [f"correlation {i} {j}" for i, j in zip(*np.triu_indices(d, k=1), strict=True)]
    return [f"{name} {j}" for name in ("mean", "deviation", "zeros") for j in range(d)] + pairs


def summarize(
    clean: np.ndarray, knockouts: np.ndarray, masks: np.ndarray, measured: np.ndarray
) -> dict[str, np.ndarray]:
    """Statistics of one dataset: wild type, its counts, and mean and standard deviation under each knockout."""
    by_target = [knockouts[masks[:, k] > 0] for k in range(clean.shape[1])]
    return {
        "wild type": statistics(clean),
        "counts": statistics(measured),
        "knockout": np.concatenate([np.concatenate([x.mean(axis=0), x.std(axis=0)]) for x in by_target]),
    }


def public(case: dict, platform: str, datasets: int) -> dict[str, np.ndarray]:
    from avici.synthetic.gene import GRNSergio  # only in the other environment

    graph, strength, basal, activating = parameters(case)

    def model(**measurement):
        return GRNSergio(
            b=lambda rng, shape: basal,
            k_param=lambda rng, shape: strength,
            k_sign_p=lambda rng, shape: activating[:, None],
            hill=HILL,
            decays=DECAY,
            noise_params=NOISE,
            cell_types=lambda rng, shape: case["types"],
            n_ko_genes=-1,
            **measurement,
        )

    names = ("add_outlier_effect", "add_lib_size_effect", "add_dropout_effect", "return_count_data")
    steps = dict.fromkeys(names, True)
    items = []
    for k in range(datasets):
        data = model()(np.random.default_rng([1, k]), graph, case["n"], case["n_ko"])
        counts = model(tech_noise_config=platform, **steps)(np.random.default_rng([2, k]), graph, case["n"], 0)
        items.append(summarize(data.x_obs[..., 0], data.x_int[..., 0], data.x_int[..., 1], counts.x_obs[..., 0]))
    return {key: np.stack([item[key] for item in items]) for key in items[0]}


def ours(case: dict, platform: str, datasets: int, seed: int = 0) -> dict[str, np.ndarray]:
    from presage.simulators.grn import CellDesign, Kinetics, simulate_expression
    from presage.simulators.sequencing import PLATFORMS

    graph, strength, basal, activating = parameters(case)
    d, types = basal.shape
    signed = strength * (2.0 * activating[:, None] - 1.0)
    kinetics = Kinetics(strength=signed, basal=basal, decay=DECAY, noise=NOISE, hill=HILL)
    target = np.concatenate([np.full(case["n"], -1), np.resize(np.arange(d), case["n_ko"])])
    round_ = np.arange(case["n_ko"]) // d
    design = CellDesign(target=target, cell_type=np.concatenate([np.arange(case["n"]), round_]) % types)
    wild = CellDesign(target=target[: case["n"]], cell_type=design.cell_type[: case["n"]])
    measurement = replace(PLATFORMS[platform], **PUBLIC_OPTIONS.get(platform, {}))
    items = []
    for k in range(datasets):
        rng = np.random.default_rng([3, seed, k])
        x = simulate_expression(rng, graph, kinetics, design).astype(np.float64)
        counts = measurement.measure(rng, simulate_expression(rng, graph, kinetics, wild))
        mask = design.target[case["n"] :, None] == np.arange(d)
        items.append(summarize(x[: case["n"]], x[case["n"] :], mask, counts))
    return {key: np.stack([item[key] for item in items]) for key in items[0]}


def z_scores(left_mean, left_error, right_mean, right_error) -> np.ndarray:
    """Differences in standard errors; 0 where both are the same constant."""
    error = np.sqrt(np.square(left_error) + np.square(right_error))
    gap = np.asarray(left_mean) - np.asarray(right_mean)
    return np.where(error > 0, gap / np.where(error > 0, error, 1.0), np.where(gap == 0, 0.0, np.inf))


def mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--avici-python",
        type=Path,
        default=os.environ.get("AVICI_PYTHON"),
        help="interpreter of the environment with the public package",
    )
    parser.add_argument("--datasets", type=int, default=DATASETS)
    parser.add_argument("--role", choices=("driver", "public"), default="driver", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "public":
        arrays = {
            f"{name}|{key}": value
            for name, case in CASES.items()
            for key, value in public(case, MEASURED[name], options.datasets).items()
        }
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        sys.stdout.buffer.write(buffer.getvalue())
        return
    if options.avici_python is None:
        stored = json.loads(STORED.read_text())
        print(f"no --avici-python: against the stored averages of {stored['package']}, {stored['datasets']} datasets")
    else:
        stored = run_public(options.avici_python, options.datasets)
    report(stored, options.datasets)


def run_public(python: Path, datasets: int) -> dict:
    """Averages of the public package with their standard errors, which are also stored."""
    call = [str(python), __file__, "--role", "public", "--datasets", str(datasets)]
    theirs = np.load(io.BytesIO(subprocess.run(call, check=True, stdout=subprocess.PIPE).stdout))
    cases: dict[str, dict] = {name: {} for name in CASES}
    for entry in theirs.files:
        name, key = entry.split("|")
        mean, error = mean_and_error(theirs[entry])
        cases[name][key] = {"mean": mean.round(6).tolist(), "error": error.round(6).tolist()}
    stored = {"datasets": datasets, "package": "avici 1.0.7", "cases": cases}
    STORED.parent.mkdir(exist_ok=True)
    temporary = STORED.with_suffix(".tmp")
    temporary.write_text(json.dumps(stored) + "\n")
    os.replace(temporary, STORED)
    return stored


def report(stored: dict, datasets: int) -> None:
    everything = []
    print(f"{'case':14s} {'data':10s} {'numbers':>7s} {'rms z':>6s} {'max |z|':>7s} {'|z| > 2':>8s}  largest at")
    for name, case in CASES.items():
        mine, d = ours(case, MEASURED[name], datasets), case["d"]
        for key, values in mine.items():
            theirs = stored["cases"][name][key]
            z = z_scores(theirs["mean"], theirs["error"], *mean_and_error(values))
            everything.append(z)
            worst = int(np.abs(z).argmax())
            where = labels(d)[worst] if key != "knockout" else f"target {worst // (2 * d)}, entry {worst % (2 * d)}"
            rms, large = np.sqrt(np.mean(z**2)), np.mean(np.abs(z) > 2)
            print(f"{name:14s} {key:10s} {z.size:7d} {rms:6.2f} {np.abs(z).max():7.2f} {large:8.3f}  {where}")
    z = np.concatenate(everything)
    print(
        f"all: {z.size} numbers, rms z {np.sqrt(np.mean(z**2)):.2f}, fraction of |z| > 2: {np.mean(np.abs(z) > 2):.3f}"
    )


if __name__ == "__main__":
    main()
