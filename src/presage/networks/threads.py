"""Threads for independent parts of a computation, one core each.

The operations on one chunk of rows are too small for multithreading; processing whole chunks in parallel is faster.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

__all__ = ["map_in_threads"]

Item = TypeVar("Item")
Found = TypeVar("Found")

_LOCK = threading.Lock()
"""Held while `map_in_threads` uses threads: torch's number of threads belongs to the whole process."""


def map_in_threads(function: Callable[[Item], Found], items: Sequence[Item]) -> Iterator[Found]:
    """`function` of each item in order, on as many threads as torch uses.

    Everything runs in the calling thread if gradients are needed or if another thread already uses it.
    """
    threads = torch.get_num_threads()
    if threads == 1 or len(items) == 1 or torch.is_grad_enabled() or not _LOCK.acquire(blocking=False):
        yield from map(function, items)
        return
    try:
        torch.set_num_threads(1)
        pool = ThreadPoolExecutor(min(threads, len(items)), initializer=torch.set_num_threads, initargs=(1,))
        try:
            yield from pool.map(torch.inference_mode()(function), items)
        finally:
            pool.shutdown(cancel_futures=True)
    finally:
        torch.set_num_threads(threads)
        _LOCK.release()
