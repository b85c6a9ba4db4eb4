"""Release of a model: evaluate a run, calibrate it, fit its out-of-distribution check, write model file and record.

OUT/NAME.safetensors            weights, card, summaries of the training domain
OUT/NAME.safetensors.sha256     its checksum, as `sha256sum --check` reads it
OUT/records/NAME/record.json    counters, scores, calibration, checksums of the model and of the source
OUT/records/NAME/1/ ...         config.json and metrics.jsonl of every stage, the first one first
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import presage
from presage.domain.catalog import open_domain
from presage.domain.domain import Domain
from presage.errors import ConfigError
from presage.files import atomic_write, check_writable, parse_json, read_bytes
from presage.inference.hub import BUNDLED, SUFFIX
from presage.networks.network import Network
from presage.networks.weights import load_model_file, save_model
from presage.training.config import TrainConfig, ValidationConfig
from presage.training.evaluation import (
    Calibration,
    Evaluation,
    Notify,
    evaluate_network,
    fit_temperature,
    format_curve,
    format_scores,
    weak_spots,
)
from presage.training.export import about, fit_summaries, model_of_run, read_config
from presage.training.progress import LOG, read_log

__all__ = ["release"]

DATASETS = 50
OOD_DATASETS = 2000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CURVES = {
    "auprc": "AUPRC",
    "f1": "F1",
    "confounded": "AUPRC of hidden causes",
    "sign": "sign of effects",
    "auprc_obs": "AUPRC observational",
    "auprc_int": "AUPRC interventional",
    "f1_obs": "F1 observational",
    "f1_int": "F1 interventional",
}
"""Keys that a validation logs, and their names on a card."""


@dataclass(frozen=True)
class _Source:
    """The source of a release: the network, the metadata of its file, its configuration and its runs by stage."""

    network: Network
    metadata: dict[str, Any]
    config: TrainConfig
    stages: tuple[Path, ...]


def release(
    run: str | Path,
    name: str,
    *,
    out: str | Path = ".",
    domains: Sequence[str] = (),
    variables: Sequence[int] = (),
    datasets: int = DATASETS,
    ood_datasets: int = OOD_DATASETS,
    force: bool = False,
    notify: Notify = lambda text: None,
) -> dict[str, Any]:
    """Release the averaged weights of a run as the model `name`; returns the record.

    run: a run folder, whose run need not have ended, or a model file or the name of a bundled model to be evaluated and
    released again. domains: what to evaluate on, in addition to the training domain. variables: numbers of variables of
    the held-out datasets; by default that of the run's validation. datasets: how many in each set.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"a model's name consists of letters, digits, dots, hyphens and underscores, not {name!r}")
    path, folder = Path(out) / f"{name}{SUFFIX}", Path(out) / "records" / name
    if path.exists() and not force:
        raise ConfigError(f"{path} already exists; choose another name or folder, or overwrite it (--force)")
    source = _open(str(run), notify)
    places = _domains(source.config.domain, domains)
    settings = _held_out(source.config, datasets)
    if any(d < 2 for d in variables):
        raise ConfigError("held-out datasets need at least two variables")
    fitted = dataclasses.replace(source.config, ood_datasets=ood_datasets)  # checks the number
    check_writable(path)
    notify("fitting the temperature")
    calibration = fit_temperature(source.network, source.config.domain, settings)
    temperature = calibration.temperature if calibration.improves else 1.0
    evaluation = evaluate_network(
        source.network, places, settings, variables=variables, temperature=temperature, notify=notify
    )
    notify("fitting the out-of-distribution check")
    summaries = fit_summaries(fitted, source.network) if ood_datasets else None
    record = _record(name, source, evaluation, calibration)
    record["stages"] = [_counters(stage) for stage in source.stages] or _earlier_stages(folder)
    kept = {key: value for key, value in source.metadata.items() if key not in ("temperature", "summaries")}
    metadata = {
        **kept,
        "name": name,
        "train": {**source.metadata["train"], "config": _portable(source.config).to_json()},
        "card": _card(name, source, record),
        **({"temperature": temperature} if calibration.improves else {}),
        **({"summaries": summaries} if summaries else {}),
    }
    save_model(path, source.network, metadata)
    record["model_sha256"] = _sha256(path)
    with atomic_write(path.with_name(f"{path.name}.sha256")) as file:
        file.write(f"{record['model_sha256']}  {path.name}\n".encode())
    _write_record(folder, record, source.stages)
    return record


def _open(run: str, notify: Notify) -> _Source:
    folder = Path(run)
    if folder.is_dir() and ((folder / "checkpoints").exists() or (folder / "config.json").exists()):
        network, metadata, warning = model_of_run(folder)
        if warning is not None:
            notify(warning)
        return _Source(network, metadata, read_config(folder), _stages(folder))
    bundled = BUNDLED / f"{run}{SUFFIX}"
    path = bundled if bundled.is_file() else folder
    if not path.is_file():
        raise ConfigError(f"{run!r} is neither a run folder, a model file nor the name of a bundled model")
    network, metadata = load_model_file(path)
    try:
        config = TrainConfig.from_json(metadata["train"]["config"])
    except (KeyError, TypeError) as error:
        raise ConfigError(f"{path} does not state how it was trained, so it cannot be evaluated") from error
    return _Source(network, metadata, config, ())


