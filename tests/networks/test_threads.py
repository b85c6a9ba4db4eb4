"""`map_in_threads`: order, use of threads, nested calls and errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from presage.networks.threads import map_in_threads


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@torch.inference_mode()
def test_two_items_run_at_the_same_time_in_one_core_each() -> None:
    meeting = threading.Barrier(2, timeout=30)

    def meet(item: int) -> tuple[int, int, bool]:
        meeting.wait()  # breaks if the items run one after the other
        return item, torch.get_num_threads(), torch.is_inference_mode_enabled()

    assert list(map_in_threads(meet, range(2))) == [(0, 1, True), (1, 1, True)]
    assert torch.get_num_threads() == 2


@torch.inference_mode()
def test_a_call_within_a_call_runs_in_its_own_thread() -> None:
    def inner(item: int) -> int:
        return threading.get_ident()

    def outer(item: int) -> bool:
        return set(map_in_threads(inner, range(3))) == {threading.get_ident()}

    assert list(map_in_threads(outer, range(4))) == [True] * 4


def test_gradients_stay_in_the_calling_thread() -> None:
    assert set(map_in_threads(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}


@torch.inference_mode()
def test_an_error_reaches_the_caller_and_the_threads_are_restored() -> None:
    def fail(item: int) -> int:
        raise ValueError(f"item {item}")

    for _ in range(2):
        with pytest.raises(ValueError, match="item 0"):
            list(map_in_threads(fail, range(4)))
        assert torch.get_num_threads() == 2
