"""A run: objective, optimisers, resuming after kill -9, two processes, and that it learns."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from presage.data.settings import BufferConfig, RowsConfig
from presage.domain.catalog import get_domain
from presage.errors import ConfigError
from presage.inference.hub import load_model
from presage.networks.axial import AxialConfig
from presage.networks.network import build_network
from presage.networks.pair import PairConfig
from presage.networks.weights import load_model_file
from presage.training.checkpoints import find_checkpoints, read_checkpoint
from presage.training.config import DualConfig, OptimConfig, TrainConfig, ValidationConfig, paper_recipe
from presage.training.loop import Trainer, train
from presage.training.muon import Muon, orthogonalise
from presage.training.objective import Dual, negative_log_likelihood
from presage.training.optimizer import Updater, averaged_network, lr_factor

TINY = PairConfig(width=8, cell_width=8, rounds=2, blocks=1, outer=2, outer_intervened=2, triangle=4, heads=2)


def _config(**changes) -> TrainConfig:
    settings = {
        "domain": "linear",
        "net": TINY,
        "variable_counts": ((3, 0.5), (4, 0.5)),
        "pairs_per_batch": 64,
        "min_batch": 4,
        "max_batch": 4,
        "rows": RowsConfig(n=(20, 40)),
        "buffer": BufferConfig(capacity=8, rows_factor=1.0, reuse=2.0),
        "optim": OptimConfig(warmup=3, ema_half_life=4.0),
        "dual": DualConfig(every=2, step_size=0.5, per_run=False),
        "validation": ValidationConfig(d=4, n=30, n_interventional=10, datasets=3, minutes=100.0),
        "acyclicity_penalty": True,
        "steps": 12,
    }
    return TrainConfig(**{**settings, **changes})


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    return read_checkpoint(find_checkpoints(folder / "checkpoints")[-1])[0]


def _same(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


# The objective


def test_likelihood_by_hand_and_diagonal_mask():
    logits = torch.tensor([[[5.0, 0.0], [math.log(3.0), -5.0]]])
    graph = torch.tensor([[[0, 1], [1, 0]]])
    off = -(math.log(0.5) + math.log(0.75))
    assert float(negative_log_likelihood(logits, graph, mask_diagonal=True)) == pytest.approx(off / 4, rel=1e-5)
    own = -(math.log(1 - 1 / (1 + math.exp(-5))) + math.log(1 - 1 / (1 + math.exp(5))))
    whole = negative_log_likelihood(logits, graph, mask_diagonal=False)
    assert float(whole) == pytest.approx((off + own) / 4, rel=1e-5)


def test_dual_moves_up_by_the_averaged_penalty_when_due():
    dual = Dual(DualConfig(every=2, step_size=0.5, per_run=False, warmup=0.5, ema=0.25))
    dual.observe(1.0)
    dual.ascend(0, 0.0)
    assert dual.multiplier == 0.0  # not due
    dual.observe(2.0)
    assert dual.average == pytest.approx(1.25)
    dual.ascend(1, 0.25)  # half way through the warm-up
    assert dual.multiplier == pytest.approx(0.5 * 0.5 * 1.25)
    again = Dual(dual.config)
    again.restore(dual.state())
    assert again == dual


def test_the_multiplier_does_not_depend_on_the_number_of_steps():
    ends = []
    for steps in (200, 2000):
        dual = Dual(DualConfig(every=20, step_size=0.1, warmup=0.0))
        for step in range(steps):
            dual.observe(0.5)
            dual.ascend(step, step / steps)
        ends.append(dual.multiplier)
    assert ends == pytest.approx([0.05, 0.05], rel=0.1)


# The optimisers


def test_schedules():
    cosine = OptimConfig(warmup=10)
    assert lr_factor(cosine, 0, 0.0) == pytest.approx(0.1)
    assert lr_factor(cosine, 100, 0.5) == pytest.approx(0.5)
    assert lr_factor(cosine, 100, 1.0) == pytest.approx(0.0)
    steps = OptimConfig(warmup=0, schedule="steps")
    assert (lr_factor(steps, 0, 0.6), lr_factor(steps, 0, 0.7)) == (1.0, pytest.approx(0.1))


@pytest.mark.parametrize("shape", [(3, 5, 9), (2, 9, 5), (4, 6, 6)])
def test_orthogonalised_updates_keep_directions_and_lose_sizes(shape):
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    found = orthogonalise(matrices)
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.5
    assert values.max() < 1.3
    aligned = torch.einsum("bij,bij->b", found, u @ v) / (found.flatten(1).norm(dim=1) * (u @ v).flatten(1).norm(dim=1))
    assert aligned.min() > 0.97


def test_muon_is_torch_muon_in_float32():
    """In a process of its own: PyTorch computes in bf16, which some virtual machines cannot do."""
    program = """
