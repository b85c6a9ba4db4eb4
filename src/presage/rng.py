"""Random generators, one for every (seed, stream, index); Presage never touches a global generator.

A dataset is drawn from `generator(seed, stream, index)`. Stream and index form the spawn key of a NumPy `SeedSequence`,
which hashes seed and key, so generators that differ in any of the three are independent. This separates training,
validation and test data for every choice of seeds, and makes dataset 7 the same one in a batch of 8, in a batch of 64
and in another process.

NumPy hashes a sequence of 32-bit words. The bounds below give the seed four words and every entry of the spawn key one,
so that no two combinations produce the same sequence.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from presage.errors import ConfigError

__all__ = ["Stream", "check_seed", "generator"]


class Stream(IntEnum):
    """The purpose of random numbers. The value is part of the spawn key, so streams never overlap."""

    TRAIN = 1
    VALIDATION = 2
    TEST = 3
    """Held-out data, used by `presage.simulate` and the benchmarks, never by training."""
    ANSWER = 5
    """Random numbers of inference: sampled graphs, bootstrap rows, tie breaks."""


MAX_SEED = 2**128 - 1
MAX_INDEX = 2**32 - 1


def check_seed(seed: int) -> int:
    """Return `seed` as an int, or raise `ConfigError`."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ConfigError(f"the seed must be a whole number of at least 0, not {seed!r}")
    if seed > MAX_SEED:
        raise ConfigError("the seed must be below 2^128")
    return int(seed)


def generator(seed: int, stream: Stream, *indices: int) -> np.random.Generator:
    """The generator of a seed, a stream and any number of indices.

    >>> a = generator(0, Stream.TEST, 7).random()
    >>> a == generator(0, Stream.TEST, 7).random(), a == generator(0, Stream.TRAIN, 7).random()
    (True, False)
    """
    key = (int(stream), *map(int, indices))
    if min(key) < 0 or max(key) > MAX_INDEX:
        raise ConfigError(f"the indices of a random stream must lie between 0 and {MAX_INDEX}, not {indices}")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(check_seed(seed), spawn_key=key)))
