"""Odd tables as people have them, one line each: what is read, which kinds, which sentence."""

from __future__ import annotations

import datetime
import decimal
import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from presage.columns import ColumnKind
from presage.errors import InputError
from presage.inference.inputs import Inputs, read_inputs

NAN = float("nan")
RNG = np.random.default_rng(5)
N = 24
NUMBERS = RNG.normal(size=N).round(3)
FRAME = pd.DataFrame({"a": NUMBERS, "b": RNG.normal(size=N)})
LINES = [f"{value},{2 * value + k % 5}" for k, value in enumerate(NUMBERS)]


class Odd(NamedTuple):
    """A table, and what is expected of its column `name`: values or codes, kind, a part of a sentence."""

    data: Any
    name: str | None
    values: list[float] | None = None
    kind: str | None = None
    sentence: str | None = None
    options: Mapping[str, Any] = MappingProxyType({})


def csv(*lines: str, encoding: str = "utf-8", end: str = "\n") -> bytes:
    return end.join(lines).encode(encoding)


def column(cells: list[Any], **options: Any) -> pd.DataFrame:
    """Two columns of numbers and one more; the cells are repeated to N rows."""
    repeated = (cells * N)[:N]
    return FRAME.assign(c=pd.Series(repeated, **options))


def arrow_intervals() -> pd.Series:
    """A column of an Arrow type that has no counterpart in NumPy or pandas."""
    pyarrow = pytest.importorskip("pyarrow")
    cells = pyarrow.array([(1, 2, 3)] * N, type=pyarrow.month_day_nano_interval())
    return pd.Series(pd.arrays.ArrowExtensionArray(cells))


def words(*levels: str) -> pd.DataFrame:
    return column(list(levels), dtype=object)


