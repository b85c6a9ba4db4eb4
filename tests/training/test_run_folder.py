"""The run folder: one training at a time, damaged files, and states that nobody planned for."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import presage
from presage.errors import ConfigError, InputError, ModelFileError, PresageError
from presage.training.checkpoints import find_checkpoints, load_newest, read_checkpoint, write_checkpoint
from presage.training.config import TrainConfig
from presage.training.loop import Trainer, train
from runs_for_tests import short_config

CONFIG = short_config(steps=4, ood_datasets=0)
LONGER = dataclasses.replace(CONFIG, steps=6)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six steps that was stopped, with two checkpoints, of steps 2 and 4."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    trainer = Trainer(LONGER, folder)
    for step in (1, 2, 3, 4):
        trainer.step(trainer.budget_used())
        if step in (2, 4):
            trainer.save()
    trainer.close()
    return folder


@pytest.fixture
def run(begun: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(begun, tmp_path / "run"))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return read_checkpoint(find_checkpoints(folder / "checkpoints")[-1])[0]


def test_train_is_public_and_wants_a_configuration(tmp_path: Path) -> None:
    assert (presage.train, presage.TrainConfig) == (train, TrainConfig)
    with pytest.raises(ConfigError, match="takes a TrainConfig, not dict"):
        presage.train(CONFIG.to_json(), tmp_path / "run")  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


# The lock


def test_two_trainings_in_one_folder_are_refused(tmp_path: Path) -> None:
    first = Trainer(CONFIG, tmp_path / "run")
    for resume in (False, True):
        with pytest.raises(ConfigError, match=r"another process is training in .*run; wait"):
            Trainer(CONFIG, tmp_path / "run", resume=resume)
    first.run()
    train(LONGER, tmp_path / "run", resume=True)


def test_a_refused_run_does_not_keep_the_lock(run: Path) -> None:
    with pytest.raises(ConfigError, match="seed"):
        Trainer(dataclasses.replace(CONFIG, seed=5), run, resume=True)
    Trainer(LONGER, run, resume=True).close()


def test_the_lock_of_another_process_holds_until_it_dies(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    program = f"""
import sys, time
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}
from pathlib import Path
from test_run_folder import CONFIG
from presage.training.loop import Trainer
trainer = Trainer(CONFIG, Path({str(folder)!r}))
print("locked", flush=True)
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(ConfigError, match="another process is training"):
            train(CONFIG, folder, resume=True)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert train(CONFIG, folder, resume=True).is_file()


def test_only_the_leading_process_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Trainer(CONFIG, tmp_path / "run")
    monkeypatch.setattr("presage.training.distributed.Distributed.is_main", False)
    Trainer(CONFIG, tmp_path / "run").close()
    monkeypatch.undo()
    first.close()


# Damaged checkpoints


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flip_a_weight(data: bytes) -> bytes:
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


def flip_a_counter(data: bytes) -> bytes:
    at = data.index(b'step\\": 4') + len(b'step\\": ')
    return data[:at] + b"9" + data[at + 1 :]


