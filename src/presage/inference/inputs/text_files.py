"""Read text tables (csv, tsv): encoding, separator, decimal comma, lines above the header, missing header."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import re
from collections import Counter
from pathlib import Path
from typing import IO, Any, NamedTuple

from presage.errors import DataError, reason
from presage.inference.inputs.frames import from_frame
from presage.inference.inputs.names import refuse_duplicates
from presage.inference.inputs.sizes import check_size, reading
from presage.inference.inputs.tables import Table

__all__ = ["read_text_file"]

_SAMPLE_LINES, _SAMPLE_CHARACTERS = 200, 1 << 22
_PIECE = 1 << 22
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "#N/A", "#NA", "NULL", "null", "<NA>"]
"""Read as missing in all columns, as pandas does, except `None`: a level of text columns may have that name."""
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_NUMBER = re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?|nan|inf", re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f]")


class _Layout(NamedTuple):
    separator: str
    above: int  # records above the header
    skipped: int  # lines above the header, with blank ones
    header: list[str]
    headless: bool
    decimal_comma: bool


def read_text_file(path: Path, suffix: str, limit: int) -> Table:
    """Read a text table; refuses repeated names."""
    import pandas as pd

    with reading(path, suffix):
        encoding, notes = _encoding(path, limit)
        layout = _layout(_sample(path, encoding), path, tab=suffix.startswith(".tsv"))
    if not layout.headless:
        refuse_duplicates([name.strip() for name in layout.header if name.strip()])
    options: dict[str, Any] = {"header": None} if layout.headless else {}
    with reading(path, suffix):
        try:
            frame = pd.read_csv(
                path,
                sep=r"\s+" if layout.separator == " " else layout.separator,
                encoding=encoding,
                decimal="," if layout.decimal_comma else ".",
                skiprows=layout.skipped,
                skipinitialspace=True,
                na_values=_MISSING,
                keep_default_na=False,
                low_memory=False,  # one type per column
                float_precision="round_trip",  # the default reader crashes the process on 1e2147483648
                **options,
            )
        except pd.errors.EmptyDataError as error:
            raise DataError(f"the file {str(path)!r} is empty") from error
        except pd.errors.ParserError as error:
            raise DataError(f"{str(path)!r} is not a table: {reason(error)}") from error
    if not isinstance(frame.index, pd.RangeIndex):
        raise DataError(f"{str(path)!r} is not a table: its rows have more cells than its header has names")
    if layout.headless:
        frame.columns = pd.Index([f"x{j}" for j in range(frame.shape[1])])
        notes.append("the first line of the file holds numbers: it was read as data, and the columns are x0, x1, ...")
    else:
        frame.columns = pd.Index([str(name).strip() for name in frame.columns])
        frame = _without_empty(frame)
    if layout.above:
        lines = "1 line was" if layout.above == 1 else f"{layout.above} lines were"
        notes.append(f"{lines} skipped above the names of the columns")
    table = from_frame(frame, decimal_comma=layout.decimal_comma)
    table.notes[:0] = notes
    return table


def _without_empty(frame: Any) -> Any:
    """The frame without the unnamed, empty column that a separator at the end of every line creates."""
    nameless = [j for j, name in enumerate(frame.columns) if name.startswith("Unnamed: ")]
    empty = {j for j in nameless if frame.iloc[:, j].isna().all()}
    return frame.iloc[:, [j for j in range(frame.shape[1]) if j not in empty]] if empty else frame


def _open(path: Path) -> IO[bytes]:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rb")  # type: ignore[return-value]  # a binary file
    return path.open("rb")


def _encoding(path: Path, limit: int) -> tuple[str, list[str]]:
    """The encoding of a text file, and a note if it is not Unicode; reads the whole file once."""
    with _open(path) as file:
        start = file.read(_PIECE)
        for mark, name in _BYTE_ORDER_MARKS:
            if start.startswith(mark):
                _decodes(file, start, name, limit, path)
                return name, []
        if b"\x00" in start[:4096]:
            name = _utf16_without_mark(start[:4096], path)
            _decodes(file, start, name, limit, path)
            return name, []
        if _CONTROL.search(start[:65536].decode("latin-1")):
            raise DataError(f"{str(path)!r} is not a text file")
        if _decodes(file, start, "utf-8", limit, path):
            return "utf-8", []
    with _open(path) as file:
        western = "cp1252" if _decodes(file, b"", "cp1252", limit, path) else "latin-1"
    title = "Windows-1252" if western == "cp1252" else "Latin-1"
    return western, [f"the file is not UTF-8; it was read as {title} (Western European)"]


def _utf16_without_mark(start: bytes, path: Path) -> str:
    even, odd = start[::2].count(0), start[1::2].count(0)
    half = len(start) / 2
    if odd > 0.7 * half and even < 0.1 * half:
        return "utf-16-le"
    if even > 0.7 * half and odd < 0.1 * half:
        return "utf-16-be"
    raise DataError(f"{str(path)!r} is not a text file")


def _decodes(file: IO[bytes], start: bytes, encoding: str, limit: int, path: Path) -> bool:
    """Whether the rest of a file is text in this encoding; refuses files that are too large once decompressed."""
    decoder = codecs.getincrementaldecoder(encoding)()
    size = 0
    piece = start
    try:
        while piece or size == 0:
            size += len(piece)
            check_size(size, limit, path)
            decoder.decode(piece)
            piece = file.read(_PIECE)
            if not piece:
                break
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        if encoding.startswith("utf-") and encoding != "utf-8":
            raise DataError(f"{str(path)!r} is not a text file: its bytes are not {encoding.upper()}") from error
        return False
    return True


def _sample(path: Path, encoding: str) -> list[str]:
    """The first lines of a file, without line ends."""
    lines: list[str] = []
    size = 0
    with _open(path) as file, io.TextIOWrapper(file, encoding=encoding, newline=None) as text:
        while len(lines) < 2 or (len(lines) < _SAMPLE_LINES and size < _SAMPLE_CHARACTERS):
            line = text.readline(1 << 26)
            if not line:
                break
            lines.append(line.rstrip("\n"))
            size += len(line)
    return lines


class _Record(NamedTuple):
    line: int  # of the file, counted from 0
    fields: list[str]


def _records(lines: list[str], separator: str, skipped: int = 0) -> list[_Record]:
    """The lines that are not blank as fields; a quoted field may hold line breaks."""
    if separator == " ":
        return [_Record(k, line.split()) for k, line in enumerate(lines) if line.strip() and k >= skipped]
    reader = csv.reader((line + "\n" for line in lines[skipped:]), delimiter=separator, skipinitialspace=True)
    found = []
    line = skipped
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                found.append(_Record(line, [field.strip() for field in fields]))
            line = skipped + reader.line_num
    except csv.Error:  # a field beyond the limit of the csv module
        return [_Record(k, text.split(separator)) for k, text in enumerate(lines) if text.strip() and k >= skipped]
    return found


def _layout(lines: list[str], path: Path, *, tab: bool) -> _Layout:
    separator, skipped = None, 0
    directive = re.fullmatch(r'"?sep=(.)"?', lines[0].strip()) if lines else None
    if directive:  # Excel's first line
        separator, skipped = directive.group(1), 1
        if not separator.isascii() or separator in "\"'":
            raise DataError(f"the first line of {str(path)!r} names the separator {separator!r}; use a comma")
    if not any(line.strip() for line in lines[skipped:]):
        raise DataError(f"the first line of {str(path)!r} is empty; it should hold the names of the columns")
    separator = "\t" if tab else separator or _separator(lines)
    records = _records(lines, separator, skipped)
    if not records:
        raise DataError(f"the first line of {str(path)!r} holds no names of columns")
    width = Counter(len(record.fields) for record in records).most_common(1)[0][0]
    # Titles and comments above the header have fewer fields than the table, and the header follows them.
    first = next(k for k, record in enumerate(records) if 2 * len(record.fields) > width)
    if first and any(_NUMBER.fullmatch(field) for field in records[first].fields):
        first = 0
    header = records[first].fields
    cells = itertools.chain.from_iterable(record.fields for record in records[first:])
    return _Layout(
        separator=separator,
        above=first,
        skipped=records[first].line,
        header=header,
        headless=all(_NUMBER.fullmatch(field) for field in header),
        decimal_comma=separator != "," and any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells),
    )


def _separator(lines: list[str]) -> str:
    """The separator that splits most lines into the same number of at least two fields, most of them numbers."""
    best, best_score = None, (0.0, 0.0, 0)
    for mark in (",", ";", "\t", "|"):
        records = _records(lines[:100], mark)
        if not records:
            continue
        width, agreeing = Counter(len(record.fields) for record in records).most_common(1)[0]
        if width > 1:
            cells = [field for record in records[:20] for field in record.fields[:100]]
            numbers = sum(_NUMBER.fullmatch(cell) is not None for cell in cells) / len(cells)
            score = (agreeing / len(records), numbers, width)
            if score > best_score:
                best, best_score = mark, score
        elif best is None and len(records[0].fields) > 1:
            best = mark
    if best is not None:
        return best
    words = [line.split() for line in lines if line.strip()]
    return " " if len(words[0]) > 1 and len(words) > 1 and len(words[1]) >= len(words[0]) else ","
