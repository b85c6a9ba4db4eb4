"""Good inputs in every container give the same dataset, and nothing the user passed is modified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from presage.errors import DataError
from presage.inference.inputs import data_warnings, looks_like_counts, read_inputs
from presage.types import Dataset

NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(30, 4))


@pytest.fixture
def targets() -> list[Any]:
    return [None] * 20 + ["b"] * 5 + [["c", "d"]] * 5


@pytest.fixture
def mask() -> np.ndarray:
    mask = np.zeros((30, 4), dtype=bool)
    mask[20:25, 1] = True
    mask[25:, 2:] = True
    return mask


def containers(x: np.ndarray, folder: Path) -> dict[str, Any]:
    anndata = pytest.importorskip("anndata")
    polars = pytest.importorskip("polars")
    from scipy.sparse import csr_matrix

    frame = pd.DataFrame(x, columns=NAMES)
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "with_index.csv")
    frame.to_csv(folder / "t.tsv", sep="\t", index=False)
    frame.to_csv(folder / "t.csv.gz", index=False)
    frame.to_csv(folder / "semicolon.csv", sep=";", index=False)
    frame.to_csv(folder / "european.csv", sep=";", decimal=",", index=False)
    frame.to_csv(folder / "bom.csv", index=False, encoding="utf-8-sig")
    frame.to_csv(folder / "spaces.txt", sep=" ", index=False)
    frame.to_parquet(folder / "t.parquet")
    np.savez(folder / "t.npz", x=x, names=np.array(NAMES))
    var = pd.DataFrame(index=NAMES)
    obs = pd.DataFrame(index=[f"cell{k}" for k in range(len(x))])
    adata = anndata.AnnData(X=x.copy(), obs=obs, var=var)
    adata.write_h5ad(folder / "t.h5ad")
    sparse = anndata.AnnData(X=csr_matrix(x), obs=obs.copy(), var=var.copy())
    files = ("t.csv", "with_index.csv", "t.tsv", "t.csv.gz", "semicolon.csv", "european.csv", "bom.csv", "spaces.txt",
             "t.parquet", "t.npz", "t.h5ad")  # fmt: skip
    return {
        "frame": frame,
        "polars": polars.DataFrame({name: x[:, j] for j, name in enumerate(NAMES)}),
        "lazy": polars.LazyFrame({name: x[:, j] for j, name in enumerate(NAMES)}),
        "adata": adata,
        "sparse adata": sparse,
        "dict": {name: x[:, j] for j, name in enumerate(NAMES)},
        "structured": np.array([tuple(row) for row in x], dtype=[(name, float) for name in NAMES]),
        "dataset": Dataset(x=x, names=tuple(NAMES)),
        "objects": pd.DataFrame(x, columns=NAMES).astype(object),
        **{name: folder / name for name in files},
    }


def test_every_container_gives_the_same_dataset(x: np.ndarray, tmp_path: Path) -> None:
    for name, data in containers(x, tmp_path).items():
        found = read_inputs(data)
        np.testing.assert_allclose(found.dataset.x, x, rtol=1e-12, err_msg=name)
        assert list(found.dataset.names) == NAMES, name
        assert found.dataset.kind == "real", name
        expected = ("an unnamed column that only numbers the rows was left out",) if name == "with_index.csv" else ()
        assert found.notes == expected, name


def test_tensors_of_types_that_numpy_lacks(x: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    rounded = torch.tensor(x, dtype=torch.bfloat16)
    np.testing.assert_array_equal(read_inputs(rounded).dataset.x, rounded.double().numpy())
    for data in (torch.tensor(x).to_sparse(), torch.tensor(x, requires_grad=True)):
        np.testing.assert_array_equal(read_inputs(data).dataset.x, x)
    with pytest.raises(DataError, match="complex"):
        read_inputs(torch.tensor(x, dtype=torch.complex64))


def test_unnamed_containers(x: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    from scipy.sparse import csr_array

    for data in (x, x.tolist(), np.ma.masked_array(x), csr_array(x), torch.tensor(x), x.astype(object)):
        found = read_inputs(data).dataset
        np.testing.assert_array_equal(found.x, x)
        assert found.names == ("x0", "x1", "x2", "x3")


@pytest.mark.parametrize("form", ["mask", "ints", "list", "lists", "strings", "column", "frame", "file", "names file",
                                  "partial frame", "positions", "series", "npz", "obs column", "bools"])  # fmt: skip
def test_every_form_of_interventions(
    form: str, x: np.ndarray, mask: np.ndarray, targets: list[Any], tmp_path: Path
) -> None:
    frame = pd.DataFrame(x, columns=NAMES)
    data: Any = frame
    given: Any
    joined = ["" if t is None else t if isinstance(t, str) else "+".join(t) for t in targets]
    if form == "mask":
        given = mask
    elif form == "ints":
        given = mask.astype(int)
    elif form == "bools":
        given = mask.tolist()
    elif form == "list":
        given = targets
    elif form == "lists":
        given = [[] if t is None else [t] if isinstance(t, str) else t for t in targets]
    elif form == "strings":
        given = ["control" if t == "" else t for t in joined]
    elif form == "series":
        given = pd.Series(joined)
    elif form == "column":
        data, given = frame.assign(target=joined), "target"
    elif form == "frame":
        given = pd.DataFrame(mask.astype(int), columns=NAMES)
    elif form == "partial frame":
        given = pd.DataFrame(mask[:, [3, 2, 1]].astype(int), columns=["d", "c", "b"])
    elif form == "positions":
        given = [-1 if t is None else 1 if t == "b" else [2, 3] for t in targets]
    elif form == "file":
        pd.DataFrame(mask.astype(int), columns=NAMES).to_csv(tmp_path / "mask.csv", index=False)
        given = tmp_path / "mask.csv"
    elif form == "names file":
        pd.DataFrame({"target": joined}).replace("", "none").to_csv(tmp_path / "names.csv", index=False)
        given = str(tmp_path / "names.csv")
    elif form == "npz":
        np.savez(tmp_path / "t.npz", x=x, interventions=mask, names=np.array(NAMES))
        data, given = tmp_path / "t.npz", None
    else:
        anndata = pytest.importorskip("anndata")
        obs = pd.DataFrame({"guide": joined}, index=[f"c{k}" for k in range(30)])
        data, given = anndata.AnnData(X=x.copy(), obs=obs, var=pd.DataFrame(index=NAMES)), "guide"
    found = read_inputs(data, given).dataset
    np.testing.assert_array_equal(found.interventions, mask)
    assert list(found.names) == NAMES


def test_dataset_through_anndata_keeps_its_interventions(x: np.ndarray, mask: np.ndarray) -> None:
    pytest.importorskip("anndata")
    dataset = Dataset(x=x, interventions=mask, names=tuple(NAMES))
    np.testing.assert_array_equal(read_inputs(dataset.to_anndata()).dataset.interventions, mask)


def test_layers_are_chosen_by_name(x: np.ndarray) -> None:
    anndata = pytest.importorskip("anndata")
    from scipy.sparse import csr_matrix

    counts = np.random.default_rng(1).poisson(3.0, size=x.shape)
    adata = anndata.AnnData(X=x.copy(), layers={"counts": csr_matrix(counts)})
    found = read_inputs(adata, layer="counts")
    np.testing.assert_array_equal(found.dataset.x, counts)
    assert found.countlike
    with pytest.raises(DataError, match="no layer 'raw'; its layers: 'counts'"):
        read_inputs(adata, layer="raw")


def test_a_column_of_numbers_can_hold_the_targets(x: np.ndarray) -> None:
    frame = pd.DataFrame(x, columns=NAMES).assign(which=[-1] * 20 + [0] * 5 + [3] * 5)
    found = read_inputs(frame, "which").dataset
    assert found.names == tuple(NAMES)
    assert found.interventions.sum(axis=0).tolist() == [5, 0, 0, 5]


def test_missing_cells_are_masked_not_dropped(x: np.ndarray) -> None:
    x[3, 1] = np.nan
    frame = pd.DataFrame(x, columns=NAMES).convert_dtypes()
    for data in (x, frame, np.ma.masked_invalid(x)):
        found = read_inputs(data)
        assert found.dataset.n == 30
        assert np.argwhere(found.dataset.missing).tolist() == [[3, 1]]
        assert data_warnings(found.dataset) == [
            "0.8% of the cells are missing; missing cells are ignored; no rows were dropped"
        ]


def test_inputs_are_never_modified(x: np.ndarray, mask: np.ndarray) -> None:
    x[0, 0] = np.nan
    frame, before = pd.DataFrame(x.copy(), columns=NAMES).assign(t="a"), x.copy()
    copy = frame.copy(deep=True)
    values, given = x, mask.copy()
    read_inputs(values, given)
    read_inputs(frame, "t")
    np.testing.assert_array_equal(values, before)
    np.testing.assert_array_equal(given, mask)
    pd.testing.assert_frame_equal(frame, copy)
    assert values.flags.writeable


def test_headless_files_get_default_names(x: np.ndarray, tmp_path: Path) -> None:
    np.savetxt(tmp_path / "t.csv", x, delimiter=",")
    found = read_inputs(tmp_path / "t.csv")
    np.testing.assert_allclose(found.dataset.x, x)
    assert found.dataset.names == ("x0", "x1", "x2", "x3")
    assert "first line" in found.notes[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[0, 3], [5, 1]]), True),
        (np.array([[0.0, 3.0], [np.nan, 1.0]]), True),
        (np.array([[0, 1], [1, 0]]), False),
        (np.array([[True, False]]), False),
        (np.array([[-1, 3]]), False),
        (np.array([[0.5, 3.0]]), False),
        (np.array([[7, 3]], dtype=np.uint8), True),
    ],
)
def test_counts_are_recognised(values: np.ndarray, expected: bool) -> None:
    assert looks_like_counts(values) is expected
