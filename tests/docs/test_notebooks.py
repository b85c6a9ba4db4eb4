"""The notebooks of the documentation run from start to end."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="the notebooks need the extra dev")
    nbformat = pytest.importorskip("nbformat", reason="the notebooks need the extra dev")
    if path.stem == "single-cell":
        pytest.importorskip("anndata", reason="the notebook on single cells needs the extra anndata")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    shown = [output.get("data", {}).get("text/html", "") for cell in code for output in cell.outputs]
    assert any("<img" in text for text in shown), "the result shows its picture"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    import json

    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def test_there_are_notebooks_for_tables_and_single_cells() -> None:
    assert {path.stem for path in NOTEBOOKS} == {"single-cell", "tables"}
