"""Release a model: judge a run on held-out data, write its file with card and summaries, and keep its record.

    python benchmarks/release.py runs/rff rff [--before STAGE ...] [--models src/presage/models] [--records records]

Judged on datasets 0, 1, ... of the test stream (seed 0), which training never draws from: d = 30, n = 1000, in- and
out-of-distribution, observational and half interventional, and d = 100 out of distribution (--large of them). The run
may still be going: its newest checkpoint is taken. `scm` is also asked about the proteins of Sachs et al. if they are
at hand (PRESAGE_DATA).
With the name of a bundled model in place of a run (release.py rff rff) it only judges that model again; --update
writes what it found into the model's card and record.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from presage.datasets import load_sachs
from presage.domain.catalog import get_domain
from presage.errors import PresageError
from presage.foreign import fit_summaries
from presage.hub import Model, load_model
from presage.metrics import evaluate, mean_and_error
from presage.nets.weights import load_model_file, save_model
from presage.train.export import model_of_run

METRICS = ("f1", "auprc", "auroc", "ece", "shd", "acyclic")
PLACES = {name: (name, f"{name}-ood") for name in ("linear", "rff", "grn")}
PLACES["scm"] = ("scm", "linear", "linear-ood", "rff", "rff-ood")
LARGE = {name: (f"{name}-ood",) for name in ("linear", "rff", "grn")} | {"scm": ("linear-ood", "rff-ood")}


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
    kind = "interventional" if interventional else "observational"
    row: dict[str, Any] = {"domain": domain, "d": d, "rows": kind, "datasets": instances}
    for name, values in scores.items():
        if name == "acyclic":
            row[name] = f"{np.mean(values):.2f}"
        else:
            summary = mean_and_error(values)
            row[name] = f"{summary.mean:.3f} ± {summary.error:.3f}"
    return row


def sachs(model: Model) -> list[dict[str, Any]]:
    """SHD and F1 on the measured proteins, without and with their targets; nothing if the data is not at hand."""
    try:
        data = load_sachs()
    except PresageError as error:
        print(f"Sachs et al. left out: {error}")
        return []
    rows = []
    for kind, targets in (("targets not told", None), ("targets told", data.interventions)):
        found = evaluate(data.graph, model.probabilities(data.x, targets))
        rows.append({"rows": kind, "f1": f"{found['f1']:.3f}", "shd": int(found["shd"]), "edges": int(found["edges"])})
    return rows


def portable(config: dict[str, Any]) -> dict[str, Any]:
    """A run's configuration without paths of this machine: it began with the model of the record's stage before."""
    return {**config, "start": "the stage before" if config.get("start") else None}


def spent(run: Path) -> dict[str, Any]:
    """What a stage cost: as an earlier record says (RECORDS/NAME/STAGE), or as the run's log does."""
    if (record := run.parent / "record.json").is_file():
        stage: dict[str, Any] = json.loads(record.read_text())["stages"][int(run.name) - 1]
        return stage
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    return {name: last[name] for name in ("step", "datasets", "core_minutes")}


def source_hash(root: Path) -> str:
    """One hash over the package's source, so that a record names the code that made it."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def measure(model: Model, name: str, *, instances: int, large: int) -> dict[str, list[dict[str, Any]]]:
    """What a card and a record say about accuracy."""
    places = [(domain, kind, instances, 30) for domain in PLACES.get(name, (name,)) for kind in (False, True)]
    places += [(domain, True, large, 100) for domain in LARGE[name] if large]
    scores = []
    for domain, interventional, count, d in places:
        scores.append(judge(model, domain, interventional=interventional, instances=count, d=d))
        print(scores[-1], flush=True)
    proteins = sachs(model) if name == "scm" else []
    print(*proteins, sep="\n")
    return {"scores": scores, "sachs": proteins}


def card(name: str, train: dict[str, Any], measured: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """What the model file says about itself."""
    minutes = train["core_minutes"] + train["core_minutes_before"]
    datasets = train["datasets"] + train["datasets_before"]
    return {
        "about": f"trained on the {name} domain for {minutes:.0f} core-minutes ({datasets:,} datasets)",
        "held-out scores (n = 1000, mean ± standard error)": measured["scores"],
        **({"proteins of Sachs et al. (17 edges)": measured["sachs"]} if measured["sachs"] else {}),
        "regenerate": f"python benchmarks/release.py {name} {name}",
    }


def keep_stages(record: Path, runs: list[Path]) -> list[dict[str, Any]]:
    """Copy settings and log of each run (or stage of the record itself) into the record; what each cost."""
    stages = [spent(run) for run in runs]
    fresh = record.with_name(f"{record.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    for number, run in enumerate(runs, start=1):
        folder = fresh / str(number)
        folder.mkdir(parents=True)
        shutil.copy(run / "metrics.jsonl", folder / "metrics.jsonl")
        (folder / "config.json").write_text(json.dumps(portable(json.loads((run / "config.json").read_text()))))
    shutil.rmtree(record, ignore_errors=True)
    fresh.rename(record)
    return stages


def write_record(record: Path, facts: dict[str, Any], model: Path) -> None:
    """record.json, with the hash of the model file as it is now."""
    facts = facts | {"model_sha256": hashlib.sha256(model.read_bytes()).hexdigest()}
    (record / "record.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    print(f"wrote {model} and {record}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    parser.add_argument("--instances", type=int, default=30)
    parser.add_argument(
        "--before", type=Path, nargs="*", default=[], help="runs or stages of a record RUN goes on from, in order"
    )
    parser.add_argument("--large", type=int, default=30, help="datasets with d = 100")
    parser.add_argument("--models", type=Path, default=Path("src/presage/models"))
    parser.add_argument("--records", type=Path, default=Path("records"))
    parser.add_argument("--source", type=Path, default=Path("src/presage"), help="the source the run was trained with")
    parser.add_argument("--update", action="store_true", help="NAME NAME: write what was measured into card and record")
    options = parser.parse_args()
    path, record = options.models / f"{options.name}.safetensors", options.records / options.name
    size = {"instances": options.instances, "large": options.large}
    if not (options.run / "checkpoints").is_dir():  # no run: judge a released model again
        model = load_model(str(options.run))
        measured = measure(model, options.name, **size)
        if options.update:
            network, metadata = load_model_file(path)
            metadata["card"] = card(options.name, metadata["train"], measured)
            save_model(path, network, metadata)
            facts = json.loads((record / "record.json").read_text())
            write_record(record, facts | measured, path)
        return
    network, metadata = model_of_run(options.run)
    train = metadata["train"]
    train["config"] = portable(train["config"])
    metadata["name"] = options.name
    measured = measure(Model(network, metadata), options.name, **size)
    metadata["card"] = card(options.name, train, measured)
    metadata["summaries"] = fit_summaries(get_domain(options.name))
    stages = keep_stages(record, [*options.before, options.run])
    save_model(path, network, metadata)
    facts = {
        "source_sha256": source_hash(options.source),
        "stages": stages,
        "datasets": train["datasets"] + train["datasets_before"],
        "core_minutes": round(train["core_minutes"] + train["core_minutes_before"], 1),
        "validation": train["validation"],
    }
    write_record(record, facts | measured, path)


if __name__ == "__main__":
    main()
