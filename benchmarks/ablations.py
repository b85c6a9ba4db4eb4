"""Train ablated pair networks on rff at equal numbers of steps and datasets, and compare them on validation datasets.

    python benchmarks/ablations.py --out runs/ablations
    python benchmarks/ablations.py --out runs/ablations --variants full,penalty,width-96 --steps 1500

Every variant sees the same datasets (same seed; `stages` sees smaller ones first, `third` a third of them) with one
schedule from scratch. A variant whose run has ended is not trained again, so the command can be repeated. The
table has the negative log-likelihood (NLL) per ordered pair, AUPRC and F1 of 48 validation datasets of rff with d = 20
and n = 600, interventional / observational. The paper's table, on test datasets with d = 30, from the same networks:

    presage bench ablation --methods presage:runs/ablations/full,presage:runs/ablations/penalty --own-instances 30 \\
        --out results
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

RECIPE = Path(__file__).resolve().parent.parent / "records" / "rff" / "1" / "config.json"
COUNTS = [[5, 0.1], [10, 0.3], [20, 0.6]]
VARIANTS: dict[str, tuple[str, ...]] = {
    "full": (),
    "penalty": ("acyclicity_penalty=true",),
    "width-96": ("net.width=96",),
    "mlp-wide": ("net.outer_hidden=4",),
    "no-mlp": ("net.outer_hidden=0",),
    "few-triangles": ("net.triangle=4",),
    "one-round": ("net.rounds=1", "net.blocks=6"),
    "two-blocks": ("net.rounds=1",),
    "third": (),
    "stages": (),
}
MEANING = {
    "full": "3 rounds of 2 blocks, width 64, MLP of 2 x width after the outer-product means",
    "penalty": "with the paper's penalty on cycles",
    "width-96": "96 channels of a pair instead of 64",
    "mlp-wide": "MLP of 4 x width after the outer-product means",
    "no-mlp": "outer-product means projected linearly",
    "few-triangles": "4 channels of triangle products instead of 64",
    "one-round": "1 round of 6 blocks: cells are never updated",
    "two-blocks": "1 round of 2 blocks: a third of the depth",
    "third": "the full network, a third of the steps",
    "stages": "first third of the steps with d of 5 and 10, a schedule of its own",
}


def recipe(precision: str) -> dict[str, Any]:
    """The configuration that all variants share: the recipe of rff with smaller datasets."""
    config: dict[str, Any] = json.loads(RECIPE.read_text(encoding="utf-8"))
    config["rows"].update(n=[100, 600], max_cells=30000, interventional_probability=0.5)
    config["optim"].update(lr=0.004, warmup=100)
    config["validation"].update(d=20, n=600, n_interventional=300, datasets=48, minutes=4.0)
    config.update(variable_counts=COUNTS, init_from=None, minutes=None, precision=precision, ood_datasets=0)
    return config


def train(config: dict[str, Any], run: Path, steps: int, changes: tuple[str, ...], *more: str) -> None:
    """Train one stage, or go on with it."""
    run.mkdir(parents=True, exist_ok=True)
    path = run.parent / f"{run.name}.json"
    path.write_text(json.dumps({**config, "steps": steps}), encoding="utf-8")
    command = [sys.executable, "-m", "presage", "train", "--config", str(path), "--out", str(run), "--threads", "1"]
    for change in changes:
        command += ["--set", change]
    if (run / "config.json").exists():
        command += ["--resume"]
    subprocess.run([*command, *more], check=True)


def run_variant(name: str, out: Path, steps: int, config: dict[str, Any]) -> None:
    """Train a variant unless its model exists."""
    run = out / name
    if (run / "model.safetensors").exists():
        return
    if name != "stages":
        train(config, run, steps // 3 if name == "third" else steps, VARIANTS[name])
        return
    first = out / "stages-1"
    if not (first / "model.safetensors").exists():
        train({**config, "variable_counts": [[5, 0.4], [10, 0.6]]}, first, steps // 3, ())
    train({**config, "seed": config["seed"] + 1}, run, steps - steps // 3, (), "--init-from", str(first))


def figures(run: Path) -> dict[str, Any]:
    """The last validation of a run."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [entry for entry in entries if entry["event"] == "validation"][-1]


def row(name: str, out: Path) -> str:
    """A line of the table."""
    found = figures(out / name)
    datasets, minutes = found["datasets"], found["core_minutes"]
    if name == "stages":
        earlier = figures(out / "stages-1")
        datasets, minutes = datasets + earlier["datasets"], minutes + earlier["core_minutes"]
    cells = [
        f"{found[f'{key}_int']:.{digits}f} / {found[f'{key}_obs']:.{digits}f}"
        for key, digits in (("nll", 4), ("auprc", 3), ("f1", 3))
    ]
    return f"| {name}: {MEANING[name]} | {datasets:,} | {minutes:.1f} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/ablations"))
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--steps", type=int, default=6000, help="6,000 take about 16 core-minutes in fp32")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    options = parser.parse_args()
    names = options.variants.split(",")
    if unknown := sorted(set(names) - set(VARIANTS)):
        parser.error(f"there is no variant {unknown[0]!r}; choose from {', '.join(VARIANTS)}")
    for name in names:
        run_variant(name, options.out, options.steps, recipe(options.precision))
    print("| network | datasets | core-minutes | NLL | AUPRC | F1 |\n| --- | --- | --- | --- | --- | --- |")
    print("\n".join(row(name, options.out) for name in names))


if __name__ == "__main__":
    main()
