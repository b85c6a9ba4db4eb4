"""How many training batches the buffer gives per second, and what one dataset of a batch costs the trainer.

    python benchmarks/buffer.py [--seconds 5] [--workers 1] [--train-ms 0]

inline: the trainer simulates on its own. processes: `--workers` others simulate; `--train-ms` is how long the trainer
works on each dataset between draws (0 draws as quickly as it can, so that producers fall behind: see "late"). The
first draw (start of the producers) and a warm-up of one capacity are not timed. One batch is 16 datasets.
"""

from __future__ import annotations

import argparse
import time

from presage.data.buffer import Buffer, BufferConfig, RowsConfig
from presage.domain.catalog import _scm

BATCH = 16


def measure(family: str, d: int, engine: str, options: argparse.Namespace) -> tuple[float, float, float]:
    """Batches per second, milliseconds per dataset inside draw(), and the share of late batches."""
    config = BufferConfig(producers=engine, workers=options.workers, reuse=options.reuse, capacity=options.capacity)
    with Buffer(_scm(family, frozenset()), RowsConfig(), config, batch_sizes={d: BATCH}, seed=0) as buffer:
        step = 0
        while step * BATCH < options.capacity:
            buffer.draw(d, step)
            time.sleep(options.train_ms * BATCH / 1e3)
            step += 1
        warm, late = step, buffer.stats()["late"]
        start, inside = time.perf_counter(), 0.0
        while time.perf_counter() - start < options.seconds:
            before = time.perf_counter()
            buffer.draw(d, step)
            inside += time.perf_counter() - before
            time.sleep(options.train_ms * BATCH / 1e3)
            step += 1
        elapsed = time.perf_counter() - start
        drawn = step - warm
        return drawn / elapsed, 1e3 * inside / drawn / BATCH, (buffer.stats()["late"] - late) / drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--train-ms", type=float, default=0.0)
    parser.add_argument("--reuse", type=float, default=1.0)
    parser.add_argument("--capacity", type=int, default=200)
    options = parser.parse_args()
    print(
        f"{'domain':8} {'d':>3} {'engine':10} {'batches/s':>10} {'datasets/s':>11} {'draw ms/dataset':>16} {'late':>6}"
    )
    for family in ("linear", "rff"):
        for d in (10, 30, 50):
            for engine in ("inline", "processes"):
                rate, cost, late = measure(family, d, engine, options)
                print(
                    f"{family:8} {d:3d} {engine:10} {rate:10.2f} {rate * BATCH:11.1f} {cost:16.2f} {late:6.0%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
