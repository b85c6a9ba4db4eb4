"""`presage discover`: from a file of measurements to edges and reports."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from presage.inference.inputs import Inputs
    from presage.inference.knowledge import Knowledge
    from presage.inference.result import Result

__all__ = ["discover"]


def discover(
    context: typer.Context,
    data: Annotated[
        Path, typer.Argument(help="Measurements: csv, tsv, xlsx, ods, parquet, npz or h5ad; one column per variable.")
    ],
    interventions: Annotated[
        str | None,
        typer.Option(help="Column of the data with each row's target(s), or a file: a 0/1 mask, or names per row."),
    ] = None,
    intervention_kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="hard|soft",
            help="Whether interventions set their targets (hard, the default) or change how these depend on their "
            "causes (soft). NAME=soft for one target only; may be repeated.",
        ),
    ] = None,
    environment: Annotated[
        str | None, typer.Option(help="Column with the condition (batch, site, ...) that each row was measured under.")
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ROLE",
            help="Read a column as continuous, count, binary, ordinal, nominal, environment, intervention or ignored; "
            "NAME=low<mid<high gives the order of ordinal levels. May be repeated.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="Columns to leave out, separated by commas.")
    ] = None,
    unmeasured_targets: Annotated[
        str, typer.Option(metavar="environment|drop", help="What to do with rows whose target is not in the table.")
    ] = "environment",
    model: Annotated[str, typer.Option(help="A name of `presage models`, a file or a folder.")] = "general",
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for report, tables and pictures.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write into the folder of --out although it holds other files.")
    ] = False,
    counts: Annotated[
        bool | None,
        typer.Option("--counts/--no-counts", help="Whether the values are counts; by default this is detected."),
    ] = None,
    known: Annotated[
        Path | None, typer.Option(help="JSON file of background knowledge: required, forbidden, tiers, roots.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="Print edges above this probability.")] = 0.5,
    acyclic: Annotated[
        bool,
        typer.Option(
            "--acyclic", help="Print the most probable acyclic graph instead of all edges above the threshold."
        ),
    ] = False,
    bootstrap: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Repeat the prediction on N resamples of the rows and print how much each probability varies.",
        ),
    ] = 0,
    device: Annotated[
        str | None, typer.Option(help="Where the network runs: cpu, cuda, cuda:1, mps; the CPU by default.")
    ] = None,
    layer: Annotated[str | None, typer.Option(help="Layer of an h5ad file to use.")] = None,
    columns: Annotated[
        bool, typer.Option("--columns", help="Print the role of every column with the reason, and stop.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Find which variable causes which.

    Prints the edges, most probable first; warnings go to stderr. With --bootstrap, the standard deviation of each
    probability over resamples of the rows follows it. With --out it writes probabilities.csv, edges.csv,
    graph.graphml, graph.dot, graph.png, report.html and result.json.

    Example: presage discover cells.csv --interventions target --exclude donor --out result/
    """
    import presage
    from presage.files import check_writable
    from presage.inference.result import check_result_folder, check_threshold

    check_threshold(threshold)
    targets = _with_kind(interventions, intervention_kind)
    options = {
        "environment": environment,
        "roles": _read_roles(role),
        "exclude": exclude,
        "unmeasured_targets": unmeasured_targets,
        "layer": layer,
    }
    if columns:
        _print_columns(presage.read_inputs(data, targets, **options), as_json)
        return
    if out is not None:
        if not force:
            check_result_folder(out)
        check_writable(out / "report.html")  # before the network runs
    knowledge = None if known is None else _read_known(known)
    with _working("discovering"):
        result = presage.discover(
            data,
            targets,
            model=model,
            counts=counts,
            known=knowledge,
            bootstrap=bootstrap,
            device=device,
            **options,
        )
    result.data["command"] = shlex.join(["presage", *context.obj])
    if out is not None:
        with _working("writing the report"):
            result.save(out)
    for warning in result.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if as_json:
        print(json.dumps(result.to_json(threshold)))
        return
    _print_edges(result, threshold, acyclic)
    if out is not None:
        print(f"wrote {out / 'report.html'} and the rest of {out}")


def _read_roles(given: list[str] | None) -> dict[str, str] | None:
    """Roles from entries NAME=ROLE; the name may hold further signs of equality."""
    from presage.errors import ConfigError

    roles: dict[str, str] = {}
    for entry in given or []:
        name, sign, role = entry.rpartition("=")
        if not sign or not name or not role:
            raise ConfigError(f"--role takes NAME=ROLE, such as --role sex=nominal, not {entry!r}")
        roles[name] = role
    return roles or None


def _with_kind(interventions: str | None, given: list[str] | None) -> str | dict[str, Any] | None:
    """The interventions, with their kind if it is given: one for all, or entries NAME=KIND."""
    from presage.errors import ConfigError

    if not given:
        return interventions
    if len(given) == 1 and "=" not in given[0]:
        return {"targets": interventions, "kind": given[0]}
    parts = [entry.rpartition("=") for entry in given]
    if not all(name for name, _, _ in parts) or len({name for name, _, _ in parts}) < len(parts):
        raise ConfigError(
            "--intervention-kind takes one kind for all targets, such as soft, or NAME=KIND once for each of some "
            "targets, such as drug=soft"
        )
    return {"targets": interventions, "kind": {name: kind for name, _, kind in parts}}


def _print_columns(inputs: Inputs, as_json: bool) -> None:
    for note in inputs.notes:
        print(f"warning: {note}", file=sys.stderr)
    if as_json:
        print(json.dumps([{"name": name, "role": role, "why": why} for name, role, why, _ in inputs.roles]))
        return
    width = max(len(role.name) for role in inputs.roles)
    for name, role, why, _ in inputs.roles:
        print(f"{name:<{width}}  {role:<12}  {why}")


def _read_known(path: Path) -> Knowledge:
    from presage.errors import ConfigError, reason
    from presage.files import parse_json, read_bytes
    from presage.inference.knowledge import Knowledge

    try:
        return Knowledge.from_json(parse_json(read_bytes(path)))
    except OSError as error:
        raise ConfigError(f"cannot read {str(path)!r}: {reason(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{str(path)!r} is not JSON text") from error
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{str(path)!r} is not JSON: {error}") from error


def _print_edges(result: Result, threshold: float, acyclic: bool) -> None:
    edges = result.edges(threshold)
    position = {name: j for j, name in enumerate(result.names)}
    sources, targets = (edges[side].map(position).to_numpy(dtype=int) for side in ("source", "target"))
    found = edges[result.adjacency(threshold, acyclic)[sources, targets] > 0]
    what = "in the most probable acyclic graph" if acyclic else f"above {threshold:g}"
    print(
        f"{len(found)} edge{'s' * (len(found) != 1)} {what} among {len(result.names)} variables (model {result.model})"
    )
    width = max(map(len, found.source), default=0)
    for edge in found.itertuples():
        stability = f" ± {edge.stability:.3f}" if "stability" in found else ""
        print(f"{edge.probability:.3f}{stability}  {edge.source:<{width}} -> {edge.target}")


@contextmanager
def _working(what: str) -> Iterator[None]:
    """Show a progress bar of unknown length on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        progress.add_task(what, total=None)
        yield
