"""Four tables as people have them: clinical, genes, a German spreadsheet, 150 columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest


class Case(NamedTuple):
    """A file, options of `discover`, and what is expected."""

    path: Path
    options: dict[str, Any]
    flags: list[str]
    kinds: dict[str, str]
    ignored: set[str]
    sentences: list[str]


def clinical(folder: Path) -> Case:
    rng = np.random.default_rng(0)
    n = 80
    age = rng.integers(20, 90, n)
    crp = rng.gamma(1.0, 2.0, n)
    frame = pd.DataFrame(
        {
            "patient_id": rng.permutation(n) + 100_500,
            "visit": [f"2024-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in range(n)],
            "sex": rng.choice(["female", "male"], n),
            "smoker": rng.choice(["never", "former", "current", "unknown"], n),
            "stage": rng.integers(1, 5, n),
            "hospital": rng.choice(["north", "south", "west"], n),
            "age": age,
            "crp": ["<0.3" if value < 0.3 else f"{value:.2f}" for value in crp],
            "weight": np.round(60 + 0.3 * age + rng.normal(0, 8, n), 1),
            "comment": [f"seen by doctor {k}, no remarks" for k in range(n)],
        }
    )
    frame.loc[:3, "weight"] = np.nan
    frame.to_csv(folder / "clinical.csv", index=False, na_rep="NA")
    return Case(
        folder / "clinical.csv",
        {"environment": "hospital", "roles": {"smoker": ["never", "former", "current"]}},
        ["--environment", "hospital", "--role", "smoker=never<former<current"],
        {
            "sex": "binary", "smoker": "ordinal", "stage": "ordinal", "age": "count", "crp": "continuous",
            "weight": "continuous", "hospital": "environment",
        },
        {"patient_id", "visit", "comment"},
        [
            "'patient_id': left out because it identifies rows",
            "'visit': left out because it holds dates",
            "--role comment=nominal",
            "'crp': ",
            "missing cells are ignored; no rows were dropped",
        ],
    )  # fmt: skip


def genes(folder: Path) -> Case:
    rng = np.random.default_rng(1)
    n = 90
    names = ["GATA1", "KLF1", "SPI1", "TAL1", "RUNX1"]
    frame = pd.DataFrame(rng.normal(2.0, 1.0, (n, 5)).round(4), columns=names)
    guides = ["non-targeting"] * 30 + ["GATA1"] * 20 + ["SPI1+KLF1"] * 20 + ["CEBPA"] * 20
    frame.insert(0, "barcode", [f"ACGT{k:04d}-1" for k in range(n)])
    frame["guide"] = guides
    frame.to_csv(folder / "genes.tsv", index=False, sep="\t")
    return Case(
        folder / "genes.tsv",
        {"interventions": "guide"},
        ["--interventions", "guide"],
        {**dict.fromkeys(names, "continuous"), "unmeasured target": "environment"},
        {"barcode"},
        ["20 rows have interventions on a target that is not among the variables ('CEBPA')", "'barcode': left out"],
    )


def german(folder: Path) -> Case:
    pytest.importorskip("openpyxl")
    rng = np.random.default_rng(2)
    n = 60
    rows = [["Messwerte der Klinik 2024", *[None] * 5], ["Nr.", "Größe", "Gewicht", "Preis", "Gruppe", "Datum"]]
    for k in range(n):
        price = f"{rng.integers(1, 9)}.{rng.integers(100, 999)},{rng.integers(10, 99)}"
        weight = "k.A." if k == 3 else f"{rng.normal(75, 9):.1f}".replace(".", ",")
        rows.append([k + 1, 150.5 + k % 31, weight, price, rng.choice(["A", "B", "C"]), f"{1 + k % 28:02d}.05.2024"])
    pd.DataFrame(rows).to_excel(folder / "Tabelle.xlsx", header=False, index=False)
    return Case(
        folder / "Tabelle.xlsx",
        {},
        [],
        {"Größe": "continuous", "Gewicht": "continuous", "Preis": "continuous", "Gruppe": "nominal"},
        {"Nr.", "Datum"},
        ["1 row was skipped above the names", "cells with 'k.A.' were read as missing", "'Nr.': left out"],
    )


def wide(folder: Path) -> Case:
    rng = np.random.default_rng(3)
    n = 60
    frame = pd.DataFrame(rng.normal(size=(n, 146)), columns=[f"feature {j}" for j in range(146)])
    frame.insert(0, "id", np.arange(1, n + 1))
    frame["batch"] = rng.choice(["x", "y", "z"], n)
    frame["treated"] = rng.choice([1, 2], n)
    frame["constant"] = 7.0
    frame.to_csv(folder / "wide.csv", index=False, encoding="utf-16")
    return Case(
        folder / "wide.csv",
        {"exclude": ["feature 0", "feature 1"]},
        ["--exclude", "feature 0,feature 1"],
        {**{f"feature {j}": "continuous" for j in range(2, 146)}, "batch": "nominal", "treated": "binary",
         "constant": "continuous"},
        {"id", "feature 0", "feature 1"},
        ["'id': left out because it identifies rows", "'constant': the value never changes", "fewer rows (60)"],
    )  # fmt: skip


CASES: list[Callable[[Path], Case]] = [clinical, genes, german, wide]
