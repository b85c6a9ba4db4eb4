"""`presage release`: from a run to a model file with scores, calibration, card and record."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["release"]


def release(
    run: Annotated[
        str, typer.Argument(help="A run folder (the run need not have ended), or a model to evaluate again.")
    ],
    name: Annotated[str, typer.Argument(help="The name of the model.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for NAME.safetensors and records/NAME.")] = Path("."),
    domains: Annotated[
        str, typer.Option(help="Domains to evaluate on in addition to the training domain, for example rff,rff-ood.")
    ] = "",
    variables: Annotated[
        str, typer.Option(help="Numbers of variables to evaluate, for example 30,100. Default: that of validation.")
    ] = "",
    datasets: Annotated[int, typer.Option(help="Held-out datasets in each set.")] = 50,
    ood_datasets: Annotated[
        int, typer.Option(help="Datasets that fit the out-of-distribution check; 0 leaves it out.")
    ] = 2000,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a model of that name.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
) -> None:
    """Release a trained model.

    Evaluates the averaged weights on held-out datasets (for each stratum of the domain), fits a temperature that is
    kept only if it lowers the negative log-likelihood, fits the out-of-distribution check, and writes the model file
    with its card, the record and checksums.

    Example: presage release runs/rff my-rff --out released --domains rff-ood
    """
    from rich.console import Console

    from presage.training.evaluation import format_scores
    from presage.training.release import release as release_run

    console = Console(stderr=True)
    with console.status("evaluating") as status:

        def notify(text: str) -> None:
            if console.is_terminal:
                status.update(text)
            elif text.startswith("the checkpoint"):
                print(f"presage: {text}", file=sys.stderr)

        record = release_run(
            run,
            name,
            out=out,
            domains=_listed(domains),
            variables=_numbers(variables),
            datasets=datasets,
            ood_datasets=ood_datasets,
            force=force,
            notify=notify,
        )
    if as_json:
        print(json.dumps(record))
        return
    for entry in format_scores(record["scores"]):
        print(f"{entry['domain']}, {entry['set']}, d = {entry['d']}: F1 {entry['f1']}, AUPRC {entry['auprc']}")
    print(f"wrote {out / f'{name}.safetensors'} and {out / 'records' / name}")


def _listed(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _numbers(text: str) -> list[int]:
    from presage.errors import ConfigError

    try:
        return [int(item) for item in _listed(text)]
    except ValueError as error:
        raise ConfigError(f"--variables takes whole numbers, for example 30,100, not {text!r}") from error
