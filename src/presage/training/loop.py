"""A training run: from a configuration to a model file, with checkpoints from which it resumes bit for bit."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from presage.data.buffer import Buffer, TrainBatch
from presage.data.fresh import FreshBatches
from presage.data.row_statistics import Columns
from presage.errors import ConfigError, ModelFileError, reason
from presage.files import atomic_write
from presage.networks.network import Network, build_network
from presage.networks.weights import load_model_file, save_model
from presage.rng import Stream, generator
from presage.training.checkpoints import Checkpoint, find_checkpoints, load_newest, write_checkpoint
from presage.training.config import TrainConfig
from presage.training.distributed import Distributed, check_bf16, keep_freed_memory
from presage.training.export import check_resumable, fit_summaries, read_config, run_metadata
from presage.training.lock import RunLock
from presage.training.objective import (
    CONFOUNDED_WEIGHT,
    EFFECT_WEIGHT,
    Dual,
    confounded_loss,
    effect_loss,
    negative_log_likelihood,
)
from presage.training.optimizer import Updater, averaged_network, lr_factor
from presage.training.progress import Progress, append_log, trim_log
from presage.training.spectral_radius import spectral_radius
from presage.training.validation import Validator

__all__ = ["Report", "Trainer", "train"]

Report = Callable[[dict[str, Any]], None]
"""Receives the events of a run, for example to show progress: {"event": NAME, ...}.

