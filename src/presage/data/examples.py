"""Example data: bundled simulated datasets with their true graphs, and the Sachs proteomics data.

Downloads are cached in the folder named by the environment variable PRESAGE_DATA, or else in the cache folder of the
system. Only `load_sachs` downloads anything.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from presage.errors import ConfigError, DataError
from presage.types import Dataset

__all__ = ["cache_folder", "examples", "load_example", "load_sachs", "write_examples"]

_EXAMPLES = Path(__file__).parents[1] / "assets" / "examples"
_SACHS_NAMES = ("raf", "mek", "plcg", "pip2", "pip3", "erk", "akt", "pka", "pkc", "p38", "jnk")
_SACHS_SOURCE = "https://github.com/slachapelle/dcdi/raw/master/data/perfect/sachs_intervention.zip"
_SACHS_FILES = {  # SHA-256 of the files inside the archive
    "data_interv1.npy": "1f08573a324348d4714b86340b148849e41451cd20e1921f6f80a836909cbdb2",
    "intervention1.csv": "7bf318974afcaabc1ee677f8946c74569a7e0d1e2859e3e9cb0648216d0adfcf",
    "DAG1.npy": "e9a978c0c6caf3c3524405c4aac62a9bf8e7d29e1c9e6b8b8d4d015ad5cf8fc6",
}


def examples() -> list[str]:
    """Names of the bundled datasets, one for each domain.

    >>> "rff" in examples()
    True
    """
    return sorted(path.stem for path in _EXAMPLES.glob("*.npz"))


def load_example(name: str) -> Dataset:
    """A small simulated interventional dataset of a domain, with its true graph.

    >>> load_example("rff")
    Dataset(400 rows (200 interventional) x 12 variables, real, 15 edges)
    """
    if name not in examples():
        raise ConfigError(f"there is no example {name!r}; choose one of: {', '.join(examples())}")
    return Dataset.load(_EXAMPLES / f"{name}.npz")


def write_examples(folder: str | os.PathLike[str] = _EXAMPLES) -> None:
    """Simulate the bundled examples again: seed 0 of each domain, 12 variables, 400 rows, half interventional.

    Real values are rounded to float32, which halves the files.
    """
    from presage.domain.catalog import simulate

    for name in ("linear", "linear-ood", "rff", "rff-ood", "grn", "grn-ood", "scm"):
        dataset = simulate(name, d=12, n=400, n_interventional=200, seed=0)
        if dataset.kind == "real":
            dataset = replace(dataset, x=dataset.x.astype(np.float32))
        dataset.save(Path(folder) / f"{name}.npz")


def cache_folder() -> Path:
    """The folder of downloaded data."""
    chosen = os.environ.get("PRESAGE_DATA")
    if chosen:
        return Path(chosen)
    import pooch

    return Path(pooch.os_cache("presage"))


def load_sachs() -> Dataset:
    """Flow cytometry of 11 signalling proteins in single cells (Sachs et al. 2005), log scale, with interventions.

    5846 rows, 1755 of them observational, as prepared by the authors of DCDI (MIT licence); `graph` is their
    17-edge consensus graph (other sources give 18 or 20 edges). Downloaded once; every file's checksum is verified.
    """
    files = {name: _sachs_file(name) for name in _SACHS_FILES}
    x = np.load(files["data_interv1.npy"], allow_pickle=False)
    lines = files["intervention1.csv"].read_text().splitlines()
    interventions = np.zeros(x.shape, dtype=bool)
    for row, line in enumerate(lines):
        for target in line.split(","):
            if target.strip():
                interventions[row, int(target)] = True
    graph = np.load(files["DAG1.npy"], allow_pickle=False).astype(np.int8)
    return Dataset(x=x, interventions=interventions, names=_SACHS_NAMES, graph=graph)


def _sachs_file(name: str) -> Path:
    folder = cache_folder() / "sachs"
    path = folder / name
    if not path.is_file():
        _fetch_sachs(folder)
    if not path.is_file():
        raise DataError(f"the archive of the Sachs data does not contain {name}; its source has changed")
    if hashlib.sha256(path.read_bytes()).hexdigest() != _SACHS_FILES[name]:
        raise DataError(f"{str(path)!r} does not have the checksum of the Sachs data; delete it and try again")
    return path


def _fetch_sachs(folder: Path) -> None:
    """Download the archive and extract the files listed above, and no others, into the folder."""
    import zipfile

    import pooch

    from presage.files import atomic_write

    pooch.get_logger().setLevel("WARNING")
    try:
        archive = pooch.retrieve(_SACHS_SOURCE, known_hash=None, fname="sachs_intervention.zip", path=folder)
        with zipfile.ZipFile(archive) as file:
            members = {Path(member).name: member for member in file.namelist() if "__MACOSX" not in member}
            for name in _SACHS_FILES:
                if name in members:
                    with atomic_write(folder / name) as out:
                        out.write(file.read(members[name]))
    except (OSError, ValueError, zipfile.BadZipFile) as error:  # no network, no space, not an archive
        raise DataError(
            f"the Sachs data could not be downloaded ({type(error).__name__}); download {_SACHS_SOURCE} "
            f"and put its files into {str(folder)!r}"
        ) from error
