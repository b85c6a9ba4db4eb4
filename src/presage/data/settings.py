"""What a training batch shows and what the training buffer keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from presage.errors import ConfigError

__all__ = ["BufferConfig", "RowsConfig"]


@dataclass(frozen=True, kw_only=True)
class RowsConfig:
    """How many rows a training batch shows, and of which kind; all drawn once for each batch.

    n: smallest and largest number of rows, log-uniform in between; equal ends fix it (the paper: 200).
    max_cells: upper limit of rows times variables, which lowers the largest n of wide tables; 0 sets none.
    interventional_probability: share of batches that have interventional rows at all.
    interventional_share: smallest and largest share of rows that are interventional there (the paper: 50 of 200).
    missing_probability: share of batches with missing cells, which are missing completely at random.
    missing_share: smallest and largest share of cells that are missing there.
    """

    n: tuple[int, int] = (60, 600)
    max_cells: int = 0
    interventional_probability: float = 0.5
    interventional_share: tuple[float, float] = (0.05, 0.6)
    missing_probability: float = 0.0
    missing_share: tuple[float, float] = (0.02, 0.3)

    def __post_init__(self) -> None:
        for name in ("n", "interventional_share", "missing_share"):
            value = getattr(self, name)
            if not isinstance(value, (tuple, list)) or len(value) != 2 or not all(_is_number(end) for end in value):
                raise ConfigError(f"RowsConfig.{name} must be a pair (smallest, largest), not {value!r}")
            if value[0] > value[1]:
                raise ConfigError(f"RowsConfig.{name} must not end below its start: {value!r}")
            object.__setattr__(self, name, tuple(value))  # JSON has no tuples
        if any(int(end) != end or end < 1 for end in self.n):
            raise ConfigError(f"RowsConfig.n must hold whole numbers of at least 1, not {self.n!r}")
        for name in ("interventional_probability", "missing_probability"):
            value = getattr(self, name)
            if not _is_number(value) or not 0.0 <= value <= 1.0:
                raise ConfigError(f"RowsConfig.{name} must lie between 0 and 1, not {value!r}")
        if not 0.0 <= self.interventional_share[0] <= self.interventional_share[1] <= 1.0:
            raise ConfigError(f"RowsConfig.interventional_share must lie in [0, 1], not {self.interventional_share!r}")
        if not 0.0 <= self.missing_share[0] <= self.missing_share[1] < 1.0:
            raise ConfigError(f"RowsConfig.missing_share must lie in [0, 1), not {self.missing_share!r}")

    def stored(self, factor: float) -> tuple[int, int]:
        """Observational and interventional rows a stored dataset holds.

        Of each kind, `factor` times what the average batch (with interventions, for the second) asks for, and never
        less than the largest batch asks for.

        >>> RowsConfig(n=(200, 200), interventional_share=(0.25, 0.25)).stored(4.0)
        (800, 200)
        >>> RowsConfig().stored(4.0)
        (939, 360)
        """
        low, high = self.n
        mean = (high - low) / math.log(high / low) if high > low else float(high)
        p, (least, most) = self.interventional_probability, self.interventional_share
        always = 0.0 if p < 1.0 else least  # the share that is interventional in every single batch
        usual = mean if p < 1.0 else mean * (1.0 - (least + most) / 2.0)
        observational = max(high - math.floor(always * high), math.ceil(factor * usual))
        if p == 0.0:
            return observational, 0
        return observational, max(1, math.ceil(most * high), math.ceil(factor * mean * (least + most) / 2.0))

    def largest(self, d: int) -> int:
        """The largest number of rows of a batch with d variables."""
        low, high = self.n
        return max(low, min(high, self.max_cells // d)) if self.max_cells else high

    def draw(self, rng: np.random.Generator, d: int = 1) -> tuple[int, int, float]:
        """Rows, interventional rows among them and share of missing cells of one batch with d variables."""
        # Each batch uses the same number of random numbers, whatever they decide.
        size, touched, share, holey, missing = rng.random(5)
        low, high = self.n[0], self.largest(d)
        n = min(high, math.floor(low * ((high + 1) / low) ** size))
        some = touched < self.interventional_probability
        wanted = round(n * _between(self.interventional_share, share))
        n_interventional = min(n, max(1, wanted)) if some else 0
        return n, n_interventional, _between(self.missing_share, missing) if holey < self.missing_probability else 0.0


@dataclass(frozen=True, kw_only=True)
class BufferConfig:
    """How many datasets are kept, how often each is shown, and who makes them.

    capacity: datasets kept for each d (never fewer than a batch); 0 keeps none and simulates every batch for its step.
    rows_factor: stored rows over the rows of an average batch; see `RowsConfig.stored`.
    reuse: how often a dataset is shown on average before it leaves the buffer. The buffer starts with one batch and
        grows from there, so that the first draws wait for nothing else. Inline producers simulate only what is shown:
        (1 - exp(-reuse)) / reuse datasets for each one drawn, which is 0.63 at 1, 0.43 at 2 and 0.25 at 4.
    producers: "inline", "processes" or "ray"; workers: how many of the latter two.
    """

    capacity: int = 200
    rows_factor: float = 4.0
    reuse: float = 1.0
    producers: Literal["inline", "processes", "ray"] = "inline"
    workers: int = 1

    def __post_init__(self) -> None:
        for name, lowest in (("capacity", 0), ("workers", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
                raise ConfigError(f"BufferConfig.{name} must be a whole number of at least {lowest}, not {value!r}")
        if self.capacity == 0 and (self.producers != "inline" or self.reuse != 1.0):
            raise ConfigError("BufferConfig.capacity 0 simulates every batch anew: it needs inline producers, reuse 1")
        for name in ("rows_factor", "reuse"):
            value = getattr(self, name)
            if not _is_number(value) or not 1.0 <= value < math.inf:
                raise ConfigError(f"BufferConfig.{name} must be a number of at least 1, not {value!r}")
        if self.producers not in ("inline", "processes", "ray"):
            raise ConfigError(f"BufferConfig.producers must be inline, processes or ray, not {self.producers!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def _between(ends: tuple[float, float], at: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * float(at)
