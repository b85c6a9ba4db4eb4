"""Read uploads in a separate process, with limits: a damaged file may crash or hang that, not the page."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from presage.errors import DataError, PresageError
from presage.processes import ChildProcess, ProcessFailure, ProcessLimits

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["SECONDS", "Reader", "main"]

SECONDS = 120.0
"""Time limit for reading one file."""
_MEMORY_SHARE = 0.5  # of the machine


def main(pipe: Connection) -> None:
    """Call functions from the pipe until it closes; send ("done", result) or ("failed", text)."""
    while True:
        try:
            function, args = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(("done", function(*args)))
        except PresageError as error:
            pipe.send(("failed", str(error)))
        except MemoryError:
            pipe.send(("failed", "the file does not fit into this machine's memory; use fewer rows or columns"))
        except Exception as error:  # a damaged file can raise anything in the library that reads its format
            pipe.send(("failed", f"the file cannot be read; is it damaged? ({type(error).__name__})"))


def import_readers() -> None:
    """Import what reads tables."""
    import pandas  # noqa: F401

    import presage.inference.inputs  # noqa: F401


class Reader:
    """Runs functions that read files in a child process, one at a time; a child that failed is replaced."""

    def __init__(
        self,
        *,
        seconds: float = SECONDS,
        memory: float | None = None,
        target: Callable[[Connection], None] = main,
        warm: bool = False,
    ) -> None:
        """memory: bytes; half of the machine's by default. target: function of the child.

        warm: start the child now, so that the first file need not wait for its imports.
        """
        import psutil

        self.limits = ProcessLimits(seconds=seconds, memory=memory or _MEMORY_SHARE * psutil.virtual_memory().total)
        self._target = target
        self._child: ChildProcess | None = None
        self._lock = threading.Lock()
        if warm:
            threading.Thread(target=self._warm_up, daemon=True).start()

    def _warm_up(self) -> None:
        with contextlib.suppress(DataError):  # the first file starts another child
            self.call("", import_readers)

    def call(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """`function(*args)` of the child; raises `DataError` about the file `name` if that fails.

        The function must be importable, and arguments and result must be small enough to be sent.
        """
        with self._lock:
            if self._child is None or not self._child.is_alive():
                self._child = ChildProcess.call(self._target)
            try:
                self._child.send((function, args))
                kind, content = self._child.receive(self.limits)
            except (ProcessFailure, OSError) as failure:
                self._child.stop()
                self._child = None
                raise DataError(f"the file {name!r} could not be read: {self._reason(failure)}") from failure
        if kind == "failed":
            raise DataError(content)
        return content

    def _reason(self, failure: Exception) -> str:
        status = failure.status if isinstance(failure, ProcessFailure) else "crash"
        return {
            "time-out": f"reading took longer than {self.limits.seconds:g} seconds and was stopped; it may be damaged",
            "memory": f"reading took more than {self.limits.memory / 2**30:.2g} GiB of memory and was stopped; "
            "use fewer rows or columns",
            "crash": "the process that read it crashed, so the file is probably damaged; export it again",
        }[status]

    def close(self) -> None:
        """Stop the child."""
        with contextlib.suppress(OSError):
            if self._child is not None:
                self._child.stop()
        self._child = None
