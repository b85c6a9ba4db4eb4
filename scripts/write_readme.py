"""Write the results of the bundled models into README.md, from records/ and the paper's tables.

    python scripts/write_readme.py

`presage release` writes the records of models, `presage bench ... --records records/bench` the tidy csv files.
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import Any

import pandas as pd

from presage.baselines.registry import BASELINES
from presage.bench.paper import paper_value

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- results -->\n", "<!-- /results -->"
WIDTH = 118
FAMILIES = ("linear", "rff", "grn")
EXTRA = ("confounded_auprc", "effect_sign", "effect_correlation")
SECTIONS = ("interventional", "observational")
BENCH = ROOT / "records" / "bench"


def paper(domain: str, d: int, section: str, metric: str) -> str:
    """The paper's value for its network trained on the family of a domain, or an empty string."""
    family, ood = domain.removesuffix("-ood"), domain.endswith("-ood")
    if metric == "ece":
        table = "fig:calibration-avici"
    elif metric == "auprc":
        if domain == "rff":  # the only in-distribution AUPRC in the paper
            ablated = paper_value("tab:ablation", section, "avici:main", "rff", metric)
            return "" if ablated is None else f"{ablated.mean:.3f}"
        if not ood:
            return ""
        transfer = paper_value("tab:benchmark-transfer-linear-rff", section, f"avici:{family}", family, metric)
        if transfer is not None:  # over thirty datasets; the table of probabilistic metrics has ten
            return f"{transfer.mean:.3f}"
        table = "tab:benchmark-30-prob"
    else:
        table = "tab:benchmark-100" if d == 100 else "tab:benchmark-30" if ood else "tab:benchmark-30-indist"
    if not ood and metric == "ece":
        return ""
    value = paper_value(table, section, "avici", family, metric)
    return "" if value is None else f"{value.mean:.3f}"


def _acyclic(records: dict[str, dict[str, Any]]) -> str:
    """The share of graphs that are acyclic at a plain threshold, by model, in a sentence."""
    shares = {}
    for name, record in records.items():
        entries = [row for row in record["scores"] if row.get("acyclic") is not None]
        total = sum(row["datasets"] for row in entries)
        shares[name] = sum(row["acyclic"] * row["datasets"] for row in entries) / total
    listed = ", ".join(f"`{name}` {share:.0%}" for name, share in shares.items())
    return f"The edges above 0.5 alone are acyclic in these shares of the datasets: {listed}."


def _origins() -> str:
    """Sentences on what the models of the paper's domains have seen, from the configurations of their first stages."""
    configs = {name: ROOT / "records" / name / "1" / "config.json" for name in FAMILIES}
    started = {name: json.loads(path.read_text())["init_from"] for name, path in configs.items()}
    sentences = []
    if warm := [f"`{name}`" for name in FAMILIES if started[name] is not None]:
        sentences.append(
            f"{_listed(warm)}: initialised from `general` and then trained on the own domain only; the results "
            "out of distribution are therefore not comparable with those of the paper, whose networks saw one domain."
        )
    if alone := [f"`{name}`" for name in FAMILIES if started[name] is None]:
        sentences.append(f"{_listed(alone)}: not trained on out-of-distribution data.")
    return " ".join(sentences)


