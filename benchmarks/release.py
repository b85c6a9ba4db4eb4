"""Release a model: judge a run on held-out data, write its file with card and summaries, and keep its record.

    python benchmarks/release.py runs/rff rff [--before STAGE ...] [--models DIR] [--records records]

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

from judging import CALIBRATED, learning_curve, measure, weak_spots

from presage.domain.catalog import get_domain
from presage.inference.hub import load_model
from presage.inference.model import Model
from presage.networks.weights import load_model_file, save_model
from presage.ood.check import fit_reference
from presage.training.export import model_of_run


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


def card(name: str, train: dict[str, Any], record: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """What the model file says about itself, from the facts of its record."""
    minutes = train["core_minutes"] + train["core_minutes_before"]
    datasets = train["datasets"] + train["datasets_before"]
    stages = [record / str(number) for number in range(1, len(facts["stages"]) + 1)]
    sections = {
        "about": f"trained on the {name} domain for {minutes:.0f} core-minutes ({datasets:,} datasets)",
        "held-out scores (n = 1000, mean ± standard error)": facts["scores"],
        "weak spots": weak_spots(facts["scores"]),
        f"calibration ({CALIBRATED.get(name, name)}, d = 30, interventional, all pairs)": facts["calibration"],
        "proteins of Sachs et al. (17 edges)": facts["sachs"],
        "learning curve (validation stream, d = 30, n = 1000)": learning_curve(stages, facts["stages"]),
        "regenerate": f"python benchmarks/release.py {name} {name}",
    }
    return {title: content for title, content in sections.items() if content}


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    parser.add_argument("--instances", type=int, default=30)
    parser.add_argument(
        "--before", type=Path, nargs="*", default=[], help="runs or stages of a record RUN goes on from, in order"
    )
    parser.add_argument("--large", type=int, default=30, help="datasets with d = 100")
    parser.add_argument("--models", type=Path, default=Path("src/presage/assets/models"))
    parser.add_argument("--records", type=Path, default=Path("records"))
    parser.add_argument("--source", type=Path, default=Path("src/presage"), help="the source the run was trained with")
    parser.add_argument(
        "--update", action="store_true", help="with NAME NAME: write what was measured into card and record"
    )
    options = parser.parse_args()
    path, record = options.models / f"{options.name}.safetensors", options.records / options.name
    size = {"instances": options.instances, "large": options.large}
    if (options.run / "checkpoints").is_dir():
        network, metadata = model_of_run(options.run)
        train = metadata["train"]
        train["config"] = portable(train["config"])
        metadata["name"] = options.name
        metadata["summaries"] = fit_reference(get_domain(options.name))
        measured = measure(Model(network, metadata), options.name, **size)
        facts = {
            "source_sha256": source_hash(options.source),
            "stages": keep_stages(record, [*options.before, options.run]),
            "datasets": train["datasets"] + train["datasets_before"],
            "core_minutes": round(train["core_minutes"] + train["core_minutes_before"], 1),
            "validation": train["validation"],
        }
    else:  # no run: judge a released model again
        measured = measure(load_model(str(options.run)), options.name, **size)
        if not options.update:
            return
        network, metadata = load_model_file(path)
        facts = json.loads((record / "record.json").read_text())
    facts |= measured
    metadata["card"] = card(options.name, metadata["train"], record, facts)
    save_model(path, network, metadata)
    facts["model_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (record / "record.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    print(f"wrote {path} and {record}")


if __name__ == "__main__":
    main()
