"""Write the results of the bundled models into README.md, from records/ and the paper's tables.

    python scripts/write_readme.py

The records are what was measured when a model was released; `presage release` writes them.
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import Any

from presage.bench.paper import paper_value

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- results -->\n", "<!-- /results -->"
WIDTH = 118
SECTIONS = ("interventional", "observational")


def paper(domain: str, d: int, section: str, metric: str) -> str:
    """The paper's number for its network trained on the family of a domain, or nothing."""
    family, ood = domain.removesuffix("-ood"), domain.endswith("-ood")
    if metric == "ece":
        table = "fig:calibration-avici"
    elif metric == "auprc":
        if domain == "rff":  # the only one in distribution that the paper prints
            ablated = paper_value("tab:ablation", section, "avici:main", "rff", metric)
            return "" if ablated is None else f"{ablated.mean:.3f}"
        if not ood:
            return ""
        transfer = paper_value("tab:benchmark-transfer-linear-rff", section, f"avici:{family}", family, metric)
        if transfer is not None:  # thirty datasets there, ten in the table of probabilistic metrics
            return f"{transfer.mean:.3f}"
        table = "tab:benchmark-30-prob"
    else:
        table = "tab:benchmark-100" if d == 100 else "tab:benchmark-30" if ood else "tab:benchmark-30-indist"
    if not ood and metric == "ece":
        return ""
    value = paper_value(table, section, "avici", family, metric)
    return "" if value is None else f"{value.mean:.3f}"


def rows_of(record: dict[str, Any]) -> dict[tuple[str, int, str], dict[str, Any]]:
    """The scores of a record by domain, number of variables and kind of rows."""
    return {(row["domain"], row["d"], row["set"]): row for row in record["scores"]}


def table(records: dict[str, dict[str, Any]]) -> list[str]:
    """One line per domain, number of variables and kind of rows: the paper's numbers, ours, and those of `scm`."""
    lines = [
        "| domain | d | rows | paper: F1 / AUPRC / ECE | `linear`, `rff`, `grn` | `scm`, the default |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    broad = rows_of(records["scm"])
    for family in ("linear", "rff", "grn"):
        own = rows_of(records[family])
        for domain, d in ((family, 30), (f"{family}-ood", 30), (f"{family}-ood", 100)):
            for section in SECTIONS:
                if (row := own.get((domain, d, section))) is None:
                    continue
                told = " / ".join(paper(domain, d, section, metric) or "–" for metric in ("f1", "auprc", "ece"))
                if d == 100:
                    told = paper(domain, d, section, "f1")
                other = broad.get((domain, d, section))
                lines.append(
                    f"| {domain} | {d} | {section} | {told} | {_ours(row)} | {_ours(other) if other else ''} |"
                )
    return lines


def _ours(row: dict[str, Any]) -> str:
    f1, auprc = (f"{row[name]:.3f} ± {row[f'{name}_error']:.3f}" for name in ("f1", "auprc"))
    return f"{f1} / {auprc} / {row['ece']:.3f}"


def read_records() -> dict[str, dict[str, Any]]:
    """What was measured when each bundled model was released."""
    names = ("linear", "rff", "grn", "scm")
    return {name: json.loads((ROOT / "records" / name / "record.json").read_text()) for name in names}


def fill_in(readme: str, records: dict[str, dict[str, Any]]) -> str:
    """The README with the results of `records` between its marks."""
    spent = ", ".join(f"`{name}` {record['core_minutes']:.0f}" for name, record in records.items())
    instances = {row["datasets"] for record in records.values() for row in record["scores"] if row["d"] == 30}
    large = {row["datasets"] for record in records.values() for row in record["scores"] if row["d"] == 100}
    proteins = "; ".join(
        f"{'with' if row['intervention_labels'] else 'without'} intervention labels: F1 {row['f1']:.3f}, "
        f"SHD {row['shd']}, {row['edges']} edges"
        for row in records["scm"].get("sachs", ())
    )
    parts = [
        fill(
            "F1 / AUPRC / ECE on held-out datasets, n = 1000 (half of the rows interventional where so marked), mean ± "
            f"standard error over {_span(instances)} datasets with d = 30, {_span(large)} with d = 100. The paper's "
            "networks had eight GPUs for four days each; ours this many minutes of one CPU core: "
            f"{spent}.",
            WIDTH,
        ),
        "\n".join(table(records)),
        fill(
            "The `scm` model is trained on a broad domain that covers most of what is out of distribution for the "
            "other three: its numbers say how it does there, not how it generalises. No weights of the other three "
            "were trained out of distribution, but how heavy tails are read was chosen on such data, on other datasets "
            "than these.",
            WIDTH,
        ),
        *([fill(f"Proteins of Sachs et al. (17 edges), `scm`, {proteins}.", WIDTH)] if proteins else []),
        fill(
            "Written by `python scripts/write_readme.py` from `records/`. `presage release` evaluates a model on "
            "held-out datasets and writes its record; `presage bench` regenerates every table and figure of the paper "
            "(docs/reproduce.md).",
            WIDTH,
        ),
    ]
    before, rest = readme.split(START, 1)
    return before + START + "\n\n".join(parts) + "\n" + END + rest.split(END, 1)[1]


def _span(numbers: set[int]) -> str:
    return " or ".join(str(number) for number in sorted(numbers))


def main() -> None:
    """Replace what stands between the marks."""
    readme = ROOT / "README.md"
    readme.write_text(fill_in(readme.read_text(), read_records()))


if __name__ == "__main__":
    main()
