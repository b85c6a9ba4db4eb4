"""Seeds and the streams spawned from them; nothing in Presage touches a global generator.

A dataset is drawn from the generator of its address `(seed, stream, index)`. The address is the spawn key of a
NumPy `SeedSequence`, whose states are a hash of seed and key: two addresses that differ anywhere give
independent streams. That is what keeps training, validation and test data apart whatever seeds people choose,
and what makes dataset number 7 the same one in a batch of 8, in a batch of 64 and in another process.

What is hashed is a row of 32-bit words: four of the seed, one of the stream, one for each part of the address. The
bounds below keep every number to its words, so that no two addresses can spell the same row.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from presage.errors import ConfigError

__all__ = ["Stream", "check_seed", "generator"]


class Stream(IntEnum):
    """What random numbers are for. The value is part of the spawn key, so streams can never meet."""

    TRAIN = 1
    VALIDATION = 2
    TEST = 3
    """Held-out data: what `presage.simulate` and the benchmarks draw. Training never touches it."""
    ANSWER = 5
    """Draws made while answering: sampled graphs, bootstrap rows, tie breaks."""


MAX_SEED = 2**128 - 1
MAX_PART = 2**32 - 1


def check_seed(seed: int) -> int:
    """Return `seed` as an int, or say why it cannot be one."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ConfigError(f"the seed must be a whole number of at least 0, not {seed!r}")
    if seed > MAX_SEED:
        raise ConfigError("the seed must be below 2^128")
    return int(seed)


def generator(seed: int, stream: Stream, *address: int) -> np.random.Generator:
    """The generator at an address.

    >>> a = generator(0, Stream.TEST, 7).random()
    >>> a == generator(0, Stream.TEST, 7).random(), a == generator(0, Stream.TRAIN, 7).random()
    (True, False)
    """
    key = (int(stream), *map(int, address))
    if min(key) < 0 or max(key) > MAX_PART:
        raise ConfigError(f"the parts of a random stream's address must lie between 0 and {MAX_PART}, not {address}")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(check_seed(seed), spawn_key=key)))