NAME is "warning" (with "text"), "step", "validation", "ood" (the check is being fitted) or "done" (with "path").
"""

STEP_TAG = 0x57E9
"""Part of the address of all random numbers of a step except those of its batch."""
LOG_EVERY = 20


class Trainer:
    """A run in a folder. `run` trains until the budget is used up or the process receives SIGTERM or SIGINT."""

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
        self.progress = Progress(processes=self.distributed.size)
        exists = bool(find_checkpoints(self.folder / "checkpoints"))
        if exists and not resume:
            raise ConfigError(f"{self.folder} already holds a run; resume it (--resume) or choose another folder")
        if not exists and config.init_from is not None:
            self._init_from(config.init_from)
        self.sums: dict[str, float] = {}
        self.stopping = False
        self._lock = RunLock(self.folder) if self.distributed.is_main else None
        try:
            self._prepare()
        except BaseException:
            self._unlock()
            raise

    def _prepare(self) -> None:
        """Build what a step needs, from the newest checkpoint if there is one, and write the configuration."""
        config = self.config
        saved = load_newest(self.folder / "checkpoints")
        if saved is not None:
            check_resumable(read_config(self.folder), config)
            self._take_counters(saved)
        dtype = torch.bfloat16 if config.precision == "bf16" else torch.float32
        self.updater = Updater(self.network, config.optim, self.network.io_layers(), dtype)
        self.averaged = averaged_network(self.network, config.optim.ema_half_life)
        self.dual = Dual(config.dual)
        sizes, rows, seed = config.batch_sizes(), config.rows, self._seed
        self.buffer: Buffer | FreshBatches = (
            Buffer(config.domain, rows, config.buffer, batch_sizes=sizes, seed=seed, stream=Stream.TRAIN)
            if config.buffer.capacity
            else FreshBatches(config.domain, rows, batch_sizes=sizes, seed=seed)
        )
        self._warning = None if saved is None else saved.warning
        if saved is not None:
            self._restore(saved)
        if self.distributed.is_main:
            for path in () if saved is None else saved.damaged:  # so that new checkpoints do not collide with them
                path.replace(path.with_name(f"{path.name}.damaged"))
            with atomic_write(self.folder / "config.json") as file:
                file.write(json.dumps(config.to_json(), indent=2).encode())
            trim_log(self.folder, self.progress.step)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def close(self) -> None:
        """Stop the producers, close the process group and release the run folder. `run` does this at its end."""
        self.buffer.close()
        self.distributed.close()
        self._unlock()

    @property
    def _seed(self) -> int:
        """The seed of a run's data: a run initialised from a model must not sample that model's datasets again."""
        return self.config.seed + (self.progress.pretraining_datasets << 64)

    def _init_from(self, path: str) -> None:
        """Take the weights of a model and count its training as pretraining."""
        network, metadata = load_model_file(path)
        try:
            self.network.warm_start(network)
        except ConfigError as error:
            raise ConfigError(f"the run cannot be initialised from the model {path!r}: {error}") from error
        earlier = metadata.get("train", {})
        for name in ("datasets", "core_minutes"):
            total = earlier.get(name, 0) + earlier.get(f"pretraining_{name}", 0)
            setattr(self.progress, f"pretraining_{name}", total)

    @property
    def ema_network(self) -> Network:
        """The network with averaged weights, which is validated and released."""
        return cast("Network", self.averaged.module)

    # The run folder

    def save(self) -> None:
        """Write a checkpoint."""
        if not self.distributed.is_main:
            return
        self.progress.tick()
        optim_tensors, optim_numbers = self.updater.state()
        tensors = {f"weights/{name}": p for name, p in self.network.state_dict().items()}
        tensors |= {f"ema/{name}": p for name, p in self.averaged.state_dict().items()}
        tensors |= {f"optim/{name}": p for name, p in optim_tensors.items()}
        state = {
            "progress": self.progress.state(),
            "optim": optim_numbers,
            "dual": self.dual.state(),
            "buffer": self.buffer.state(),
            "sums": self.sums,
        }
        write_checkpoint(self.folder / "checkpoints", self.progress.step, tensors, state, self.config.max_checkpoints)

    def _take_counters(self, saved: Checkpoint) -> None:
        """The counters of a checkpoint; the seed of the data depends on them."""
        try:
            counters = dict(saved.state["progress"])
            # Checkpoints of runs that began before core_seconds was counted do not have it.
            counters.setdefault("core_seconds", counters["cpu_seconds"] * counters["processes"])
            for name in self.progress.state():
                setattr(self.progress, name, type(getattr(self.progress, name))(counters[name]))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"the checkpoint {saved.path} has no usable counters ({error!r})") from error
        self.progress.processes = self.distributed.size

    def _restore(self, saved: Checkpoint) -> None:
        groups: dict[str, dict[str, torch.Tensor]] = {"weights": {}, "ema": {}, "optim": {}}
        try:
            for name, tensor in saved.tensors.items():
                group, rest = name.split("/", 1)
                groups[group][rest] = tensor.to(self.distributed.device)
            self.network.load_state_dict(groups["weights"])
            self.averaged.load_state_dict(groups["ema"])
            self.updater.restore(groups["optim"], saved.state["optim"])
            self.dual.restore(saved.state["dual"])
            self.buffer.restore(saved.state["buffer"])
            self.sums = dict(saved.state["sums"])
        except (AttributeError, KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            raise ModelFileError(
                f"the checkpoint {saved.path} does not fit the configuration of the run ({reason(error)})"
            ) from error

    # The run

    def budget_used(self) -> float:
        """Share of the budget that is used up, by this process's clock."""
        self.progress.tick()
        if self.config.steps is not None:
            return self.progress.step / self.config.steps
        assert self.config.minutes is not None
        seconds = self.progress.cpu_seconds if self.config.clock == "cpu" else self.progress.seconds
        return seconds / (60.0 * self.config.minutes)

    def run(self) -> Path:
        """Train until the budget is used up; returns the model file (or the run folder, if stopped early)."""
        previous = self._catch_signals()
        try:
            if self._warning is not None and self.distributed.is_main:
                self.report({"event": "warning", "text": self._warning})
            validator = Validator(self.config) if self.distributed.is_main else None
            validated_at = self.progress.seconds
            while True:
                used, self.stopping = self.distributed.broadcast(self.budget_used(), self.stopping)
                if used >= 1.0 or self.stopping:
                    break
                self.step(used)
                if self.progress.seconds - validated_at > 60.0 * self.config.validation.minutes:
                    self._validate(validator)
                    self.save()
                    validated_at = self.progress.seconds
            self.save()
            if self.stopping:
                self.distributed.barrier()
                return self.folder
            scores = self._validate(validator)
            path = self.folder / "model.safetensors"
            if self.distributed.is_main:
                self.write_model(path, scores)
                self.report({"event": "done", "path": str(path), **scores})
            self.distributed.barrier()
            return path
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            self.close()

    def step(self, budget_used: float) -> None:
        """One gradient step, and a dual step when it is due."""
        config, step = self.config, self.progress.step
        rng = generator(self._seed, Stream.TRAIN, STEP_TAG, step)
        sizes = [d for d, _ in config.variable_counts]
        weights = np.array([p for _, p in config.variable_counts])
        d = sizes[int(rng.choice(len(sizes), p=weights / weights.sum()))]
        batch = self.buffer.draw(d, step, shard=self.distributed.rank, shards=self.distributed.size)
        # Start vectors of the power iteration are drawn for the whole batch: the split among processes changes nothing.
        size = config.batch_sizes()[d]
        starts = np.array_split(rng.standard_normal((2, size, d)), self.distributed.size, axis=1)[self.distributed.rank]
        loss, penalty = self.distributed.all_reduce(
            self.network, self._accumulate(batch, torch.from_numpy(starts), size)
        )
        factor = lr_factor(config.optim, step, budget_used)
        norm = self.updater.step(factor)
        self.averaged.update_parameters(self.network)
        if config.acyclicity_penalty:
            self.dual.observe(penalty)
            self.dual.ascend(step, budget_used)
        self.progress.step += 1
        self.progress.datasets += config.batch_sizes()[d]
        self._record({"loss": loss, "penalty": penalty, "grad_norm": min(norm, 1e6)}, factor)

    def _accumulate(self, batch: TrainBatch, starts: torch.Tensor, size: int) -> tuple[float, float]:
        """Add the gradients of this process's share of a batch of `size`, in pieces; returns loss and penalty."""
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
                prediction = self.network.outputs(x, u, missing, _columns(batch, part, device))
            logits = prediction.edge
            losses = negative_log_likelihood(logits, graph, mask_diagonal=config.domain.acyclic)
            if prediction.confounded is not None and batch.confounded is not None:
                truth = torch.from_numpy(batch.confounded[part]).to(device)
                losses = losses + CONFOUNDED_WEIGHT * confounded_loss(prediction.confounded, truth)
            if prediction.effect is not None and prediction.effect_log_scale is not None and batch.effects is not None:
                truth = torch.from_numpy(batch.effects[part]).to(device)
                losses = losses + EFFECT_WEIGHT * effect_loss(prediction.effect, prediction.effect_log_scale, truth)
            loss = losses.sum() / size
            if config.acyclicity_penalty:
                radius = spectral_radius(torch.sigmoid(logits), starts[:, part], config.dual.power_iterations)
                penalty = radius.sum() / size
                penalty_total += float(penalty.detach())
            total += float(loss.detach())
            if config.acyclicity_penalty and self.dual.multiplier > 0.0:
                loss = loss + self.dual.multiplier * penalty
            loss.backward()
        return total, penalty_total

    def _dropout(self, piece: int) -> Any:
        """Dropout draws from torch's global generator: seed it by the step, and restore it afterwards."""
        rng = generator(self._seed, Stream.TRAIN, STEP_TAG, self.progress.step, self.distributed.rank, piece, 1)
        return _seeded(int(rng.integers(2**62)))

    def _record(self, values: dict[str, float], factor: float) -> None:
        for name, value in {**values, "count": 1.0}.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        step = self.progress.step
        if step % LOG_EVERY == 0 and self.distributed.is_main:
            count = self.sums["count"]
            means = {name: self.sums[name] / count for name in values}
            rate = self.config.optim.lr * factor
            self.sums = {}
            self._log(self.progress.entry("step", **means, multiplier=self.dual.multiplier, lr=rate))

    def _validate(self, validator: Validator | None) -> dict[str, float]:
        if validator is None:
            return {}
        network = self.ema_network
        scores = validator.evaluate(network)
        extra = {"bf16_gap": validator.precision_gap(network)} if self.config.precision == "bf16" else {}
        self.progress.tick()
        self._log(self.progress.entry("validation", **scores, **extra))
        return scores

    def _log(self, entry: dict[str, Any]) -> None:
        append_log(self.folder, entry)
        self.report(entry)

    def write_model(self, path: Path, scores: dict[str, float]) -> None:
        """Write the averaged weights as a model file with its card, then add the out-of-distribution check."""
        metadata = run_metadata(self.folder.name, self.config, self.progress.state(), scores)
        save_model(path, self.ema_network, metadata)  # first, so that a failure of the fit loses nothing
        if self.config.ood_datasets:
            self.report({"event": "ood"})
            save_model(path, self.ema_network, {**metadata, "summaries": fit_summaries(self.config, self.ema_network)})

    def _catch_signals(self) -> dict[int, Any]:
        """On SIGTERM or SIGINT finish the step, write a checkpoint and return."""

        def stop(number: int, frame: object) -> None:
            self.stopping = True

        try:
            return {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        except ValueError:  # not in the main thread: the caller handles signals
            return {}


def _columns(batch: TrainBatch, part: slice, device: torch.device) -> Columns | None:
    """The column inputs of a part of a batch."""
    if batch.columns is None:
        return None
    return Columns(**{name: torch.from_numpy(values[part]).to(device) for name, values in batch.columns.items()})


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def train(config: TrainConfig, folder: str | Path, *, resume: bool = False, report: Report | None = None) -> Path:
    """Train a network as configured, in a run folder; returns the path of the model file.

    The folder holds config.json, metrics.jsonl, checkpoints and, at the end, model.safetensors with card and
    out-of-distribution check. On SIGTERM or SIGINT a checkpoint is written and the folder is returned instead.

    resume: continue the run in the folder, if there is one. report: called with every event of the run, a dict such as
    {"event": "step", "step": 20, "loss": 0.3, ...}; other events are "warning", "validation", "ood" and "done".

    Example:
        `presage.train(presage.TrainConfig(domain="rff", minutes=30.0), "runs/rff", report=print)`
    """
    if not isinstance(config, TrainConfig):
        raise ConfigError(f"train takes a TrainConfig, not {type(config).__name__}")
    return Trainer(config, Path(folder), resume=resume, report=report).run()
