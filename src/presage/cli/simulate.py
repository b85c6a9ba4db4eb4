"""`presage simulate`: write datasets with known graphs to an npz file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from presage.domain.domain import Domain
    from presage.types import Batch

__all__ = ["simulate"]

CHUNK = 16  # datasets per step of the progress bar


def simulate(
    domain: Annotated[str, typer.Argument(help="A name of `presage domains`, or a JSON file of a domain.")],
    d: Annotated[int, typer.Option("-d", "--variables", help="Number of variables.")] = 30,
    n: Annotated[int, typer.Option("-n", "--rows", help="Number of rows, including interventional rows.")] = 200,
    interventional: Annotated[int, typer.Option("--interventional", help="Number of interventional rows.")] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Random seed.")] = 0,
    size: Annotated[int, typer.Option("--size", help="Number of datasets.")] = 1,
    out: Annotated[Path, typer.Option("-o", "--out", help="The npz file to write.")] = Path("dataset.npz"),
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Simulate datasets with known graphs.

    The file contains x, interventions, graph (row causes column), names and kind. With --size above 1, the first three
    arrays have a leading axis for datasets.

    Example: presage simulate rff -d 30 -n 150 --interventional 50 --seed 0 --size 1 -o ds.npz
    """
    from presage.domain.catalog import open_domain
    from presage.domain.domain import check_size
    from presage.files import check_writable
    from presage.rng import check_seed

    check_size(d=d, n=n, n_interventional=interventional, size=size)
    check_seed(seed)
    source = open_domain(domain)
    check_writable(out)
    batch = _sample(source, d=d, n=n, n_interventional=interventional, seed=seed, size=size)
    batch.save(out)
    edges = float(batch.graph.sum()) / size
    if as_json:
        print(json.dumps({"file": str(out), "domain": domain, "datasets": size, "rows": n, "variables": d,
                          "interventional": interventional, "seed": seed, "edges": edges}))  # fmt: skip
    else:
        what = "a dataset" if size == 1 else f"{size} datasets"
        print(f"wrote {what} of {n} rows x {d} variables with {edges:g} edges{' on average' * (size > 1)} to {out}")


def _sample(domain: Domain, *, d: int, n: int, n_interventional: int, seed: int, size: int) -> Batch:
    from rich.console import Console
    from rich.progress import track

    from presage.types import Batch

    starts: Iterable[int] = range(0, size, CHUNK)
    console = Console(stderr=True)
    if size > CHUNK and console.is_terminal:
        starts = track(starts, description="simulating", console=console, transient=True)
    parts = [
        domain.sample(
            d=d, n=n, n_interventional=n_interventional, seed=seed, size=min(CHUNK, size - start), start=start
        )
        for start in starts
    ]
    return Batch.concatenate(parts)