import torch
from presage.training.muon import Muon
torch.manual_seed(0)
start = torch.randn(12, 7)
one, two = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
ours = Muon([one], lr=0.01, weight_decay=0.1)
theirs = torch.optim.Muon([two], lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
for _ in range(5):
    gradient = torch.randn(12, 7)
    one.grad, two.grad = gradient.clone(), gradient.clone()
    ours.step(); theirs.step()
moved = (two - start).norm()
print(float((one - two).norm() / moved))
"""
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    if done.returncode < 0:
        pytest.skip("bf16 products crash on this machine")
    assert float(done.stdout) < 0.03, done.stderr


def test_muon_refuses_vectors_and_updater_takes_all_kinds():
    with pytest.raises(ConfigError, match="matrices only"):
        Muon([torch.nn.Parameter(torch.zeros(3))])
    network = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.LayerNorm(6), torch.nn.Linear(6, 1))
    data = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    for name in ("muon", "adamw", "lamb"):
        updater = Updater(network, OptimConfig(name=name, lr=0.02, warmup=0, weight_decay=0.0))
        losses = []
        for _ in range(60):
            loss = (network(data)[:, 0] - data[:, 0]).square().mean()
            loss.backward()
            assert updater.step(1.0) > 0.0
            losses.append(float(loss.detach()))
        assert losses[-1] < 0.7 * losses[0] or losses[-1] < 0.05, name


def test_a_bad_gradient_does_not_touch_the_weights():
    network = torch.nn.Linear(3, 3)
    before = network.weight.detach().clone()
    updater = Updater(network, OptimConfig())
    network.weight.grad = torch.full((3, 3), math.nan)
    updater.step(1.0)
    assert torch.equal(network.weight, before)


def test_average_forgets_the_start():
    network = torch.nn.Linear(2, 2)
    averaged = averaged_network(network, half_life=3.0)
    averaged.update_parameters(network)
    with torch.no_grad():
        network.weight.fill_(1.0)
    for _ in range(60):
        averaged.update_parameters(network)
    torch.testing.assert_close(averaged.module.weight.detach(), torch.ones(2, 2), rtol=0, atol=1e-4)


def test_a_difference_halves_in_one_half_life():
    network = torch.nn.Linear(2, 2)
    averaged = averaged_network(network, half_life=5.0)
    for _ in range(100):  # past the shorter half-lives of the start
        averaged.update_parameters(network)
    before = network.weight.detach().clone()
    with torch.no_grad():
        network.weight.add_(1.0)
    for _ in range(5):
        averaged.update_parameters(network)
    torch.testing.assert_close(averaged.module.weight.detach(), before + 0.5)


@pytest.mark.parametrize("net", [TINY, AxialConfig(layers=1, width=8, heads=2, key_size=4, hidden=16)])
def test_muon_updates_inner_matrices_only(net):
    network = build_network(net)
    updater = Updater(network, OptimConfig(), network.io_layers())
    muon = {id(p) for group in updater.optimisers[0].param_groups for p in group["params"]}
    outer = {id(p) for layer in network.io_layers() for p in layer.parameters()}
    assert muon
    assert not muon & outer
    matrices = {id(p) for p in network.parameters() if p.ndim == 2}
    assert muon | outer >= matrices


# Configurations


def test_config_travels_as_json():
    counts = {"net": dataclasses.replace(TINY, winsorize_sd=0.0), "acyclicity_penalty": False}
    for config in (
        _config(),
        TrainConfig.from_recipe("rff", "paper", minutes=3.0),
        _config(domain="grn", precision="bf16", **counts),
    ):
        data = json.loads(json.dumps(config.to_json()))
        assert TrainConfig.from_json(data) == config
    with pytest.raises(ConfigError, match="no field 'stepz'"):
        TrainConfig.from_json({**_config().to_json(), "stepz": 1})
    with pytest.raises(ConfigError, match=r"TrainConfig\.optim: OptimConfig has no field 'beta'"):
        TrainConfig.from_json({**_config().to_json(), "optim": {"beta": 1}})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": None}, "budget"),
        ({"minutes": 1.0}, "budget"),
        ({"domain": "nope"}, "no domain"),
        ({"variable_counts": ()}, "variable_counts"),
        ({"variable_counts": ((3, 0.5), (3, 0.5))}, "once"),
        ({"variable_counts": ((3, 0.0),)}, "above 0"),
        ({"min_batch": 9}, "min_batch must be at most max_batch"),
        ({"domain": "grn"}, "acyclicity_penalty must be false"),
        ({"domain": "grn", "acyclicity_penalty": False}, r"net\.winsorize_sd must be 0 for a domain of counts"),
        ({"minutes": math.inf, "steps": None}, "minutes must be a finite number"),
        ({"precision": "fp8"}, "precision"),
        ({"seed": -1}, "seed"),
        ({"max_checkpoints": 0}, "max_checkpoints"),
    ],
)
def test_bad_configurations_say_what_is_wrong(changes, sentence):
    with pytest.raises(ConfigError, match=sentence):
        _config(**changes)


def test_the_papers_recipe_has_the_papers_numbers():
    config = TrainConfig(**paper_recipe(get_domain("rff"), devices=8))
    assert isinstance(config.net, AxialConfig)
    assert (config.net.dropout, config.steps, config.optim.name) == (0.1, 300_000, "lamb")
    assert config.optim.lr == pytest.approx(3e-5 * math.sqrt(8 * 27))
    assert (config.dual.every, config.dual.step_size, config.dual.ema) == (500, 1e-4, 1e-4)
    assert config.rows.stored(config.buffer.rows_factor) == (800, 200)
    assert config.acyclicity_penalty
    assert not TrainConfig.from_recipe("grn", "paper").acyclicity_penalty
    assert not TrainConfig.from_recipe("rff", steps=1).acyclicity_penalty
    with pytest.raises(ConfigError, match="no recipe 'ours'"):
        TrainConfig.from_recipe("rff", "ours", steps=1)


# Runs


def test_a_run_leaves_what_it_promises(tmp_path):
    events: list[dict] = []
    path = train(_config(steps=40), tmp_path / "run", report=events.append)
    network, metadata = load_model_file(path)
    assert network.config == TINY
    assert metadata["kind"] == "real"
    assert metadata["train"]["step"] == 40
    assert TrainConfig.from_json(metadata["train"]["config"]) == _config(steps=40)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if line["event"] == "step"] == [20, 40]
    assert 0.0 <= lines[-1]["auprc_int"] <= 1.0
    assert events[-1]["event"] == "done"
    with pytest.raises(ConfigError, match="--resume"):
        train(_config(steps=40), tmp_path / "run")


def test_pieces_of_a_batch_add_up_to_the_batch(tmp_path):
    whole = Trainer(_config(), tmp_path / "one")
    cut = Trainer(_config(memory=1e-9), tmp_path / "two")  # one dataset at a time
    for trainer in (whole, cut):
        batch = trainer.buffer.draw(4, 0)
        starts = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 4, 4)))
        trainer.dual.multiplier = 0.3
        trainer.sum_of_parts = trainer._accumulate(batch, starts, 4)
    assert whole.sum_of_parts == pytest.approx(cut.sum_of_parts, rel=1e-4)
    for (name, p), (_, q) in zip(whole.network.named_parameters(), cut.network.named_parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-5, msg=name)


@pytest.mark.parametrize("optimiser", ["muon", "lamb"])
def test_resuming_is_bit_for_bit(tmp_path, optimiser):
    net = TINY if optimiser == "muon" else AxialConfig(layers=1, width=8, heads=2, key_size=4, hidden=16, dropout=0.2)
    config = _config(net=net, optim=OptimConfig(name=optimiser, lr=1e-3, warmup=3, ema_half_life=4.0))
    train(config, tmp_path / "straight")
    first = Trainer(config, tmp_path / "halves")
    for _ in range(5):
        first.step(first.budget_used())
    first.save()
    for _ in range(3):  # lost work: made again after resuming
        first.step(first.budget_used())
    first.close()
    train(config, tmp_path / "halves", resume=True)
    assert _same(_weights(tmp_path / "straight"), _weights(tmp_path / "halves"))


def _program(folder: Path, steps: int, extra: str = "") -> list[str]:
    body = f"""
import sys, torch
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}
torch.set_num_threads(1)
from pathlib import Path
from test_train import _config
from presage.training.loop import Trainer
trainer = Trainer(_config(steps={steps}), Path({str(folder)!r}), resume=True)
{extra}
trainer.run()
"""
    return [sys.executable, "-c", body]


def test_kill_9_loses_nothing(tmp_path):
    """2k steps straight against k steps, kill -9 some steps after the last checkpoint, and the rest."""
    subprocess.run(_program(tmp_path / "straight", 60), check=True)
    slow = """
