"""Read the first sheet with data of a spreadsheet (xlsx, xlsm, ods); needs the extra `excel`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from presage.errors import DataError, require_extra
from presage.inference.inputs.frames import from_frame
from presage.inference.inputs.names import listed, refuse_duplicates
from presage.inference.inputs.sheet_sizes import check_sheets
from presage.inference.inputs.sizes import check_zip, reading
from presage.inference.inputs.tables import Table

__all__ = ["read_spreadsheet"]


def read_spreadsheet(path: Path, suffix: str, limit: int) -> Table:
    """Read a spreadsheet; rows above the names of the columns are skipped."""
    import pandas as pd

    ods = suffix == ".ods"
    require_extra("odf" if ods else "openpyxl", "excel", f"reading {suffix} files")
    with reading(path, suffix), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and validations of the workbook
        check_zip(path, limit)
        check_sheets(path, suffix, limit)
        with pd.ExcelFile(path, engine="odf" if ods else "openpyxl") as book:
            names = [str(name) for name in book.sheet_names]
            sheets = ((name, _cells(book, name)) for name in names)
            found = next(((name, cells) for name, cells in sheets if cells.size), None)
    if found is None:
        raise DataError(f"the file {str(path)!r} is empty")
    name, cells = found
    table, skipped = _table(cells)
    if len(names) > 1:
        others = [other for other in names if other != name]
        table.notes.insert(0, f"only the sheet {name!r} was read; other sheets: {listed(others)}")
    if skipped:
        rows = "1 row was" if skipped == 1 else f"{skipped} rows were"
        table.notes.insert(0, f"{rows} skipped above the names of the columns")
    return table


def _cells(book: Any, sheet: str) -> np.ndarray:
    """Cells of a sheet without empty rows and columns: object [rows, columns], None where empty."""
    frame = book.parse(sheet, header=None, dtype=object, keep_default_na=False, na_values=[""])
    cells = frame.to_numpy(dtype=object)
    blank = frame.isna().to_numpy()
    cells = np.where(blank, None, cells)
    return np.asarray(cells[~blank.all(axis=1)][:, ~blank.all(axis=0)], dtype=object)


def _table(cells: np.ndarray) -> tuple[Table, int]:
    import pandas as pd

    filled = (cells != None).sum(axis=1)  # noqa: E711 - by cells
    usual = int(np.median(filled))
    start = int(np.argmax(2 * filled > usual))
    header = [None if cell is None else str(cell).strip() for cell in cells[start]]
    headless = all(isinstance(cell, (int, float)) for cell in cells[start] if cell is not None)
    body = cells[start:] if headless else cells[start + 1 :]
    width = cells.shape[1]
    if headless:
        columns = [f"x{j}" for j in range(width)]
    else:
        refuse_duplicates([name for name in header if name])
        columns = [name or f"Unnamed: {j}" for j, name in enumerate(header)]
    frame = pd.DataFrame({j: pd.Series(body[:, j], dtype=object).infer_objects() for j in range(width)})
    frame.columns = pd.Index(columns)
    table = from_frame(frame)
    if headless:
        table.notes.append("the first row holds numbers: it was read as data, and the columns are x0, x1, ...")
    return table, start
