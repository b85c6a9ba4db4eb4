"""Experiments: declarations, the paper's numbers, caching and resuming, tables, pictures."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from presage.baselines.run import Outcome
from presage.bench import engine, figures, tasks
from presage.bench.engine import Record, RunOptions, run_tasks
from presage.bench.experiments import EXPERIMENTS, Method, default_settings, get_experiment
from presage.bench.frame import tidy
from presage.bench.grids import scaling_grid
from presage.bench.illustration import illustrate
from presage.bench.instances import instance, instance_key
from presage.bench.paper import paper_value
from presage.bench.plan import Choice, plan, read_tuned
from presage.bench.run import run_experiment
from presage.bench.store import Store
from presage.bench.tables import build_table, latex, markdown, method_title
from presage.bench.tasks import code_version, model_fingerprint, task_key
from presage.bench.tune import candidates, tune
from presage.cli import run as cli
from presage.errors import ConfigError
from presage.processes import ProcessLimits
from presage.rng import Stream

QUICK = Choice(methods=("empty", "random"), instances=2, variables=5, rows=40, columns=("linear",))
OPTIONS = RunOptions(limits=ProcessLimits(seconds=60.0))


@pytest.fixture
def counted(monkeypatch):
    """Methods answered in this process, each call counted."""
    calls = []

    def execute(task, options):
        data = instance(task)
        calls.append((task.label, task.instance))
        if task.method == "pc":
            return Outcome(status="time-out", seconds=options.limits.seconds, message="stopped")
        if task.method == "ges":
            raise ValueError("broken on purpose")
        rng = np.random.default_rng(task.instance)
        guess = np.clip(0.7 * np.asarray(data.graph) + 0.3 * rng.random((data.d, data.d)), 0.0, 1.0)
        return Outcome(
            status="ok",
            kind="probabilities",
            matrices=guess[None],
            scores=(float(task.instance),),
            seconds=0.1,
            cpu_seconds=2.04,
        )

    monkeypatch.setattr(engine, "_execute", execute)
    monkeypatch.setattr(tasks, "model_fingerprint", lambda name: f"sum of {name}")
    return calls


# Declarations.


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))
def test_declarations_hold_together(experiment):
    for name in experiment.methods:
        Method.parse(name)
    planned = plan(experiment, Choice(instances=1)) if experiment.settings else []
    assert len(planned) == len(set(planned))
    assert all(task.stream == Stream.TEST for task in planned)


def test_every_table_of_the_paper_is_declared():
    declared = {experiment.paper for experiment in EXPERIMENTS.values()} - {""}
    with (Path(paper_value.__code__.co_filename).parents[1] / "assets" / "paper.csv").open() as file:
        stored = {line.split(",")[0] for line in file.readlines()[1:]}
    assert stored == declared


def test_the_paper_has_a_number_for_every_method_it_compares():
    for name, metric in [("table-30", "sid"), ("table-30-indist", "f1"), ("table-100", "f1"), ("calibration", "ece")]:
        table = EXPERIMENTS[name].paper
        for column in ("linear", "rff", "grn"):
            for method in ("ges", "lingam", "pc", "dag-gnn", "gran-dag", "avici"):
                assert paper_value(table, "observational", method, column, metric) is not None
            for method in ("gies", "igsp", "dcdi", "avici"):
                assert paper_value(table, "interventional", method, column, metric) is not None
    assert paper_value("tab:benchmark-30-prob", "interventional", "dibs", "rff", "auprc").mean == 0.340
    assert paper_value("tab:sachs", "observational", "avici:rff", "sachs", "edges").mean == 13
    assert paper_value("tab:ablation", "interventional", "avici:main", "rff", "auprc").mean == 0.972
    assert paper_value("tab:benchmark-30", "observational", "sdcd", "rff", "sid") is None


def test_methods_run_where_their_data_is():
    planned = plan(get_experiment("table-30"), Choice(methods=("ges", "gies", "presage"), instances=1))
    where = {(task.method, task.setting.section) for task in planned}
    assert where == {
        ("ges", "observational"),
        ("gies", "interventional"),
        ("presage", "observational"),
        ("presage", "interventional"),
    }
    assert all(task.setting.n == 1000 for task in planned)
    assert {task.setting.n_interventional for task in planned if task.setting.section == "interventional"} == {500}
    models = {task.setting.column: dict(task.settings)["model"] for task in planned if task.method == "presage"}
    assert models == {"linear": "linear", "rff": "rff", "grn": "grn"}


def test_named_networks_and_bad_names():
    assert Method.parse("presage:runs/x").model == "runs/x"
    with pytest.raises(ConfigError, match="only presage"):
        Method.parse("ges:x")
    with pytest.raises(ConfigError, match="no method"):
        Method.parse("gess")
    with pytest.raises(ConfigError, match="no experiment"):
        get_experiment("table-31")
    with pytest.raises(ConfigError, match="no column"):
        plan(get_experiment("table-30"), Choice(columns=("lin",)))
    with pytest.raises(ConfigError, match="instances"):
        Choice(instances=0)


def test_bootstrap_is_for_point_estimates_only():
    planned = plan(get_experiment("calibration"), Choice(methods=("ges", "dibs", "presage"), instances=1))
    assert {task.method: task.bootstrap for task in planned} == {"ges": 10, "dibs": 0, "presage": 0}


def test_dibs_follows_the_domain():
    assert default_settings("dibs", "rff") == {"likelihood": "nonlinear"}
    assert default_settings("dibs", "linear") == {}


def test_tuned_settings_are_used_and_sachs_takes_those_of_rff(tmp_path):
    path = tmp_path / "tuned.json"
    path.write_text(json.dumps({"settings": {"rff": {"pc": {"alpha": 1e-4}}}}))
    tuned = read_tuned(path)
    for name in ("table-30", "sachs"):
        planned = plan(get_experiment(name), Choice(methods=("pc",), instances=1), tuned)
        alphas = {task.setting.column: dict(task.settings)["alpha"] for task in planned}
        assert alphas.get("rff", alphas.get("sachs")) == 1e-4
        assert alphas.get("linear", 1e-2) == 1e-2
    path.write_text("[]")
    with pytest.raises(ConfigError, match="presage bench tune"):
        read_tuned(path)


# Keys.


def one(**changes):
    (task, *_) = plan(get_experiment("table-30"), QUICK)
    from dataclasses import replace

    return replace(task, **changes)


def test_keys_change_with_everything_that_matters(monkeypatch):
    from dataclasses import replace

    task = one()
    others = [
        one(instance=1),
        one(seed=1),
        one(stream=int(Stream.VALIDATION)),
        one(bootstrap=2),
        one(method="random", settings=(("edges_per_node", 2.0),)),
        one(method="random", settings=(("edges_per_node", 1.0),)),
        one(setting=replace(task.setting, d=6)),
        one(setting=replace(task.setting, domain="linear")),
    ]
    keys = [task_key(item) for item in [task, *others]]
    assert len(set(keys)) == len(keys)
    assert task_key(one()) == keys[0]
    # The same data whatever the method: methods are compared on equal terms.
    assert instance_key(others[4]) == instance_key(task)
    presage = one(method="presage", settings=(("model", "rff"),))
    monkeypatch.setattr(tasks, "model_fingerprint", lambda name: "a")
    first = task_key(presage)
    monkeypatch.setattr(tasks, "model_fingerprint", lambda name: "b")
    assert task_key(presage) != first
    monkeypatch.setattr(tasks, "model_fingerprint", lambda name: None)
    assert task_key(presage) is None


def test_what_cannot_be_drawn_has_a_key_and_a_recorded_reason(tmp_path):
    from dataclasses import replace

    task = one()
    impossible = replace(task, setting=replace(task.setting, n_interventional=10**6))
    assert task_key(impossible) not in (None, task_key(task))
    (record,) = run_tasks([impossible], Store(folder=tmp_path), OPTIONS)
    assert record.outcome.status == "crash"
    assert "interventional" in record.outcome.message


def test_code_version_ignores_comments_and_docstrings(monkeypatch, tmp_path):
    monkeypatch.setattr(tasks, "ROOT", tmp_path)
    texts = {
        "a.py": '"""One."""\ndef f(x):\n    """Two."""\n    return x + 1\n',
        "b.py": '"""Other."""\n# why\ndef f(x):\n    """Else."""\n    return (x + 1)\n',
        "c.py": '"""One."""\ndef f(x):\n    """Two."""\n    return x + 2\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert code_version("a.py") == code_version("b.py")
    assert code_version("a.py") != code_version("c.py")


def test_model_fingerprints(tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"1")
    first = model_fingerprint(str(file))
    model_fingerprint.cache_clear()
    file.write_bytes(b"2")
    assert model_fingerprint(str(file)) != first
    assert model_fingerprint(str(tmp_path)) is not None
    assert model_fingerprint("no-such-model") is None


# Running.


def test_done_work_is_not_repeated(counted, tmp_path):
    store = Store(folder=tmp_path)
    planned = plan(get_experiment("table-30"), QUICK)
    first = list(run_tasks(planned, store, OPTIONS))
    assert len(counted) == len(planned) == 4
    again = list(run_tasks(planned, store, OPTIONS))
    assert len(counted) == 4
    assert all(record.cached for record in again)
    pd.testing.assert_frame_equal(tidy(first), tidy(again))


def test_an_interrupted_run_continues_where_it_stopped(counted, tmp_path):
    store = Store(folder=tmp_path)
    planned = plan(get_experiment("table-30"), QUICK)
    running = run_tasks(planned, store, OPTIONS)
    next(running)
    running.close()
    done = len(counted)
    assert 1 <= done < 4
    list(run_tasks(planned, store, OPTIONS))
    assert len(counted) == 4


def test_a_half_written_result_is_not_taken_for_one(counted, tmp_path):
    store = Store(folder=tmp_path)
    planned = plan(get_experiment("table-30"), QUICK)
    key = task_key(planned[0])
    folder = tmp_path / "results" / key[:2]
    folder.mkdir(parents=True)
    (folder / f".{key}.npz.x1y2").write_bytes(b"half")  # what a kill leaves behind
    assert store.load(key) is None
    list(run_tasks(planned, store, OPTIONS))
    assert store.load(key) is not None


@pytest.mark.parametrize("damage", ["empty", "half", "flipped", "without matrices", "not an archive"])
def test_a_damaged_result_is_named_and_run_again(counted, tmp_path, damage):
    store = Store(folder=tmp_path)
    planned = plan(get_experiment("table-30"), QUICK)
    list(run_tasks(planned, store, OPTIONS))
    path = tmp_path / "results" / task_key(planned[0])[:2] / f"{task_key(planned[0])}.npz"
    content = path.read_bytes()
    if damage == "without matrices":
        with np.load(path) as file:
            meta = file["meta"]
        np.savez(path, meta=meta)
    else:
        middle = bytes(255 - byte for byte in content[60:120])
        flipped = content[:60] + middle + content[120:]
        path.write_bytes(
            {"empty": b"", "half": content[: len(content) // 2], "flipped": flipped, "not an archive": b"x" * 99}[
                damage
            ]
        )
    fresh = Store(folder=tmp_path)
    records = list(run_tasks(planned, fresh, OPTIONS))
    assert fresh.damaged == [path]
    assert sum(not record.cached for record in records) == 1
    assert all(record.outcome.status == "ok" for record in records)
    again = Store(folder=tmp_path)
    assert all(record.cached for record in run_tasks(planned, again, OPTIONS))
    assert again.damaged == []


def test_a_damaged_result_is_named_on_the_command_line(counted, capsys, tmp_path):
    arguments = ["bench", "table-30", "--methods", "empty", "--instances", "1", "-d", "5", "-n", "40"]
    arguments += ["--columns", "linear", "--out", str(tmp_path)]
    assert cli(arguments) == 0
    (path,) = (tmp_path / "cache").rglob("*.npz")
    path.write_bytes(b"")
    capsys.readouterr()
    assert cli(arguments) == 0
    error = capsys.readouterr().err
    assert path.name in error
    assert "was damaged" in error


def test_a_method_that_eats_memory_is_recorded_with_its_limit(monkeypatch, tmp_path):
    script = tmp_path / "worker.py"
    child = tmp_path / "child"
    script.write_text(
        "import subprocess, sys, time, pathlib\n"
        "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(child)!r}).write_text(str(other.pid))\n"
        "block = bytearray(400 << 20)\n"
        "time.sleep(600)\n"
    )
    monkeypatch.setattr("presage.baselines.run.WORKER", script)
    store = Store(folder=tmp_path / "cache")
    options = RunOptions(limits=ProcessLimits(seconds=300.0, memory=200 << 20))
    (record,) = run_tasks([one()], store, options)
    assert record.outcome.status == "memory"
    assert "GiB" in record.outcome.message
    row = tidy([record]).iloc[0]
    assert row["status"] == "memory"
    assert row["peak_memory"] > 200 << 20
    assert row["memory_limit"] == 200 << 20
    assert _ended(int(child.read_text()))
    # It counts until a higher limit is given.
    assert next(run_tasks([one()], store, options)).cached
    assert engine._known(store, one(), RunOptions(limits=ProcessLimits(memory=300 << 20))) is None


def _ended(pid):
    """Whether a process is gone; orphans may stay as zombies."""
    import psutil

    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_folders_of_killed_runs_are_removed_by_the_next_run(monkeypatch, tmp_path):
    import platform
    import subprocess
    import sys
    import tempfile

    from presage.baselines import get_baseline, run_isolated
    from presage.types import Dataset

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = tmp_path / f"presage-run_{platform.node() or 'host'}_{gone.pid}_abc"
    left.mkdir()
    (left / "data.npz").write_bytes(b"data")
    assert run_isolated(get_baseline("empty"), Dataset(x=np.eye(4))).status == "ok"
    assert not left.exists()
    assert not list(tmp_path.glob("presage-run_*"))


def test_failures_are_recorded_and_repeated_only_for_a_reason(counted, tmp_path):
    store = Store(folder=tmp_path)
    choice = Choice(methods=("pc", "ges", "empty"), instances=1, variables=5, rows=40, columns=("linear",))
    planned = plan(get_experiment("table-30"), choice)
    statuses = {r.task.method: r.outcome.status for r in run_tasks(planned, store, OPTIONS)}
    assert statuses == {"pc": "time-out", "ges": "crash", "empty": "ok"}
    list(run_tasks(planned, store, RunOptions(limits=ProcessLimits(seconds=30.0))))
    assert len(counted) == 3
    list(run_tasks(planned, store, RunOptions(limits=ProcessLimits(seconds=90.0))))
    assert counted[3:] == [("pc", 0)]
    list(run_tasks(planned, store, RunOptions(limits=ProcessLimits(seconds=90.0), retry=True)))
    assert counted[4:] == [("ges", 0)]


def test_a_missing_model_is_recorded_and_looked_for_again(counted, monkeypatch, tmp_path):
    store = Store(folder=tmp_path)
    choice = Choice(methods=("presage",), instances=1, variables=5, rows=40, columns=("linear",))
    planned = plan(get_experiment("table-30"), choice)
    monkeypatch.setattr(tasks, "model_fingerprint", lambda name: None)
    assert {r.outcome.status for r in run_tasks(planned, store, OPTIONS)} == {"no model"}
    monkeypatch.setattr(tasks, "model_fingerprint", lambda name: "now it is there")
    assert {r.outcome.status for r in run_tasks(planned, store, OPTIONS)} == {"ok"}


def test_several_jobs_give_the_same_results(counted, tmp_path):
    planned = plan(get_experiment("table-30"), QUICK)
    frames = []
    for jobs in (1, 3):
        store = Store(folder=tmp_path / str(jobs))
        frames.append(tidy(run_tasks(planned, store, RunOptions(jobs=jobs))))
    pd.testing.assert_frame_equal(*frames)


def test_unknown_engines_and_limits_are_refused():
    with pytest.raises(ConfigError, match="no engine"):
        RunOptions(engine="threads")
    with pytest.raises(ConfigError, match="time limit"):
        RunOptions(limits=ProcessLimits(seconds=0.0))
    with pytest.raises(ConfigError, match="jobs"):
        RunOptions(jobs=0)


def test_instances_are_those_of_the_test_stream(tmp_path):
    from presage.domain.catalog import get_domain

    (task,) = [t for t in plan(get_experiment("table-30"), QUICK) if t.instance == 1 and t.method == "empty"]
    data = instance(task)
    expected = get_domain("linear-ood").sample(d=5, n=40, seed=0, size=2, stream=Stream.TEST)[1]
    assert (data.x == expected.x).all()
    assert (data.graph == expected.graph).all()


# From results to tables and pictures.


def test_a_table_is_written_with_the_papers_numbers_beside(counted, tmp_path):
    choice = Choice(methods=("pc", "igsp", "presage"), instances=2, variables=5, rows=40, columns=("linear", "rff"))
    run = run_experiment(get_experiment("table-30"), tmp_path, choice=choice, options=OPTIONS)
    assert {path.name for path in run.files} == {"results.csv", "table.md", "table.tex", "run.json"}
    text = (tmp_path / "table-30" / "table.md").read_text()
    assert "a smaller version with d = 5, n = 40" in text
    assert "/ 400.5 (53.7)" in text
    assert "/ 110.9 (19.3)" in text
    assert "PC, observational, linear: 2 x time-out" in text
    assert "grn" not in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    csv = pd.read_csv(tmp_path / "table-30" / "results.csv")
    assert len(csv) == 16
    assert csv.loc[csv["method"] == "pc", "sid"].isna().all()
    assert csv.loc[csv["method"] != "pc", "auprc"].eq(1.0).all()
    tex = (tmp_path / "table-30" / "table.tex").read_text()
    assert tex.count("{") == tex.count("}")
    body = [line for line in tex.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {line.count("&") for line in body} == {4}


def _frame(values):
    rows = [
        {"section": "observational", "column": "linear", "row": label, "method": label, "status": "ok", "message": "",
         "sid": sid, "f1": 1.0 / sid}
        for label, sids in values.items()
        for sid in sids
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _bold(values):
    table = build_table(get_experiment("table-30"), _frame(values))
    return table, {row.title: row.cells[0].best for block in table.blocks for row in block.rows}


def test_bold_follows_the_welch_test():
    table, bold = _bold({"ges": [10, 11, 12] * 4, "pc": [11, 12, 10.5] * 4, "lingam": [90, 91, 95] * 4})
    assert bold == {"GES": True, "PC": True, "LiNGAM": False}
    assert "**11.0 (0.2)** / 215.6 (35.0)" in markdown(table)
    assert r"\textbf{11.0 (0.2)}" in latex(table)


def test_only_methods_with_ten_instances_are_compared():
    few = {"ges": [10, 11, 12] * 4, "pc": [1, 2, 3] * 3, "lingam": [90, 91, 95] * 4}
    assert _bold(few)[1] == {"GES": True, "PC": False, "LiNGAM": False}
    nobody_else = {"ges": [10, 11, 12] * 4, "pc": [1, 2, 3] * 3}
    assert not any(_bold(nobody_else)[1].values())
    unanswered = {"ges": [10, 11, 12] * 4, "pc": [1] * 9 + [math.nan] * 3, "lingam": [90, 91, 95] * 4}
    assert _bold(unanswered)[1] == {"GES": True, "PC": False, "LiNGAM": False}


def test_trivial_methods_stand_apart_and_are_never_bold():
    values = {"ges": [10, 11, 12] * 4, "pc": [90, 91, 95] * 4, "var-sort": [1, 2, 3] * 4, "empty": [1, 2, 3] * 4}
    table, bold = _bold(values)
    assert bold == {"Empty": False, "VarSort": False, "GES": True, "PC": False}
    text = markdown(table)
    methods, trivial = text.split("| observational, trivial methods |")
    assert "| GES |" in methods
    assert "VarSort" not in methods
    assert "| Empty |" in trivial
    assert "| PC |" not in trivial


def test_titles():
    assert method_title("presage:runs/abc/") == "Presage (abc)"
    assert method_title("dibs", starred=True) == "DiBS"


def test_calibration_radar_and_scaling_pictures(counted, tmp_path):
    small = Choice(methods=("presage", "igsp"), instances=2, variables=5, rows=40, columns=("linear", "rff"))
    run = run_experiment(get_experiment("calibration"), tmp_path, choice=small, options=OPTIONS)
    assert {path.name for path in run.files} >= {"table.md", "calibration.png", "calibration.pdf"}
    run = run_experiment(
        get_experiment("radar"),
        tmp_path,
        choice=Choice(instances=1, variables=5, rows=40, columns=("rff",)),
        options=OPTIONS,
    )
    assert run.frame["domain"].nunique() == 8
    assert (tmp_path / "radar" / "radar.png").stat().st_size > 5000
    assert (tmp_path / "radar" / "table.md").read_text().count("\n| rff") == 8
    rows = [
        {"column": "rff", "d": d, "n": n, "auprc": 1 / d + n / 1000}
        for d in (5, 10)
        for n in (10, 100)
        for _ in range(3)
    ]
    picture = figures.scaling_picture(pd.DataFrame(rows), ["rff"])
    assert [text.get_text() for text in picture.axes[0].get_legend().get_texts()] == ["d = 5", "d = 10"]


def test_scaling_grid_has_a_line_per_domain_and_variables():
    rows = [{"domain": "rff", "d": d, "n": n, "auprc": n / 1000} for d in (5, 100) for n in (10, 300) for _ in range(2)]
    text = scaling_grid(get_experiment("scaling"), pd.DataFrame(rows))
    assert "| domain | d | n = 10 | n = 300 |" in text
    assert "| rff | 5 | 0.010 (0.00) | 0.300 (0.00) |\n| rff | 100 | 0.010 (0.00)" in text


def test_all_networks_of_an_experiment_have_a_row_each(counted, tmp_path):
    small = Choice(methods=("all",), instances=1, variables=5, rows=40)
    run = run_experiment(get_experiment("transfer"), tmp_path, choice=small, options=OPTIONS)
    assert set(run.frame["row"]) == {"presage:linear", "presage:rff"}


def test_radar_shows_ratios_of_distances():
    frame = pd.DataFrame(
        [
            {"column": "rff", "domain": "rff", "sid": 10.0, "f1": 0.9},
            {"column": "rff", "domain": "rff-ood", "sid": 40.0, "f1": 0.5},
        ]
    )
    lines = figures.radar_picture(frame, ["rff"], ["sid", "f1"]).axes[0].get_lines()
    assert [line.get_ydata()[:2].tolist() for line in lines] == [[1.0, 0.9], [0.25, 0.5]]


def test_illustration_shows_every_graph_family():
    titles = [axis.get_title() for axis in illustrate(d=10).axes]
    assert {"ErdosRenyi", "WattsStrogatz", "StochasticBlock", "Geometric", "mechanism", "noise"} <= set(titles)
    with pytest.raises(ConfigError, match="this figure cannot show it"):
        illustrate("grn")


def test_pictures_of_equal_results_are_equal_files(tmp_path):
    for name in ("a", "b"):
        figures.save(
            figures.scaling_picture(pd.DataFrame({"column": [], "d": [], "n": [], "auprc": []}), ["x"]), tmp_path / name
        )
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


def test_sachs_with_a_method_per_section(counted, tmp_path, monkeypatch):
    from presage.types import Dataset

    rng = np.random.default_rng(0)
    mask = np.zeros((30, 11), dtype=bool)
    mask[20:, 3] = True
    graph = np.triu(rng.random((11, 11)) < 0.3, k=1).astype(int)
    fake = Dataset(x=rng.standard_normal((30, 11)), interventions=mask, graph=graph)
    monkeypatch.setattr("presage.data.examples.load_sachs", lambda: fake)
    choice = Choice(methods=("lingam", "igsp", "presage:rff"))
    run = run_experiment(get_experiment("sachs"), tmp_path, choice=choice, options=OPTIONS)
    text = (tmp_path / "sachs" / "table.md").read_text()
    assert "| Presage (rff) | 1/1 |" in text
    assert " / 16 |" in text  # AVICI (rff) with targets: SHD 16
    assert (tmp_path / "sachs" / "sachs.png") in run.files
    touched = {t.setting.section: instance(t).interventions.any() for t in plan(get_experiment("sachs"), choice)}
    assert touched == {"observational": False, "interventional": True}


def test_our_networks_may_see_more_instances():
    choice = Choice(methods=("empty", "presage"), instances=2, own_instances=4, columns=("linear",))
    planned = plan(get_experiment("table-30"), choice)
    counts = {name: len({t.instance for t in planned if t.method == name}) for name in ("empty", "presage")}
    assert counts == {"empty": 2, "presage": 4}
    with pytest.raises(ConfigError, match="own_instances"):
        Choice(own_instances=0)


# Tuning.


def test_grids_are_those_of_the_paper():
    assert len(list(candidates("pc", "linear"))) == 6
    assert len(list(candidates("igsp", "linear"))) == 6
    assert len(list(candidates("dcdi", "linear"))) == 6
    assert len(list(candidates("gran-dag", "rff"))) == 8
    assert len(list(candidates("dag-gnn", "rff"))) == 6
    assert {"effective_size", "latent_length"} == set(next(candidates("dibs", "linear")))
    assert {"parameter_length", "latent_length"} == set(next(candidates("dibs", "grn")))


def test_tuning_selects_by_score_or_by_truth(monkeypatch, tmp_path):
    def execute(task, options):
        data = instance(task)
        settings = dict(task.settings)
        assert task.stream == Stream.VALIDATION
        right = np.asarray(data.graph, dtype=float)
        if task.method == "igsp":
            good = settings["alpha"] == 1e-4 and settings["test"] == "hsic"
            return Outcome(status="ok", kind="graph", matrices=(right if good else right.T)[None], scores=(None,))
        assert settings["holdout"]
        score = settings["sparsity"] + settings["hidden"] / 1000
        return Outcome(status="ok", kind="graph", matrices=right.T[None], scores=(score,))

    monkeypatch.setattr(engine, "_execute", execute)
    (tmp_path / "tuned.json").write_text(json.dumps({"settings": {"linear": {"pc": {"alpha": 1e-3}}}}))
    path = tune(
        tmp_path, methods=("igsp", "dcdi"), columns=("linear",), instances=2, options=OPTIONS, variables=5, rows=40
    )
    assert read_tuned(path)["linear"] == {
        "pc": {"alpha": 1e-3},
        "igsp": {"alpha": 1e-4, "test": "hsic"},
        "dcdi": {"sparsity": 1.0, "hidden": 32},
    }
    with pytest.raises(ConfigError, match="no settings to choose"):
        tune(tmp_path, methods=("ges",), options=OPTIONS)
    with pytest.raises(ConfigError, match="no column"):
        tune(tmp_path, methods=("pc",), columns=("lin",), options=OPTIONS)


def test_records_without_answers_have_no_metrics(tmp_path):
    task = plan(get_experiment("table-30"), QUICK)[0]
    frame = tidy([Record(task=task, outcome=Outcome(status="crash"), cached=False)])
    assert math.isnan(frame["f1"].iloc[0])


# Command line.


def test_list(capsys):
    assert cli(["bench", "list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in EXPERIMENTS)
    assert cli(["bench", "list", "--json"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} == set(EXPERIMENTS)
    assert cli(["baselines", "list", "--json"]) == 0
    assert "dcdi" in {row["name"] for row in json.loads(capsys.readouterr().out)}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["bench", "table-31"], "no experiment"),
        (["bench", "table-30", "--methods", "nope"], "no method"),
        (["bench", "table-30", "--instances", "0"], "instances"),
        (["bench", "table-30", "--engine", "slurm"], "no engine"),
        (["bench", "table-30", "--time-limit", "-1"], "time limit"),
        (["bench", "results"], "no recorded results"),
        (["bench", "folder"], "presage bench folder DIR"),
        (["bench", "table-30", "gold"], "presage bench folder DIR"),
        (["bench", "folder", "nowhere"], "is not a folder"),
        (["baselines", "install", "nope"], "no method"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli(arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_run_from_the_command_line(counted, capsys, tmp_path):
    arguments = ["bench", "table-30", "--methods", "empty,igsp", "--instances", "1", "-d", "5", "-n", "40"]
    arguments += ["--columns", "linear", "--out", str(tmp_path), "--json"]
    assert cli(arguments) == 0
    assert json.loads(capsys.readouterr().out)["executed"] == 2
    assert cli(arguments) == 0
    assert json.loads(capsys.readouterr().out)["cached"] == 2
    assert cli(["bench", "results", "--records", str(tmp_path), "--to", str(tmp_path / "R.md")]) == 0
    assert cli(["baselines", "install", "empty"]) == 0