FILES: dict[str, Odd] = {
    "decimal commas": Odd(csv("a;b", "1,5;2", "2,5;3", "3,5;9"), "a", [1.5, 2.5, 3.5]),
    "quoted decimal commas": Odd(csv("a,b", '"1,5","2"', '"2,25","3"', '"3,5","9"'), "a", [1.5, 2.25, 3.5]),
    "quoted decimal commas of three digits": Odd(
        csv("a,b", '"1,234","0,5"', '"2,345","1,5"', '"3,456","2,5"'), "a", [1.234, 2.345, 3.456]
    ),
    "thousands separators": Odd(
        csv("a,b", '"1,234",2', '"12,345",3', '"1,234,567",9'), "a", [1234, 12345, 1234567], "count"
    ),
    "thousands and decimals": Odd(csv("a,b", '"1,234.5",2', '"2,345.25",3', "7.5,9"), "a", [1234.5, 2345.25, 7.5]),
    "German thousands": Odd(csv("a;b", "1.234,5;2", "2.345,25;3", "7,5;9"), "a", [1234.5, 2345.25, 7.5]),
    "whole German thousands": Odd(csv("a;b", "1.234;2,5", "2.345;3,5", "17.345;9,5"), "a", [1234, 2345, 17345]),
    "Swiss thousands": Odd(csv("a,b", "1'234.5,2", "2'345.5,3", "7,9"), "a", [1234.5, 2345.5, 7]),
    "French thousands": Odd(csv("a;b", "1 234,5;2", "2 345,5;3", "7,5;9"), "a", [1234.5, 2345.5, 7.5]),
    "ambiguous commas": Odd(
        csv("a,b", '"1,234",2', '"2,345",3', '"3,456",9'), "a", [1234, 2345, 3456], None, "thousands separators"
    ),
    "limits of detection": Odd(
        csv("a,b", "<0.3,2", "0.5,3", ">100,9"), "a", [0.3, 0.5, 100], "continuous", "2 cells such as '<0.3'"
    ),
    "limits with decimal commas": Odd(csv("a;b", "< 0,3;2", "0,5;3", "≥100;9"), "a", [0.3, 0.5, 100]),
    "percent signs": Odd(csv("a,b", "12.5%,2", "7 %,3", "80%,9"), "a", [12.5, 7, 80]),
    "typographic minus": Odd(csv("a,b", "−1.5,2", "2.5,3", "−3.5,9"), "a", [-1.5, 2.5, -3.5]),
    "exponents": Odd(csv("a,b", "1e-3,2", "2.5E+2,3", "1E3,9"), "a", [0.001, 250, 1000]),
    "words for missing": Odd(
        csv("a,b", "n.d.,2", "k.A.,3", "-,9", "1.5,4", "?,1"), "a", [NAN, NAN, NAN, 1.5, NAN], None, "read as missing"
    ),
    "errors of a spreadsheet": Odd(
        csv("a,b", "#DIV/0!,2", "1.5,3", "#NV,9"), "a", [NAN, 1.5, NAN], None, "'#DIV/0!', '#NV' were read as missing"
    ),
    "empty cells": Odd(csv("a,b", ",2", "1.5,", "2.5,9", "3.5,1"), "a", [NAN, 1.5, 2.5, 3.5]),
    "none among numbers": Odd(csv("a,b", "none,2", "1.5,3", "2.5,9", "4,4"), "a", [NAN, 1.5, 2.5, 4]),
    "byte-order mark": Odd(csv("a,b", "1,2", "2,5", "4,3", encoding="utf-8-sig"), "a", [1, 2, 4]),
    "UTF-16": Odd(csv("ä,b", "1,2", "2,5", "4,3", encoding="utf-16"), "ä", [1, 2, 4]),
    "UTF-16 without a mark": Odd(csv("a,b", "1,2", "2,5", "4,3", encoding="utf-16-le"), "a", [1, 2, 4]),
    "big-endian UTF-16": Odd(csv("a,b", "1,2", "2,5", "4,3", encoding="utf-16-be"), "a", [1, 2, 4]),
    "UTF-32": Odd(csv("a,b", "1,2", "2,5", "4,3", encoding="utf-32"), "a", [1, 2, 4]),
    "Windows-1252": Odd(
        csv("Größe €,b", "1,2", "2,5", "4,3", encoding="cp1252"), "Größe €", [1, 2, 4], None, "Windows"
    ),
    "Latin-1 control bytes": Odd("é\x81,b\n1,2\n2,5\n4,3".encode("latin-1"), "é", [1, 2, 4], None, "Latin-1"),
    "old Mac line ends": Odd(csv("a,b", "1,2", "2,5", "4,3", end="\r"), "a", [1, 2, 4]),
    "Windows line ends": Odd(csv("a,b", "1,2", "2,5", "4,3", end="\r\n"), "a", [1, 2, 4]),
    "blank lines": Odd(csv("", "a,b", "", "1,2", "2,5", "", "4,3", ""), "a", [1, 2, 4]),
    "separator line of Excel": Odd(csv("sep=;", "a;b", "1;2", "2;5", "4;3"), "a", [1, 2, 4]),
    "title above the header": Odd(
        csv("Measurements of 2024", "", "a,b,c", "1,2,3", "2,5,9", "4,3,1"),
        "a",
        [1, 2, 4],
        None,
        "1 line was skipped above",
    ),
    "comment above the header": Odd(csv("# by the lab", "a,b,c", "1,2,3", "2,5,9", "4,3,1"), "a", [1, 2, 4]),
    "separator at the end": Odd(csv("a,b,", "1,2,", "2,5,", "4,3,"), "a", [1, 2, 4]),
    "bars as separators": Odd(csv("a|b", "1|2", "2|5", "4|3"), "a", [1, 2, 4]),
    "tabs in a csv": Odd(csv("a\tb", "1\t2", "2\t5", "4\t3"), "a", [1, 2, 4]),
    "blanks around cells": Odd(csv(" a , b ", " 1 , 2 ", " 2 , 5 ", " 4 , 3 "), "a", [1, 2, 4]),
    "quotes everywhere": Odd(csv('"a","b"', '"1","2"', '"2","5"', '"4","3"'), "a", [1, 2, 4]),
    "commas in a name": Odd(csv('"a, first",b', "1,2", "2,5", "4,3"), "a, first", [1, 2, 4]),
    "line break in a name": Odd(csv('"a\nfirst",b', "1,2", "2,5", "4,3"), "a first", [1, 2, 4], None, "control char"),
    "no header": Odd(csv("1,2", "2,5", "4,3"), "x0", [1, 2, 4], None, "first line"),
    "no header, decimal commas": Odd(csv("1,5;2", "2,5;5", "4,5;3"), "x0", [1.5, 2.5, 4.5], None, "first line"),
    "huge number": Odd(csv("a,b", "1e400,2", "2,5", "4,3"), None, None, None, "infinite"),
    "absurd exponent": Odd(csv("a,b", "1e2147483648,2", "2,5", "4,3"), None, None, None, "infinite"),
    "numbers in quotes of text": Odd(csv("a,b", "'1.5,2", "'2.5,5", "'4,3"), "a", [1.5, 2.5, 4]),
}