import time
step = trainer.step
def save_at_30_then_dawdle(spent):
    step(spent)
    if trainer.progress.step == 30:
        trainer.save()
    if trainer.progress.step > 40:
        Path(trainer.folder / "far").touch()
        time.sleep(60)
trainer.step = save_at_30_then_dawdle
"""
    process = subprocess.Popen(_program(tmp_path / "killed", 60, slow))
    deadline = time.monotonic() + 120
    while not (tmp_path / "killed" / "far").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline, "the run never got there"
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    subprocess.run(_program(tmp_path / "killed", 60), check=True)
    assert _same(_weights(tmp_path / "straight"), _weights(tmp_path / "killed"))
    steps = [json.loads(line)["step"] for line in (tmp_path / "killed" / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)
    assert len([step for step in steps if step == 40]) == 1  # logged by the killed run too, then trimmed


def test_asking_it_to_stop_saves_first(tmp_path):
    trainer = Trainer(_config(steps=1000), tmp_path / "run")
    step = trainer.step

    def stop_after_five(spent: float) -> None:
        step(spent)
        if trainer.progress.step == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    trainer.step = stop_after_five  # type: ignore[method-assign]
    assert trainer.run() == tmp_path / "run"
    newest = find_checkpoints(tmp_path / "run" / "checkpoints")[-1]
    assert read_checkpoint(newest)[1]["progress"]["step"] == 5


def test_two_processes_give_the_losses_of_one(tmp_path):
    """torchrun with two gloo processes on the same machine."""
    program = tmp_path / "program.py"
    program.write_text(_program(tmp_path / "two", 40)[2])
    subprocess.run(_program(tmp_path / "one", 40), check=True)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    logs = [
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("one", "two")
    ]
    for one, two in zip(*logs, strict=True):
        for key in ("loss", "penalty"):
            if key in one:
                assert two[key] == pytest.approx(one[key], rel=5e-3)


def test_the_command_line_under_torchrun_reports_and_ends(tmp_path):
    """What only the leading process does, such as drawing its progress, must not ask the others for an answer."""
    # Processor time: on a busy machine fewer steps fit into minutes of the wall clock.
    validation = ValidationConfig(d=4, n=30, datasets=1, n_interventional=10)
    config = _config(steps=None, minutes=0.1, clock="cpu", validation=validation)
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(config.to_json()))
    command = ["-m", "presage", "train", "--config", str(settings), "--out", str(tmp_path / "run"), "--threads", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *command],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    entries = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert sum(entry["event"] == "step" for entry in entries) >= 2
    assert (tmp_path / "run" / "model.safetensors").is_file()


def test_bf16_is_checked_and_close(tmp_path):
    """In a process of its own, which may not use AMX: where bf16 works, its answers are logged beside fp32's."""
    program = f"""
import sys
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}
from test_train import _config
from presage.training.loop import train
train(_config(precision="bf16", steps=5), {str(tmp_path / "run")!r})
"""
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    if "bf16 products crash" in done.stderr:
        pytest.skip("bf16 products crash on this machine")
    assert done.returncode == 0, done.stderr[-2000:]
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert 0.0 < last["bf16_gap"] < 0.05


