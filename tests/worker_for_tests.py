"""Workers for tests of processes: in a module of its own with few imports, so that their processes start quickly."""

from __future__ import annotations

import os
import signal
import time
from typing import Any


def slow_worker(pipe: Any) -> None:
    """Stands in for `worker.main`: reports a stage, then does what the task says."""
    block = b""
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(("stage", "working", 0.5))
        if task["do"] == "allocate":
            block = bytearray(400 << 20)
        if task["do"] in ("sleep", "allocate"):
            time.sleep(600 + len(block))
        if task["do"] == "die":
            return
        pipe.send(("failed", "bad data") if task["do"] == "fail" else ("done", task["do"]))


def worker_for_supervisor(pipe: Any, prefix: str) -> None:
    """Follows orders (what, argument)."""
    while True:
        what, argument = pipe.recv()
        if what == "echo":
            pipe.send(f"{prefix} {argument}")
        elif what == "environment":
            pipe.send(os.environ[argument])
        elif what == "group":
            pipe.send(os.getpgrp())
        elif what == "exit":
            os._exit(7)
        elif what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            time.sleep(600)


def odd_reader(pipe: Any) -> None:
    """Stands in for `reading.main`: meets damaged files."""
    while True:
        try:
            _, (what,) = pipe.recv()
        except EOFError:
            return
        if what == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        block = bytearray(600 << 20) if what == "allocate" else b""
        if what in ("hang", "allocate"):
            time.sleep(600 + len(block))
        pipe.send(("done", what))
