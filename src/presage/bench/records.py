"""Results as data: a folder per experiment with tidy csv files and run.json, the source of tables and pictures."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from presage.bench.experiments import EXPERIMENTS, Experiment
from presage.bench.folder import recorded_folder
from presage.errors import DataError, reason
from presage.files import atomic_write, parse_json, read_bytes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RunRecord", "read_record", "write_text"]

_EXTRAS = ("calibration", "edges")
_KEY = ("section", "column", "domain", "d", "n", "row")


@dataclass(frozen=True, kw_only=True, eq=False)
class RunRecord:
    """The results of an experiment.

    results: one row per method and instance, as `presage.bench.frame.tidy` makes it, with the label of its row in
    tables. extras: tidy tables behind pictures ("calibration": bins of curves; "edges": predicted edges).
    remark: what differs from the experiment as declared.
    """

    experiment: Experiment
    results: pd.DataFrame
    extras: dict[str, pd.DataFrame] = field(default_factory=dict)
    remark: str = ""

    def save(self, folder: Path) -> list[Path]:
        """Write results.csv, a csv per extra table, and run.json."""
        tables = {"results": self.results, **self.extras}
        files = [write_text(folder / f"{name}.csv", frame.to_csv(index=False)) for name, frame in tables.items()]
        about = {
            "experiment": self.experiment.name,
            "title": self.experiment.title,
            "kind": self.experiment.kind,
            "metrics": list(self.experiment.metrics),
            "paper": self.experiment.paper,
            "remark": self.remark,
            "runs": len(self.results),
        }
        return [*files, write_text(folder / "run.json", json.dumps(about, indent=1) + "\n")]

    def merge(self, newer: RunRecord) -> RunRecord:
        """These results with those of a later run: it replaces what it has on the same methods and settings."""
        extras = {
            name: _merged(self.extras.get(name), newer.extras.get(name)) for name in {**self.extras, **newer.extras}
        }
        return RunRecord(
            experiment=newer.experiment,
            results=_merged(self.results, newer.results),
            extras=extras,
            remark=newer.remark,
        )


def read_record(folder: Path) -> RunRecord:
    """What `RunRecord.save` wrote."""
    try:
        about: dict[str, Any] = parse_json(read_bytes(folder / "run.json"))
        name, kind = str(about["experiment"]), about["kind"]
        results = _read_csv(folder / "results.csv")
        extras = {part: _read_csv(path) for part in _EXTRAS if (path := folder / f"{part}.csv").is_file()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{str(folder)!r} holds no results of a benchmark (results.csv, run.json): {reason(error)}"
        ) from error
    if kind == "folder":
        experiment = recorded_folder(name, str(about["title"]))
    elif name in EXPERIMENTS:
        experiment = EXPERIMENTS[name]
    else:
        raise DataError(f"{str(folder)!r} holds results of {name!r}, which is no experiment; delete it or rename it")
    return RunRecord(experiment=experiment, results=results, extras=extras, remark=str(about.get("remark", "")))


def _read_csv(source: Path | StringIO) -> pd.DataFrame:
    """A table with numbers as written and empty cells of text columns as empty text."""
    import pandas as pd

    frame = pd.read_csv(source, float_precision="round_trip")
    for name in ("settings", "message"):
        if name in frame.columns:
            frame[name] = frame[name].fillna("")
    return frame


def _merged(older: pd.DataFrame | None, newer: pd.DataFrame | None) -> pd.DataFrame:
    """Rows of both; where the newer has any row with the same key columns, the older rows of that key are dropped."""
    import pandas as pd

    if older is None or newer is None:
        found = newer if older is None else older
        assert found is not None
        return found
    key = [name for name in _KEY if name in newer.columns and name in older.columns]
    replaced = pd.MultiIndex.from_frame(newer[key])
    kept = older[~pd.MultiIndex.from_frame(older[key]).isin(replaced)]
    # Through csv, so that both sides have the types of a file, even for empty columns.
    merged = _read_csv(StringIO(pd.concat([kept.astype(object), newer.astype(object)]).to_csv(index=False)))
    order = [name for name in (*_KEY, "instance", "bin", "source", "target") if name in merged.columns]
    return merged.sort_values(order, kind="stable", ignore_index=True)


def write_text(path: Path, text: str) -> Path:
    """Write a text file in one step."""
    with atomic_write(path) as file:
        file.write(text.encode())
    return path