def test_a_run_can_begin_with_a_model(tmp_path):
    first = train(_config(), tmp_path / "first")
    path = train(
        _config(init_from=str(first), steps=1, optim=OptimConfig(warmup=100, ema_half_life=0.0)), tmp_path / "second"
    )
    model, begun = load_model(str(first)), load_model(str(path))
    fresh = build_network(TINY, 0).state_dict()
    for name, weight in model.network.state_dict().items():
        moved = (begun.network.state_dict()[name] - weight).abs().max()
        assert moved < 1e-3
        assert moved < (fresh[name] - weight).abs().max() or torch.equal(fresh[name], weight)
    spent = begun.metadata["train"]
    assert spent["pretraining_datasets"] == model.metadata["train"]["datasets"] > spent["datasets"]
    assert spent["pretraining_core_minutes"] == model.metadata["train"]["core_minutes"]
    # Data it has not seen: not that of the first run again.
    runs = [Trainer(_config(**more), tmp_path / name) for name, more in (("a", {}), ("b", {"init_from": str(first)}))]
    drawn = [run.buffer.draw(4, step=0).x for run in runs]
    assert drawn[0].shape != drawn[1].shape or not np.allclose(drawn[0], drawn[1])
    for run in runs:
        run.buffer.close()
    with pytest.raises(ConfigError, match="network differs"):
        Trainer(_config(init_from=str(first), net=PairConfig()), tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_a_grown_network_answers_as_the_smaller_one_at_first(tmp_path):
    first = train(_config(), tmp_path / "first")
    larger = dataclasses.replace(
        TINY, rounds=4, blocks=3, pair_z_scores=True, row_clip_sd=2.0, add_row_scaled_view=True
    )
    grown = Trainer(_config(init_from=str(first), net=larger), tmp_path / "grown")
    data = _config().domain.sample(d=4, n=30, n_interventional=10, seed=1)[0]
    x, u = torch.tensor(data.x, dtype=torch.float32), torch.tensor(data.interventions)
    answers = [network.predict(x, u) for network in (load_model(str(first)).network, grown.network)]
    torch.testing.assert_close(answers[1], answers[0])
    grown.buffer.close()


def test_counts_are_not_winsorized():
    assert TrainConfig.from_recipe("grn", steps=1).net == PairConfig(winsorize_sd=0.0)
    assert TrainConfig.from_recipe("rff", steps=1).net == PairConfig()


def test_it_learns(tmp_path):
    """A few hundred steps on three variables beat chance by far."""
    config = _config(
        net=PairConfig(width=16, cell_width=8, rounds=2, blocks=1, outer=4, outer_intervened=4, triangle=8, heads=2),
        variable_counts=((3, 1.0),),
        pairs_per_batch=288,
        max_batch=32,
        optim=OptimConfig(lr=1e-2, warmup=20, ema_half_life=20.0),
        validation=ValidationConfig(d=3, n=200, n_interventional=100, datasets=20, minutes=100.0),
        steps=250,
    )
    events: list[dict] = []
    train(config, tmp_path / "run", report=events.append)
    assert events[-1]["auprc_int"] > 0.9


def test_a_gene_configuration_is_read_in_a_fresh_process(tmp_path):
    """The components of the gene domain are found without that domain having been imported."""
    (tmp_path / "config.json").write_text(json.dumps(TrainConfig.from_recipe("grn", steps=1).to_json()))
    program = f"""
import json
from presage.training.config import TrainConfig
print(TrainConfig.from_json(json.load(open({str(tmp_path / "config.json")!r}))).domain.kind)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "counts"
