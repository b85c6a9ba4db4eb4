"""Datasets with known graphs: the format, scores over known pairs only, tables and pictures by group."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from presage.baselines.run import Outcome
from presage.bench import engine
from presage.bench.figures import folder_picture
from presage.bench.folder import folder_experiment
from presage.bench.gold_standards import base_rate, evaluate_known, load_gold_standard
from presage.cli import run as cli
from presage.errors import DataError
from presage.metrics import evaluate


def write(path, *, seed=0, d=4, n=60, **more):
    """A small linear chain as an npz file."""
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.standard_normal((n, d)), axis=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {"x": x, "graph": np.eye(d, k=1, dtype=np.int8), "names": np.array([f"v{j}" for j in range(d)]), **more}
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    return path


@pytest.fixture
def gold(tmp_path):
    """Two groups: chain (two files) and deep/er (one file with unknown pairs and interventions)."""
    folder = tmp_path / "gold"
    write(folder / "chain_1.npz", seed=1)
    write(folder / "chain_2.npz", seed=2, d=5)
    unknown = np.zeros((4, 4), dtype=np.int8)
    unknown[0, 1] = unknown[2, 0] = 1
    mask = np.zeros((60, 4), dtype=np.int8)
    mask[30:, 2] = 1
    write(folder / "deep" / "er.npz", seed=3, unknown=unknown, interv=mask)
    return folder


def test_reading_a_file(gold):
    found = load_gold_standard(gold / "deep" / "er.npz", gold)
    assert (found.name, found.group) == ("er", "deep")
    assert found.data.names == ("v0", "v1", "v2", "v3")
    assert found.data.interventions.sum() == 30
    assert found.known.sum() == 12 - 2
    assert load_gold_standard(gold / "chain_1.npz", gold).group == "chain"
    write(gold / "own.npz", group=np.array("mine"))
    assert load_gold_standard(gold / "own.npz", gold).group == "mine"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"graph": None}, "no entry 'graph'"),
        ({"graph": np.eye(4)}, "causes itself"),
        ({"graph": np.zeros((3, 3))}, "4 x 4"),
        ({"unknown": np.full((4, 4), 2)}, "unknown must be"),
        ({"interv": np.zeros((3, 4))}, "intervention mask"),
        ({"x": np.array([object()]), "graph": None}, "cannot be read"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path, change, sentence):
    path = write(tmp_path / "a.npz", **change)
    with pytest.raises(DataError, match=sentence):
        load_gold_standard(path)
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match="cannot be read as npz"):
        load_gold_standard(path)


def test_unknown_pairs_are_left_out_of_every_score():
    rng = np.random.default_rng(0)
    truth = np.eye(5, k=1, dtype=np.int8)
    known = ~np.eye(5, dtype=bool)
    known[0, 1] = known[3, 0] = known[1, 4] = False
    guess = rng.random((5, 5)) * ~np.eye(5, dtype=bool)
    found = evaluate_known(truth, guess, known)
    for value in (0.0, 0.4, 1.0):  # whatever stands on unknown pairs changes nothing
        other, flipped = guess.copy(), truth.copy()
        other[~known] = value
        flipped[~known & ~np.eye(5, dtype=bool)] = 1
        assert evaluate_known(flipped, other, known) == pytest.approx(found, nan_ok=True)
    assert np.isnan(found["sid"])
    inner = truth[known], guess[known]
    order = np.argsort(-inner[1])
    hits = inner[0][order].cumsum()
    precision = (hits / np.arange(1, len(hits) + 1))[inner[0][order] == 1]
    assert found["auprc"] == pytest.approx(precision.mean())  # average precision, no ties here
    assert base_rate(truth, known) == pytest.approx(3 / 17)


def test_without_unknown_pairs_the_structure_scores_are_the_usual_ones():
    rng = np.random.default_rng(1)
    truth, guess = np.eye(6, k=1, dtype=np.int8), rng.random((6, 6)) * ~np.eye(6, dtype=bool)
    found, usual = evaluate_known(truth, guess, ~np.eye(6, dtype=bool)), evaluate(truth, guess)
    for metric in ("shd", "sid", "f1", "precision", "recall", "edges"):
        assert found[metric] == usual[metric]


@pytest.fixture
def counted(monkeypatch):
    """Methods answered in this process: `pc` is right everywhere, `ges` has nothing, `igsp` hits its limit."""
    calls = []

    def execute(task, options):
        from presage.bench.instances import instance

        data = instance(task)
        calls.append((task.method, task.setting.domain))
        if task.method == "igsp":
            return Outcome(status="time-out", message="stopped")
        matrix = np.asarray(data.graph, dtype=float) * (task.method == "pc")
        return Outcome(status="ok", kind="graph", matrices=matrix[None], scores=(None,), seconds=0.1, cpu_seconds=0.1)

    monkeypatch.setattr(engine, "_execute", execute)
    return calls


def run(gold, out, *more):
    return cli(["bench", "folder", str(gold), "--methods", "pc,ges,igsp,random", "--out", str(out), "--json", *more])


def test_a_folder_is_run_once_and_becomes_csv_table_and_picture(gold, tmp_path, counted, capsys):
    assert run(gold, tmp_path / "out") == 0
    assert json.loads(capsys.readouterr().out)["executed"] == 12
    (tmp_path / "elsewhere").mkdir()
    moved = gold.rename(tmp_path / "elsewhere" / "gold")
    assert run(moved, tmp_path / "out") == 0
    assert json.loads(capsys.readouterr().out)["cached"] == 12  # by content, wherever the files are
    assert len(counted) == 12
    folder = tmp_path / "out" / "folder-gold"
    assert {path.name for path in folder.iterdir()} == {
        "results.csv",
        "run.json",
        "table.md",
        "folder-gold.png",
        "folder-gold.pdf",
    }
    frame = pd.read_csv(folder / "results.csv")
    assert set(frame["domain"]) == {"chain_1", "chain_2", "deep/er"}
    assert frame.loc[frame["method"] == "pc", "auprc"].eq(1.0).all()
    deep = frame[(frame["domain"] == "deep/er") & (frame["method"] == "ges")].iloc[0]
    assert deep["shd"] == 2  # the third edge is on an unknown pair
    assert deep["base_rate"] == pytest.approx(2 / 10)
    assert str(tmp_path) not in (folder / "results.csv").read_text() + (folder / "run.json").read_text()
    text = (folder / "table.md").read_text()
    assert "| chain | 2 | 60 | 4-5 | 0.225 |" in text
    assert "| deep | 1 | 60 | 4 | 0.200 |" in text
    assert "| PC | 3/3 | 1.000 (0.00) | 1.000 | 1.000 |" in text
    assert "| base rate |  | 0.225 (0.02) | 0.200 | 0.213 |" in text
    assert "| IGSP | 0/3 | – | – | – |" in text
    assert "IGSP, chain: 2 x time-out (stopped)" in text
    assert "/ " not in text.split("### ")[1].split("Mean (")[0].replace("3/3", "").replace("0/3", "")
    assert "**" not in text  # too few datasets for significance marks


def test_equal_datasets_run_once_and_are_both_listed(tmp_path, counted, capsys):
    for name in ("one_a.npz", "two_a.npz"):
        write(tmp_path / "gold" / name)
    assert run(tmp_path / "gold", tmp_path / "out") == 0
    assert len(counted) == 4
    frame = pd.read_csv(tmp_path / "out" / "folder-gold" / "results.csv")
    assert frame.groupby("method")["domain"].nunique().eq(2).all()


def test_hidden_common_causes_are_scored_where_both_sides_have_them(tmp_path, monkeypatch, capsys):
    confounded = np.zeros((4, 4), dtype=np.int8)
    confounded[0, 2] = confounded[2, 0] = 1
    write(tmp_path / "gold" / "a_1.npz", confounded=confounded)

    def execute(task, options):
        hidden = confounded[None].astype(float) if task.method == "fci" else None
        return Outcome(status="ok", kind="graph", matrices=np.zeros((1, 4, 4)), confounded=hidden)

    monkeypatch.setattr(engine, "_execute", execute)
    arguments = ["bench", "folder", str(tmp_path / "gold"), "--methods", "fci,pc", "--out", str(tmp_path), "--json"]
    for _ in range(2):  # run, then from the cache
        assert cli(arguments) == 0
        frame = pd.read_csv(tmp_path / "folder-gold" / "results.csv").set_index("method")
        assert frame.loc["fci", "confounded_auprc"] == 1.0
        assert np.isnan(frame.loc["pc", "confounded_auprc"])


def test_levels_are_column_kinds_and_their_codes_are_checked(tmp_path):
    x = np.stack([np.arange(60) % 3, np.arange(60) % 2, np.linspace(0, 1, 60), np.arange(60)], axis=1)
    found = load_gold_standard(write(tmp_path / "a.npz", x=x, levels=np.array([3, 2, 0, 0])))
    assert found.data.column_kinds.tolist() == [4, 2, 0, 0]  # nominal, binary, continuous
    with pytest.raises(DataError, match="codes 0 to 1"):
        load_gold_standard(write(tmp_path / "b.npz", x=x, levels=np.array([2, 2, 0, 0])))


def test_groups_can_be_chosen_and_other_options_are_refused(gold, tmp_path, counted, capsys):
    assert run(gold, tmp_path / "out", "--columns", "deep") == 0
    assert {domain for _, domain in counted} == {"deep/er"}
    for option in ("--instances", "--rows", "-d"):
        assert run(gold, tmp_path / "out", option, "5") == 2
        assert "uses the datasets as they are" in capsys.readouterr().err


def test_results_of_a_folder_can_be_recorded(gold, tmp_path, counted, capsys):
    records = tmp_path / "records"
    assert run(gold, tmp_path / "out", "--records", str(records)) == 0
    assert cli(["bench", "results", "--records", str(records), "--to", str(tmp_path / "R.md")]) == 0
    text = (tmp_path / "R.md").read_text()
    assert "## folder-gold" in text
    assert "(pictures/folder-gold.png)" in text
    assert (tmp_path / "pictures" / "folder-gold.png").stat().st_size > 5000


def test_the_picture_has_a_panel_per_group_with_its_base_rate(gold, tmp_path, counted):
    run(gold, tmp_path / "out")
    figure = folder_picture(pd.read_csv(tmp_path / "out" / "folder-gold" / "results.csv"))
    shown = [axis for axis in figure.axes if axis.axison]
    assert [axis.get_title() for axis in shown] == ["chain (2)", "deep (1)"]
    rates = [axis.get_lines()[-1].get_xdata()[0] for axis in shown]
    assert rates == pytest.approx([0.225, 0.2])
    names = [label.get_text() for label in shown[0].get_yticklabels()]
    assert names == ["Random", "GES", "PC", "IGSP"]  # the order of the registry


def test_a_real_run_with_a_bundled_model_and_a_baseline(gold, tmp_path, capsys):
    arguments = ["bench", "folder", str(gold), "--methods", "presage:scm,var-sort", "--out", str(tmp_path), "--json"]
    assert cli(arguments) == 0
    assert json.loads(capsys.readouterr().out)["status"] == {"ok": 6}
    frame = pd.read_csv(tmp_path / "folder-gold" / "results.csv")
    assert frame["auprc"].between(0.0, 1.0).all()
    assert set(frame["row"]) == {"presage:scm", "var-sort"}


def test_empty_folders_are_refused(tmp_path):
    with pytest.raises(DataError, match="no npz files"):
        folder_experiment(Path(tmp_path))