@pytest.mark.parametrize("damage", [cut, flip_a_weight, flip_a_counter, lambda data: b""])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(
    run: Path, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    train(LONGER, tmp_path / "straight")
    before, newest = find_checkpoints(run / "checkpoints")
    newest.write_bytes(damage(newest.read_bytes()))
    with pytest.raises(ModelFileError, match=newest.name):
        read_checkpoint(newest)
    events: list[dict[str, Any]] = []
    train(LONGER, run, resume=True, report=events.append)
    warning = f"the checkpoint {newest.name} is damaged; the run continues from the one before, {before.name}"
    assert events[0] == {"event": "warning", "text": warning}
    assert sum(event["event"] == "warning" for event in events) == 1
    one, two = weights(run), weights(tmp_path / "straight")
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert newest.with_name(f"{newest.name}.damaged").exists()


def test_the_command_line_prints_the_sentence(run: Path, presage_cli: Any) -> None:
    newest = find_checkpoints(run / "checkpoints")[-1]
    newest.write_bytes(cut(newest.read_bytes()))
    code, _, err = presage_cli("train", "--out", run, "--resume", "--steps", 6)
    assert code == 0, err
    assert f"presage: the checkpoint {newest.name} is damaged; the run continues from the one before" in err


def test_a_run_with_damaged_checkpoints_only_is_refused(run: Path) -> None:
    for path in find_checkpoints(run / "checkpoints"):
        path.write_bytes(b"{}")
    with pytest.raises(ModelFileError, match=r"all checkpoints in .* are damaged .*step-00000004.*; start a new run"):
        train(LONGER, run, resume=True)


def test_checkpoints_are_ordered_by_step_and_only_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (5, 99_999_999, 100_000_000):
        write_checkpoint(tmp_path, step, {"w": torch.ones(2)}, {"step": step}, keep=2)
    newest = load_newest(tmp_path)
    assert newest is not None
    assert newest.state == {"step": 100_000_000}
    assert len(find_checkpoints(tmp_path)) == 2


# Odd states


def break_config(run: Path) -> None:
    (run / "config.json").write_text("{")


def remove_config(run: Path) -> None:
    (run / "config.json").unlink()


def another_network(run: Path) -> None:
    data = json.loads((run / "config.json").read_text())
    data["net"]["width"] = 16
    (run / "config.json").write_text(json.dumps(data))


def unrelated_checkpoint(run: Path) -> None:
    write_checkpoint(run / "checkpoints", 7, {"weights/w": torch.ones(2)}, {"progress": {"step": 7}}, keep=2)


def checkpoint_without_weights(run: Path) -> None:
    state = read_checkpoint(find_checkpoints(run / "checkpoints")[-1])[1]
    write_checkpoint(run / "checkpoints", 7, {"weights/w": torch.ones(2)}, state, keep=2)


def state_without_optimiser(run: Path) -> None:
    tensors, state = read_checkpoint(find_checkpoints(run / "checkpoints")[-1])
    write_checkpoint(run / "checkpoints", 7, tensors, {**state, "optim": None}, keep=2)


def numbers_of_half_precision(run: Path) -> None:
    tensors, state = read_checkpoint(find_checkpoints(run / "checkpoints")[-1])
    halves = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    write_checkpoint(run / "checkpoints", 7, halves, state, keep=2)


def pipes_instead_of_checkpoints(run: Path) -> None:
    for path in find_checkpoints(run / "checkpoints"):
        path.unlink()
        os.mkfifo(path)


def pipe_instead_of_log(run: Path) -> None:
    (run / "metrics.jsonl").unlink()
    os.mkfifo(run / "metrics.jsonl")


def deep_config(run: Path) -> None:
    (run / "config.json").write_text("[" * 100_000)


def file_instead_of_folder(run: Path) -> None:
    shutil.rmtree(run)
    run.write_text("not a folder")


def folder_instead_of_log(run: Path) -> None:
    (run / "metrics.jsonl").unlink()
    (run / "metrics.jsonl").mkdir()


@pytest.mark.parametrize(
    ("odd", "sentence"),
    [
        (break_config, "no run with a readable configuration"),
        (remove_config, "no run with a readable configuration"),
        (another_network, "cannot be resumed with|does not fit the configuration"),
        (unrelated_checkpoint, "no usable counters"),
        (checkpoint_without_weights, "does not fit the configuration"),
        (state_without_optimiser, "does not fit the configuration"),
        (numbers_of_half_precision, "does not fit the configuration"),
        (pipes_instead_of_checkpoints, "all checkpoints in .* are damaged"),
        (pipe_instead_of_log, "a pipe or a device"),
        (deep_config, "no run with a readable configuration"),
        (file_instead_of_folder, "it is not a folder"),
        (folder_instead_of_log, r"cannot read .*metrics\.jsonl"),
    ],
)
def test_odd_states_give_sentences(run: Path, odd: Callable[[Path], None], sentence: str, presage_cli: Any) -> None:
    odd(run)
    with pytest.raises(PresageError, match=sentence):
        train(LONGER, run, resume=True)
    if run.is_dir():
        code, _, err = presage_cli("train", "--out", run, "--resume", "--steps", 6)
        assert (code, err.count("\n")) == (2, 1)


def test_a_log_of_nonsense_is_no_obstacle(run: Path) -> None:
    kept = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_bytes(b'\xff\xfe\n5\n{"event": "step"}\n{"st' + b"\n" + kept.encode())
    train(LONGER, run, resume=True)
    lines = (run / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines][-1] == 6


def test_an_unwritable_folder_gives_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(InputError, match=r"cannot train in .*: no space left on device"):
        Trainer(CONFIG, tmp_path / "run")


@pytest.mark.parametrize(
    "changes",
    [
        {"domain": "rff"},
        {"seed": 1},
        {"optim": dataclasses.replace(CONFIG.optim, lr=1e-3)},
        {"precision": "bf16"},
        {"variable_counts": ((4, 1.0),)},
    ],
)
def test_a_run_is_not_resumed_with_another_configuration(run: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"cannot be resumed with .*{next(iter(changes))}"):
        train(dataclasses.replace(CONFIG, **changes), run, resume=True)


def test_worker_processes_resume_with_new_datasets(tmp_path: Path) -> None:
    """docs/train.md: such a run goes on without a loss of work, but not bit for bit."""
    produced = dataclasses.replace(CONFIG, buffer=dataclasses.replace(CONFIG.buffer, producers="processes"), steps=3)
    train(produced, tmp_path / "run")
    first = read_checkpoint(find_checkpoints(tmp_path / "run" / "checkpoints")[-1])[1]["buffer"]["datasets"]["3"]
    train(dataclasses.replace(produced, steps=6), tmp_path / "run", resume=True)
    second = read_checkpoint(find_checkpoints(tmp_path / "run" / "checkpoints")[-1])[1]["buffer"]["datasets"]["3"]
    assert second["base"] >= first["inserted"]  # none of the earlier datasets is drawn again
    assert read_checkpoint(find_checkpoints(tmp_path / "run" / "checkpoints")[-1])[1]["progress"]["step"] == 6


def test_core_minutes_continue_when_the_number_of_processes_changes(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    trainer = Trainer(CONFIG, folder)
    trainer.progress.processes = 2  # as torchrun with two processes sets it
    trainer.step(0.0)
    trainer.save()
    trainer.close()
    saved = read_checkpoint(find_checkpoints(folder / "checkpoints")[-1])[1]["progress"]
    assert saved["core_seconds"] == pytest.approx(2 * saved["cpu_seconds"])

    resumed = Trainer(CONFIG, folder, resume=True)
    assert resumed.progress.processes == 1
    assert resumed.progress.core_minutes == saved["core_seconds"] / 60.0
    resumed.step(0.0)
    resumed.save()
    resumed.close()
    later = read_checkpoint(find_checkpoints(folder / "checkpoints")[-1])[1]["progress"]
    added = later["cpu_seconds"] - saved["cpu_seconds"]
    assert later["core_seconds"] == pytest.approx(saved["core_seconds"] + added)


def test_checkpoints_without_core_seconds_count_all_their_processes(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    trainer = Trainer(CONFIG, folder)
    trainer.step(0.0)
    trainer.save()
    trainer.close()
    tensors, state = read_checkpoint(find_checkpoints(folder / "checkpoints")[-1])
    state["progress"] |= {"cpu_seconds": 60.0, "processes": 2}
    del state["progress"]["core_seconds"]
    write_checkpoint(folder / "checkpoints", 2, tensors, state, keep=2)
    resumed = Trainer(CONFIG, folder, resume=True)
    resumed.close()
    assert resumed.progress.core_minutes == 2.0
