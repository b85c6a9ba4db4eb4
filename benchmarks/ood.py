"""Does the out-of-distribution check tell what a table costs? Losses of AUPRC beside scores, and false alarms.

    nice python benchmarks/ood.py [--models general,scm] [--datasets N] [--usual 200] [--folder DIR] [--out records/ood]

Shifts: datasets of the model's training domain are shifted in every way of `presage.ood.shifts`. Neither the fit of the
check (number 1) nor the choice of its settings (7, 11, 13, 17) used these datasets (19). The correlation of
the score (expected loss) with the measured loss of AUPRC is computed over the means of the shifts and over all
datasets. With --folder the third-party datasets with known graphs (up to 1,000 rows of each) are shifted as well; they
are used for this measurement only.

False alarms: usual datasets with 50 to 50,000 rows and values rounded to one to four digits (counts are not rounded),
and the same datasets with one column cut in two at its median.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from presage.bench.gold_standards import find_gold_standards, load_gold_standard
from presage.columns import ColumnKind
from presage.domain.domain import Domain
from presage.files import atomic_write
from presage.inference.hub import load_model
from presage.inference.model import Model
from presage.ood.check import Shifted, compare, measure_shifts, shift_datasets
from presage.ood.shifts import SHIFTS
from presage.ood.summaries import summarize
from presage.rng import Stream, generator
from presage.types import Dataset

NUMBER = 19
LARGE_LOSS, SMALL_LOSS = 0.2, 0.05


class Usual(NamedTuple):
    """A dataset of the training domain, perhaps rounded; digits is 0 if it is not. binary: with one binary column."""

    digits: int
    data: Dataset
    binary: Dataset


def usual_datasets(domain: Domain, count: int) -> list[Usual]:
    """Datasets with 3 to 30 variables and 50 to 50,000 rows, rounded to 1, 2, 3 and 4 digits in turn."""
    found = []
    for k in range(count):
        rng = generator(NUMBER, Stream.TEST, k)
        d, n = (int(np.exp(rng.uniform(np.log(low), np.log(high + 1)))) for low, high in ((3, 30), (50, 50_000)))
        share = rng.uniform(0.05, 0.5) if rng.random() < 0.5 else 0.0
        data = domain.sample_one(rng, d=d, n=n, n_interventional=int(share * n))
        digits = 0 if domain.kind == "counts" else 1 + k % 4
        rounded = SHIFTS[f"rounded to {digits} digits"](data, rng) if digits else data
        found.append(Usual(digits, rounded, with_binary_column(data, int(rng.integers(d)))))
    return found


def with_binary_column(data: Dataset, column: int) -> Dataset:
    """The dataset with one column cut at its median."""
    x, kinds = data.x.astype(float), data.column_kinds.copy()
    x[:, column] = x[:, column] > np.median(x[:, column])
    kinds[column] = ColumnKind.BINARY
    return replace(data, x=x, column_kinds=kinds)


def predict(model: Model, data: Dataset) -> np.ndarray:
    return model.probabilities(data.x, data.interventions, data.missing, column_kinds=data.column_kinds)


def shift_frame(model: Model, domain: Domain, datasets: int) -> pd.DataFrame:
    """One row for each shifted dataset of the domain: shift, loss, score, flagged."""
    limit = int(model.metadata["summaries"]["rows"][1])
    found = measure_shifts(
        domain, lambda data: predict(model, data), datasets=datasets, rows=(50, limit), number=NUMBER
    )
    return frame_of(model, found)


def folder_frame(model: Model, folder: Path, rows: int = 1000) -> pd.DataFrame:
    """One row for each shifted dataset of a folder, as `shift_frame`."""
    datasets = [load_gold_standard(path, folder).data for path in find_gold_standards(folder)]
    chosen = []
    for k, data in enumerate(datasets):
        kept = np.sort(generator(NUMBER, Stream.TEST, k).permutation(data.n)[:rows])
        parts = {name: getattr(data, name)[kept] for name in ("x", "interventions", "missing")}
        chosen.append(replace(data, **parts))
    limit = int(model.metadata["summaries"]["rows"][1])
    found = shift_datasets(chosen, lambda data: predict(model, data), counts=False, max_rows=limit, number=NUMBER)
    return frame_of(model, found)


def frame_of(model: Model, found: list[Shifted]) -> pd.DataFrame:
    reports = [compare(model.metadata["summaries"], item.summary) for item in found]
    return pd.DataFrame(
        {
            "shift": [item.shift for item in found],
            "loss": [item.loss for item in found],
            "score": [report.score for report in reports],
            "flagged": [report.is_ood for report in reports],
        }
    )


def usual_frame(model: Model, domain: Domain, datasets: int) -> pd.DataFrame:
    """One row for each usual dataset: digits, n, flagged, flagged with one binary column."""
    rows = []
    for digits, data, binary in usual_datasets(domain, datasets):
        rows.append((digits, data.n, is_flagged(model, data), domain.kind == "real" and is_flagged(model, binary)))
    return pd.DataFrame(rows, columns=["digits", "n", "flagged", "binary"])


def is_flagged(model: Model, data: Dataset) -> bool:
    reference = model.metadata["summaries"]
    summary = summarize(data, int(reference["rows"][1])).with_prediction(predict(model, data))
    return compare(reference, summary).is_ood


def shift_figures(shifts: pd.DataFrame) -> dict[str, Any]:
    """Correlations and detections of a frame of shifted datasets."""
    means = shifts.groupby("shift")[["loss", "score"]].mean()
    large, small = shifts[shifts["loss"] > LARGE_LOSS], shifts[shifts["loss"] < SMALL_LOSS]
    return {
        "shifts": len(means),
        "shifted datasets": len(shifts),
        "correlation over shifts": np.corrcoef(means.T)[0, 1],
        "correlation over datasets": np.corrcoef(shifts["loss"], shifts["score"])[0, 1],
        f"datasets with a loss above {LARGE_LOSS}": len(large),
        f"flagged at a loss above {LARGE_LOSS}": large["flagged"].mean(),
        f"flagged at a loss below {SMALL_LOSS}": small["flagged"].mean(),
    }


def figures(shifts: pd.DataFrame, usual: pd.DataFrame) -> dict[str, Any]:
    """The figures of a check from the frames of shifted and of usual datasets."""
    return {
        **shift_figures(shifts),
        "usual datasets": len(usual),
        "false alarms": usual["flagged"].mean(),
        **{
            f"false alarms at {digits} digits": part["flagged"].mean()
            for digits, part in usual.groupby("digits")
            if digits
        },
        "false alarms above 5,000 rows": usual.loc[usual["n"] > 5000, "flagged"].mean(),
        "false alarms with one binary column": usual["binary"].mean(),
    }


def write(frame: pd.DataFrame, path: Path) -> None:
    with atomic_write(path) as file:
        file.write(frame.to_csv(index=False, float_format="%.4f").encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="general")
    parser.add_argument("--datasets", type=int, default=40, help="datasets that are shifted in every way")
    parser.add_argument("--usual", type=int, default=200, help="datasets for false alarms")
    parser.add_argument("--folder", type=Path, help="datasets with known graphs, as for `presage bench folder`")
    parser.add_argument("--out", type=Path, help="folder for csv files of the shifts and the figures")
    options = parser.parse_args()
    for name in options.models.split(","):
        start, model = time.process_time(), load_model(name)
        domain = Domain.from_json(model.metadata["domain"])
        shifts = shift_frame(model, domain, options.datasets)
        found = figures(shifts, usual_frame(model, domain, options.usual))
        if options.folder is not None:
            others = shift_figures(folder_frame(model, options.folder))
            found |= {f"third-party datasets: {title}": value for title, value in others.items()}
        table = shifts.groupby("shift", as_index=False)[["loss", "score", "flagged"]].mean()
        table = table.sort_values("loss", ascending=False)
        print(f"## {name}\n\n| shift | loss of AUPRC | score | flagged |\n| --- | --- | --- | --- |")
        for row in table.itertuples():
            print(f"| {row.shift} | {row.loss:.3f} | {row.score:.3f} | {row.flagged:.0%} |")
        print()
        for title, value in found.items():
            print(f"{title}: {value:.3f}" if isinstance(value, float) else f"{title}: {value}")
        print(f"processor time: {time.process_time() - start:.0f} s\n", flush=True)
        if options.out is not None:
            write(table, options.out / f"{name}-shifts.csv")
            write(pd.DataFrame(found.items(), columns=["figure", "value"]), options.out / f"{name}.csv")


if __name__ == "__main__":
    main()
