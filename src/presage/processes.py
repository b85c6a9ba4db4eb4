"""The process supervisor: child processes with limits on time and memory, stopped together with all they started.

`ChildProcess.run` starts a program, `ChildProcess.call` a Python function that talks through a pipe. Both run in a
new session, so that Ctrl-C reaches the parent only and the whole process group can be killed at once. A child
also ends when its parent is killed (`end_with_parent`). Baselines, jobs of the page and producers of training data all
use this module.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import multiprocessing.util  # registers its exit handler now, so that handlers of ours registered later run earlier
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from presage.errors import ConfigError, PresageError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    import psutil

__all__ = [
    "ChildProcess",
    "Clock",
    "Failure",
    "ProcessFailure",
    "ProcessLimits",
    "Usage",
    "end_with_parent",
    "temporary_folder",
    "thread_variables",
]

Clock = Literal["wall", "cpu"]
Failure = Literal["time-out", "memory", "crash"]

_WALL_FACTOR = (
    20.0  # with the cpu clock, wall time may reach this many times the limit: a child that only waits must end
)
_POLL_SECONDS = (0.005, 0.1)  # shortest and longest pause between two checks of a child
_JOIN_SECONDS = 5.0
_environment = threading.Lock()


class ProcessFailure(PresageError):
    """A child process failed. status: "time-out", "memory" or "crash"; exit_code: of a crash."""

    def __init__(self, status: Failure, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.status: Failure = status
        self.exit_code = exit_code


@dataclass(frozen=True, kw_only=True)
class ProcessLimits:
    """Limits of one child process together with the processes it starts.

    seconds: by `clock`, wall time or processor time (fairer on a busy machine). memory: bytes of resident memory.
    """

    seconds: float = math.inf
    clock: Clock = "wall"
    memory: float = math.inf

    def __post_init__(self) -> None:
        if not self.seconds > 0.0:
            raise ConfigError(f"the time limit must be above 0 seconds, not {self.seconds!r}")
        if not self.memory > 0.0:
            raise ConfigError(f"the memory limit must be above 0, not {self.memory!r}")
        if self.clock not in ("wall", "cpu"):
            raise ConfigError(f"the clock must be 'wall' or 'cpu', not {self.clock!r}")

    def check(self, usage: Usage) -> None:
        """Raise `ProcessFailure` if a limit is exceeded."""
        used = usage.cpu_seconds if self.clock == "cpu" else usage.seconds
        if used > self.seconds or usage.seconds > _WALL_FACTOR * self.seconds:
            clock = " of processor time" if self.clock == "cpu" else ""
            raise ProcessFailure("time-out", f"stopped after {self.seconds:g} seconds{clock}")
        if usage.memory > self.memory:
            raise ProcessFailure("memory", f"stopped at more than {self.memory / 2**30:.3g} GiB of memory")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Wall and processor seconds since the child was started or last sent a message; bytes of resident memory now."""

    seconds: float
    cpu_seconds: float
    memory: int


