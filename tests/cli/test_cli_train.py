"""`presage train`: every option takes effect or is refused with a sentence, in every combination of sources."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from presage.cli import run
from presage.domain.catalog import get_domain, simulate
from presage.inference.hub import BUNDLED
from presage.networks.axial import AxialConfig
from presage.training.config import DualConfig, TrainConfig
from presage.training.loop import train
from runs_for_tests import TINY, short_config

CONFIG = short_config(dual=DualConfig(every=2), minutes=60.0)
RFF = str(BUNDLED / "rff.safetensors")

# Arguments, the fields they decide, and their values. One flag that is not enough on its own comes with another.
FLAGS: list[tuple[list[str], dict[str, Any]]] = [
    (["--domain", "rff"], {"domain": get_domain("rff").to_json()}),
    (["--net", "pair"], {"net.type": "PairConfig"}),
    (["--net", "axial"], {"net.type": "AxialConfig"}),
    (["--seed", "7"], {"seed": 7}),
    (["--precision", "bf16"], {"precision": "bf16"}),
    (["--clock", "cpu", "--minutes", "3"], {"clock": "cpu"}),
    (["--producers", "processes"], {"buffer.producers": "processes"}),
    (["--workers", "3", "--producers", "processes"], {"buffer.workers": 3}),
    (["--lr", "0.002"], {"optim.lr": 0.002}),
    (["--minutes", "7"], {"minutes": 7.0, "steps": None}),
    (["--steps", "7"], {"steps": 7, "minutes": None}),
    (["--init-from", "rff"], {"init_from": RFF}),
    (["--set", "optim.warmup=11"], {"optim.warmup": 11}),
    (["--set", "rows.n=[50,500]", "--set", "rows.missing_probability=0.5"], {"rows.n": [50, 500]}),
    (["--set", "domain.interventions.share=0.25"], {"domain.interventions.share": 0.25}),
    (["--set", "validation.datasets=5"], {"validation.datasets": 5}),
]
MAY_CHANGE = {"--clock", "--minutes", "--steps", "validation.datasets=5"}
"""What may change when a run is resumed."""


def look_up(data: Any, path: str) -> Any:
    for name in path.split("."):
        data = data[name]
    return data


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG.to_json()))
    return path


@pytest.mark.parametrize("source", ["recipe default", "recipe paper", "config", "resume"])
@pytest.mark.parametrize(("arguments", "expected"), FLAGS, ids=[" ".join(arguments) for arguments, _ in FLAGS])
def test_every_flag_takes_effect_or_is_refused(
    source: str, arguments: list[str], expected: dict[str, Any], tmp_path: Path, config_file: Path, capsys: Any
) -> None:
    out = tmp_path / "run"
    command = ["train", "--out", str(out), "--dry-run", *arguments]
    if source.startswith("recipe"):
        command += ["--recipe", source.removeprefix("recipe "), "--set", "minutes=5"]
    elif source == "config":
        command += ["--config", str(config_file)]
    else:
        out.mkdir()
        (out / "config.json").write_text(config_file.read_text())
        command += ["--resume"]
    code = run(command)
    output = capsys.readouterr()
    if source == "resume" and arguments != ["--net", "pair"] and not MAY_CHANGE & set(arguments):
        assert code == 2
        assert "cannot be resumed with" in output.err
        return
    assert code == 0, output.err
    built = json.loads(output.out)
    for path, value in expected.items():
        assert look_up(built, path) == value
    TrainConfig.from_json(built)
    assert not list(out.glob("*.safetensors"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "give a budget"),
        (["--minutes", "5", "--steps", "5"], "not both"),
        (["--minutes", "inf"], "TrainConfig.minutes must be a finite number"),
        (["--minutes", "nan"], "TrainConfig.minutes must be a finite number"),
        (["--minutes", "-1"], "TrainConfig.minutes must be above 0"),
        (["--steps", "0"], "TrainConfig.steps must be at least 1"),
        (["--steps", "5", "--lr", "2"], "TrainConfig.optim.lr must lie between 0 and 1"),
        (["--steps", "5", "--net", "mlp"], "no network 'mlp'"),
        (["--steps", "5", "--recipe", "ours"], "no recipe 'ours'"),
        (["--steps", "5", "--clock", "cpu"], "--clock"),
        (["--steps", "5", "--workers", "3"], "TrainConfig.buffer.workers must be 1 for inline producers"),
        (["--steps", "5", "--producers", "threads"], "TrainConfig.buffer.producers must be one of"),
        (["--steps", "5", "--precision", "fp8"], "TrainConfig.precision must be one of fp32, bf16"),
        (["--steps", "5", "--init-from", "nowhere"], "no model 'nowhere'"),
        (["--steps", "5", "--config", "nowhere.json"], "cannot read the configuration"),
        (["--steps", "5", "--set", "net.depth=3"], "PairConfig has no field 'depth'"),
        (["--steps", "5", "--set", "speed=3"], "TrainConfig has no field 'speed'"),
        (["--steps", "5", "--set", "net.width"], "field=value"),
        (["--steps", "5", "--set", "optim.lr.peak=1"], "TrainConfig.optim.lr must be a finite number"),
        (["--steps", "5", "--domain", "grn", "--set", "net.winsorize_sd=3.0"], "must be 0 for a domain of counts"),
        (["--steps", "5", "--domain", "grn", "--init-from", "scm"], "must be 0 for a domain of counts"),
    ],
)
def test_bad_options_are_refused(arguments: list[str], sentence: str, tmp_path: Path, capsys: Any) -> None:
    assert run(["train", "--out", str(tmp_path / "run"), "--dry-run", *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_layers_win_in_order(tmp_path: Path, capsys: Any) -> None:
    """defaults < recipe < file < --set < flags, field by field."""
    (tmp_path / "part.json").write_text('{"optim": {"lr": 0.01, "clip": 2.0, "warmup": 9}, "domain": "linear"}')
    command = ["train", "--out", str(tmp_path / "run"), "--dry-run", "--recipe", "paper"]
    command += [
        "--config",
        str(tmp_path / "part.json"),
        "--set",
        "optim.lr=0.02",
        "--set",
        "optim.clip=3",
        "--lr",
        "0.03",
    ]
    assert run(command) == 0
    built = TrainConfig.from_json(json.loads(capsys.readouterr().out))
    assert (built.optim.lr, built.optim.clip, built.optim.warmup, built.optim.name) == (0.03, 3, 9, "lamb")
    assert built.domain == get_domain("linear")
    assert isinstance(built.net, AxialConfig)
    assert built.steps == 300_000


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (["--recipe", "default"], False),
        (["--recipe", "paper"], False),
        (["--recipe", "paper", "--net", "pair"], False),
        (["--config", "CONFIG"], True),
        (["--config", "CONFIG", "--set", "net.winsorize_sd=0"], False),
        (["--set", "net.winsorize_sd=3", "--set", "net.row_clip_sd=2"], True),
        (["--init-from", "grn"], False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_counts_are_never_clipped(
    arguments: list[str], refused: bool, tmp_path: Path, config_file: Path, capsys: Any
) -> None:
    given = [str(config_file) if argument == "CONFIG" else argument for argument in arguments]
    code = run(["train", "--out", str(tmp_path / "run"), "--dry-run", "--steps", "1", *given, "--domain", "grn"])
    output = capsys.readouterr()
    if refused:
        assert code == 2
        assert "must be 0 for a domain of counts" in output.err
        return
    assert code == 0, output.err
    net = json.loads(output.out)["net"]
    assert (net.get("winsorize_sd", 0.0), net.get("row_clip_sd", 0.0)) == (0.0, 0.0)


def test_a_run_from_the_command_line(tmp_path: Path, config_file: Path, capsys: Any) -> None:
    out = tmp_path / "run"
    command = ["train", "--config", str(config_file), "--steps", "20", "--out", str(out)]
    assert run([*command, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert Path(answer["model"]).exists()
    assert run(command) == 2
    assert "--resume" in capsys.readouterr().err
    assert run([*command, "--resume", "--steps", "25"]) == 0
    assert "after 25 steps" in capsys.readouterr().out


def test_a_trained_model_has_a_card_and_a_check_and_answers(tmp_path: Path, config_file: Path, capsys: Any) -> None:
    out, table = tmp_path / "run", tmp_path / "table.csv"
    short = ["--steps", "20", "--set", "ood_datasets=100"]
    assert run(["train", "--config", str(config_file), "--out", str(out), *short]) == 0
    assert run(["card", str(out), "--json"]) == 0
    card = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert card["ood_check"] is True
    assert "linear" in card["notes"]["about"]
    x = simulate("linear", d=4, n=40, seed=1).x
    np.savetxt(table, 1e6 * x**9, delimiter=",", header="a,b,c,d", comments="")
    assert run(["discover", str(table), "--model", str(out), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert 0.0 <= answer["ood"]["score"] <= 1.0


def test_a_run_starts_from_a_model_and_grows_it(tmp_path: Path, config_file: Path, capsys: Any) -> None:
    first = train(dataclasses.replace(CONFIG, minutes=None, steps=2), tmp_path / "first")
    command = ["train", "--config", str(config_file), "--out", str(tmp_path / "second"), "--init-from", str(first)]
    assert run([*command, "--steps", "2", "--set", "net.blocks=2", "--set", "net.rounds=3", "--lr", "0.001"]) == 0
    assert "after 2 steps" in capsys.readouterr().out
    config = TrainConfig.from_json(json.loads((tmp_path / "second" / "config.json").read_text()))
    assert (config.net, config.init_from) == (dataclasses.replace(TINY, blocks=2, rounds=3), str(first))
    assert config.optim.lr == 0.001


def test_a_run_that_started_from_a_model_resumes_with_its_own_configuration(tmp_path: Path, capsys: Any) -> None:
    first = train(dataclasses.replace(CONFIG, minutes=None, steps=2), tmp_path / "first")
    train(dataclasses.replace(CONFIG, minutes=None, steps=2, init_from=str(first)), tmp_path / "second")
    file = tmp_path / "second" / "config.json"
    first.unlink()  # the weights are in the checkpoint
    assert run(["train", "--config", str(file), "--out", str(file.parent), "--resume", "--steps", "3"]) == 0
    assert "after 3 steps" in capsys.readouterr().out
