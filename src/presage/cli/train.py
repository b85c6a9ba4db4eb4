"""`presage train`: from a domain to a model file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from presage.training.config import TrainConfig

__all__ = ["train"]


def train(
    out: Annotated[
        Path, typer.Option("--out", help="Run folder: config, metrics, checkpoints, model, learning curve.")
    ],
    domain: Annotated[
        str | None, typer.Option(help="A name of `presage domains`, or a JSON file that holds a domain. Default: scm.")
    ] = None,
    net: Annotated[str | None, typer.Option(help="Network: pair (ours) or axial (the paper's transformer).")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Budget in minutes; the learning rate schedule is fitted to it.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Budget in steps instead.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in the folder, if there is one.")] = False,
    recipe: Annotated[
        str | None, typer.Option(help="default, or paper: axial transformer, LAMB, n = 200, the paper's schedule.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="JSON file with any fields of a configuration, as in config.json.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="One field of the configuration, for example net.width=96. Repeatable."),
    ] = None,
    init_from: Annotated[
        str | None,
        typer.Option(help="A model (name or file) to initialise weights from; also sets the network by default."),
    ] = None,
    lr: Annotated[float | None, typer.Option(help="Peak learning rate.")] = None,
    precision: Annotated[str | None, typer.Option(help="fp32, or bf16 (tested on this machine first).")] = None,
    producers: Annotated[str | None, typer.Option(help="Where data is simulated: inline, processes or ray.")] = None,
    workers: Annotated[int | None, typer.Option(help="Number of processes or Ray actors that simulate.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of one process. Default: all cores.", min=1)] = None,
    clock: Annotated[
        str | None, typer.Option(help="Time that --minutes counts: wall, or cpu on a shared machine.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights and data.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the configuration as JSON and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a network on a domain.

    The configuration is built in layers: defaults, then --recipe, then --config, then --set, then the other flags.
    Later layers win. A checkpoint is written every few minutes and on Ctrl-C; --resume continues from it. Several
    devices: torchrun --nproc-per-node 2 -m presage train ...

    Example: presage train --domain rff --out runs/rff --minutes 30 --set net.blocks=3
    """
    import torch

    from presage.training.loop import Trainer

    if threads is not None:
        torch.set_num_threads(threads)
    flags = {
        "domain": domain,
        "net": net,
        "minutes": minutes,
        "steps": steps,
        "precision": precision,
        "clock": clock,
        "seed": seed,
        "init_from": init_from,
        "optim": {"lr": lr},
        "buffer": {"producers": producers, "workers": workers},
    }
    built = _config(out, resume, recipe, config, settings or [], flags)
    if dry_run:
        print(json.dumps(built.to_json(), indent=2))
        return
    trainer = Trainer(built, out, resume=resume)
    result: dict[str, Any] = {}
    with _ProgressBar(trainer.distributed.is_main) as bar:

        def report(event: dict[str, Any]) -> None:
            if event["event"] == "warning":
                print(f"presage: {event['text']}", file=sys.stderr)
                return
            bar.show(event, trainer.budget_used())
            result.update(event)

        trainer.report = report
        path = trainer.run()
    if not trainer.distributed.is_main:
        return
    _draw_curve(out)
    if trainer.stopping:
        print(f"stopped at step {trainer.progress.step}; continue with: presage train --out {out} --resume")
    elif as_json:
        print(json.dumps({"model": str(path), **{k: v for k, v in result.items() if k not in ("event", "path")}}))
    else:
        scores = ", ".join(f"{k.replace('_', ' ')} {v:.3f}" for k, v in result.items() if k.startswith(("auprc", "f1")))
        print(f"wrote {path} after {trainer.progress.step} steps; validation: {scores}")


def _config(
    out: Path, resume: bool, recipe: str | None, file: Path | None, settings: list[str], flags: dict[str, Any]
) -> TrainConfig:
    """The configuration of all layers; that of the run itself takes the recipe's place when it is resumed."""
    from presage.errors import ConfigError
    from presage.training.export import check_resumable, read_config
    from presage.training.layering import build_config, parse_settings, read_layer

    given: dict[str, Any] = {}
    for name, value in flags.items():
        if isinstance(value, dict):
            value = {key: item for key, item in value.items() if item is not None} or None
        if value is not None:
            given[name] = value
    if "steps" in given and "minutes" in given:
        raise ConfigError("give a budget: either --minutes or --steps, not both")
    stored: TrainConfig | None = None
    if resume and (out / "config.json").exists():
        if recipe is not None:
            raise ConfigError("--recipe cannot be combined with --resume; the run keeps its configuration")
        stored = read_config(out)
    layers = [{} if file is None else read_layer(file), parse_settings(settings), given]
    for layer in layers:
        if stored is not None and layer.get("init_from") == stored.init_from:
            layer.pop("init_from", None)  # the run's own; its weights are in the checkpoint
        if layer.get("init_from") is not None:
            layer["init_from"] = _model_file(str(layer["init_from"]))
    config = build_config(*layers, recipe=recipe or "default", stored=stored)
    if stored is not None:
        check_resumable(stored, config)
    if flags["clock"] is not None and config.minutes is None:
        raise ConfigError("--clock says which time --minutes counts, but the budget of this run is a number of steps")
    return config


def _model_file(name: str) -> str:
    """The file of a model given by the name of a bundled one, by file or by run folder."""
    from presage.errors import ConfigError
    from presage.inference.hub import BUNDLED, SUFFIX

    for path in (BUNDLED / f"{name}{SUFFIX}", Path(name), Path(name) / f"model{SUFFIX}"):
        if path.is_file():
            return str(path)
    raise ConfigError(f"there is no model {name!r} to initialise from; give a bundled name, a file or a run folder")


class _ProgressBar:
    """One line with loss, learning rate, remaining time and validation; silent unless stderr is a terminal."""

    def __init__(self, is_main: bool) -> None:
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
            disable=not (is_main and console.is_terminal),
        )
        self.task = self.progress.add_task("training", total=1.0, text="")
        self.scores = ""

    def __enter__(self) -> _ProgressBar:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def show(self, event: dict[str, Any], budget_used: float) -> None:
        """Show an event of the trainer."""
        if event["event"] == "validation":
            kind = next(end for end in ("", "_int", "_obs") if f"auprc{end}" in event)
            self.scores = f"  AUPRC {event[f'auprc{kind}']:.3f}  F1 {event[f'f1{kind}']:.3f}"
        elif event["event"] == "step":
            pace = event["datasets"] / max(event["minutes"] * 60.0, 1e-9)
            text = f"loss {event['loss']:.4f}  lr {event['lr']:.1e}  {pace:.0f} datasets/s{self.scores}"
            self.progress.update(self.task, completed=min(budget_used, 1.0), text=text)


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
