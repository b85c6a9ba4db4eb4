"""Experiments on a folder of datasets with known graphs: declaration, tables by group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from presage.baselines.registry import BASELINES
from presage.bench.experiments import Experiment, Setting
from presage.bench.gold_standards import find_gold_standards, load_gold_standard
from presage.bench.tables import (
    TITLES,
    Block,
    Cell,
    Row,
    Table,
    answered,
    best_rows,
    failures,
    format_number,
    is_trivial,
    markdown,
    method_title,
    row_labels,
)
from presage.errors import DataError
from presage.metrics import mean_and_error

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FOLDER_METRICS", "folder_experiment", "folder_tables", "recorded_folder"]

FOLDER_METRICS = ("auprc", "f1", "shd")


def folder_experiment(folder: Path) -> Experiment:
    """Every method on every dataset of a folder. All files are read here, so that bad ones are reported first.

    The experiment is named after the folder.
    """
    root = folder.resolve()
    settings = []
    for path in find_gold_standards(root):
        found = load_gold_standard(path, root)
        touched = int(found.data.interventions.any(axis=1).sum())
        settings.append(
            Setting(
                column=found.group,
                domain=path.relative_to(root).with_suffix("").as_posix(),
                section="interventional" if touched else "observational",
                d=found.data.d,
                n=found.data.n,
                n_interventional=touched,
                path=str(path),
            )
        )
    if not root.name:
        raise DataError(f"{str(folder)!r} has no name for the results; choose a folder below it")
    return recorded_folder(f"folder-{root.name}", f"Datasets with known graphs: {root.name}", tuple(settings))


def recorded_folder(name: str, title: str, settings: tuple[Setting, ...] = ()) -> Experiment:
    """The declaration of an experiment on a folder, as far as tables and pictures of its results need it."""
    return Experiment(
        name=name,
        title=title,
        kind="folder",
        settings=settings,
        metrics=FOLDER_METRICS,
        methods=tuple(BASELINES),
        instances=1,
    )


def folder_tables(experiment: Experiment, frame: pd.DataFrame) -> str:
    """Markdown: the groups, then for every metric a table of methods by groups, with the base rate beside AUPRC."""
    groups = sorted(set(frame["column"]))
    notes = [
        note for label in row_labels(frame) for note in failures(method_title(label), "", frame[frame["row"] == label])
    ]
    blocks = [_block(frame, groups, metric) for metric in experiment.metrics]
    table = Table(title="Scores by group", blocks=blocks, notes=tuple(notes), against_paper=False)
    return "\n".join([f"### {experiment.title}\n", _groups(frame, groups), markdown(table)])


def _groups(frame: pd.DataFrame, groups: list[str]) -> str:
    lines = ["| group | datasets | rows | variables | base rate |", "| --- | --- | --- | --- | --- |"]
    for group in groups:
        part = frame[frame["column"] == group].drop_duplicates("domain")
        rate = _by_dataset(frame[frame["column"] == group], "base_rate")
        lines.append(
            f"| {group} | {len(part)} | {_span(part['n'])} | {_span(part['d'])} | "
            f"{format_number('auprc', rate.mean() if len(rate) else float('nan'), None)} |"
        )
    return "\n".join([*lines, ""]) + (
        "\nEvery score leaves out the pairs about which a reference says nothing. Base rate: the share of edges among "
        "the other pairs, which is the AUPRC of a random ranking. An undirected edge of an equivalence class counts "
        "as correct if the reference has the edge. Methods that use no intervention targets see all rows without "
        "targets.\n"
    )


def _span(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return f"{low}" if low == high else f"{low}-{high}"


def _by_dataset(part: pd.DataFrame, metric: str) -> np.ndarray:
    """One value per dataset with a result."""
    return np.asarray(part.dropna(subset=[metric]).drop_duplicates("domain")[metric], dtype=float)


def _block(frame: pd.DataFrame, groups: list[str], metric: str) -> Block:
    """Methods by groups; the last column is the mean of the groups, so that a large group weighs no more."""
    best = {group: best_rows(frame[frame["column"] == group], metric) for group in groups}
    rows = []
    for label in row_labels(frame):
        mine = frame[frame["row"] == label]
        samples = {group: mine.loc[mine["column"] == group, metric].to_numpy(dtype=float) for group in groups}
        cells = [_cell(metric, sample, label in best[group]) for group, sample in samples.items()]
        cells.append(_mean_of_groups(metric, list(samples.values())))
        rows.append(Row(title=method_title(label), done=answered(mine), cells=cells, trivial=is_trivial(label)))
    if metric == "auprc":
        rates = [_by_dataset(frame[frame["column"] == group], "base_rate") for group in groups]
        cells = [*(_cell(metric, rate, False) for rate in rates), _mean_of_groups(metric, rates)]
        rows.append(Row(title="base rate", done="", cells=cells, trivial=True))
    heads = (*((group, "") for group in groups), ("mean of groups", ""))
    return Block(title=TITLES.get(metric, metric), heads=heads, rows=rows)


def _cell(metric: str, sample: np.ndarray, best: bool) -> Cell:
    found = mean_and_error(sample)
    return Cell(ours=format_number(metric, found.mean, found.error), best=best, paper="")


def _mean_of_groups(metric: str, samples: list[np.ndarray]) -> Cell:
    """The mean over groups; without a number for every group it would not be comparable between methods."""
    means = [mean_and_error(sample).mean for sample in samples]
    return Cell(ours=format_number(metric, float(np.mean(means)), None), best=False, paper="")
