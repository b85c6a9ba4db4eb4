"""Datasets with known graphs in npz files: reading them, and scoring only what their reference states.

A file holds x [n, d] and graph [d, d] (row causes column) and may hold interv or interventions [n, d] of 0/1,
missing [n, d] of 0/1, names [d], kind ("real" or "counts"), levels [d] (number of categories of a column with codes
0 .. levels - 1, or 0), unknown [d, d] of 0/1 (pairs about which the reference says nothing), confounded [d, d] of 0/1
(pairs with a hidden common cause), and group (one string).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from presage.columns import ColumnKind
from presage.errors import DataError
from presage.metrics import auprc, auprc_trapezoid, auroc, calibration_curve, evaluate
from presage.types import Dataset, read_npz

__all__ = ["GoldStandard", "base_rate", "evaluate_known", "find_gold_standards", "load_gold_standard"]


@dataclass(frozen=True, kw_only=True, eq=False)
class GoldStandard:
    """A dataset with its true graph. known: [d, d] bool, ordered pairs that are scored; never the diagonal."""

    name: str
    group: str
    data: Dataset
    known: np.ndarray


def find_gold_standards(folder: Path) -> list[Path]:
    """The npz files in a folder and its subfolders, sorted."""
    if not folder.is_dir():
        raise DataError(f"{str(folder)!r} is not a folder; name one with npz files of datasets and their true graphs")
    paths = sorted(path for path in folder.rglob("*.npz") if not path.name.startswith("."))
    if not paths:
        raise DataError(f"{str(folder)!r} holds no npz files; each dataset is one npz file with at least x and graph")
    return paths


def load_gold_standard(path: Path, root: Path | None = None) -> GoldStandard:
    """Read one file. Its group: the entry "group", else its subfolder of `root`, else its name up to the first "_"."""
    arrays = read_npz(path)
    try:
        data = _dataset(arrays)
        assert data.graph is not None
        known = _known(arrays, data.d)
    except (DataError, ValueError) as error:
        raise DataError(f"{str(path)!r} is not a dataset with a true graph: {error}") from error
    group = str(arrays["group"]) if "group" in arrays else ""
    if not group and root is not None and path.parent != root:
        group = path.parent.relative_to(root).as_posix()
    return GoldStandard(name=path.stem, group=group or path.stem.partition("_")[0], data=data, known=known)


def _dataset(arrays: dict[str, np.ndarray]) -> Dataset:
    missing = [key for key in ("x", "graph") if key not in arrays]
    if missing:
        raise DataError(f"it has no entry {missing[0]!r}; its entries: {', '.join(arrays) or 'none'}")
    optional: dict[str, Any] = {}
    if "names" in arrays:
        optional["names"] = tuple(np.ravel(arrays["names"]))
    if "kind" in arrays:
        optional["kind"] = str(arrays["kind"])
    if "levels" in arrays:
        optional["column_kinds"] = _column_kinds(arrays["levels"], arrays["x"])
    data = Dataset(
        x=arrays["x"],
        interventions=arrays.get("interv", arrays.get("interventions")),  # type: ignore[arg-type]  # None: nowhere
        missing=arrays.get("missing"),  # type: ignore[arg-type]
        graph=arrays["graph"],
        confounded=arrays.get("confounded"),
        **optional,
    )
    if np.diagonal(np.asarray(data.graph)).any():
        raise DataError("its graph has a variable that causes itself; set the diagonal to 0")
    return data


def _column_kinds(levels: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Kinds [d] of columns with these numbers of categories; the codes of discrete columns are checked."""
    if levels.shape != x.shape[1:] or levels.dtype.kind not in "iu" or (levels < 0).any():
        raise DataError(f"levels must hold one whole number of at least 0 for each of the {x.shape[1]} columns")
    for column, count in zip(x.T, levels, strict=True):
        seen = column[~np.isnan(column)]
        if count and not (np.isin(seen, np.arange(count))).all():
            raise DataError(f"a column with {count} levels must hold the codes 0 to {count - 1} only")
    discrete = np.where(levels == 2, ColumnKind.BINARY, ColumnKind.NOMINAL)
    return np.where(levels > 0, discrete, ColumnKind.CONTINUOUS).astype(np.int8)


def _known(arrays: dict[str, np.ndarray], d: int) -> np.ndarray:
    known = ~np.eye(d, dtype=bool)
    unknown = arrays.get("unknown")
    if unknown is None:
        return known
    if unknown.shape != (d, d) or unknown.dtype.kind not in "biuf" or not np.isin(unknown, (0, 1)).all():
        raise DataError(f"unknown must be a {d} x {d} table of 0 and 1")
    return np.asarray(known & (unknown == 0))


def base_rate(true_graph: np.ndarray, known: np.ndarray) -> float:
    """The share of edges among the known pairs: the AUPRC of a random ranking.

    >>> base_rate(np.array([[0, 1], [0, 0]]), ~np.eye(2, dtype=bool))
    0.5
    """
    return float(np.asarray(true_graph)[known].mean()) if known.any() else float("nan")


def evaluate_known(
    true_graph: np.ndarray, probabilities: np.ndarray, known: np.ndarray, *, acyclic: bool = False
) -> dict[str, Any]:
    """The metrics of `presage.metrics.evaluate` over the known pairs only, for arrays [d, d].

    The diagonal is not scored, so ranking metrics compare directly with `base_rate`. SHD, F1, precision, recall and
    `edges` see no edge on unknown pairs in either graph. SID needs the whole graph: NaN if a pair is unknown.
    """
    truth, guess = np.where(known, true_graph, 0), np.where(known, probabilities, 0.0)
    found = evaluate(truth, guess, acyclic=acyclic)
    pairs = truth[known], guess[known]
    if known.sum() < known.size - len(known):
        found["sid"] = float("nan")
    if known.any():
        found |= {"auroc": auroc(*pairs), "auprc": auprc(*pairs), "auprc_trapezoid": auprc_trapezoid(*pairs)}
        found["ece"] = calibration_curve(*pairs).ece
    else:
        found = dict.fromkeys([*found, "auprc_trapezoid"], float("nan"))
    return found
