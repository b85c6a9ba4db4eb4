"""A worker of the page that needs no network: a module of its own, so that its process starts quickly."""

from __future__ import annotations

import time
from typing import Any


def slow_worker(pipe: Any) -> None:
    """Stands in for `worker.main`: tells a stage, then answers, fails, dies or sleeps as the task says."""
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(("stage", "working", 0.5))
        if task["do"] == "sleep":
            time.sleep(600)
        if task["do"] == "die":
            return
        pipe.send(("failed", "bad data") if task["do"] == "fail" else ("done", task["do"]))
