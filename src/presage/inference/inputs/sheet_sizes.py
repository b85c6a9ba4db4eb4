"""Sizes of sheets before they are read: one cell far from the table makes a library allocate all cells in between."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

from presage.errors import DataError
from presage.inference.inputs.sizes import check_size

__all__ = ["check_sheets"]

_PIECE, _LONGEST_TAG = 1 << 22, 256
_CELL = re.compile(rb'<(?:\w+:)?c\b[^>]{0,200}?\br="([A-Za-z]{1,12})(\d{1,12})"')
_ROW = re.compile(rb'<(?:\w+:)?row\b[^>]{0,200}?\br="(\d{1,12})"')
_DIMENSION = re.compile(rb'<(?:\w+:)?dimension\b[^>]{0,100}?\bref="[^":]*:([A-Za-z]{1,12})(\d{1,12})"')
_CELL_BYTES = 64
"""Memory of a cell while a spreadsheet is read."""
_ALWAYS_READ, _EMPTIEST = 10_000_000, 20
"""Sheets of at most so many cells are read; larger ones if at least one cell in so many is filled."""


def check_sheets(path: Path, suffix: str, limit: int) -> None:
    """Refuse a spreadsheet whose sheets span far more cells than they fill, or more than the limit of bytes."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if suffix == ".ods" and name == "content.xml":
                with archive.open(name) as file:
                    sizes = list(_ods_sheets(file))
            elif suffix != ".ods" and re.fullmatch(r"/?xl/worksheets/[^/]+\.xml", name):
                with archive.open(name) as file:
                    sizes = [_xlsx_sheet(file)]
            else:
                continue
            for rows, columns, filled in sizes:
                if rows * columns > max(_ALWAYS_READ, _EMPTIEST * filled):
                    raise DataError(
                        f"a sheet of {str(path)!r} spans {rows:,} rows and {columns:,} columns, but fills only "
                        f"{filled:,} cells; delete the cells beyond the table, or save it as .csv"
                    )
                check_size(_CELL_BYTES * rows * columns, limit, path)


def _xlsx_sheet(file: IO[bytes]) -> tuple[int, int, int]:
    """Rows and columns that a sheet of an xlsx file spans, and the number of its cells."""
    rows = columns = filled = 0
    rest = b""
    while piece := file.read(_PIECE):
        text = rest + piece
        end = 0
        for pattern in (_CELL, _DIMENSION, _ROW):
            for found in pattern.finditer(text):
                rows = max(rows, int(found.group(found.lastindex or 1)))
                if pattern is not _ROW:
                    columns = max(columns, _column_number(found.group(1)))
                filled += pattern is _CELL
                end = max(end, found.end())
        rest = text[max(end, len(text) - _LONGEST_TAG) :]
    return rows, columns, filled


def _column_number(letters: bytes) -> int:
    """The number of a column by its letters: A is 1, AA is 27."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number


def _ods_sheets(file: IO[bytes]) -> Iterator[tuple[int, int, int]]:
    """Rows and columns that the sheets of an ods file span up to their last filled cells, and how many are filled."""
    rows = columns = filled = 0
    row_end = width = at = 0
    for event, element in ElementTree.iterparse(file, events=("start", "end")):
        tag = element.tag.rpartition("}")[2]
        if tag == "table-row" and event == "start":
            width = at = 0
        elif tag in ("table-cell", "covered-table-cell") and event == "end":
            at += _repeats(element, "number-columns-repeated")
            if len(element):  # text, or anything else
                width, filled = at, filled + 1
        elif tag == "table-row":
            row_end += _repeats(element, "number-rows-repeated")
            if width:
                rows, columns = row_end, max(columns, width)
            element.clear()
        elif tag == "table" and event == "end":
            yield rows, columns, filled
            rows = columns = filled = row_end = 0
            element.clear()


def _repeats(element: ElementTree.Element, name: str) -> int:
    return next((int(value) for key, value in element.attrib.items() if key.rpartition("}")[2] == name), 1)
