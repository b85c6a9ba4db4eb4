"""One run: from a configuration to weights, never losing more than the minutes since the last checkpoint."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from presage.data.buffer import Buffer, TrainBatch
from presage.errors import ConfigError
from presage.files import atomic_write
from presage.networks.network import Network, build_network
from presage.networks.weights import load_model_file, save_model
from presage.rng import Stream, generator
from presage.training.checkpoints import latest_checkpoint, read_checkpoint, write_checkpoint
from presage.training.config import TrainConfig
from presage.training.distributed import Distributed, check_bf16, keep_freed_memory
from presage.training.export import run_metadata
from presage.training.objective import Dual, negative_log_likelihood
from presage.training.optimizer import Average, Updater, rate_factor
from presage.training.spectral_radius import spectral_radius
from presage.training.validation import Validator

__all__ = ["Report", "Trainer", "train"]

Report = Callable[[dict[str, Any]], None]
"""Receives what goes on: {"event": "step" | "validation" | "done", ...}; the command line draws it."""

STEP_TAG = 0x57E9
"""Marks the addresses of random numbers of a step other than its batch."""
LOG_EVERY = 20


@dataclass
class _Progress:
    """Counters of a run; all of them are in every checkpoint."""

    step: int = 0
    datasets: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    processes: int = 1
    datasets_before: int = 0
    core_minutes_before: float = 0.0
    started: float = field(default_factory=time.monotonic)
    cpu_started: float = field(default_factory=time.process_time)

    def clock(self) -> None:
        """Move the time since the last call onto the account."""
        now, cpu = time.monotonic(), time.process_time()
        self.seconds += now - self.started
        self.cpu_seconds += cpu - self.cpu_started
        self.started, self.cpu_started = now, cpu

    @property
    def core_minutes(self) -> float:
        """Processor time of all processes, taking them for alike."""
        return self.cpu_seconds * self.processes / 60.0

    def state(self) -> dict[str, Any]:
        names = ("step", "datasets", "seconds", "cpu_seconds", "processes", "datasets_before", "core_minutes_before")
        return {name: getattr(self, name) for name in names}


class Trainer:
    """A run in a folder. `run` trains until the budget is spent or the process is asked to stop."""

    def __init__(
        self, config: TrainConfig, folder: Path, *, resume: bool = False, report: Report | None = None
    ) -> None:
        self.config = config
        self.folder = Path(folder)
        self.report = report or (lambda event: None)
        self.distributed = Distributed()
        keep_freed_memory()
        if config.precision == "bf16" and self.distributed.device.type == "cpu":
            check_bf16()
        self.network: Network = build_network(config.net, config.seed).to(self.distributed.device)
        self.ema_network: Network = build_network(config.net, config.seed).to(self.distributed.device)
        self.progress = _Progress(processes=self.distributed.size)
        newest = latest_checkpoint(self.folder / "checkpoints")
        if newest is not None and not resume:
            raise ConfigError(f"{self.folder} holds a run already; go on with --resume, or choose another folder")
        saved = None if newest is None else read_checkpoint(newest)
        if saved is not None:
            self.progress.datasets_before = int(saved[1]["progress"].get("datasets_before", 0))
        elif config.init_from is not None:
            self._begin_with(config.init_from)
        self.updater = Updater(self.network, config.optim)
        self.average = Average(self.network, config.optim.ema_half_life)
        self.dual = Dual(config.dual)
        self.buffer = Buffer(
            config.domain,
            config.rows,
            config.buffer,
            batch_sizes=config.batch_sizes(),
            seed=self._seed,
            stream=Stream.TRAIN,
        )
        self.sums: dict[str, float] = {}
        self.stopping = False
        if saved is not None:
            self._restore(*saved)
        self._open()

    @property
    def _seed(self) -> int:
        """The seed of what a run draws: one that goes on from a model must not see that model's datasets again."""
        return self.config.seed + (self.progress.datasets_before << 64)

    def _begin_with(self, start: str) -> None:
        """Take the weights of a model, and note what was spent on them."""
        network, metadata = load_model_file(start)
        try:
            self.network.warm_start(network)
        except ConfigError as error:
            raise ConfigError(f"the run cannot begin with the model {start!r}: {error}") from error
        before = metadata.get("train", {})
        self.progress.datasets_before = int(before.get("datasets", 0)) + int(before.get("datasets_before", 0))
        self.progress.core_minutes_before = before.get("core_minutes", 0.0) + before.get("core_minutes_before", 0.0)

    # The run folder

    def _open(self) -> None:
        if self.distributed.leads:
            with atomic_write(self.folder / "config.json") as file:
                file.write(json.dumps(self.config.to_json(), indent=2).encode())
            self._trim_log()

    def _trim_log(self) -> None:
        """Drop what a killed run logged after its last checkpoint: those steps are about to be made again."""
        log = self.folder / "metrics.jsonl"
        if log.exists():
            kept = []
            for line in log.read_text().splitlines():
                try:
                    if json.loads(line)["step"] <= self.progress.step:
                        kept.append(line)
                except (json.JSONDecodeError, KeyError):
                    continue  # a line cut short by a kill
            with atomic_write(log) as file:
                file.write("".join(line + "\n" for line in kept).encode())

    def _log(self, entry: dict[str, Any]) -> None:
        with (self.folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def save(self) -> None:
        """Write a checkpoint of the present state."""
        if not self.distributed.leads:
            return
        self.progress.clock()
        optim_tensors, optim_numbers = self.updater.state()
        tensors = {f"weights/{name}": p for name, p in self.network.state_dict().items()}
        tensors |= {f"average/{name}": p for name, p in self.average.weights.items()}
        tensors |= {f"optim/{name}": p for name, p in optim_tensors.items()}
        state = {
            "progress": self.progress.state(),
            "optim": optim_numbers,
            "dual": self.dual.state(),
            "buffer": self.buffer.state(),
            "sums": self.sums,
        }
        write_checkpoint(self.folder / "checkpoints", self.progress.step, tensors, state, self.config.max_checkpoints)

    def _restore(self, tensors: dict[str, torch.Tensor], state: dict[str, Any]) -> None:
        parts: dict[str, dict[str, torch.Tensor]] = {"weights": {}, "average": {}, "optim": {}}
        for name, tensor in tensors.items():
            part, rest = name.split("/", 1)
            parts[part][rest] = tensor.to(self.distributed.device)
        self.network.load_state_dict(parts["weights"])
        self.average.weights = {name: tensor.clone() for name, tensor in parts["average"].items()}
        self.updater.restore(parts["optim"], state["optim"])
        self.dual.restore(state["dual"])
        self.buffer.restore(state["buffer"])
        self.sums = dict(state["sums"])
        for name, value in state["progress"].items():
            setattr(self.progress, name, value)
        self.progress.processes = self.distributed.size

    # The run

    def spent(self) -> float:
        """Share of the budget that is spent, by this process's clock."""
        self.progress.clock()
        if self.config.steps is not None:
            return self.progress.step / self.config.steps
        assert self.config.minutes is not None
        seconds = self.progress.cpu_seconds if self.config.clock == "cpu" else self.progress.seconds
        return seconds / (60.0 * self.config.minutes)

    def run(self) -> Path:
        """Train to the end of the budget; returns the model file (or the run folder, if asked to stop early)."""
        validator = Validator(self.config) if self.distributed.leads else None
        previous = self._catch_signals()
        try:
            judged_at = self.progress.seconds
            while True:
                spent, self.stopping = self.distributed.follow(self.spent(), self.stopping)
                if spent >= 1.0 or self.stopping:
                    break
                self.step(spent)
                if self.progress.seconds - judged_at > 60.0 * self.config.validation.minutes:
                    self._judge(validator)
                    self.save()
                    judged_at = self.progress.seconds
            self.save()
            if self.stopping:
                return self.folder
            scores = self._judge(validator)
            path = self.folder / "model.safetensors"
            if self.distributed.leads:
                self.write_model(path, scores)
                self.report({"event": "done", "path": str(path), **scores})
            return path
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            self.buffer.close()
            self.distributed.leave()

    def step(self, spent: float) -> None:
        """One primal step, and the dual's when it is due."""
        config, step = self.config, self.progress.step
        rng = generator(self._seed, Stream.TRAIN, STEP_TAG, step)
        sizes = [d for d, _ in config.variable_counts]
        weights = np.array([p for _, p in config.variable_counts])
        d = sizes[int(rng.choice(len(sizes), p=weights / weights.sum()))]
        batch = self.buffer.draw(d, step, shard=self.distributed.rank, shards=self.distributed.size)
        # Power iteration starts are drawn for the whole batch, so that the split among processes changes nothing.
        size = config.batch_sizes()[d]
        starts = np.array_split(rng.standard_normal((2, size, d)), self.distributed.size, axis=1)[self.distributed.rank]
        loss, penalty = self.distributed.sum_up(self.network, self._accumulate(batch, torch.from_numpy(starts), size))
        factor = rate_factor(config.optim, step, spent)
        length = self.updater.step(factor)
        self.average.update(self.network, step)
        if config.asks_acyclic:
            self.dual.observe(penalty)
            self.dual.ascend(step, spent)
        self.progress.step += 1
        self.progress.datasets += config.batch_sizes()[d]
        self._record({"loss": loss, "penalty": penalty, "gradient": min(length, 1e6)}, factor)

    def _accumulate(self, batch: TrainBatch, starts: torch.Tensor, size: int) -> tuple[float, float]:
        """Gradients of this process's part of a batch of `size`, in pieces that fit; returns its share of the means."""
        config, device = self.config, self.distributed.device
        own, n, d = batch.x.shape
        piece = max(1, min(own, int(config.memory * 2**30 / self.network.activation_bytes(n, d))))
        total = penalty_total = 0.0
        for at in range(0, own, piece):
            part = slice(at, at + piece)
            x = torch.from_numpy(batch.x[part]).to(device)
            u = torch.from_numpy(batch.u[part]).to(device)
            missing = None if batch.missing is None else torch.from_numpy(batch.missing[part]).to(device)
            graph = torch.from_numpy(batch.graph[part]).to(device)
            with self._dropout(at), torch.autocast(device.type, torch.bfloat16, enabled=config.precision == "bf16"):
                logits = self.network(x, u, missing)
            losses = negative_log_likelihood(logits, graph, mask_diagonal=config.asks_acyclic)
            loss = losses.sum() / size
            if config.asks_acyclic:
                radius = spectral_radius(
                    torch.sigmoid(logits), starts[:, part], config.dual.iterations, start="positive"
                )
                penalty = radius.sum() / size
                penalty_total += float(penalty.detach())
                if self.dual.multiplier > 0.0:
                    (loss + self.dual.multiplier * penalty).backward()
                else:
                    loss.backward()
            else:
                loss.backward()
            total += float(loss.detach())
        return total, penalty_total

    def _dropout(self, piece: int) -> Any:
        """Dropout draws from torch's own generator: seed it by the step, and leave it as it was."""
        rng = generator(self._seed, Stream.TRAIN, STEP_TAG, self.progress.step, self.distributed.rank, piece, 1)
        return _Seeded(int(rng.integers(2**62)))

    def _record(self, values: dict[str, float], factor: float) -> None:
        for name, value in {**values, "count": 1.0}.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        step = self.progress.step
        if step % LOG_EVERY == 0 and self.distributed.leads:
            count = self.sums["count"]
            entry = {
                "event": "step",
                "step": step,
                "datasets": self.progress.datasets,
                "minutes": round(self.progress.seconds / 60.0, 3),
                "core_minutes": round(self.progress.core_minutes, 3),
                **{name: self.sums[name] / count for name in values},
                "multiplier": self.dual.multiplier,
                "rate": self.config.optim.lr * factor,
            }
            self.sums = {}
            self._log(entry)
            self.report(entry)

    def _judge(self, validator: Validator | None) -> dict[str, float]:
        if validator is None:
            return {}
        self.average.copy_to(self.ema_network)
        scores = validator.judge(self.ema_network)
        extra = {"bf16_gap": validator.precision_gap(self.ema_network)} if self.config.precision == "bf16" else {}
        self.progress.clock()
        entry = {
            "event": "validation",
            "step": self.progress.step,
            "datasets": self.progress.datasets,
            "minutes": round(self.progress.seconds / 60.0, 3),
            "core_minutes": round(self.progress.core_minutes, 3),
            **scores,
            **extra,
        }
        self._log(entry)
        self.report(entry)
        return scores

    def write_model(self, path: Path, scores: dict[str, float]) -> None:
        """Write the averaged weights as a model file."""
        self.average.copy_to(self.ema_network)
        save_model(path, self.ema_network, run_metadata(self.folder.name, self.config, self.progress.state(), scores))

    def _catch_signals(self) -> dict[int, Any]:
        """On SIGTERM or Ctrl-C finish the step, write a checkpoint and leave."""

        def stop(number: int, frame: object) -> None:
            self.stopping = True

        try:
            return {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        except ValueError:  # not in the main thread: whoever runs us there handles signals
            return {}


class _Seeded:
    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __enter__(self) -> None:
        self.before = torch.get_rng_state()
        torch.manual_seed(self.seed)

    def __exit__(self, *error: object) -> None:
        torch.set_rng_state(self.before)


def train(config: TrainConfig, folder: str | Path, *, resume: bool = False, report: Report | None = None) -> Path:
    """Train a network as configured in a run folder; returns the path of the model file."""
    return Trainer(config, Path(folder), resume=resume, report=report).run()
