"""Configuration of the rows of a training batch and of the replay buffer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from presage.config import Config, param, register

__all__ = ["BufferConfig", "RowsConfig"]


@register
@dataclass(frozen=True, kw_only=True)
class RowsConfig(Config):
    """How many rows the datasets of a training batch have, and of which kind; all sampled once for each batch.

    n: smallest and largest number of rows, log-uniform in between; equal ends fix it (the paper: 200).
    max_cells: upper limit of rows times variables, which lowers the largest n of wide tables; 0 sets none.
    interventional_probability: share of batches that have interventional rows at all.
    interventional_share: smallest and largest share of rows that are interventional there (the paper: 50 of 200).
    all_interventional: share of the batches with interventional rows that have no others, as in randomized trials.
    missing_probability: share of batches with missing cells, which are missing completely at random.
    missing_share: smallest and largest share of cells that are missing there.
    """

    n: tuple[int, int] = param((60, 600), ge=1, ordered=True)
    max_cells: int = param(0, ge=0)
    interventional_probability: float = param(0.5, ge=0, le=1)
    interventional_share: tuple[float, float] = param((0.05, 0.6), ge=0, le=1, ordered=True)
    all_interventional: float = param(0.0, ge=0, le=1)
    missing_probability: float = param(0.0, ge=0, le=1)
    missing_share: tuple[float, float] = param((0.02, 0.3), ge=0, lt=1, ordered=True)

    def stored(self, factor: float) -> tuple[int, int]:
        """Numbers of observational and interventional rows of a stored dataset.

        Each is `factor` times the number of rows in an average batch (with interventions, for the second), and at
        least the number in the largest batch.

        >>> RowsConfig(n=(200, 200), interventional_share=(0.25, 0.25)).stored(4.0)
        (800, 200)
        >>> RowsConfig().stored(4.0)
        (939, 360)
        """
        low, high = self.n
        mean = (high - low) / math.log(high / low) if high > low else float(high)
        p, (least, most) = self.interventional_probability, self.interventional_share
        if self.all_interventional:
            most = 1.0
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
        # Each batch uses the same number of random numbers.
        size, interventional, share, incomplete, missing = rng.random(5)
        low, high = self.n[0], self.largest(d)
        n = min(high, math.floor(low * ((high + 1) / low) ** size))
        some = interventional < self.interventional_probability
        only = interventional < self.interventional_probability * self.all_interventional
        wanted = n if only else round(n * _between(self.interventional_share, share))
        n_interventional = min(n, max(1, wanted)) if some else 0
        return (
            n,
            n_interventional,
            _between(self.missing_share, missing) if incomplete < self.missing_probability else 0.0,
        )


@register
@dataclass(frozen=True, kw_only=True)
class BufferConfig(Config):
    """How many datasets the replay buffer keeps, how often each is sampled, and where they are simulated.

    capacity: datasets kept for each d (never fewer than a batch); 0 keeps none and simulates every batch for its step.
    rows_factor: stored rows over the rows of an average batch; see `RowsConfig.stored`.
    reuse: how often a dataset is sampled on average before it leaves the buffer. The buffer starts with one batch and
        grows from there, so that the first batches do not wait for a full buffer. Inline producers simulate only what
        is sampled: (1 - exp(-reuse)) / reuse datasets for each one sampled, which is 0.63 at 1, 0.43 at 2, 0.25 at 4.
    producers: "inline" (in the training process), "processes" or "ray"; workers: how many of the latter two.
    """

    capacity: int = param(200, ge=0)
    rows_factor: float = param(4.0, ge=1)
    reuse: float = param(1.0, ge=1)
    producers: Literal["inline", "processes", "ray"] = "inline"
    workers: int = param(1, ge=1)

    def check(self) -> None:
        if self.capacity == 0 and (self.producers != "inline" or self.reuse != 1.0):
            raise self.fail("capacity", "0 simulates every batch for its step; it needs inline producers and reuse 1")
        if self.producers == "inline" and self.workers != 1:
            raise self.fail("workers", f"must be 1 for inline producers, not {self.workers}; use producers 'processes'")


def _between(ends: tuple[float, float], at: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * float(at)
