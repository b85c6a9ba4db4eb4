"""The numbers behind the pictures, in Markdown: metrics under each shift, AUPRC by rows and variables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from presage.bench.experiments import Experiment
from presage.bench.tables import TITLES, format_number
from presage.metrics import mean_and_error

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["radar_grid", "scaling_grid"]


def radar_grid(experiment: Experiment, frame: pd.DataFrame) -> str:
    """One line per domain, in the order of the declaration; one column per metric."""
    lines = [
        [domain, *(_mean(metric, part[metric]) for metric in experiment.metrics)]
        for domain in dict.fromkeys(setting.domain for setting in experiment.settings)
        if len(part := frame[frame["domain"] == domain])
    ]
    return _grid(experiment.title, ["domain", *(TITLES.get(metric, metric) for metric in experiment.metrics)], lines)


def scaling_grid(experiment: Experiment, frame: pd.DataFrame) -> str:
    """One line per domain and number of variables, one column per number of rows."""
    sizes = sorted(frame["n"].unique())
    lines = [
        [str(domain), str(d), *(_mean("auprc", part.loc[part["n"] == n, "auprc"]) for n in sizes)]
        for (domain, d), part in frame.groupby(["domain", "d"], sort=False)
    ]
    return _grid(experiment.title, ["domain", "d", *(f"n = {n}" for n in sizes)], lines)


def _mean(metric: str, values: pd.Series) -> str:
    found = mean_and_error(values.to_numpy(dtype=float))
    return format_number(metric, found.mean, found.error)


def _grid(title: str, heads: list[str], lines: Iterable[list[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    shown = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"### {title}\n\n{shown}\n\nMean (standard error) over instances.\n"
