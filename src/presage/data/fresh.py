"""Training batches without a buffer: every dataset is simulated for one step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from presage.data.buffer import BATCH_TAG, TrainBatch
from presage.data.encode import encode
from presage.data.settings import RowsConfig
from presage.data.standardize import standardize
from presage.domain.domain import Domain
from presage.rng import Stream, check_seed, generator

__all__ = ["FreshBatches", "encode_batch"]


class FreshBatches:
    """Batches that depend on the seed, d and the step only, so that runs resume bit for bit and ranks agree."""

    def __init__(
        self,
        domain: Domain,
        rows: RowsConfig,
        *,
        batch_sizes: Mapping[int, int],
        seed: int,
    ) -> None:
        self.domain, self.rows, self.batch_sizes = domain, rows, dict(batch_sizes)
        self.seed = check_seed(seed)

    def draw(self, d: int, step: int, shard: int = 0, shards: int = 1) -> TrainBatch:
        """The batch of a training step, or the part of one data-parallel process."""
        n, n_interventional, _ = self.rows.draw(self._generator(d, step), d)
        positions = np.array_split(np.arange(self.batch_sizes[d]), shards)[shard]
        drawn = [
            self.domain.draw(self._generator(d, step, int(at)), d=d, n=n, n_interventional=n_interventional)
            for at in positions
        ]
        return encode_batch(drawn, self.domain)

    def _generator(self, *address: int) -> np.random.Generator:
        return generator(self.seed, Stream.TRAIN, BATCH_TAG, *address)

    def state(self) -> dict[str, Any]:
        """Empty: a batch is a function of its step."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`."""

    def close(self) -> None:
        """Nothing to release."""


def encode_batch(drawn: list[dict[str, Any]], domain: Domain) -> TrainBatch:
    """Datasets of equal shape, as `Domain.draw` returns them, as a training batch."""
    missing = np.stack([item["missing"] for item in drawn]) if "missing" in drawn[0] else None
    missing = missing if missing is not None and missing.any() else None
    extra: dict[str, Any] = {}
    if "column_kinds" in drawn[0]:
        tables = [
            encode(item["x"], item["column_kinds"], item["missing"] if item["missing"].any() else None)
            for item in drawn
        ]
        x = np.stack([table.x for table in tables])
        extra["columns"] = {
            "kinds": np.stack([item["column_kinds"] for item in drawn]),
            "second": np.stack([table.second for table in tables]),
            "association": np.stack([table.association for table in tables]),
        }
        extra["confounded"] = np.stack([item["confounded"] for item in drawn])
        extra["effects"] = np.stack([item["effects"] for item in drawn])
    else:
        x = standardize(np.stack([item["x"] for item in drawn]), domain.kind, missing)
    return TrainBatch(
        x=x,
        u=np.stack([item["interventions"] for item in drawn]),
        missing=missing,
        graph=np.stack([item["graph"] for item in drawn]),
        **extra,
    )