def _stages(folder: Path) -> tuple[Path, ...]:
    """The run in a folder and the runs it was initialised from, one after the other, as far as their folders exist."""
    found = [folder]
    while (start := read_config(found[0]).init_from) is not None:
        before = Path(start).parent
        if not (before / "config.json").is_file() or before in found:
            break
        found.insert(0, before)
    return tuple(found)


def _domains(own: Domain, names: Sequence[str]) -> list[Domain]:
    found = [own]
    for name in names:
        domain = open_domain(name)
        if domain.kind != own.kind:
            raise ConfigError(f"the model takes {own.kind} values, so it cannot be evaluated on the domain {name!r}")
        if domain not in found:
            found.append(domain)
    return found


def _held_out(config: TrainConfig, datasets: int) -> ValidationConfig:
    if datasets < 2:
        raise ConfigError(f"an evaluation needs at least 2 datasets in each set, not {datasets}")
    return dataclasses.replace(config.validation, datasets=datasets)


def _portable(config: TrainConfig) -> TrainConfig:
    """A configuration without paths of this machine: a bundled model is named, any other one left out."""
    path = Path(config.init_from) if config.init_from is not None else None
    bundled = path is not None and path.suffix == SUFFIX and (BUNDLED / path.name).is_file() and path.parent == BUNDLED
    return dataclasses.replace(config, init_from=path.stem if path is not None and bundled else None)


def _record(name: str, source: _Source, evaluation: Evaluation, calibration: Calibration) -> dict[str, Any]:
    train = source.metadata["train"]
    return {
        "name": name,
        "source_sha256": _source_sha256(),
        "model_sha256": "",
        "stages": [],
        "datasets": train["datasets"] + train["pretraining_datasets"],
        "core_minutes": round(train["core_minutes"] + train["pretraining_core_minutes"], 1),
        "validation": train["validation"],
        "calibration": {**dataclasses.asdict(calibration), "applied": calibration.improves},
        "stream": "validation",
        "scores": evaluation.scores,
        "calibration_curve": evaluation.calibration_curve,
    }


def _counters(stage: Path) -> dict[str, Any]:
    entries = read_log(stage)
    return {name: entries[-1].get(name, 0) if entries else 0 for name in ("step", "datasets", "core_minutes")}


def _earlier_stages(folder: Path) -> list[dict[str, Any]]:
    """The stages of an earlier record of the name: a model file that is released again has no logs."""
    try:
        found = parse_json(read_bytes(folder / "record.json"))["stages"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return list(found)


def _card(name: str, source: _Source, record: dict[str, Any]) -> dict[str, Any]:
    validation = source.config.validation
    earlier = source.metadata.get("card") or {}
    curves = {title: content for title, content in earlier.items() if title.startswith("learning curve")}
    if source.stages:
        curves = {f"learning curve (d = {validation.d}, n = {validation.n})": _learning_curve(source.stages)}
    sections = {
        "about": about(source.config.domain) + _initialised(source),
        "held-out scores (mean ± standard error)": format_scores(record["scores"]),
        "weak spots": weak_spots(record["scores"]),
        "calibration (all pairs of all sets above)": format_curve(record["calibration_curve"]),
        **curves,
        "evaluate again": f"presage release {name}{SUFFIX} {name} --out again",
    }
    return {title: content for title, content in sections.items() if content}


def _initialised(source: _Source) -> str:
    """The bundled model that a stage was initialised from: what it was trained on matters out of distribution."""
    configs = [read_config(stage) for stage in source.stages] or [source.config]
    names = [config.init_from for config in map(_portable, configs) if config.init_from is not None]
    return f"; initialised from the model {names[0]}" if names else ""


def _learning_curve(stages: Sequence[Path]) -> list[dict[str, Any]]:
    """The validations of all stages, one after the other."""
    found, earlier = [], 0.0
    for stage in stages:
        entries = read_log(stage)
        for entry in entries:
            if entry["event"] == "validation":
                scores = {title: f"{entry[key]:.3f}" for key, title in _CURVES.items() if key in entry}
                found.append({"core-minutes": f"{earlier + entry['core_minutes']:.0f}", **scores})
        earlier += entries[-1]["core_minutes"] if entries else 0.0
    return found


def _write_record(folder: Path, record: dict[str, Any], stages: Sequence[Path]) -> None:
    """Write the record with configuration and log of every stage; an earlier record of the name is replaced."""
    for number, stage in enumerate(stages, start=1):
        with atomic_write(folder / str(number) / "config.json") as file:
            file.write((json.dumps(_portable(read_config(stage)).to_json(), indent=2) + "\n").encode())
        with atomic_write(folder / str(number) / LOG) as file:
            file.write("".join(json.dumps(entry) + "\n" for entry in read_log(stage)).encode())
    for left in folder.iterdir() if folder.is_dir() and stages else ():
        if left.is_dir() and left.name.isdigit() and int(left.name) > len(stages):
            shutil.rmtree(left)
    with atomic_write(folder / "record.json") as file:
        file.write((json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode())


def _source_sha256() -> str:
    """One checksum over the source of the package, so that a record names the code that made it."""
    root = Path(presage.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
