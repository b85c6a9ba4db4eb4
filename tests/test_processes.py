"""Supervised child processes: results, limits, crashes, and that nothing is left running."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from presage.errors import ConfigError
from presage.processes import ChildProcess, ProcessFailure, ProcessLimits, _child, temporary_folder, thread_variables
from worker_for_tests import worker_for_supervisor


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Orphans stay as zombies where no process collects them."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def python(code: str, **options: Any) -> ChildProcess:
    return ChildProcess.run([sys.executable, "-c", code], **options)


SLEEPING_GRANDCHILD = (
    "import subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
    "print(child.pid, flush=True);"
)


# Programs.


def test_a_program_runs_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        python("import os; print(os.environ['COLOUR'])", environment={"COLOUR": "blue"}, log=log).wait()
    assert (tmp_path / "log").read_text() == "blue\n"


def test_a_crash_has_its_exit_code() -> None:
    with pytest.raises(ProcessFailure, match="exit code 3") as caught:
        python("import sys; sys.exit(3)").wait()
    assert (caught.value.status, caught.value.exit_code) == ("crash", 3)
    with pytest.raises(ProcessFailure, match="signal 11") as caught:
        python("import os; os.kill(os.getpid(), 11)").wait()
    assert caught.value.exit_code == -signal.SIGSEGV


def test_wall_time_is_limited() -> None:
    started = time.monotonic()
    with pytest.raises(ProcessFailure, match=r"after 0\.5 seconds$") as caught:
        python("import time; time.sleep(600)").wait(ProcessLimits(seconds=0.5))
    assert caught.value.status == "time-out"
    assert 0.5 <= time.monotonic() - started < 30.0


def test_processor_time_is_limited_with_that_of_grandchildren() -> None:
    spin = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    child = python(spin)
    with pytest.raises(ProcessFailure, match="processor time") as caught:
        child.wait(ProcessLimits(seconds=1.0, clock="cpu"))
    assert caught.value.status == "time-out"
    assert child.usage().cpu_seconds > 1.0


def test_a_child_that_only_waits_does_not_outlive_a_cpu_limit() -> None:
    with pytest.raises(ProcessFailure, match="processor time"):
        python("import time; time.sleep(600)").wait(ProcessLimits(seconds=0.05, clock="cpu"))


def test_memory_is_limited() -> None:
    child = python("import time; block = bytearray(400 << 20); time.sleep(600)")
    with pytest.raises(ProcessFailure, match="GiB") as caught:
        child.wait(ProcessLimits(memory=200 << 20))
    assert caught.value.status == "memory"
    assert 200 << 20 < child.peak_memory < 1 << 30
    assert not is_running(child.pid)


@pytest.mark.parametrize("then", ["time.sleep(600)", "sys.exit(0)"])
def test_grandchildren_end_with_the_child(then: str, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        child = python(SLEEPING_GRANDCHILD + then, log=log)
        eventually(lambda: bool((tmp_path / "log").read_text()))
        grandchild = int((tmp_path / "log").read_text())
        eventually(lambda: "sleep" in then or not child.is_alive())
        child.stop()
    eventually(lambda: not is_running(grandchild))
    assert not child.is_alive()
    child.stop()


@pytest.mark.parametrize("bad", [{"seconds": 0.0}, {"seconds": float("nan")}, {"memory": -1}, {"clock": "sun"}])
def test_bad_limits_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"limit|clock"):
        ProcessLimits(**bad)


# Functions.


def test_a_function_receives_and_sends_messages() -> None:
    with ChildProcess.call(worker_for_supervisor, "prefix", threads=3) as child:
        child.send(("echo", "text"))
        assert child.receive() == "prefix text"
        child.send(("environment", "MKL_NUM_THREADS"))
        assert child.receive() == "3"
        child.send(("group", ""))
        assert child.receive() == child.pid  # it leads a process group of its own
        child.send(("echo", "again"))
        assert child.receive(ProcessLimits(seconds=30.0, memory=1 << 40)) == "prefix again"
    assert not is_running(child.pid)


@pytest.mark.parametrize(
    ("order", "status", "message"),
    [("exit", "crash", "exit code 7"), ("kill", "crash", "signal 9"), ("sleep", "time-out", "1 seconds")],
)
def test_a_function_that_fails(order: str, status: str, message: str) -> None:
    child = ChildProcess.call(worker_for_supervisor, "")
    child.send(("echo", ""))
    child.receive()
    child.send((order, ""))
    with pytest.raises(ProcessFailure, match=message) as caught:
        child.receive(ProcessLimits(seconds=1.0) if order == "sleep" else None)
    assert caught.value.status == status
    assert not is_running(child.pid)


def test_kill_from_another_thread_closes_the_pipe() -> None:
    import threading

    child = ChildProcess.call(worker_for_supervisor, "")
    child.send(("sleep", ""))
    threading.Timer(0.5, child.kill).start()
    with pytest.raises(ProcessFailure, match="signal 9"):
        child.receive()


def test_starting_a_function_leaves_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.delenv("NUMEXPR_NUM_THREADS", raising=False)
    with ChildProcess.call(worker_for_supervisor, "", threads=1):
        assert os.environ["OMP_NUM_THREADS"] == "2"
        assert "NUMEXPR_NUM_THREADS" not in os.environ
    assert thread_variables(4)["OPENBLAS_NUM_THREADS"] == "4"


PARENT = """
import sys, time
from presage.processes import ChildProcess
from worker_for_tests import worker_for_supervisor
if __name__ == "__main__":
    child = ChildProcess.call(worker_for_supervisor, "")
    child.send(("echo", ""))
    child.receive()
    child.send(("sleep", ""))
    print(child.pid, flush=True)
    time.sleep(600)
"""


def test_a_function_ends_with_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=environment)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert is_running(pid)
    parent.kill()
    parent.communicate()
    eventually(lambda: not is_running(pid))


# Temporary folders.


def test_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    host = platform.node() or "host"
    names = (
        f"presage-run_{host}_{gone.pid}_x",
        f"presage-run_{host}_{os.getpid()}_y",
        f"presage-run_other_{gone.pid}_z",
    )
    for name in names:
        (tmp_path / name / "inner").mkdir(parents=True)
    with temporary_folder("run") as folder:
        assert folder.is_dir()
        assert {path.name for path in tmp_path.iterdir()} == {folder.name, *names[1:]}
    assert not folder.exists()


def test_a_child_whose_parent_has_gone_prints_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(theirs, worker_for_supervisor, ("late",)))
    process.start()
    theirs.close()
    ours.send(("echo", "a" * (1 << 22)))  # more than the pipe holds, so that the answer is still being sent
    assert ours.poll(60.0)
    ours.close()
    process.join(60.0)
    assert process.exitcode == 1
    assert "Traceback" not in capfd.readouterr().err
