"""Bundled examples and the Sachs data."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import presage
from presage.data import examples as datasets
from presage.errors import ConfigError, DataError
from presage.graphs.ops import is_acyclic

SHARED = Path(os.environ.get("PRESAGE_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture
def sachs(monkeypatch: pytest.MonkeyPatch) -> Path:
    if not (SHARED / "sachs").is_dir():
        pytest.skip("the Sachs data is not on this machine (PRESAGE_DATA)")
    monkeypatch.setenv("PRESAGE_DATA", str(SHARED))
    return SHARED / "sachs"


def test_there_is_an_example_of_every_domain() -> None:
    families = {name.split("+")[0] for name in presage.domains()}
    assert set(datasets.examples()) >= families - {"general"}  # a dataset does not carry kinds of columns yet


@pytest.mark.parametrize("name", datasets.examples())
def test_examples_are_interventional_and_have_their_truth(name: str) -> None:
    dataset = presage.load_example(name)
    assert (dataset.n, dataset.d) == (400, 12)
    assert dataset.interventions.any(axis=1).sum() == 200
    assert dataset.graph is not None
    assert dataset.graph.sum() > 5
    assert is_acyclic(dataset.graph) or name.startswith("grn")
    assert dataset.kind == ("counts" if name.startswith("grn") else "real")


def test_examples_can_be_made_again(tmp_path: Path) -> None:
    datasets.write_examples(tmp_path)
    assert sorted(path.stem for path in tmp_path.glob("*.npz")) == datasets.examples()


def test_unknown_examples_are_refused() -> None:
    with pytest.raises(ConfigError, match="choose one of: grn, "):
        presage.load_example("nothing")


def test_sachs(sachs: Path) -> None:
    dataset = presage.load_sachs()
    assert (dataset.n, dataset.d) == (5846, 11)
    assert dataset.names[:3] == ("raf", "mek", "plcg")
    assert dataset.graph is not None
    assert dataset.graph.sum() == 17
    hits = dict(zip(dataset.names, dataset.interventions.sum(axis=0).tolist(), strict=True))
    assert {name: count for name, count in hits.items() if count} == {
        "mek": 799, "pip2": 810, "pip3": 848, "akt": 911, "pkc": 723,
    }  # fmt: skip
    assert (~dataset.interventions.any(axis=1)).sum() == 1755
    # raf -> mek is in every version of the consensus graph
    assert dataset.graph[0, 1] == 1


def test_sachs_with_a_wrong_checksum_is_refused(sachs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(sachs, tmp_path / "sachs")
    damaged = tmp_path / "sachs" / "DAG1.npy"
    damaged.chmod(0o644)
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\x01")
    monkeypatch.setenv("PRESAGE_DATA", str(tmp_path))
    with pytest.raises(DataError, match="does not have the checksum"):
        presage.load_sachs()


def test_sachs_is_taken_out_of_a_fetched_archive(sachs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sachs.iterdir():
            file.write(path, f"sachs_intervention/{path.name}")
    monkeypatch.setenv("PRESAGE_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr("pooch.retrieve", lambda *args, **options: str(archive))
    assert presage.load_sachs().n == 5846
    assert {path.name for path in (tmp_path / "cache" / "sachs").iterdir()} == set(datasets._SACHS_FILES)


def test_no_network_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> str:
        raise ConnectionError("no route")

    monkeypatch.setenv("PRESAGE_DATA", str(tmp_path))
    monkeypatch.setattr("pooch.retrieve", fail)
    with pytest.raises(DataError, match=r"could not be downloaded \(ConnectionError\)"):
        presage.load_sachs()


def test_cache_folder_has_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRESAGE_DATA", raising=False)
    assert "presage" in str(datasets.cache_folder()).lower()


def test_examples_are_small() -> None:
    folder = Path(datasets.__file__).parents[1] / "assets" / "examples"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 300_000
    assert np.load(folder / "rff.npz")["x"].dtype == np.float32
