"""The numbers printed in the paper's tables, as data (paper.csv names the table of each)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["PaperValue", "paper_value"]


@dataclass(frozen=True, kw_only=True)
class PaperValue:
    """Mean and standard error as printed (error None where the paper gives none)."""

    mean: float
    error: float | None


@cache
def _values() -> dict[tuple[str, str, str, str, str], PaperValue]:
    with (Path(__file__).parents[1] / "assets" / "paper.csv").open(newline="") as file:
        return {
            (row["table"], row["section"], row["method"], row["domain"], row["metric"]): PaperValue(
                mean=float(row["mean"]),
                error=float(row["error"]) if row["error"] else None,
            )
            for row in csv.DictReader(file)
        }


def paper_value(table: str, section: str, method: str, domain: str, metric: str) -> PaperValue | None:
    """What the paper prints for a method, or None. Its own method is called "avici" there ("avici:rff": trained on).

    >>> paper_value("tab:benchmark-30", "observational", "ges", "linear", "sid")
    PaperValue(mean=215.6, error=35.0)
    """
    return _values().get((table, section, method, domain, metric))