TABLES: dict[str, Callable[[], Odd]] = {
    "two words": lambda: Odd(words("no", "yes", "yes"), "c", [0, 1, 1], "binary"),
    "two words, the negative one last": lambda: Odd(words("positive", "negative"), "c", [1, 0], "binary"),
    "truth values as text": lambda: Odd(words("True", "False"), "c", [1, 0], "binary"),
    "truth values and None": lambda: Odd(column([True, None, False], dtype=object), "c", [1, NAN, 0], "binary"),
    "truth values and NA": lambda: Odd(column([True, None, False], dtype="boolean"), "c", [1, NAN, 0], "binary"),
    "few words": lambda: Odd(words("red", "green", "blue"), "c", [2, 1, 0], "nominal"),
    "few words and unknown": lambda: Odd(words("red", "green", "blue", "Unknown"), "c", [2, 1, 0, NAN], "nominal"),
    "none as a level": lambda: Odd(words("none", "mild", "severe"), "c", [1, 0, 2], "nominal"),
    "words with blanks": lambda: Odd(words("red ", " red", "blue", "green"), "c", [2, 2, 0, 1], "nominal"),
    "ordered category": lambda: Odd(
        FRAME.assign(c=pd.Categorical(["mid", "low", "high"] * 8, ["low", "mid", "high"], ordered=True)),
        "c", [1, 0, 2], "ordinal",
    ),
    "ordered category of two": lambda: Odd(
        FRAME.assign(c=pd.Categorical(["old", "new"] * 12, ["old", "new"], ordered=True)), "c", [0, 1], "ordinal"
    ),
    "unordered category": lambda: Odd(FRAME.assign(c=pd.Categorical(["u", "v", "w"] * 8)), "c", [0, 1, 2], "nominal"),
    "category of numbers": lambda: Odd(FRAME.assign(c=pd.Categorical([3, 1, 2] * 8)), "c", [2, 0, 1], "nominal"),
    "category with an unused level": lambda: Odd(
        FRAME.assign(c=pd.Categorical(["u", "w"] * 12, ["u", "v", "w"])), "c", [0, 1], "binary"
    ),
    "one and two": lambda: Odd(column([1, 2, 2]), "c", [0, 1, 1], "binary"),
    "one and minus one": lambda: Odd(column([1.0, -1.0]), "c", [1, 0], "binary"),
    "stages": lambda: Odd(column([1, 2, 3, 4]), "c", [0, 1, 2, 3], "ordinal"),
    "few of many whole numbers": lambda: Odd(column([0, 7, 30, 200]), "c", [0, 7, 30, 200], "count"),
    "negative whole numbers": lambda: Odd(column([-9, 7, 30, 200]), "c", [-9, 7, 30, 200], "continuous"),
    "shuffled identifier": lambda: Odd(
        FRAME.assign(c=RNG.permutation(N) + 5000), None, None, None, "'c': left out because it only numbers the rows"
    ),
    "identifier by name": lambda: Odd(
        FRAME.assign(patient_id=RNG.choice(10**6, N, replace=False)), None, None, None, "'patient_id': left out"
    ),
    "identifier of repeated visits": lambda: Odd(
        pd.concat([FRAME.assign(subjectID=np.arange(N) * 7)] * 2, ignore_index=True), None, None, None, "'subjectID'"
    ),
    "identifier of letters": lambda: Odd(
        FRAME.assign(c=[f"P{k:03d}" for k in range(N)]), None, None, None, "every row has its own text"
    ),
    "identifier kept": lambda: Odd(
        FRAME.assign(c=np.arange(N) + 100), "c", list(range(100, 100 + N)), "continuous", None,
        {"roles": {"c": "continuous"}},
    ),
    "ranks are no identifiers": lambda: Odd(FRAME.rank(), "a", FRAME["a"].rank().tolist(), "count"),
    "free text": lambda: Odd(
        FRAME.assign(c=[f"patient said {k // 2}" for k in range(N)]), "c", [0, 0, 1, 1], "nominal"
    ),
    "many notes": lambda: Odd(
        FRAME.assign(c=[f"patient said {k}" for k in range(N)]), None, None, None, "free text or too many levels"
    ),
    "dates": lambda: Odd(FRAME.assign(c=pd.date_range("2020-01-01", periods=N)), None, None, None, "'c': left out"),
    "dates as text": lambda: Odd(
        FRAME.assign(c=[f"{k + 1:02d}.03.2021" for k in range(N)]), None, None, None, "dates or times"
    ),
    "dates kept as days": lambda: Odd(
        FRAME.assign(c=[f"{k + 1:02d}.03.2021" for k in range(N)]), "c", list(range(N)), "continuous", None,
        {"roles": {"c": "continuous"}},
    ),
    "times of day": lambda: Odd(words("12:30", "13:45:10", "7:00"), None, None, None, "dates or times"),
    "empty text column": lambda: Odd(column([None], dtype=object), "c", [NAN, NAN]),
    "decimals": lambda: Odd(column([decimal.Decimal("1.5"), decimal.Decimal("2.25"), 7]), "c", [1.5, 2.25, 7]),
    "signalling NaN": lambda: Odd(
        column([decimal.Decimal("sNaN"), decimal.Decimal("2.5"), 7, 1]), "c", [NAN, 2.5, 7, 1]
    ),
    "nullable integers": lambda: Odd(column([4, None, 9, 1], dtype="Int64"), "c", [4, NAN, 9, 1]),
    "arrow numbers": lambda: Odd(column([4.5, None, 9, 1], dtype="float64[pyarrow]"), "c", [4.5, NAN, 9, 1]),
    "arrow text": lambda: Odd(column(["u", None, "v"], dtype="string[pyarrow]"), "c", [0, NAN, 1], "binary"),
    "mixed types": lambda: Odd(column([1, "2", 3.5, None, "4,5"], dtype=object), "c", [1, 2, 3.5, NAN, 4.5]),
    "numbers and the same as text": lambda: Odd(column([1.0, "1", "x1", "x2"], dtype=object), "c", [0, 0, 1, 2]),
    "bytes": lambda: Odd(column([b"u", b"v"], dtype=object), "c", [0, 1], "binary"),
    "lists in cells": lambda: Odd(column([[1], [2], [3]], dtype=object), "c", [0, 1, 2], "nominal"),
    "10**400": lambda: Odd(column([10**400, 1, 2], dtype=object), None, None, None, "infinite"),
    "10**400 and one other number": lambda: Odd(column([10**400, 1], dtype=object), None, None, None, "infinite"),
    "10**5000": lambda: Odd(column([10**5000, 1.5, 2, 7, 3], dtype=object), None, None, None, "infinite"),
    "-10**5000": lambda: Odd(column([-(10**5000), 1], dtype=object), None, None, None, "infinite"),
    "durations kept as days": lambda: Odd(
        column(list(pd.to_timedelta([36, 12, 24], unit="h"))), "c", [1.5, 0.5, 1], "continuous", None,
        {"roles": {"c": "continuous"}},
    ),
    "dates before the first that pandas knows": lambda: Odd(
        column([datetime.date(1, 1, 1), datetime.date(9999, 1, 1)], dtype=object), None, None, None,
        "cannot be read as days, such as '0001-01-01'", {"roles": {"c": "continuous"}},
    ),
    "arrow intervals": lambda: Odd(
        FRAME.assign(c=arrow_intervals()), None, None, None, "'c': left out because it holds the same text"
    ),
    "masked text": lambda: Odd(np.ma.masked_array([["u", "v"]] * 3, False), None, None, None, "not numbers"),
    "complex objects": lambda: Odd(column([1j, 2.0], dtype=object), None, None, None, "complex"),
    "excluded typo": lambda: Odd(
        column([1, 2, "3x"], dtype=object), "a", None, None, None, {"exclude": ["c"]}
    ),
    "two excluded in one string": lambda: Odd(column([1, 2, "3x"], dtype=object), "a", None, None, None,
                                              {"exclude": "b,c"}),
    "typo read as a level": lambda: Odd(
        column([1, 2, "3x"], dtype=object), "c", [0, 1, 2], "nominal", None, {"roles": {"c": "nominal"}}
    ),
    "scale of words": lambda: Odd(
        words("high", "low", "medium"), "c", [2, 0, 1], "ordinal", None, {"roles": {"c": "ordinal"}}
    ),
    "scale of intervals": lambda: Odd(
        words("18-65", "<18", ">65"), "c", [1, 0, 2], "ordinal", None, {"roles": {"c": "ordinal"}}
    ),
    "scale given": lambda: Odd(
        words("ja", "nein", "teils"), "c", [2, 0, 1], "ordinal", None, {"roles": {"c": ["nein", "teils", "ja"]}}
    ),
    "scale given on the command line": lambda: Odd(
        words("ja", "nein", "teils"), "c", [2, 0, 1], "ordinal", None, {"roles": {"c": "nein<teils<ja"}}
    ),
    "numbers as levels": lambda: Odd(
        column([10, 30, 20]), "c", [0, 2, 1], "nominal", None, {"roles": {"c": "nominal"}}
    ),
    "environment by name": lambda: Odd(
        words("north", "south", "west"), "c", [0, 1, 2], "environment", None, {"environment": "c"}
    ),
    "environment by role": lambda: Odd(
        column([2021, 2022, 2023]), "c", [0, 1, 2], "environment", None, {"roles": {"c": "environment"}}
    ),
    "environment by labels": lambda: Odd(
        FRAME, "environment", [1, 0, 1], "environment", None, {"environment": ["u2", "u1"] * 12}
    ),
    "environment that never changes": lambda: Odd(
        FRAME, "a", None, None, "same environment", {"environment": ["u"] * N}
    ),
    "a name that is taken": lambda: Odd(
        FRAME.rename(columns={"a": "environment"}), "environment 2", [0, 1], "environment", None,
        {"environment": [1, 2] * 12},
    ),
    "lone surrogates in a name": lambda: Odd(
        FRAME.rename(columns={"a": "x\ud800y"}), "x y", None, None, "control characters"
    ),
    "overlong name": lambda: Odd(FRAME.rename(columns={"a": "x" * 9000}), "x" * 200 + "…", None, None, "overlong"),
    "names equal once cleaned": lambda: Odd(
        FRAME.rename(columns={"a": "x\ty", "b": "x\ny"}), "x y 2", FRAME["b"].tolist(), None, "control"
    ),
}  # fmt: skip


