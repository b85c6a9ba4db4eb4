"""`presage train`: from a domain to a model file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from presage.training.config import TrainConfig

__all__ = ["register"]


def train(
    out: Annotated[Path, typer.Option("--out", help="The run folder: config, metrics, checkpoints, model, picture.")],
    domain: Annotated[
        str, typer.Option(help="A name of `presage domains`, or a JSON file that holds a domain.")
    ] = "scm",
    net: Annotated[str, typer.Option(help="pair (ours) or axial (the paper's transformer).")] = "pair",
    minutes: Annotated[float | None, typer.Option(help="Budget in minutes; the schedule is fitted to it.")] = None,
    steps: Annotated[int | None, typer.Option(help="Budget in steps instead.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    recipe: Annotated[str, typer.Option(help="ours, or paper: LAMB, n = 200, the paper's schedule.")] = "ours",
    start: Annotated[
        str | None,
        typer.Option(
            help="A model (name or file) whose weights the run begins with; without --config also its network."
        ),
    ] = None,
    blocks: Annotated[
        int | None, typer.Option(help="Triangle blocks a round; a model to start with may have fewer.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="How often rows are read; a model to start with may read them less often.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Peak learning rate.")] = None,
    precision: Annotated[str, typer.Option(help="fp32 or bf16 (checked on this machine first).")] = "fp32",
    producers: Annotated[str, typer.Option(help="Who simulates: inline, processes or ray.")] = "inline",
    workers: Annotated[int, typer.Option(help="How many producers.")] = 1,
    threads: Annotated[int | None, typer.Option(help="Threads of one process (default: all cores).")] = None,
    clock: Annotated[str, typer.Option(help="What minutes count: wall, or cpu on a shared machine.")] = "wall",
    seed: Annotated[int, typer.Option(help="Another seed, another run.")] = 0,
    settings: Annotated[
        Path | None, typer.Option("--config", help="A config.json of an earlier run to start from.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a network on a domain.

    Work is never lost: a checkpoint is written every few minutes, and on Ctrl-C; --resume goes on from it. Several
    devices: torchrun --nproc-per-node 2 -m presage train ...

    Example: presage train --domain rff --out runs/rff --minutes 30
    """
    import torch

    from presage.training.loop import Trainer

    if threads is not None:
        torch.set_num_threads(max(1, threads))
    config = _config(
        out=out,
        resume=resume,
        settings=settings,
        recipe=recipe,
        domain=domain,
        net=net,
        budget={"minutes": minutes, "steps": steps},
        options={"precision": precision, "clock": clock, "seed": seed},
        producers=producers,
        workers=workers,
        start=start,
        growth={"blocks": blocks, "rounds": rounds},
        rate=rate,
    )
    trainer = Trainer(config, out, resume=resume)
    result: dict[str, Any] = {}
    with _Bar(trainer.distributed.leads) as bar:

        def report(event: dict[str, Any]) -> None:
            bar.show(event, trainer.spent())
            result.update(event)

        trainer.report = report
        path = trainer.run()
    if not trainer.distributed.leads:
        return
    _draw_curve(out)
    if trainer.stopping:
        print(f"stopped at step {trainer.progress.step}; go on with: presage train --out {out} --resume")
    elif as_json:
        print(json.dumps({"model": str(path), **{k: v for k, v in result.items() if k not in ("event", "path")}}))
    else:
        scores = ", ".join(f"{k.replace('_', ' ')} {v:.3f}" for k, v in result.items() if k.startswith(("auprc", "f1")))
        print(f"wrote {path} after {trainer.progress.step} steps; validation: {scores}")


def _config(
    *,
    out: Path,
    resume: bool,
    settings: Path | None,
    recipe: str,
    domain: str,
    net: str,
    budget: dict[str, Any],
    options: dict[str, Any],
    producers: str,
    workers: int,
    start: str | None,
    growth: dict[str, int | None],
    rate: float | None,
) -> TrainConfig:
    """The configuration of the folder when resuming, else the one the options describe."""
    import dataclasses

    from presage.data.settings import BufferConfig
    from presage.domain.catalog import open_domain
    from presage.errors import ConfigError
    from presage.inference.hub import BUNDLED, SUFFIX, load_model
    from presage.networks.network import config_from_json
    from presage.networks.pair import PairConfig
    from presage.training.config import TrainConfig, paper_recipe

    again = resume and (out / "config.json").exists()
    if again:
        settings = out / "config.json"
    budget = {name: value for name, value in budget.items() if value is not None}
    if settings is not None:
        try:
            config = TrainConfig.from_json(json.loads(settings.read_text()))
        except (OSError, json.JSONDecodeError) as error:
            raise ConfigError(f"cannot read the configuration {settings}: {error}") from error
        if budget:
            config = dataclasses.replace(config, **{"minutes": None, "steps": None, **budget})
    elif not budget:
        raise ConfigError("give a budget: --minutes 30, or --steps 10000")
    elif recipe == "paper":
        config = paper_recipe(domain, **budget, **options)
    elif recipe == "ours":
        config = TrainConfig(domain=open_domain(domain), net=config_from_json({"net": net}), **budget, **options)
        buffer: Any = {**dataclasses.asdict(config.buffer), "producers": producers, "workers": workers}
        config = dataclasses.replace(config, buffer=BufferConfig(**buffer))
    else:
        raise ConfigError(f"the recipe must be ours or paper, not {recipe!r}")
    if again:
        return config
    if rate is not None:
        config = dataclasses.replace(config, optim=dataclasses.replace(config.optim, lr=rate))
    if start is not None:
        file = BUNDLED / f"{start}{SUFFIX}"
        # A configuration says which network it wants, which may be larger; otherwise it is the model's own.
        network = config.net if settings is not None else load_model(start).network.config
        config = dataclasses.replace(config, init_from=str(file if file.is_file() else start), net=network)
    asked: dict[str, Any] = {name: value for name, value in growth.items() if value is not None}
    if asked:
        if not isinstance(config.net, PairConfig):
            raise ConfigError(f"only the pair network has {' and '.join(asked)}")
        config = dataclasses.replace(config, net=dataclasses.replace(config.net, **asked))
    return config


class _Bar:
    """A live line with loss, rate, remaining time and validation; silent when nobody watches."""

    def __init__(self, leads: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self.progress = Progress(
            TextColumn("training"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[text]}"),
            console=console,
            disable=not (leads and console.is_terminal),
        )
        self.task = self.progress.add_task("training", total=1.0, text="")
        self.scores = ""

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def show(self, event: dict[str, Any], spent: float) -> None:
        """Draw what the trainer reports."""
        if event["event"] == "validation":
            kind = next(end for end in ("", "_int", "_obs") if f"auprc{end}" in event)
            self.scores = f"  AUPRC {event[f'auprc{kind}']:.3f}  F1 {event[f'f1{kind}']:.3f}"
        elif event["event"] == "step":
            pace = event["datasets"] / max(event["minutes"] * 60.0, 1e-9)
            text = f"loss {event['loss']:.4f}  rate {event['rate']:.1e}  {pace:.0f} datasets/s{self.scores}"
            self.progress.update(self.task, completed=min(spent, 1.0), text=text)


def _draw_curve(folder: Path) -> None:
    from presage.errors import DataError
    from presage.files import atomic_write
    from presage.report.plots import figure_bytes, learning_curve_figure

    log = folder / "metrics.jsonl"
    if not log.exists():
        return
    try:
        figure = learning_curve_figure(log)
    except DataError:  # a run of a few steps has no curve yet
        return
    with atomic_write(folder / "learning_curve.png") as file:
        file.write(figure_bytes(figure))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(train)
