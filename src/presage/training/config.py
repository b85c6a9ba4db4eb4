"""The configuration of a training run, written as JSON into every run folder and model, and the two recipes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from presage.config import Config, param, register
from presage.data.settings import BufferConfig, RowsConfig
from presage.domain.catalog import get_domain
from presage.domain.domain import Domain
from presage.errors import ConfigError
from presage.networks.network import NetConfig, network_config
from presage.networks.pair import PairConfig

__all__ = ["RECIPES", "DualConfig", "OptimConfig", "TrainConfig", "ValidationConfig", "default_recipe", "paper_recipe"]


MIN_OOD_DATASETS = 100
"""Fewer datasets do not determine the out-of-distribution check."""


@register
@dataclass(frozen=True, kw_only=True)
class OptimConfig(Config):
    """How weights are updated.

    name: "muon" (Muon for inner matrices, AdamW for all other parameters), "adamw", or "lamb" (the paper's).
    lr: peak learning rate; with muon it applies to all parameters, as Muon's updates are scaled to AdamW's size.
    warmup: steps of linear warm-up. clip: largest norm of the gradient.
    schedule: "cosine" to zero over the budget, or "steps": a tenth of the peak after two thirds of it (the paper's).
    ema_half_life: half-life, in steps, of the exponential moving average of the weights that is validated and
    released; 0 turns it off.
    """

    name: Literal["muon", "adamw", "lamb"] = "muon"
    lr: float = param(4e-3, gt=0, lt=1)
    warmup: int = param(200, ge=0)
    schedule: Literal["cosine", "steps"] = "cosine"
    weight_decay: float = param(0.01, ge=0)
    clip: float = param(1.0, gt=0)
    ema_half_life: float = param(200.0, ge=0)


@register
@dataclass(frozen=True, kw_only=True)
class DualConfig(Config):
    """Dual ascent on the acyclicity penalty, the expected spectral radius (the paper's values in brackets).

    every: primal steps between dual steps (500). step_size: of a dual step (1e-4), or, with `per_run`, the sum of the
    step sizes of a whole run, so that runs of any length end with about the same multiplier. warmup: share of the
    budget over which the step size grows from zero (50,000 of 300,000 steps). ema: weight of a new value in the moving
    average of the penalty (1e-4). power_iterations: of the spectral radius (10).
    With a multiplier of 0.04 nearly all predictions are acyclic; 0.09 and 0.13 outweighed the likelihood.
    """

    every: int = param(50, ge=1)
    step_size: float = param(0.1, ge=0)
    per_run: bool = True
    warmup: float = param(1.0 / 6.0, ge=0, le=1)
    ema: float = param(1e-2, gt=0, le=1)
    power_iterations: int = param(10, ge=1)


@register
@dataclass(frozen=True, kw_only=True)
class ValidationConfig(Config):
    """Held-out datasets of the validation stream on which the averaged weights are evaluated during training."""

    d: int = param(30, ge=2)
    n: int = param(1000, ge=1)
    n_interventional: int = param(500, ge=0)
    datasets: int = param(24, ge=1)
    minutes: float = param(5.0, gt=0)
    """Time between validations; each of them also writes a checkpoint."""

    def check(self) -> None:
        if self.n_interventional > self.n:
            raise self.fail("n_interventional", f"must be at most n ({self.n}), not {self.n_interventional}")


@register
@dataclass(frozen=True, kw_only=True)
class TrainConfig(Config):
    """Everything that determines a run.

    domain: a name of `presage.domains()` or a `Domain`. net: the network. variable_counts: pairs (d, probability); all
    datasets of a batch have the same d. pairs_per_batch: ordered pairs of variables in a batch (d = 30, 3600 pairs: 4
    datasets), with at least `min_batch` and at most `max_batch` datasets. memory: GiB of activations; larger batches
    are split. acyclicity_penalty: whether to add the paper's penalty on cycles. steps or minutes: the budget (exactly
    one of them); the learning rate schedule is fitted to it. clock: minutes of wall-clock time, or of processor time
    of the leading process (for shared machines). precision: fp32 or bf16 autocast.

    >>> TrainConfig(domain="rff", steps=100).optim.lr
    0.004
    """

    domain: Domain = param(convert=get_domain)  # noqa: RUF009 - a field specifier
    net: NetConfig = field(default_factory=PairConfig)
    variable_counts: tuple[tuple[int, float], ...] = param(
        ((2, 0.03), (5, 0.07), (10, 0.15), (20, 0.25), (30, 0.35), (50, 0.15)), gt=0, min_length=1
    )
    pairs_per_batch: int = param(3600, ge=1)
    min_batch: int = param(2, ge=1)
    max_batch: int = param(16, ge=1)
    memory: float = param(0.3, gt=0)
    rows: RowsConfig = field(default_factory=RowsConfig)
    buffer: BufferConfig = field(default_factory=lambda: BufferConfig(capacity=64, rows_factor=1.0))
    optim: OptimConfig = OptimConfig()
    acyclicity_penalty: bool = False
    dual: DualConfig = DualConfig()
    validation: ValidationConfig = ValidationConfig()
    steps: int | None = param(None, ge=1)
    minutes: float | None = param(None, gt=0)
    clock: Literal["wall", "cpu"] = "wall"
    precision: Literal["fp32", "bf16"] = "fp32"
    seed: int = param(0, ge=0)
    init_from: str | None = None
    """A model file whose weights the run starts with; its network must be the run's, or one that can grow into it."""
    max_checkpoints: int = param(2, ge=1)
    """How many checkpoints stay on disk."""
    ood_datasets: int = param(400, ge=0)
    """Datasets simulated at the end to fit the model's out-of-distribution check; 0 leaves the check out."""

    def check(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ConfigError("give a budget: either steps or minutes")
        if len({d for d, _ in self.variable_counts}) < len(self.variable_counts):
            raise self.fail("variable_counts", "must name every d once")
        if self.min_batch > self.max_batch:
            raise self.fail("min_batch", f"must be at most max_batch ({self.max_batch}), not {self.min_batch}")
        if 0 < self.ood_datasets < MIN_OOD_DATASETS:
            raise self.fail("ood_datasets", f"must be 0 or at least {MIN_OOD_DATASETS}, not {self.ood_datasets}")
        if self.acyclicity_penalty and not self.domain.acyclic:
            raise self.fail("acyclicity_penalty", "must be false for a domain whose graphs have cycles")
        if self.domain.kind == "counts":
            # Most counts are 0, so that all others would count as outliers.
            for name in ("winsorize_sd", "row_clip_sd"):
                if getattr(self.net, name, 0.0):
                    raise self.fail(f"net.{name}", "must be 0 for a domain of counts")

    @classmethod
    def from_recipe(
        cls, domain: str | Domain, recipe: str = "default", *, net: str | None = None, **fields: Any
    ) -> TrainConfig:
        """A recipe for a domain ("default" or "paper"), with some fields replaced.

        >>> TrainConfig.from_recipe("grn", steps=100).net.winsorize_sd
        0.0
        """
        if recipe not in RECIPES:
            raise ConfigError(f"there is no recipe {recipe!r}; choose one of: {', '.join(RECIPES)}")
        base = RECIPES[recipe](get_domain(domain), **({} if net is None else {"net": net}))
        budget = {"steps": None, "minutes": None} if fields.keys() & {"steps", "minutes"} else {}
        return cls(**{**base, **budget, **fields})

    def batch_sizes(self) -> dict[int, int]:
        """Datasets in a batch, for each d."""
        return {
            d: min(self.max_batch, max(self.min_batch, self.pairs_per_batch // (d * d)))
            for d, _ in self.variable_counts
        }


def default_recipe(domain: Domain, net: str = "pair") -> dict[str, Any]:
    """Our own recipe as fields of a `TrainConfig` without a budget; values of counts are not winsorized."""
    network = network_config(net)()
    if domain.kind == "counts" and isinstance(network, PairConfig):
        network = replace(network, winsorize_sd=0.0, row_clip_sd=0.0)
    return {"domain": domain, "net": network}


def paper_recipe(domain: Domain, net: str = "axial", *, devices: int = 1) -> dict[str, Any]:
    """The paper's recipe: axial transformer, n = 200 with 50 interventional rows, LAMB, 300,000 steps, dual ascent.

    devices: scales the learning rate by the square root of the effective batch size, as the paper does.
    """
    from presage.networks.axial import AxialConfig
    from presage.training.lamb import square_root_scaled

    base = default_recipe(domain, net)
    if net == "axial":
        dropouts = {"linear": 0.0, "rff": 0.1, "grn": 0.3}
        base["net"] = AxialConfig(
            dropout=next((value for name, value in dropouts.items() if get_domain(name) == domain), 0.0)
        )
    return {
        **base,
        # Weighted so that every d occurs in about as many datasets, though batches of larger d hold fewer of them.
        "variable_counts": tuple(
            (d, 1.0 / size) for d, size in zip((2, 5, 10, 20, 30, 40, 50), (27, 25, 20, 14, 10, 8, 6), strict=True)
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
        "acyclicity_penalty": domain.acyclic,
        "dual": DualConfig(every=500, step_size=1e-4, per_run=False, warmup=1.0 / 6.0, ema=1e-4),
        "steps": 300_000,
    }


RECIPES: dict[str, Callable[..., dict[str, Any]]] = {"default": default_recipe, "paper": paper_recipe}
"""Recipes by name: functions of (domain, net) that give the fields of a `TrainConfig`."""