def check(odd: Odd, found: Inputs) -> None:
    assert odd.name is None or odd.name in found.dataset.names
    if odd.sentence is not None:
        assert any(odd.sentence in note for note in found.notes), found.notes
    if odd.name is None:
        return
    j = found.dataset.names.index(odd.name)
    if odd.values is not None:
        read = np.where(found.dataset.missing[:, j], NAN, found.dataset.x[:, j])[: len(odd.values)]
        np.testing.assert_allclose(read, (odd.values * N)[: len(read)], rtol=1e-12)
    if odd.kind is not None:
        assert ColumnKind(found.column_kinds[j]).name.lower() == odd.kind


def run(odd: Odd, data: Any) -> None:
    if odd.name is None and odd.sentence is not None and not odd.sentence.startswith(("'", "every", "free", "dates")):
        with pytest.raises(InputError, match=odd.sentence) as caught:
            read_inputs(data, **odd.options)
        assert "\n" not in str(caught.value)
        return
    check(odd, read_inputs(data, **odd.options))


@pytest.mark.parametrize("name", FILES)
def test_odd_files(name: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(FILES[name].data)
    run(FILES[name], tmp_path / "t.csv")


@pytest.mark.parametrize("name", TABLES)
def test_odd_tables(name: str) -> None:
    odd = TABLES[name]()
    run(odd, odd.data)


def test_there_are_more_than_sixty() -> None:
    assert len(FILES) + len(TABLES) >= 60


def test_compressed_text_is_read_like_text(tmp_path: Path) -> None:
    odd = FILES["Windows-1252"]
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(odd.data))
    check(odd, read_inputs(tmp_path / "t.csv.gz"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"exclude": ["z"]}, "no column 'z' in the data"),
        ({"exclude": 3}, "exclude must be a list"),
        ({"roles": {"z": "nominal"}}, "no column 'z' in the data"),
        ({"roles": ["a"]}, "roles must be a dictionary"),
        ({"roles": {"a": "cause"}}, "the role 'cause' of 'a' is unknown; roles: continuous, count"),
        ({"roles": {"a": "nominal"}, "exclude": ["a"]}, "is excluded and has the role 'nominal'"),
        ({"roles": {"a": "count"}}, "'a' cannot be counts"),
        ({"roles": {"a": "binary"}}, "distinct values, so it is not binary"),
        ({"roles": {"c": "binary"}}, "3 levels"),
        ({"roles": {"c": "continuous"}}, "'c' holds text"),
        ({"roles": {"c": "ordinal"}}, "list them from low to high"),
        ({"roles": {"c": ["x", "y"]}}, "lacks the levels 'z'"),
        ({"environment": "z"}, "no column 'z' that could hold the environment"),
        ({"environment": ["u"]}, "1 labels of environments for 24 rows"),
        ({"environment": 3}, "environment cannot be int"),
        ({"environment": "a", "roles": {"a": "nominal"}}, "cannot be the environment"),
        ({"roles": {"a": "intervention", "b": "intervention"}}, "only one column"),
        ({"exclude": ["a", "b", "c"]}, "no column of numbers"),
        ({"unmeasured_targets": "ignore"}, "'environment' or 'drop'"),
    ],
)
def test_contradicting_choices_get_a_sentence(options: dict[str, Any], sentence: str) -> None:
    table = words("x", "y", "z")
    with pytest.raises(InputError, match=sentence):
        read_inputs(table, **options)