class ChildProcess:
    """A supervised child process. Stop it after use, or use it as a context manager."""

    def __init__(self, handle: subprocess.Popen[bytes] | SpawnProcess, connection: Connection | None = None) -> None:
        import psutil  # not at the top: the environments of other packages' methods import this module without it

        assert handle.pid is not None
        self.pid: int = handle.pid
        self.connection = connection
        self.peak_memory = 0
        """Largest resident memory seen, in bytes, summed over the processes of the child."""
        self._handle = handle
        self._process: psutil.Process | None = None
        with contextlib.suppress(psutil.NoSuchProcess):
            self._process = psutil.Process(self.pid)
        self._cpu = 0.0
        self._begin()

    @classmethod
    def run(
        cls, command: Sequence[str], *, environment: Mapping[str, str] | None = None, log: IO[bytes] | None = None
    ) -> ChildProcess:
        """Start a program; `environment` is added to that of this process, and all output goes to `log`."""
        handle = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if log is None else log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
        return cls(handle)

    @classmethod
    def call(cls, target: Callable[..., None], *args: Any, threads: int | None = None, name: str = "") -> ChildProcess:
        """Start `target(connection, *args)` in a new Python process; messages pass through `send` and `receive`.

        threads: threads for numeric libraries, which read the setting when they are loaded; None leaves it as it is.
        """
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads as they are
        ours, theirs = context.Pipe()
        process = context.Process(target=_child, args=(theirs, target, args), daemon=True, name=name or None)
        with _interrupts_blocked(), _environment_set(thread_variables(threads) if threads else {}):
            process.start()
        theirs.close()  # so that the death of the child closes the pipe
        return cls(process, ours)

    def is_alive(self) -> bool:
        """Whether the child is running; one that has exited is not collected yet, so its process id stays reserved."""
        import psutil

        try:
            return self._process is not None and self._process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def usage(self) -> Usage:
        """What the child and the processes it started use."""
        cpu, memory = self._measure()
        return Usage(seconds=time.monotonic() - self._started, cpu_seconds=cpu - self._cpu_started, memory=memory)

    def send(self, message: Any) -> None:
        """Send a message to a function; time limits count from here. Raises OSError if the child is gone."""
        assert self.connection is not None
        self._begin()
        self.connection.send(message)

    def receive(self, limits: ProcessLimits | None = None) -> Any:
        """The next message of a function, or `ProcessFailure`; a child that failed is stopped."""
        assert self.connection is not None
        try:
            while not self.connection.poll(_POLL_SECONDS[1]):
                (limits or ProcessLimits()).check(self.usage())
            return self.connection.recv()
        except ProcessFailure:
            self.stop()
            raise
        except (EOFError, OSError) as error:
            raise self._crash() from error

    def wait(self, limits: ProcessLimits | None = None) -> None:
        """Wait until the child exits with code 0; anything else is a `ProcessFailure`. Ends with `stop`."""
        pause = _POLL_SECONDS[0]
        try:
            while self.is_alive():
                (limits or ProcessLimits()).check(self.usage())
                time.sleep(pause)
                pause = min(2.0 * pause, _POLL_SECONDS[1])
        finally:
            code = self.stop()
        if code != 0:
            raise self._crash()

    def stop(self) -> int:
        """Kill the child and every process it started, and return its exit code. May be called more than once."""
        self.kill()
        if self.connection is not None:
            self.connection.close()
        if isinstance(self._handle, subprocess.Popen):
            return self._handle.wait(_JOIN_SECONDS)
        self._handle.join(_JOIN_SECONDS)
        return -signal.SIGKILL if self._handle.exitcode is None else self._handle.exitcode

    def kill(self) -> None:
        """Kill the child and every process it started, from any thread; its user then finds the pipe closed."""
        import psutil

        if self._process is None:
            return
        family = self._family()
        # If the child was collected elsewhere, its id may belong to another process, which must not be killed.
        if hasattr(os, "killpg") and (self._process.is_running() or not psutil.pid_exists(self.pid)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        for process in family:  # a child killed before it had its own group, or processes that left the group
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.kill()

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _begin(self) -> None:
        self._started = time.monotonic()
        self._cpu_started = self._measure()[0]

    def _family(self) -> list[psutil.Process]:
        import psutil

        if self._process is None:
            return []
        try:
            return [self._process, *self._process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _measure(self) -> tuple[float, int]:
        """Processor seconds so far and resident bytes now; the former never falls when processes of the child end."""
        import psutil

        cpu, memory = 0.0, 0
        for process in self._family():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                times = process.cpu_times()
                cpu += times.user + times.system + getattr(times, "children_user", 0.0)
                cpu += getattr(times, "children_system", 0.0)
                memory += process.memory_info().rss
        self._cpu = max(self._cpu, cpu)
        self.peak_memory = max(self.peak_memory, memory)
        return self._cpu, memory

    def _crash(self) -> ProcessFailure:
        if not isinstance(self._handle, subprocess.Popen):
            self._handle.join(_JOIN_SECONDS)  # the pipe may close before the process has an exit code
        code = self.stop()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return ProcessFailure("crash", f"the process {how}", exit_code=code)


def _child(connection: Connection, target: Callable[..., None], args: tuple[Any, ...]) -> None:
    """First function of a child: Ctrl-C is left to the parent, and the child ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setsid"):
        os.setsid()
    end_with_parent()
    try:
        target(connection, *args)
    except (BrokenPipeError, ConnectionResetError):  # the parent has ended: nobody is left to read a traceback
        sys.exit(1)


def end_with_parent() -> None:
    """Kill this process and its group within a second after its parent has ended. Call it from a group leader."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def thread_variables(threads: int) -> dict[str, str]:
    """The environment variables by which numeric libraries choose their number of threads."""
    return dict.fromkeys(
        (f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")), str(threads)
    )


@contextlib.contextmanager
def _environment_set(changes: Mapping[str, str]) -> Iterator[None]:
    """Change environment variables while a process is started."""
    with _environment:
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Start processes with Ctrl-C blocked, so that it cannot hit one before it has its own session."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # the tracker unblocks the signal when it starts, so it must run already
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def temporary_folder(kind: str) -> Iterator[Path]:
    """A temporary folder that is removed at the end; those of earlier processes that were killed are removed, too."""
    import psutil

    prefix = f"presage-{kind}_{platform.node() or 'host'}_"  # process ids mean something on one machine only
    for path in Path(tempfile.gettempdir()).iterdir():
        owner = path.name.removeprefix(prefix).partition("_")[0] if path.name.startswith(prefix) else ""
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(path, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{prefix}{os.getpid()}_") as folder:
        yield Path(folder)
