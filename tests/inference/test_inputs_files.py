"""Files: spreadsheets, sizes that are claimed or hidden by compression, damaged files."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from presage.errors import DataError, PresageError
from presage.inference.inputs import read_inputs, read_table, sheet_sizes
from presage.types import Dataset

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(30, 4)), columns=list("abcd")).assign(group=["u", "v", "w"] * 10)


@pytest.fixture(params=[".xlsx", ".ods"])
def engine(request: pytest.FixtureRequest) -> tuple[str, Any]:
    if request.param == ".xlsx":
        pytest.importorskip("openpyxl")
        return ".xlsx", "openpyxl"
    pytest.importorskip("odf")
    return ".ods", "odf"


def test_spreadsheets_are_read_like_text(engine: tuple[str, Any], tmp_path: Path) -> None:
    suffix, writer = engine
    frame = FRAME.assign(day=pd.date_range("2020-01-01", periods=30), value=["<0.3", 1.5, None, "n.d.", 7] * 6)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_excel(tmp_path / f"t{suffix}", index=False, engine=writer)
    text, sheet = read_inputs(tmp_path / "t.csv"), read_inputs(tmp_path / f"t{suffix}")
    np.testing.assert_allclose(sheet.dataset.x, text.dataset.x, rtol=1e-12)
    np.testing.assert_array_equal(sheet.dataset.missing, text.dataset.missing)
    assert sheet.dataset.names == text.dataset.names == (*"abcd", "group", "value")
    assert sheet.roles == text.roles
    assert sheet.notes == text.notes


def test_titles_empty_rows_and_other_sheets(engine: tuple[str, Any], tmp_path: Path) -> None:
    suffix, writer = engine
    path = tmp_path / f"t{suffix}"
    with pd.ExcelWriter(path, engine=writer) as book:
        pd.DataFrame().to_excel(book, sheet_name="empty")
        top = pd.DataFrame([["Measurements", None, None], [None] * 3, ["p", "q", "r"]])
        body = pd.DataFrame(RNG.normal(size=(12, 3)))
        pd.concat([top, body]).to_excel(book, sheet_name="data", header=False, index=False)
        FRAME.to_excel(book, sheet_name="other", index=False)
    found = read_inputs(path)
    assert found.dataset.names == ("p", "q", "r")
    np.testing.assert_allclose(found.dataset.x, body.to_numpy(), rtol=1e-12)
    assert found.notes[0] == "1 row was skipped above the names of the columns"
    assert found.notes[1] == "only the sheet 'data' was read; other sheets: 'empty', 'other'"


def test_repeated_names_in_a_spreadsheet_are_refused(engine: tuple[str, Any], tmp_path: Path) -> None:
    suffix, writer = engine
    FRAME.rename(columns={"b": "a"}).to_excel(tmp_path / f"t{suffix}", index=False, engine=writer)
    with pytest.raises(DataError, match="more than once: 'a'"):
        read_inputs(tmp_path / f"t{suffix}")


def test_decompressed_bytes_count(tmp_path: Path) -> None:
    content = b"a,b\n" + b"1.0,2.0\n2.0,5.0\n" * 200_000
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content))
    np.savez_compressed(tmp_path / "t.npz", x=np.zeros((100_000, 4)))
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 3_000_000)
    for name in ("t.csv.gz", "t.npz", "t.xlsx"):
        assert (tmp_path / name).stat().st_size < 100_000
        with pytest.raises(DataError, match=r"of data once it is decompressed, more than the limit of 1 MB"):
            read_inputs(tmp_path / name, max_bytes=1_000_000)
    assert read_inputs(tmp_path / "t.csv.gz", max_bytes=10_000_000).dataset.n == 400_000


def npy(shape: tuple[int, ...], content: bytes = b"") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def test_claimed_sizes_are_checked_before_anything_is_allocated(tmp_path: Path) -> None:
    (tmp_path / "t.npy").write_bytes(npy((10**6, 3 * 10**6)))
    with pytest.raises(DataError, match="24 TB of data"):
        read_inputs(tmp_path / "t.npy")
    (tmp_path / "t.npy").write_bytes(npy((100, 4), b"x" * 80))
    with pytest.raises(DataError, match="cut off: its header announces 3,200 bytes, but only 80 follow"):
        read_inputs(tmp_path / "t.npy")
    for shape, sentence in (((10**6, 3 * 10**6), "24 TB"), ((100, 4), "shorter than its header says")):
        with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
            archive.writestr("x.npy", npy(shape, b"x" * 80))
        with pytest.raises(DataError, match=sentence):
            read_inputs(tmp_path / "t.npz")


def test_an_npz_with_other_members_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", x=FRAME[list("abcd")].to_numpy())
    with zipfile.ZipFile(tmp_path / "t.npz", "a") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(DataError, match=r"holds 'readme.txt', which is not an array"):
        read_inputs(tmp_path / "t.npz")


def test_sparse_files_with_wrong_indices_are_refused(tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    h5py = pytest.importorskip("h5py")
    from scipy.sparse import csc_matrix, csr_matrix

    counts = RNG.poisson(1.0, size=(30, 4)).astype(float)
    for make in (csr_matrix, csc_matrix):
        for key, value in (("indices", 10**6), ("indices", -5), ("indptr", 10**6)):
            path = tmp_path / "t.h5ad"
            anndata.AnnData(X=make(counts)).write_h5ad(path)
            np.testing.assert_array_equal(read_inputs(path).dataset.x, counts)
            with h5py.File(path, "a") as file:
                file["X"][key][1] = value
            with pytest.raises(DataError, match=r"damaged|cannot be read as h5ad"):
                read_inputs(path)


def test_sparse_matrices_with_wrong_indices_are_refused() -> None:
    from scipy.sparse import coo_matrix, csr_array

    for make, part in ((csr_array, "indices"), (coo_matrix, "col"), (coo_matrix, "row")):
        matrix = make(np.eye(5))
        getattr(matrix, part)[2] = 10**6
        with pytest.raises(DataError, match="outside its shape"):
            read_inputs(matrix)


def test_hdf5_that_is_no_anndata_is_named(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("anndata")
    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        file["x"] = np.eye(3)
    with pytest.raises(DataError, match="an HDF5 file, but not AnnData: it has no 'obs'"):
        read_inputs(tmp_path / "t.h5ad")
    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        file.create_group("obs"), file.create_group("var")
        file.create_dataset("X", shape=(10**7, 10**6), dtype="f8", chunks=(1, 1000))
    with pytest.raises(DataError, match="80 TB of data"):
        read_inputs(tmp_path / "t.h5ad")


def test_odd_metadata_of_parquet_is_ignored(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: FRAME[name].to_numpy() for name in "abcd"})
    for metadata in (b"not json", json.dumps({"index_columns": ["nowhere"], "columns": []}).encode()):
        pq.write_table(table.replace_schema_metadata({"pandas": metadata}), tmp_path / "t.parquet")
        assert read_inputs(tmp_path / "t.parquet").dataset.names == tuple("abcd")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("a,b\n1,2\n3,4\n", "the text of a table was given where the path"),
        ("a\x00b.csv", "the text of a table was given where the path"),
        ("x" * 5000 + ".csv", "is not the path of a file"),
        ("\ud800.csv", "no file|not the path of a file"),
    ],
)
def test_odd_paths_get_one_sentence(path: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence) as caught:
        read_inputs(path)
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


def contents(folder: Path) -> dict[str, bytes]:
    FRAME.to_csv(folder / "t.csv", index=False)
    FRAME.to_csv(folder / "t.tsv.gz", index=False, sep="\t")
    FRAME.to_parquet(folder / "t.parquet")
    np.savez(folder / "t.npz", x=FRAME[list("abcd")].to_numpy(), names=np.array(list("abcd")))
    np.save(folder / "t.npy", FRAME[list("abcd")].to_numpy())
    names = ["t.csv", "t.tsv.gz", "t.parquet", "t.npz", "t.npy"]
    try:
        FRAME.to_excel(folder / "t.xlsx", index=False)
        names.append("t.xlsx")
    except ImportError:
        pass
    return {name: (folder / name).read_bytes() for name in names}


def damaged(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    place = rng.randrange(len(data))
    kind = rng.randrange(4)
    if kind == 0:
        del data[place:]
    elif kind == 1:
        data[place:place] = rng.randbytes(rng.randrange(1, 30))
    else:
        for _ in range(rng.choice((1, 3, 20))):
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def test_damaged_files_give_a_table_or_an_error_of_the_package(tmp_path: Path) -> None:
    """HDF5 is left out: its library may crash the process, which is why the page reads uploads in another one."""
    rng = random.Random(0)
    refused = 0
    for name, content in contents(tmp_path).items():
        for _ in range(40):
            (tmp_path / name).write_bytes(damaged(content, rng))
            try:
                table = read_table(tmp_path / name)
            except PresageError as error:
                refused += 1
                assert "\n" not in str(error)  # noqa: PT017 - both outcomes are allowed
            else:
                assert table.values.dtype.kind in "fiub"
    assert refused > 50


def test_one_cell_far_from_the_table_is_refused_before_all_cells_between_are_read(
    engine: tuple[str, Any], tmp_path: Path
) -> None:
    suffix, writer = engine
    path, far = tmp_path / f"t{suffix}", tmp_path / f"far{suffix}"
    FRAME.to_excel(path, index=False, engine=writer)
    near = b'r="B2"' if suffix == ".xlsx" else b"<table:table-cell "
    away = b'r="XFD1048576"' if suffix == ".xlsx" else b'<table:table-cell table:number-columns-repeated="1000000000" '
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(far, "w") as target:
        for member in source.infolist():
            content = source.read(member)
            name = "content.xml" if suffix == ".ods" else "xl/worksheets/sheet1.xml"
            target.writestr(member.filename, content.replace(near, away, 1) if member.filename == name else content)
    with pytest.raises(DataError, match=r"spans .* columns, but fills only 1\d\d cells; delete the cells beyond"):
        read_inputs(far)
    assert read_inputs(path).dataset.n == 30


def test_spans_of_sheets_are_found_across_pieces_and_empty_repeats_do_not_count(
    engine: tuple[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suffix, writer = engine
    path = tmp_path / f"t{suffix}"
    FRAME.to_excel(path, index=False, engine=writer)
    member = "content.xml" if suffix == ".ods" else "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(path) as archive:
        content = archive.read(member)
    if suffix == ".xlsx":
        for size in (300, 1 << 22):
            monkeypatch.setattr(sheet_sizes, "_PIECE", size)
            assert sheet_sizes._xlsx_sheet(io.BytesIO(content)) == (31, 5, 155)
        return
    padding = (
        b'<table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row></table:table>'
    )
    padded = content.replace(b"</table:table>", padding, 1)
    assert list(sheet_sizes._ods_sheets(io.BytesIO(padded))) == [(31, 5, 155)]


def test_pipes_and_devices_are_no_files(tmp_path: Path) -> None:
    for suffix in (".csv", ".csv.gz", ".xlsx", ".parquet", ".npz", ".npy", ".h5ad"):
        (tmp_path / f"device{suffix}").symlink_to("/dev/null")
        os.mkfifo(tmp_path / f"pipe{suffix}")
        (tmp_path / f"gone{suffix}").symlink_to("nowhere")
        for name, sentence in (("device", "a pipe or a device"), ("pipe", "a pipe or a device"), ("gone", "no file")):
            with pytest.raises(DataError, match=sentence):
                read_inputs(tmp_path / f"{name}{suffix}")


def test_a_separator_line_with_a_character_that_cannot_separate(tmp_path: Path) -> None:
    for mark in ("é", "🧬", '"', "'"):
        (tmp_path / "t.csv").write_text(f"sep={mark}\na{mark}b\n1{mark}2\n3{mark}1\n", encoding="utf-8")
        with pytest.raises(DataError, match="names the separator"):
            read_inputs(tmp_path / "t.csv")


@pytest.mark.parametrize("value", [5.0, float("nan"), -1.0])
def test_a_layer_of_interventions_holds_only_0_and_1(value: float) -> None:
    pytest.importorskip("anndata")
    adata = Dataset(x=FRAME[list("abcd")].to_numpy()).to_anndata()
    adata.layers["interventions"] = np.full((30, 4), value)
    with pytest.raises(DataError, match="only 0"):
        read_inputs(adata)
    with pytest.raises(DataError, match="only 0"):
        Dataset.from_anndata(adata)
