"""`presage bench`: every table and figure of the paper, and datasets with known graphs, run resumably."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from presage.errors import ConfigError

if TYPE_CHECKING:
    from presage.bench.engine import Record
    from presage.bench.run import Progress, Run

__all__ = ["bench"]


def bench(
    name: Annotated[
        str, typer.Argument(help="An experiment of `presage bench list`, or: list, folder, tune, results.")
    ],
    folder: Annotated[
        Path | None,
        typer.Argument(help="With `folder`: the folder of npz files with known graphs.", show_default=False),
    ] = None,
    methods: Annotated[str, typer.Option(help="Names separated by commas, or all. presage:NAME is a network.")] = "all",
    instances: Annotated[int | None, typer.Option(help="Number of instances; the paper's if not given.")] = None,
    own_instances: Annotated[
        int | None, typer.Option(help="Number of instances for our networks, if different.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of results and of the cache that makes runs resumable.")] = Path(
        "results"
    ),
    engine: Annotated[str, typer.Option(help="processes (this machine) or ray (a cluster).")] = "processes",
    jobs: Annotated[int, typer.Option(help="Number of parallel runs.")] = 1,
    time_limit: Annotated[
        float, typer.Option(help="Seconds a run may take before it is recorded as a time-out.")
    ] = 3600,
    clock: Annotated[
        str, typer.Option(help="What the limit counts: wall, or cpu (fairer on a busy machine).")
    ] = "wall",
    memory_limit: Annotated[
        float, typer.Option(help="GiB of memory a run may take before it is stopped and recorded.")
    ] = 8.0,
    columns: Annotated[str, typer.Option(help="Only these columns, for example linear,rff.")] = "",
    variables: Annotated[
        int | None, typer.Option("-d", "--variables", help="Fewer variables, for a quick look.")
    ] = None,
    rows: Annotated[int | None, typer.Option("-n", "--rows", help="Fewer rows, for a quick look.")] = None,
    bootstrap: Annotated[int | None, typer.Option(help="Number of bootstrap resamples; the paper's is 10.")] = None,
    tuned: Annotated[
        Path | None, typer.Option(help="Settings from `presage bench tune` (default: OUT/tuned.json).")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat runs that crashed.")] = False,
    records: Annotated[
        Path | None,
        typer.Option(help="Folder of recorded results: a run is merged into it, `results` reads it (records/bench)."),
    ] = None,
    to: Annotated[Path, typer.Option(help="File that `presage bench results` writes.")] = Path("benchmarks/RESULTS.md"),
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Run an experiment of the paper, or any methods on your own datasets with known graphs.

    Finished runs are cached under OUT/cache, so the same command continues after any interruption. Test instances are
    numbers 0, 1, ... of a stream that training never touches. Results are csv files, tables and pictures.

    Examples: presage bench list

    presage bench table-30 --methods presage,ges,pc --instances 5 --out results/

    presage bench folder gold/ --methods presage:scm,grasp,pc --out results/

    presage bench tune --methods pc --columns linear

    presage bench results --records records/bench
    """
    if (name == "folder") != (folder is not None):
        raise ConfigError("a folder of datasets is given as: presage bench folder DIR")
    if name == "list":
        return _list(as_json)
    from presage.bench.engine import RunOptions
    from presage.processes import ProcessLimits

    if name == "results":
        from presage.bench.results import write_results

        print(f"wrote {write_results(records or Path('records/bench'), to)}")
        return None
    wanted = tuple(part for part in methods.split(",") if part.strip())
    if not wanted:
        raise ConfigError("--methods names no method; give names separated by commas, or all")
    chosen_columns = tuple(part for part in columns.split(",") if part)
    limits = ProcessLimits(seconds=time_limit, clock=clock, memory=memory_limit * 2**30)  # type: ignore[arg-type]
    options = RunOptions(limits=limits, jobs=jobs, retry=retry, engine=engine)  # type: ignore[arg-type]
    if name == "tune":
        from presage.bench.tune import INSTANCES, tune

        with _progress("tuning") as progress:
            path = tune(
                out,
                methods=wanted,
                columns=chosen_columns,
                instances=INSTANCES if instances is None else instances,
                options=options,
                variables=30 if variables is None else variables,
                rows=1000 if rows is None else rows,
                progress=progress,
            )
        print(f"wrote {path}")
        return None
    from presage.bench.experiments import get_experiment
    from presage.bench.plan import Choice, read_tuned
    from presage.bench.run import run_experiment

    if folder is not None:
        from presage.bench.folder import folder_experiment

        not_for_folders = {
            "--instances": instances,
            "--own-instances": own_instances,
            "--variables": variables,
            "--rows": rows,
            "--tuned": tuned,
        }
        given = [option for option, value in not_for_folders.items() if value is not None]
        if given:
            raise ConfigError(f"presage bench folder uses the datasets as they are; leave out {', '.join(given)}")
        experiment = folder_experiment(folder)
    else:
        experiment = get_experiment(name)
        if tuned is None and (out / "tuned.json").is_file():
            tuned = out / "tuned.json"
    choice = Choice(
        methods=wanted,
        instances=instances,
        own_instances=own_instances,
        variables=variables,
        rows=rows,
        bootstrap=bootstrap,
        columns=chosen_columns,
    )
    settings = read_tuned(tuned)
    with _progress(name) as progress:
        run = run_experiment(
            experiment,
            out,
            choice=choice,
            options=options,
            tuned=settings,
            records=records,
            progress=progress,
        )
    _report(run, as_json)
    return None


def _list(as_json: bool) -> None:
    from presage.bench.experiments import EXPERIMENTS

    if as_json:
        rows = [
            {"name": e.name, "title": e.title, "paper": e.paper, "instances": e.instances, "methods": list(e.methods)}
            for e in EXPERIMENTS.values()
        ]
        print(json.dumps(rows))
        return
    width = max(len(name) for name in EXPERIMENTS)
    for experiment in EXPERIMENTS.values():
        source = f" [{experiment.paper}]" if experiment.paper else ""
        print(f"{experiment.name:<{width}}  {experiment.title}{source}")


def _report(run: Run, as_json: bool) -> None:
    counts = {} if run.frame.empty else {str(k): int(v) for k, v in run.frame["status"].value_counts().items()}
    if as_json:
        files = [str(path) for path in run.files]
        facts = {"executed": run.executed, "cached": run.cached, "status": counts, "warnings": list(run.warnings)}
        print(json.dumps({**facts, "files": files}))
        return
    for warning in run.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if counts:
        shown = ", ".join(f"{number} {status}" for status, number in counts.items())
        print(f"{run.executed} runs done, {run.cached} read from the cache: {shown}")
    for path in run.files:
        if path.suffix == ".md":
            print(path.read_text())
    print("wrote " + ", ".join(str(path) for path in run.files))


@contextmanager
def _progress(title: str) -> Iterator[Progress]:
    """A bar on stderr; silent where that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        line = bar.add_task(title, total=None)

        def show(done: int, total: int, record: Record | None) -> None:
            what = title if record is None else f"{title}: {record.task.label} {record.outcome.status}"
            bar.update(line, completed=done, total=total, description=what)

        yield show
