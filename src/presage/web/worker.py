"""The child process of a job: it runs `discover` for one task after the other and reports progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from presage.errors import PresageError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from presage.inference.model import Model

__all__ = ["RESAMPLES", "answer", "main", "watched"]

RESAMPLES = 20
"""Resamples of the rows when the page asks for the stability of probabilities."""

Report = Callable[[str, float], None]


def main(pipe: Connection) -> None:
    """Run tasks from the pipe until it closes; send ("stage", text, share), ("done", result) or ("failed", text)."""
    import torch

    import presage.inference.discovery  # noqa: F401 - before the first task, which need not wait for it

    torch.set_num_threads(max(1, torch.get_num_threads() // 2))  # leaves cores for the page
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            result = answer(task, lambda stage, share: pipe.send(("stage", stage, share)))
            pipe.send(("done", result))
        except PresageError as error:
            pipe.send(("failed", str(error)))
        except MemoryError:
            pipe.send(("failed", "the data does not fit into this machine's memory; use fewer rows or variables"))


def answer(task: dict[str, Any], report: Report) -> Any:
    """`discover` with progress reports. task: inputs, model, counts, and bootstrap if the rows are resampled."""
    report("loading the model", 0.0)
    from presage.inference.discovery import discover
    from presage.inference.hub import load_model

    model = load_model(task["model"])
    report("reading the table", 0.05)
    bootstrap = task.get("bootstrap", 0)
    with watched(model, lambda share: report("the network reads the data", 0.1 + 0.9 * share), 1 + bootstrap):
        return discover(task["inputs"], model=model, counts=task["counts"], bootstrap=bootstrap)


@contextmanager
def watched(model: Model, report: Callable[[float], None], passes: int = 1) -> Iterator[None]:
    """Report the share of the network that has run (`Network.progress_layers`), in steps of at least two percent.

    passes: how often the network will run.
    """
    layers = model.network.progress_layers()
    waiting = set(map(id, layers))
    last, done = 0.0, 0

    def note(layer: Any, given: Any, result: Any) -> None:
        nonlocal last, done
        if not waiting and done < passes - 1:
            done += 1
            waiting.update(map(id, layers))
        waiting.discard(id(layer))
        share = (done + 1.0 - len(waiting) / max(len(layers), 1)) / passes
        if share >= last + 0.02:
            last = share
            report(share)

    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
