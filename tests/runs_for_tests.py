"""Configurations of training runs that take seconds."""

from __future__ import annotations

from typing import Any

from presage.data.settings import BufferConfig, RowsConfig
from presage.networks.pair import PairConfig
from presage.training.config import OptimConfig, TrainConfig, ValidationConfig

TINY = PairConfig(width=8, cell_width=8, rounds=2, blocks=1, outer=2, outer_intervened=2, triangle=4, heads=2)


def short_config(**changes: Any) -> TrainConfig:
    """A tiny network on three linear variables, with some fields replaced; a budget must be among them."""
    fields: dict[str, Any] = {
        "domain": "linear",
        "net": TINY,
        "variable_counts": ((3, 1.0),),
        "min_batch": 4,
        "max_batch": 4,
        "rows": RowsConfig(n=(20, 40)),
        "buffer": BufferConfig(capacity=8, rows_factor=1.0),
        "optim": OptimConfig(warmup=3, ema_half_life=4.0),
        "validation": ValidationConfig(d=4, n=30, n_interventional=10, datasets=2, minutes=100.0),
    }
    return TrainConfig(**{**fields, **changes})
