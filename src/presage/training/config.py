"""The configuration of a training run: frozen, keyword-only, written as JSON into every run folder and model."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Literal

import presage.domain.general
import presage.domain.genes  # noqa: F401
from presage.config import from_json, to_json
from presage.data.settings import BufferConfig, RowsConfig
from presage.domain.catalog import get_domain
from presage.domain.domain import Domain
from presage.errors import ConfigError
from presage.networks.network import NetConfig, config_from_json, config_to_json
from presage.networks.pair import PairConfig

__all__ = ["DualConfig", "OptimConfig", "TrainConfig", "ValidationConfig", "paper_recipe"]


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise ConfigError(sentence)


@dataclass(frozen=True, kw_only=True)
class OptimConfig:
    """How weights are updated.

    name: "muon" (matrices by Muon, the rest by AdamW), "adamw", or "lamb" (the paper's).
    lr: peak learning rate; for muon it applies to all parts, as its updates are scaled to AdamW's size.
    schedule: "cosine" to zero over the budget, or "steps": a tenth of the rate after two thirds of it (the paper's).
    ema_half_life: half-life, in steps, of the exponential moving average of the weights that is validated and released.
    """

    name: Literal["muon", "adamw", "lamb"] = "muon"
    lr: float = 4e-3
    warmup: int = 200
    schedule: Literal["cosine", "steps"] = "cosine"
    weight_decay: float = 0.01
    clip: float = 1.0
    ema_half_life: float = 200.0

    def __post_init__(self) -> None:
        _require(
            self.name in ("muon", "adamw", "lamb"), f"the optimiser must be muon, adamw or lamb, not {self.name!r}"
        )
        _require(self.schedule in ("cosine", "steps"), f"the schedule must be cosine or steps, not {self.schedule!r}")
        _require(0.0 < self.lr < 1.0, f"the learning rate must lie between 0 and 1, not {self.lr!r}")
        _require(self.warmup >= 0, f"warmup must be at least 0 steps, not {self.warmup!r}")
        _require(self.clip > 0.0, f"gradients are clipped at a length above 0, not {self.clip!r}")
        _require(self.weight_decay >= 0.0, f"weight_decay must be at least 0, not {self.weight_decay!r}")
        _require(
            self.ema_half_life >= 0.0,
            f"ema_half_life must be a half-life of at least 0 steps, not {self.ema_half_life!r}",
        )


@dataclass(frozen=True, kw_only=True)
class DualConfig:
    """The acyclicity constraint: dual ascent on the expected spectral radius (the paper's values in brackets).

    every: primal steps between dual steps (500). rate: size of a dual step (1e-4), or with `per_run` the sum
    of all step sizes of a run, so that runs of any length end with about the same multiplier. warmup: share of the
    budget over which step sizes grow from zero (50,000 of 300,000 steps). smoothing: weight of the moving average
    (1e-4).
    With a multiplier of 0.04 nearly all predictions are acyclic; 0.09 and 0.13 outweighed the likelihood.
    """

    every: int = 50
    rate: float = 0.1
    per_run: bool = True
    warmup: float = 1.0 / 6.0
    smoothing: float = 1e-2
    iterations: int = 10

    def __post_init__(self) -> None:
        _require(self.every >= 1, f"dual.every must be at least 1 step, not {self.every!r}")
        _require(self.rate >= 0.0, f"dual.rate must be at least 0, not {self.rate!r}")
        _require(0.0 < self.smoothing <= 1.0, f"dual.smoothing must lie above 0 and at most at 1: {self.smoothing!r}")
        _require(0.0 <= self.warmup <= 1.0, f"dual.warmup is a share of the budget in [0, 1], not {self.warmup!r}")
        _require(self.iterations >= 1, f"dual.iterations must be at least 1, not {self.iterations!r}")


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """Held-out datasets of the validation stream, ema_network while training."""

    d: int = 30
    n: int = 1000
    n_interventional: int = 500
    datasets: int = 24
    minutes: float = 5.0
    """Validate (and write a checkpoint) this often."""

    def __post_init__(self) -> None:
        _require(self.d >= 2 and self.n >= 1 and self.datasets >= 1, "validation needs d >= 2, n >= 1, datasets >= 1")
        _require(0 <= self.n_interventional <= self.n, "validation: n_interventional counts among the n rows")
        _require(self.minutes > 0.0, f"validation.minutes must be above 0, not {self.minutes!r}")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Everything that decides a run.

    domain: a name of `presage.domains()` or a `Domain`. net: unless said otherwise the pair network, which winsorizes
    values except where the domain yields counts. variable_counts: (d, probability) pairs; batches hold one d each.
    pairs_per_batch: ordered pairs a batch holds (d = 30, 3600 pairs: 4 datasets), with `min_batch` to
    `max_batch` datasets. memory: GiB that the activations of one micro-batch may take.
    steps or minutes: the budget (exactly one); the schedule is fitted to it. precision: fp32 or bf16 autocast.
    """

    domain: Domain
    net: NetConfig = field(default_factory=PairConfig)
    variable_counts: tuple[tuple[int, float], ...] = (
        (2, 0.03),
        (5, 0.07),
        (10, 0.15),
        (20, 0.25),
        (30, 0.35),
        (50, 0.15),
    )
    pairs_per_batch: int = 3600
    min_batch: int = 2
    max_batch: int = 16
    memory: float = 0.3
    rows: RowsConfig = field(default_factory=RowsConfig)
    buffer: BufferConfig = field(default_factory=lambda: BufferConfig(capacity=64, rows_factor=1.0))
    optim: OptimConfig = OptimConfig()
    acyclic: bool | None = None
    """Whether to ask for acyclic answers; None takes what the domain says."""
    dual: DualConfig = DualConfig()
    validation: ValidationConfig = ValidationConfig()
    steps: int | None = None
    minutes: float | None = None
    clock: Literal["wall", "cpu"] = "wall"
    """What minutes count: time on the wall, or processor time of the leading process (for shared machines)."""
    precision: Literal["fp32", "bf16"] = "fp32"
    seed: int = 0
    init_from: str | None = None
    """A model file whose weights the run begins with; its network must be the run's, or one that grows into it."""
    max_checkpoints: int = 2
    """How many checkpoints stay on disk."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", get_domain(self.domain))
        if self.domain.kind == "counts" and self.net == PairConfig():
            object.__setattr__(
                self, "net", PairConfig(winsorize_sd=0.0)
            )  # most counts are 0, the others would all be drawn in
        object.__setattr__(self, "variable_counts", tuple((int(d), float(p)) for d, p in self.variable_counts))
        _require((self.steps is None) != (self.minutes is None), "give a budget: either steps or minutes")
        _require(self.steps is None or self.steps >= 1, f"steps must be at least 1, not {self.steps!r}")
        _require(self.minutes is None or self.minutes > 0, f"minutes must be above 0, not {self.minutes!r}")
        _require(
            len(self.variable_counts) > 0 and all(d >= 1 and p > 0 for d, p in self.variable_counts),
            f"variable_counts must list pairs (d, probability above 0), not {self.variable_counts!r}",
        )
        _require(
            len({d for d, _ in self.variable_counts}) == len(self.variable_counts),
            "variable_counts must name every d once",
        )
        _require(
            1 <= self.min_batch <= self.max_batch,
            f"need 1 <= least <= most datasets in a batch: {self.min_batch}, {self.max_batch}",
        )
        _require(self.pairs_per_batch >= 1, f"pairs must be at least 1, not {self.pairs_per_batch!r}")
        _require(self.memory > 0, f"memory must be above 0 GiB, not {self.memory!r}")
        _require(self.clock in ("wall", "cpu"), f"the clock must be wall or cpu, not {self.clock!r}")
        _require(self.precision in ("fp32", "bf16"), f"precision must be fp32 or bf16, not {self.precision!r}")
        _require(
            self.max_checkpoints >= 1, f"max_checkpoints must be at least 1 checkpoint, not {self.max_checkpoints!r}"
        )
        _require(isinstance(self.seed, int) and self.seed >= 0, f"the seed must be at least 0, not {self.seed!r}")

    @property
    def asks_acyclic(self) -> bool:
        """Whether the acyclicity constraint is on."""
        return self.domain.acyclic if self.acyclic is None else self.acyclic

    def batch_sizes(self) -> dict[int, int]:
        """Datasets in a batch, for each d."""
        return {
            d: min(self.max_batch, max(self.min_batch, self.pairs_per_batch // (d * d)))
            for d, _ in self.variable_counts
        }

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data that `from_json` reads back."""
        data = {spec.name: getattr(self, spec.name) for spec in dataclasses.fields(self)}
        for name, value in data.items():
            if name == "domain":
                data[name] = to_json(value)
            elif name == "net":
                data[name] = config_to_json(value)
            elif dataclasses.is_dataclass(value) and not isinstance(value, type):
                data[name] = dataclasses.asdict(value)
        return json.loads(json.dumps(data))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TrainConfig:
        """Back from `to_json`; unknown settings are refused by name."""
        parts: dict[str, type] = {
            "rows": RowsConfig,
            "buffer": BufferConfig,
            "optim": OptimConfig,
            "dual": DualConfig,
            "validation": ValidationConfig,
        }
        known = {spec.name for spec in dataclasses.fields(cls)}
        body: dict[str, Any] = {}
        for name, value in data.items():
            _require(name in known, f"a training configuration has no setting {name!r}")
            if name == "domain":
                value = from_json(value)
            elif name == "net":
                value = config_from_json(value)
            elif name in parts:
                fields = {spec.name for spec in dataclasses.fields(parts[name])}
                extra = sorted(set(value) - fields)
                _require(not extra, f"{name} has no setting {extra[0] if extra else ''!r}")
                value = parts[name](**value)
            elif name == "variable_counts":
                value = tuple(tuple(pair) for pair in value)
            body[name] = value
        return cls(**body)


def paper_recipe(domain: str | Domain, *, devices: int = 1, **changes: Any) -> TrainConfig:
    """The paper's own recipe: axial transformer, n = 200 with 50 interventional, LAMB, 300,000 steps, the dual's pace.

    devices scales the learning rate by the square root of the effective batch, as the paper does.
    """
    from presage.networks.axial import AxialConfig
    from presage.training.lamb import square_root_scaled

    dropout = {"linear": 0.0, "rff": 0.1, "grn": 0.3}.get(domain if isinstance(domain, str) else "", 0.0)
    settings: dict[str, Any] = {
        "domain": get_domain(domain),
        "net": AxialConfig(dropout=dropout),
        # Oversampled so that every d is seen in about as many datasets, though larger ones come in smaller batches.
        "variable_counts": tuple(
            (d, 1.0 / size) for d, size in zip((2, 5, 10, 20, 30, 40, 50), (27, 25, 20, 14, 10, 8, 6))
        ),
        "pairs_per_batch": 15000,
        "min_batch": 6,
        "max_batch": 27,
        "rows": RowsConfig(n=(200, 200), interventional_share=(0.25, 0.25)),
        "buffer": BufferConfig(capacity=200, rows_factor=4.0, reuse=4.0),
        "optim": OptimConfig(
            name="lamb",
            lr=square_root_scaled(3e-5, 27 * devices),
            warmup=0,
            schedule="steps",
            weight_decay=0.0,
            ema_half_life=0.0,
        ),
        "dual": DualConfig(every=500, rate=1e-4, per_run=False, warmup=1.0 / 6.0, smoothing=1e-4),
        "steps": None if "minutes" in changes else 300_000,
    }
    return TrainConfig(**{**settings, **changes})
