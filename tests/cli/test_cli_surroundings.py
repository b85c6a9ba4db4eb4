"""The command line in odd surroundings: full disks, closed output, ASCII terminals, little memory, folders in use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import presage
from models_for_tests import save_tiny
from presage.cli import run
from presage.errors import InputError, PresageError
from presage.files import atomic_write
from presage.inference.result import RESULT_FILES

PRESAGE = [sys.executable, "-m", "presage"]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """`presage discover` of a small table with a name beyond ASCII."""
    folder = tmp_path_factory.mktemp("surroundings")
    values = np.random.default_rng(0).standard_normal((40, 3)).cumsum(axis=1)
    np.savetxt(folder / "small.csv", values, delimiter=",", header="größe,b,c", comments="", encoding="utf-8")
    model = save_tiny(folder / "tiny.safetensors", with_summaries=True)
    return ["discover", str(folder / "small.csv"), "--model", str(model), "--threshold", "0"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_the_output_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*PRESAGE, "domains"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot write the output: no space left" in done.stderr


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run([*PRESAGE, "domains"], stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(os.name == "nt", reason="file descriptors are closed by a POSIX shell")
def test_closed_output_is_no_traceback() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "{sys.executable}" -m presage domains >&-'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr


def test_names_beyond_ascii_are_printed_as_escapes_on_ascii_terminals(command: list[str]) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([*PRESAGE, *command], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert r"gr\xf6\xdfe" in done.stdout


def test_a_broken_backend_of_matplotlib_does_no_harm(command: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "MPLBACKEND": "no-such-backend"}
    arguments = [*PRESAGE, *command, "--out", str(tmp_path / "out")]
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "graph.png").stat().st_size > 1000


def test_a_folder_with_other_files_is_not_written_to_without_force(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    assert run([*command, "--out", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["notes.txt"]
    assert run([*command, "--out", str(out), "--force"]) == 0
    assert (out / "notes.txt").read_text() == "mine"
    assert (out / "report.html").exists()


def test_a_folder_of_an_earlier_result_is_written_again(command: list[str], tmp_path: Path) -> None:
    arguments = [*command, "--out", str(tmp_path / "out")]
    assert run(arguments) == run(arguments) == 0
    (tmp_path / "out" / "result.json").unlink()  # no result, although the names are those of one
    assert run(arguments) == 2


def test_the_names_of_result_files_are_complete(tmp_path: Path) -> None:
    zeros = np.zeros((2, 2))
    presage.Result(unconstrained=zeros, names=("a", "b"), model="m", hidden_causes=zeros, data={}).save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == RESULT_FILES


def test_enormous_simulations_are_refused_before_they_start() -> None:
    with pytest.raises(PresageError) as caught:
        presage.simulate("linear", d=10**6, n=10**6, seed=0)
    assert "\n" not in str(caught.value)


def test_too_little_memory_is_one_sentence(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("presage.inference.discovery.discover", exhausted)
    assert run(command) == 2
    assert "too little memory" in capsys.readouterr().err


def test_a_full_disk_while_saving_is_one_sentence(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    result = presage.discover(command[1], model=command[3])
    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(InputError, match="no space left"):
        result.save(tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("limit", ["nan", "-inf", "-1", "0"])
def test_time_limits_of_the_bench_are_positive_numbers(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "table-30", "--methods", "empty", "--time-limit", limit]) == 2
    assert "time" in capsys.readouterr().err


@pytest.mark.parametrize(
    "bad", [["--known", "absent.json"], ["--interventions", "x"], ["--exclude", "x"], ["--model", "x"], ["--role", "a"]]
)
def test_bad_input_leaves_no_folder_behind(command: list[str], bad: list[str], tmp_path: Path) -> None:
    assert run([*command, "--out", str(tmp_path / "new" / "result"), *bad]) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_pipes_are_neither_read_nor_replaced(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for arguments in (
        [*command, "--known", str(pipe)],
        ["train", "--config", str(pipe), "--out", str(tmp_path / "run")],
        ["simulate", "linear", "-d", "3", "-n", "4", "-o", str(pipe)],
        ["simulate", str(pipe), "-d", "3", "-n", "4", "-o", str(tmp_path / "ds.npz")],
        ["domains", str(pipe)],
        [*command[:1], str(pipe), *command[2:]],
    ):
        assert run(arguments) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
    with pytest.raises(InputError, match="a pipe or a device"):
        presage.Result.load(pipe)
    with pytest.raises(InputError, match="a pipe or a device"), atomic_write(pipe) as file:
        file.write(b"x")
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe.json"]


def test_deep_json_is_refused_wherever_a_configuration_is_read(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deep = tmp_path / "config.json"
    deep.write_text("[" * 100_000)
    for arguments in (
        [*command, "--known", str(deep)],
        ["train", "--config", str(deep), "--out", str(tmp_path / "run")],
        ["train", "--resume", "--out", str(tmp_path)],
        ["release", str(tmp_path), "name"],
    ):
        assert run(arguments) == 2, arguments
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "Traceback" not in error


def test_a_list_of_methods_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for methods in ("", ",", " , "):
        assert run(["bench", "table-30", "--methods", methods]) == 2
        assert "--methods names no method" in capsys.readouterr().err
