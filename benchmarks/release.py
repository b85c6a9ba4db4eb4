"""Release a model: judge a run on held-out data, write its file with card and summaries, and keep its record.

    python benchmarks/release.py runs/rff rff [--instances 30] [--models src/presage/models] [--records records]

Judged on datasets 0, 1, ... of the test stream (seed 0), which training never draws from: d = 30, n = 1000, in- and
out-of-distribution, observational and half interventional. The run may still be going: its newest checkpoint is taken.
With the name of a bundled model in place of a run (release.py rff rff) it only judges that model again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from presage.domain.catalog import get_domain
from presage.foreign import fit_summaries
from presage.hub import Model, load_model
from presage.metrics import evaluate, mean_and_error
from presage.nets.weights import save_model
from presage.train.export import model_of_run

METRICS = ("f1", "auprc", "auroc", "ece", "shd", "acyclic")
PLACES = {name: (name, f"{name}-ood") for name in ("linear", "rff", "grn")}
PLACES["scm"] = ("scm", "linear", "linear-ood", "rff", "rff-ood")


def judge(
    model: Model, domain: str, *, interventional: bool, instances: int, d: int = 30, n: int = 1000
) -> dict[str, Any]:
    batch = get_domain(domain).sample(
        d=d, n=n, n_interventional=n // 2 if interventional else 0, seed=0, size=instances
    )
    scores: dict[str, list[float]] = {name: [] for name in METRICS}
    for dataset in batch:
        probabilities = model.probabilities(dataset.x, dataset.interventions)
        found = evaluate(dataset.graph, probabilities)
        for name in METRICS:
            scores[name].append(float(found[name]))
    row: dict[str, Any] = {"domain": domain, "rows": "interventional" if interventional else "observational"}
    for name, values in scores.items():
        if name == "acyclic":
            row[name] = f"{np.mean(values):.2f}"
        else:
            summary = mean_and_error(values)
            row[name] = f"{summary.mean:.3f} ± {summary.error:.3f}"
    return row


def source_hash(root: Path) -> str:
    """One hash over the package's source, so that a record names the code that made it."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    parser.add_argument("--instances", type=int, default=30)
    parser.add_argument("--models", type=Path, default=Path("src/presage/models"))
    parser.add_argument("--records", type=Path, default=Path("records"))
    parser.add_argument("--source", type=Path, default=Path("src/presage"), help="the source the run was trained with")
    options = parser.parse_args()
    released = not (options.run / "checkpoints").is_dir()  # no run: judge a released model again, write nothing
    if released:
        model = load_model(str(options.run))
    else:
        network, metadata = model_of_run(options.run)
        metadata["name"] = options.name
        model = Model(network, metadata)
    rows = []
    for domain in PLACES.get(options.name, (options.name,)):
        for interventional in (False, True):
            rows.append(judge(model, domain, interventional=interventional, instances=options.instances))
            print(rows[-1], flush=True)
    if released:
        return
    train = metadata["train"]
    metadata["card"] = {
        "about": f"trained on the {options.name} domain for {train['core_minutes']:.0f} core-minutes "
        f"({train['datasets']:,} datasets)",
        f"held-out scores (d = 30, n = 1000, {options.instances} datasets each, mean ± standard error)": rows,
        "regenerate": f"python benchmarks/release.py RUN {options.name} --instances {options.instances}",
    }
    metadata["summaries"] = fit_summaries(get_domain(options.name))
    path = options.models / f"{options.name}.safetensors"
    save_model(path, network, metadata)
    record = options.records / options.name
    record.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "metrics.jsonl"):
        shutil.copy(options.run / name, record / name)
    (record / "record.json").write_text(
        json.dumps(
            {
                "model_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                "source_sha256": source_hash(options.source),
                "steps": train["step"],
                "datasets": train["datasets"],
                "core_minutes": round(train["core_minutes"], 1),
                "validation": train["validation"],
                "scores": rows,
            },
            indent=2,
            ensure_ascii=False,
        )
        + "\n"
    )
    print(f"wrote {path} and {record}")


if __name__ == "__main__":
    main()