def _listed(names: list[str]) -> str:
    """Names in a sentence: "a, b and c"."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def rows_of(record: dict[str, Any]) -> dict[tuple[str, int, str], dict[str, Any]]:
    """The scores of a record by domain, number of variables and kind of rows."""
    return {(row["domain"], row["d"], row["set"]): row for row in record["scores"]}


def table(records: dict[str, dict[str, Any]]) -> list[str]:
    """One line per domain, number of variables and kind of rows: the paper, the model of the domain, broad models."""
    broad = {name: rows_of(record) for name, record in records.items() if name not in FAMILIES}
    columns = ["domain", "d", "rows", "paper: F1 / AUPRC / ECE", ", ".join(f"`{name}`" for name in FAMILIES)]
    columns += [f"`{name}`" for name in broad]
    lines = [_line(columns), _line(["---"] * len(columns))]
    for family in FAMILIES:
        own = rows_of(records[family])
        for domain, d in ((family, 30), (f"{family}-ood", 30), (f"{family}-ood", 100)):
            for section in SECTIONS:
                if (row := own.get((domain, d, section))) is None:
                    continue
                reported = " / ".join(paper(domain, d, section, metric) or "–" for metric in ("f1", "auprc", "ece"))
                if d == 100:
                    reported = paper(domain, d, section, "f1")
                others = [_ours(rows.get((domain, d, section))) for rows in broad.values()]
                lines.append(_line([domain, str(d), section, reported, _ours(row), *others]))
    return lines


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ours(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    f1, auprc = (f"{row[name]:.3f} ± {row[f'{name}_error']:.3f}" for name in ("f1", "auprc"))
    return f"{f1} / {auprc} / {row['ece']:.3f}"


def third_party() -> str:
    """A table of AUPRC by group of third-party datasets, from the results of `presage bench folder`."""
    frame = pd.read_csv(BENCH / "folder-third-party" / "results.csv")
    groups = list(dict.fromkeys(frame["column"].sort_values()))
    sizes = frame.groupby("column")["domain"].nunique()
    answered = frame[(frame["status"] == "ok") & (frame["row"] != "empty")]
    means = answered.groupby(["row", "column"])["auprc"].agg(["mean", "count"])
    rates = answered.drop_duplicates("domain").groupby("column")["base_rate"].mean()
    lines = [_line(["AUPRC", *(f"{group} ({sizes[group]})" for group in groups), "mean of groups"])]
    lines += [_line(["---"] * (len(groups) + 2))]
    complete = [row for row in means.index.unique("row") if set(means.loc[row].index) == set(groups)]
    partial = [row for row in means.index.unique("row") if row not in complete]
    for row in sorted(complete, key=lambda row: -means.loc[row, "mean"].mean()) + partial:
        cells = [_score(means, (row, group), sizes[group]) for group in groups]
        mean = f"{means.loc[row, 'mean'].mean():.3f}" if row in complete else ""
        lines.append(_line([_title(row), *cells, mean]))
    lines.append(_line(["base rate", *(f"{rates[group]:.3f}" for group in groups), f"{rates.mean():.3f}"]))
    return "\n".join(lines)


def _score(means: pd.DataFrame, key: tuple[str, str], size: int) -> str:
    if key not in means.index:
        return ""
    mean, count = means.loc[key, ["mean", "count"]]
    return f"{mean:.3f}" + (f" ({count:.0f}/{size})" if count < size else "")


def _title(row: str) -> str:
    name, _, model = row.partition(":")
    return f"`{model}`" if name == "presage" else BASELINES[name].title


def proteins() -> str:
    """A sentence about the Sachs data, from the results of `presage bench sachs`."""
    frame = pd.read_csv(BENCH / "sachs" / "results.csv")
    frame = frame[frame["status"] == "ok"].set_index(["section", "row"])
    sentences = []
    for section, start in (("observational", "Without"), ("interventional", "With")):
        scores = [
            f"{_title(row)} F1 {frame.loc[(section, row), 'f1']:.2f}, SHD {frame.loc[(section, row), 'shd']:.0f}"
            for row in ("presage:general", "presage:scm", "presage:rff", "grasp", "ges", "gies", "igsp")
            if (section, row) in frame.index
        ]
        sentences.append(f"{start} intervention labels: {'; '.join(scores)}.")
    return f"Protein data of Sachs et al. (17 edges). {' '.join(sentences)}"


def strata(record: dict[str, Any]) -> str:
    """The held-out scores of the general model by stratum."""
    columns = ["stratum", "AUPRC", "F1", "ECE", "AUPRC of hidden causes", "sign of effects", "correlation of effects"]
    lines = [_line(columns), _line(["---"] * len(columns))]
    for row in record["scores"]:
        if row["domain"] == "general":
            extra = [f"{row[name]:.3f}" if row.get(name) is not None else "" for name in EXTRA]
            auprc, f1 = (f"{row[name]:.3f} ± {row[f'{name}_error']:.3f}" for name in ("auprc", "f1"))
            lines.append(
                _line([f"{row['set'].replace('_', ' ')}, d = {row['d']}", auprc, f1, f"{row['ece']:.3f}", *extra])
            )
    return "\n".join(lines)


def read_records() -> dict[str, dict[str, Any]]:
    """The records of the bundled models, by name."""
    paths = {path.parent.name: path for path in sorted((ROOT / "records").glob("*/record.json"))}
    names = [*FAMILIES, *(name for name in paths if name not in FAMILIES)]
    return {name: json.loads(paths[name].read_text()) for name in names}


def fill_in(readme: str, records: dict[str, dict[str, Any]]) -> str:
    """The README with the results of `records` between its two markers."""
    spent = ", ".join(f"`{name}` {record['core_minutes']:.0f}" for name, record in records.items())
    instances = {row["datasets"] for record in records.values() for row in record["scores"] if row["d"] == 30}
    large = {row["datasets"] for record in records.values() for row in record["scores"] if row["d"] == 100}
    broad = [name for name in records if name not in FAMILIES]
    parts = [
        "### Third-party datasets",
        fill(
            "AUPRC on datasets that others simulated or measured, by group (number of datasets); none was used in "
            "training or to choose anything. Other methods are run with their usual settings and a limit of 300 s; a "
            "score with a fraction is over the datasets answered in time.",
            WIDTH,
        ),
        third_party(),
        fill(proteins(), WIDTH),
        "### The default model on its own domain",
        fill(
            "`general` on held-out datasets of each stratum of its domain (mean ± standard error; the last three "
            "columns: hidden common causes, and signed effects of the true edges).",
            WIDTH,
        ),
        strata(records["general"]),
        "### The domains of the paper",
        fill(
            "F1 / AUPRC / ECE on held-out datasets with n = 1000; half of the rows are interventional in the lines "
            f"marked so. Mean ± standard error over {_span(instances)} datasets with d = 30 and {_span(large)} with "
            "d = 100. The paper's networks were trained on eight GPUs for four days each. Training times of the "
            f"bundled models in minutes of one CPU core: {spent}. F1 is that of the most probable acyclic graph. "
            f"{_acyclic(records)} `general` is evaluated on datasets of the validation stream that training and "
            "calibration did not use, the others on the test stream (`python scripts/score_test_stream.py`).",
            WIDTH,
        ),
        "\n".join(table(records)),
        fill(
            f"{_listed([f'`{name}`' for name in broad])}: trained on broad domains that cover most of what is out "
            f"of distribution for the other three models, so these numbers do not measure generalisation. {_origins()} "
            "Outlier handling was tuned on validation data from the shifted domains.",
            WIDTH,
        ),
        fill(
            "`python scripts/write_readme.py` writes this section from `records/`. `presage release` evaluates a model "
            "on held-out datasets and writes its record; `presage bench` regenerates every table and figure of the "
            "paper (docs/reproduce.md).",
            WIDTH,
        ),
    ]
    before, rest = readme.split(START, 1)
    return before + START + "\n\n".join(parts) + "\n" + END + rest.split(END, 1)[1]


def _span(numbers: set[int]) -> str:
    return " or ".join(str(number) for number in sorted(numbers))


def main() -> None:
    """Replace the text between the markers."""
    readme = ROOT / "README.md"
    readme.write_text(fill_in(readme.read_text(), read_records()))


if __name__ == "__main__":
    main()
