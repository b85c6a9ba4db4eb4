"""The page without a browser: sources, sessions, runs, figures, knowledge and downloads."""

from __future__ import annotations

import gzip
import io
import platform
import subprocess
import sys
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

pytest.importorskip("dash", reason="the page needs the extra web")
pytest.importorskip("dash_cytoscape", reason="the page needs the extra web")

import presage
from models_for_tests import save_tiny
from page_for_tests import Here, Nobody, callback, key, start_run
from presage.errors import ConfigError, DataError
from presage.inference.inputs import read_inputs
from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.processes import ProcessLimits
from presage.web import data_callbacks, exports, figures, parts, view
from presage.web.app import create_app
from presage.web.context import Context
from presage.web.jobs import Runner
from presage.web.layout import Offer
from presage.web.reading import Reader
from presage.web.sessions import Analysis, Session, Sessions
from presage.web.sources import MAX_VARIABLES, Example, Simulation, Upload
from presage.web.table import edge_rows
from presage.web.theme import DARK, LIGHT
from worker_for_tests import odd_reader, slow_worker

NAMES = ("a", "b", "c", "d")
MATRIX = np.array([[0, 0.9, 0.4, 0.1], [0.6, 0, 0.7, 0.2], [0.3, 0.65, 0, 0.95], [0.05, 0.1, 0.2, 0]])


@pytest.fixture
def result() -> Result:
    return Result(unconstrained=MATRIX, names=NAMES, model="m")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("models") / "tiny.safetensors")


def csv(rows: int = 60) -> bytes:
    x = np.random.default_rng(0).normal(size=(rows, 3))
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    frame["target"] = ["a" if k % 3 == 0 else "control" for k in range(rows)]
    return frame.to_csv(index=False).encode()


def table(values: np.ndarray) -> bytes:
    names = [f"v{j}" for j in range(values.shape[1])]
    return pd.DataFrame(values, columns=names).to_csv(index=False).encode()


def shared(limit: int = 1 << 20, models: tuple[Offer, ...] = ()) -> Context:
    return Context(sessions=Sessions(), runner=Nobody(), reader=Here(), models=models, limit=limit)


# Sources


def test_an_upload_is_shown_checked_and_not_left_on_the_disk(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    upload = Upload("C:\\data\\cells.csv", csv())
    assert upload.preview.title == "cells.csv"
    assert upload.preview.guess == "target"
    assert upload.preview.columns == ["a", "b", "c", "target"]
    dataset = upload.inputs("target").dataset
    assert dataset.names == ("a", "b", "c")
    assert dataset.interventions[:, 0].sum() == 20
    with pytest.raises(DataError, match="no column"):
        upload.inputs("nonsense")
    assert list(tmp_path.iterdir()) == []


def test_a_parquet_table_is_read_like_a_csv() -> None:
    buffer = io.BytesIO()
    pd.read_csv(io.BytesIO(csv()), float_precision="round_trip").to_parquet(buffer)
    upload = Upload("cells.parquet", buffer.getvalue())
    assert upload.preview.guess == "target"
    found, expected = upload.inputs("target").dataset, Upload("cells.csv", csv()).inputs("target").dataset
    np.testing.assert_array_equal(found.x, expected.x)
    np.testing.assert_array_equal(found.interventions, expected.interventions)


@pytest.mark.filterwarnings("ignore::FutureWarning:anndata")
def test_an_h5ad_file_brings_its_counts_and_its_column_of_targets(tmp_path) -> None:
    pytest.importorskip("anndata")
    dataset = presage.simulate("grn", d=4, n=40, n_interventional=12, seed=3)
    path = tmp_path / "cells.h5ad"
    dataset.to_anndata().write_h5ad(path)
    upload = Upload("cells.h5ad", path.read_bytes())
    assert upload.preview.title == "cells.h5ad"
    inputs = upload.inputs(upload.preview.guess)
    assert inputs.countlike  # the model decides on the kind
    found = inputs.dataset
    np.testing.assert_array_equal(found.x, dataset.x)
    np.testing.assert_array_equal(found.interventions, dataset.interventions)


def test_a_mask_file_is_read_and_a_wrong_one_is_named_without_our_folder() -> None:
    data = Upload("cells.csv", table(np.random.default_rng(0).normal(size=(9, 2))))
    mask = np.zeros((9, 2), dtype=int)
    mask[:4, 1] = 1
    good = Upload("mask.csv", table(mask))
    assert data.inputs(good).dataset.interventions.sum() == 4
    short = Upload("mask.csv", table(mask[:5]))
    with pytest.raises(DataError, match="5 rows, but the data has 9") as caught:
        data.inputs(short)
    assert "presage-" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b"\x00\x01\x02", "not a text file"),
        ("x.csv", b"a,b\n", "has no rows of data"),
        ("x.docx", b"abc", "format of"),
        ("x.npz", b"zip", "read"),
    ],
)
def test_bad_files_give_a_sentence(name, content, message) -> None:
    with pytest.raises(DataError, match=message) as caught:
        Upload(name, content)
    assert "/tmp" not in str(caught.value)


def test_too_many_variables_are_refused_with_advice() -> None:
    wide = np.random.default_rng(0).normal(size=(5, MAX_VARIABLES + 1))
    with pytest.raises(DataError, match="presage discover"):
        Upload("wide.csv", table(wide)).inputs()


def test_simulations_refuse_what_the_page_cannot_show() -> None:
    with pytest.raises(ConfigError):
        Simulation("rff", 1000, 100, 0.5)
    drawn = Simulation("linear", 4, 50, 0.5, 3)
    assert drawn.inputs().dataset.interventions.any(axis=1).sum() == 25
    assert drawn.preview.has_mask


def test_choices_start_with_the_likely_column() -> None:
    options, value = data_callbacks.intervention_choices(Upload("x.csv", csv()).preview)
    assert value == "column:target"
    assert [option["value"] for option in options][-1] == "mask"


def test_uploads_are_limited() -> None:
    session, context = Session("k", 0.0), shared()
    with pytest.raises(DataError, match="larger than the limit of 1 MB"):
        data_callbacks.store_upload(session, "data", "x.csv", b"1" * ((1 << 20) + 1), context)
    with pytest.raises(DataError, match="empty"):
        data_callbacks.store_upload(session, "data", "x.csv", b"", context)
    data_callbacks.store_upload(session, "data", "x.csv", csv(), context)
    data_callbacks.store_upload(session, "mask", "m.csv", csv(), context)
    assert isinstance(session.source, Upload)
    assert session.mask is not None
    with pytest.raises(DataError):
        data_callbacks.store_upload(session, "data", "y.csv", b"\x00", context)
    assert session.source is None  # after a refused file there is nothing to run


@pytest.mark.parametrize("role", ["data", "mask"])
def test_decompressed_bytes_count_in_the_limit_of_uploads(role) -> None:
    files = {"x.csv.gz": gzip.compress(b"a,b\n" + b"1.0,2.0\n2.0,5.0\n" * 200_000)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x=np.zeros((100_000, 4)))
    files["x.npz"] = buffer.getvalue()
    session, context = Session("k", 0.0), shared()
    for name, content in files.items():
        assert len(content) < context.limit
        with pytest.raises(
            DataError, match=r"3\.2 MB of data once it is decompressed, more than the limit of 1\.05 MB"
        ):
            data_callbacks.store_upload(session, role, name, content, context)
    assert session.source is session.mask is None
    data_callbacks.store_upload(session, role, "x.csv.gz", gzip.compress(csv()), context)


def test_the_folder_of_a_reader_that_was_killed_is_removed_by_the_next(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = tmp_path / f"presage-upload_{platform.node() or 'host'}_{gone.pid}_x"
    left.mkdir()
    (left / "private.csv").write_bytes(csv())
    Upload("x.csv", csv())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/cells.csv", "cells.csv"),
        ("a\x00b\nc.csv", "a_b_c.csv"),
        ("", "data.csv"),
        ("..", "data.csv"),
        ("\ud800.csv", "_.csv"),
        ("n" * 400 + ".csv", "n" * 113 + "….csv"),
        ("ä" * 300 + ".csv", "ä" * 56 + "….csv"),
    ],
)
def test_odd_file_names_are_made_safe(name, kept) -> None:
    upload = Upload(name, csv())
    assert upload.name == kept
    assert len(upload.name.encode()) <= 120
    assert upload.inputs("target").dataset.d == 3


def test_a_file_that_crashes_or_hangs_its_reader_leaves_the_page_alive() -> None:
    reader = Reader(seconds=5.0, memory=400 << 20, target=odd_reader)
    try:
        with pytest.raises(DataError, match=r"'x\.h5ad' could not be read: the process that read it crashed"):
            reader.call("x.h5ad", str, "crash")
        with pytest.raises(DataError, match=r"more than 0\.39 GiB of memory"):
            reader.call("x.csv.gz", str, "allocate")
        reader.limits = ProcessLimits(seconds=0.5)
        with pytest.raises(DataError, match=r"longer than 0\.5 seconds"):
            reader.call("x.h5ad", str, "hang")
        reader.limits = ProcessLimits(seconds=60.0)
        assert reader.call("x.csv", str, "fine") == "fine"
    finally:
        reader.close()


def test_an_upload_is_read_by_the_reader_with_sentences_for_all_errors() -> None:
    reader = Reader()
    try:
        upload = Upload("cells.csv", csv(), reader=reader)
        assert upload.preview.guess == "target"
        assert upload.inputs("target").dataset.interventions.sum() == 20
        with pytest.raises(DataError, match="no column"):
            upload.inputs("nonsense")
        with pytest.raises(DataError, match="damaged"):
            reader.call("x.csv", int, "not a number")  # an error of another library
        mask = Upload("mask.csv", table(np.eye(3, dtype=int)), reader=reader)
        dataset = presage.simulate("linear", d=3, n=3, seed=0)
        assert mask.as_mask_of(dataset).dataset.interventions.sum() == 3
    finally:
        reader.close()


# Sessions


def test_sessions_are_limited_and_expire() -> None:
    now = [0.0]
    sessions = Sessions(limit=3, bytes_limit=1000, minutes=1.0, clock=lambda: now[0])
    first = sessions.open(key(0))
    for number in range(1, 4):
        now[0] += 1.0
        last = sessions.open(key(number))
    assert len(sessions) == 3
    with pytest.raises(DataError, match="reload"):
        sessions.get(first.key)
    last.source = Upload("x.csv", csv())
    assert last.source.size > 1000
    sessions.expire()
    assert len(sessions) == 1
    now[0] += 61.0
    with pytest.raises(DataError):
        sessions.get(last.key)


def example_analysis(number: int = 1, **more) -> Analysis:
    source = Example("linear")
    dataset = source.dataset()
    result = Result(unconstrained=np.zeros((dataset.d, dataset.d)), names=dataset.names, model="m")
    return Analysis(number=number, dataset=dataset, source=source, result=result, **more)


def test_sessions_without_an_answer_go_first_and_a_new_page_always_gets_one() -> None:
    now = [0.0]
    sessions = Sessions(limit=3, clock=lambda: now[0])
    for number in range(3):
        now[0] += 1.0
        sessions.open(key(number)).analysis = example_analysis() if number < 2 else None
    now[0] += 1.0
    sessions.open(key(3))
    assert sessions.find(key(2)) is None  # younger than the others, but without an answer
    assert sessions.find(key(0)) is not None
    sessions.get(key(3)).analysis = example_analysis()
    sessions.open(key(4))  # all have answers: the one used longest ago goes
    assert sessions.find(key(0)) is None
    assert sessions.find(key(4)) is not None


def test_an_example_of_the_page_is_no_answer_of_the_user() -> None:
    session = Session("k", 0.0, analysis=example_analysis(is_example=True))
    assert not session.has_answer
    assert session.size == 0


@pytest.mark.parametrize("odd", [None, 3, "", "short", "x" * 100, "with space" * 4, ["a"]])
def test_keys_that_could_be_guessed_are_refused(odd) -> None:
    sessions = Sessions()
    with pytest.raises(ConfigError, match="reload"):
        sessions.open(odd)
    assert sessions.find(odd) is None
    assert len(sessions) == 0


# Runs


def until(condition) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it never happened")


def test_runs_are_concurrent_and_can_be_cancelled() -> None:
    runner = Runner(slots=2, target=slow_worker)
    long = runner.submit({"do": "sleep"})
    until(lambda: long.share == 0.5)
    short = runner.submit({"do": "answer"})
    until(lambda: short.over)
    assert (short.status, short.result) == ("done", "answer")
    assert long.status == "running"
    assert "working" in long.stage
    long.cancel()
    assert long.status == "cancelled"
    outcomes = [runner.submit({"do": do}) for do in ("fail", "die", "again")]
    until(lambda: all(job.over for job in outcomes))
    assert outcomes[0].error == "bad data"
    assert "unexpectedly" in outcomes[1].error
    assert outcomes[2].result == "again"
    runner.close()


def test_a_run_that_takes_too_much_memory_fails_with_a_sentence() -> None:
    runner = Runner(slots=1, target=slow_worker, memory_limit=300 << 20)
    jobs = [runner.submit({"do": do}) for do in ("allocate", "again")]
    until(lambda: all(job.over for job in jobs))
    assert "ran out of memory" in jobs[0].error
    assert jobs[1].result == "again"
    runner.close()


def test_the_worker_answers_like_discover_and_says_how_far_it_is(model) -> None:
    from presage.web.worker import answer

    dataset = presage.load_example("linear")
    said: list[tuple[str, float]] = []
    found = answer(
        {"inputs": read_inputs(dataset), "model": str(model), "counts": None}, lambda *what: said.append(what)
    )
    assert np.array_equal(found.matrix, presage.discover(dataset, model=model).matrix)
    shares = [share for _, share in said]
    assert shares == sorted(shares)
    assert len(shares) > 5
    assert shares[-1] > 0.9


def test_runs_are_checked_before_they_start(model) -> None:
    session, offered = Session("k", 0.0), {str(model)}
    with pytest.raises(ConfigError, match="choose data first"):
        data_callbacks.prepare_run(session, "none", None, str(model), "look", offered=offered)
    session.source = Upload("x.csv", csv())
    with pytest.raises(ConfigError, match="no model"):
        data_callbacks.prepare_run(session, "none", None, None, "look", offered=offered)
    with pytest.raises(ConfigError, match="mask first"):
        data_callbacks.prepare_run(session, "mask", None, str(model), "look", offered=offered)
    for other in ("/etc/passwd", "hf://owner/repository", ["scm"], 3):
        with pytest.raises(ConfigError, match="does not offer that model"):
            data_callbacks.prepare_run(session, "none", None, other, "look", offered=offered)
    task, run = data_callbacks.prepare_run(session, "column:target", None, str(model), "real", offered=offered)
    assert task["inputs"].dataset is run.dataset
    assert run.dataset.d == 3
    assert run.arguments == {"interventions": "target", "model": str(model), "counts": False}


def test_changed_settings_are_noticed(model) -> None:
    session, offered = Session("k", 0.0, source=Upload("x.csv", csv())), {str(model)}
    chosen = ("column:target", None, str(model), "look")
    _, run = data_callbacks.prepare_run(session, *chosen, offered=offered)
    assert not data_callbacks.settings_changed(session, *chosen)  # no answer yet
    session.analysis = Analysis(**vars(run), result=Result(unconstrained=np.zeros((3, 3)), names=("a", "b", "c")))
    assert not data_callbacks.settings_changed(session, *chosen)
    for k, other in enumerate(("none", "layer", "scm", "real")):
        changed = [*chosen[:k], other, *chosen[k + 1 :]]
        assert data_callbacks.settings_changed(session, *changed)
    assert not data_callbacks.settings_changed(None, *chosen)


def test_the_model_for_the_kind_of_values_is_recommended() -> None:
    context = shared(models=(Offer(name="mine", kind="real"), Offer(name="grn", kind="counts")))
    assert data_callbacks.recommended(context, countlike=True) == "grn"
    assert data_callbacks.recommended(context, countlike=False) == "mine"
    assert data_callbacks.recommended(shared(), countlike=False) is None
    counts = np.random.default_rng(0).poisson(9.0, size=(50, 3))
    assert Upload("x.csv", table(counts)).preview.countlike
    assert not Upload("x.csv", csv()).preview.countlike
    assert Offer(name="/models/mine.safetensors", kind="counts").label == "mine: for counts"


# What is shown


def test_views_threshold_top_and_acyclic(result) -> None:
    assert view.View(threshold=0.5).graph(result).sum() == (MATRIX > 0.5).sum() == 5
    assert view.View(top=2).graph(result).sum() == 2
    assert view.View(top=99).graph(result).sum() == 12
    assert view.View(acyclic=True).graph(result).sum() < 5
    assert "cycle" in parts.count_text(result, view.View(), 0.5)
    assert "acyclic" in parts.count_text(result, view.View(acyclic=True), 0.5)


def test_elements_know_right_extra_and_missed(result) -> None:
    truth = np.zeros((4, 4), dtype=np.int8)
    truth[0, 1] = truth[3, 0] = 1
    shown = view.View(threshold=0.8)
    places = view.node_positions(result, shown)
    known = Knowledge(required=[("c", "d")], roots=["a"])
    found = view.elements(result, shown, places, truth=truth, known=known)
    classes = {item["data"]["id"]: item["classes"] for item in found}
    assert classes["e0-1"] == "right"
    assert classes["e2-3"] == "extra required"
    assert classes["e3-0"] == "missed"
    assert "root" in classes["n0"]
    assert len(found) == 4 + 3
    plain = view.elements(result, shown, places)
    assert [item["data"]["id"] for item in plain[4:]] == ["e2-3", "e0-1"]


def test_elements_show_signs_of_effects_and_hidden_causes() -> None:
    effect = np.full((4, 4), np.nan)
    effect[0, 1], effect[2, 3] = 0.5, -0.5
    hidden = np.zeros((4, 4))
    hidden[0, 3] = hidden[3, 0] = 0.9
    result = Result(unconstrained=MATRIX, names=NAMES, effect=effect, effect_scale=abs(effect), hidden_causes=hidden)
    shown = view.View(threshold=0.8)
    found = {e["data"]["id"]: e["classes"] for e in view.elements(result, shown, view.node_positions(result, shown))}
    assert (found["e0-1"], found["e2-3"], found["h0-3"]) == ("positive", "negative", "hidden")
    assert [row.effect for row in edge_rows(result, shown.graph(result))] == [-0.5, 0.5]
    assert [row.hidden for row in edge_rows(result, shown.graph(result))] == [0.0, 0.0]


def test_large_graphs_leave_out_variables_without_edges() -> None:
    d = view.MANY + 5
    matrix = np.zeros((d, d))
    matrix[0, 1] = matrix[1, 2] = 0.9
    result = Result(unconstrained=matrix, names=tuple(f"v{j}" for j in range(d)))
    shown = view.View()
    nodes = [e["data"]["id"] for e in view.elements(result, shown, view.node_positions(result, shown))][:3]
    assert nodes == ["n0", "n1", "n2"]
    assert f"{d - 3} variables without edges are not drawn" in parts.count_text(result, shown, 0.5)
    order = view.causal_order(result, shown)
    assert order.index(0) < order.index(1) < order.index(2)
    assert view.neighbourhood(shown.graph(result), 1) == [0, 1, 2]
    assert view.neighbourhood(shown.graph(result), 2) == [1, 2]


def test_heat_map_has_causes_in_rows_in_any_order(result) -> None:
    figure = figures.heat_figure(result)
    trace = figure["data"][0]
    assert trace["z"][0][1] == 0.9
    assert trace["z"][1][1] is None
    assert trace["text"][0][1] == "a → b: 0.90"
    turned = figures.heat_figure(result, [2, 0], DARK)["data"][0]
    assert turned["x"] == turned["y"] == ["2", "0"]
    assert turned["z"] == [[None, 0.3], [0.4, None]]
    diagonal = [shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect"]
    assert len(diagonal) == 4
    assert {shape["fillcolor"] for shape in diagonal} == {LIGHT.panel}  # not a colour of a probability


def test_scatter_groups_rows_by_intervention() -> None:
    dataset = presage.load_example("rff")
    figure = figures.pair_figure(dataset, 0, 1)
    counts = [len(trace["x"]) for trace in figure["data"]]
    assert sum(counts) == dataset.n
    set_ = int(dataset.interventions[:, 0].sum())
    assert any(f"x0 intervened on ({set_})" == trace["name"] for trace in figure["data"])
    assert sum(len(trace["x"]) for trace in figures.variable_figure(dataset, 0)["data"]) == dataset.n


def test_the_table_is_searched_and_sorted(result) -> None:
    graph = view.View(threshold=0.5).graph(result)

    def listed(**how) -> list[str]:
        return [f"{row.source}{row.target}" for row in edge_rows(result, graph, **how)]

    assert listed() == ["cd", "ab", "bc", "cb", "ba"]
    assert listed(search="D") == ["cd"]
    assert listed(search="b -> c") == listed(search="b → c") == ["bc"]
    assert listed(sort={"by": "probability", "down": False}) == ["ba", "cb", "bc", "ab", "cd"]
    assert listed(sort={"by": "source", "down": False}) == ["ab", "bc", "ba", "cd", "cb"]
    assert listed(sort={"by": "nonsense"}) == listed(sort=3) == listed()
    assert listed(within={1, 2}) == ["bc", "cb"]


def test_the_legend_explains_what_can_occur() -> None:
    def labels(**how) -> str:
        return " ".join(str(span.children[1]) for span in parts.legend_part(LIGHT, **how))

    assert "raises" in labels(effects=True)
    assert "missed" in labels(truth=True)
    assert "raises" not in labels(truth=True, effects=True)
    assert "hidden common cause" in labels(hidden=True)
    known = Knowledge(required=[("a", "b")], roots=["c"])
    assert "known to exist (bar)" in labels(known=known)
    assert "known to have no causes" in labels(known=known)
    assert "bar" not in labels()


def test_the_heading_names_data_model_and_time() -> None:
    text = str(parts.answer_head(example_analysis(seconds=3.21)))
    for part in ("Bundled example linear", "'400'", "'12'", "'m'", "3.2 s"):
        assert part in text
    assert "example answer" not in text
    assert "example answer" in str(parts.answer_head(example_analysis(is_example=True)))


def test_uncertain_edges_are_those_nearest_one_half(result) -> None:
    found = view.uncertain(result, 3)
    assert {(i, j) for i, j, _ in found} == {(0, 2), (1, 0), (2, 1)}


def test_scores_are_those_of_metrics(result) -> None:
    truth = (MATRIX > 0.8).astype(np.int8)
    found = {name: value for name, value, _ in view.scores(result, truth, 0.8)}
    expected = presage.metrics.evaluate(truth, MATRIX, threshold=0.8)
    assert found["AUPRC"] == f"{expected['auprc']:.3f}"
    assert found["SHD"] == "0"


# Knowledge by clicks


def test_clicks_become_knowledge_and_change_the_result(result) -> None:
    known = parts.update_knowledge({}, "forbid", NAMES, [2, 1], {})
    assert known.forbidden == (("c", "b"),)
    after = result.with_knowledge(known)
    assert after.matrix[2, 1] == 0
    assert after.warnings == result.warnings != []  # a <-> b is still a cycle
    known = parts.update_knowledge(known.to_json(), "require", NAMES, [0, 1], {})
    after = result.with_knowledge(known)
    assert after.matrix[0, 1] == 1
    assert after.matrix[1, 0] == 0
    assert after.warnings == []
    assert np.array_equal(after.matrix, known.apply(MATRIX, NAMES))
    known = parts.update_knowledge(known.to_json(), "forbid", NAMES, [0, 1], {})
    assert known.required == ()
    known = parts.update_knowledge(known.to_json(), "forget", NAMES, [0, 1], {})
    assert known.forbidden == (("c", "b"),)
    known = parts.update_knowledge(known.to_json(), "drop", NAMES, [], {"forbidden": ["c", "b"]})
    assert not known
    known = parts.update_knowledge({}, "root", NAMES, [3], {})
    assert known.roots == ("d",)
    assert not parts.update_knowledge(known.to_json(), "unroot", NAMES, [3], {})


def test_variables_move_between_tiers() -> None:
    known = parts.update_knowledge({}, "tier", NAMES, [], {"name": "a", "tier": 0})
    known = parts.update_knowledge(known.to_json(), "tier", NAMES, [], {"name": "b", "tier": 1})
    known = parts.update_knowledge(known.to_json(), "tier", NAMES, [], {"name": "c", "tier": 0})
    assert known.tiers == (("a", "c"), ("b",))
    titles = [column.children[0].children for column in parts.tier_columns(NAMES, known)]
    assert titles == ["no tier", "tier 1 (first)", "tier 2", "new tier: drop here"]
    known = parts.update_knowledge(known.to_json(), "tier", NAMES, [], {"name": "b", "tier": -1})
    assert known.tiers == (("a", "c"),)
    assert not parts.update_knowledge(known.to_json(), "no-tiers", NAMES, [], {})


def test_contradictions_are_sentences(result) -> None:
    known = parts.update_knowledge({}, "root", NAMES, [1], {})
    with pytest.raises(ConfigError, match="root"):
        parts.update_knowledge(known.to_json(), "require", NAMES, [0, 1], {})
    both = Knowledge(required=[("a", "b"), ("b", "a")])
    with pytest.raises(ConfigError, match="cycle"):
        result.with_knowledge(both)


# Downloads


def test_downloads(result) -> None:
    analysis = example_analysis()
    files = {kind: exports.file_content(kind, analysis, result, 0.8, False, "code\n") for kind in exports.KINDS}
    assert "<!doctype html>" in files["report.html"]
    edges = pd.read_csv(io.StringIO(files["edges.csv"]))
    assert edges["source"].tolist() == ["c", "a"]
    graph = nx.parse_graphml(files["graph.graphml"])
    assert set(graph.edges) == {("c", "d"), ("a", "b")}
    assert pd.read_csv(io.StringIO(files["probabilities.csv"]), index_col=0).loc["a", "b"] == 0.9
    assert files["reproduce.py"] == "code\n"


def test_formulas_in_exported_tables_are_escaped() -> None:
    odd = Result(unconstrained=np.array([[0.0, 0.9], [0.0, 0.0]]), names=("=cmd()", "+b"), model="m")
    text = exports.file_content("edges.csv", example_analysis(), odd, 0.5, False, "")
    assert text.splitlines()[1].startswith("'=cmd(),'+b,")
    assert "'=cmd()" in exports.file_content("probabilities.csv", example_analysis(), odd, 0.5, False, "")


@pytest.mark.parametrize("kind", ["file", "example", "simulation"])
def test_the_python_code_reproduces_the_result(kind, model, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    session = Session("k", 0.0)
    choice = "none"
    if kind == "file":
        (tmp_path / "cells.csv").write_bytes(csv())
        session.source, choice = Upload("cells.csv", csv()), "column:target"
    elif kind == "example":
        session.source = Example("linear")
    else:
        session.source = Simulation("linear", 3, 60, 0.5, 2)
    task, run = data_callbacks.prepare_run(session, choice, None, str(model), "look", offered={str(model)})
    found = presage.discover(task["inputs"], model=model)
    analysis = Analysis(**vars(run), result=found)
    names = found.names
    known = Knowledge(required=[(names[0], names[1])], tiers=[[names[0]], [names[2]]])
    shown = view.View(threshold=0.3, acyclic=True)
    code = exports.python_code(analysis, known, shown, 0.3)
    scope: dict = {}
    exec(compile(code, "reproduce.py", "exec"), scope)
    expected = found.with_knowledge(known)
    assert np.allclose(scope["result"].matrix, expected.matrix, atol=1e-9)
    assert set(scope["graph"].edges) == set(expected.graph(0.3, acyclic=True).edges)
    assert (tmp_path / "result" / "report.html").exists()


# The application


@pytest.fixture(scope="module")
def client(model):
    app = create_app(extra_models=[str(model)], limit=1 << 20, runner=Nobody(), reader=Here(), local=True)
    return app.server.test_client()


def test_the_page_names_no_other_host(client) -> None:
    text = client.get("/", base_url="http://localhost").text
    assert '<script src="/' in text
    assert 'src="http' not in text
    assert 'href="http' not in text
    for name in ("style.css", "page.js", "answer.js", "column_roles.js"):
        with client.get(f"/assets/{name}", base_url="http://localhost") as asset:
            assert "http" not in asset.text.replace("XMLHttpRequest", "")


def test_every_response_forbids_frames_foreign_scripts_and_referrers(client) -> None:
    for path in ("/", "/_dash-layout", "/assets/page.js", "/nonsense"):
        with client.get(path, base_url="http://localhost") as response:
            policy = response.headers["Content-Security-Policy"]
            assert response.headers["X-Frame-Options"] == "DENY"
            assert response.headers["Referrer-Policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in policy
        scripts = policy.partition("script-src ")[2].partition(";")[0]
        assert "'self'" in scripts
        assert "unsafe" not in scripts


def test_looking_at_the_page_creates_no_session(model) -> None:
    sessions = Sessions()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("presage.web.app.Sessions", lambda: sessions)
        app = create_app(extra_models=[str(model)], runner=Nobody(), reader=Here())
    client = app.server.test_client()
    for path in ("/", "/_dash-layout", "/_dash-dependencies"):
        client.get(path).close()
    assert len(sessions) == 0
    client.post(
        "/upload", query_string={"session": key(1), "name": "x.csv"}, data=csv(), headers={"X-Presage": "upload"}
    )
    assert len(sessions) == 1


def test_other_host_names_are_refused(client) -> None:
    assert client.get("/", base_url="http://evil.example").status_code == 403


def test_uploads_by_http(client) -> None:
    def post(content: bytes, name: str = "x.csv", session: str = key(1), header: bool = True):
        response = client.post(
            "/upload",
            base_url="http://localhost",
            query_string={"session": session, "name": name, "role": "data"},
            data=content,
            headers={"X-Presage": "upload"} if header else {},
        )
        assert response.status_code == 200
        return response.json

    assert post(csv()) == {"ok": True}
    assert "empty" in post(b"")["error"]
    assert "not a text file" in post(b"\x00")["error"]
    assert "larger than the limit of 1 MB" in post(b"1" * ((1 << 20) + 5))["error"]
    assert "reload" in post(csv(), session="unknown")["error"]
    assert "page only" in post(csv(), header=False)["error"]
    for name in ("", ".", "..", "/", "a/b\x00.csv", "x" * 5000 + ".csv", "\n.csv", "%s{}.csv"):
        assert set(post(csv(), name=name)) & {"ok", "error"}


@pytest.mark.parametrize("odd", [None, "text", -1, 1e308, [], {}, [[[]]], {"number": "x"}, True])
def test_odd_values_of_callbacks_give_a_sentence(client, odd) -> None:
    names = ("require", "forbid", "forget", "root", "unroot")
    inputs = [{"id": "answer", "property": "data", "value": odd}]
    inputs += [{"id": name, "property": "n_clicks", "value": odd} for name in names]
    inputs += [{"id": "tier-move", "property": "data", "value": odd}, [], []]
    state = [{"id": name, "property": "data", "value": odd} for name in ("session", "knowledge", "chosen")]
    response = callback(client, "known-error", inputs, state, "require.n_clicks")
    assert response.status_code in (200, 204)
    assert "Traceback" not in response.text

    found = start_run(client, key(1), odd, odd, odd, layer=odd, counts=odd)
    assert found is not None
    assert found.endswith(".")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"output": 3}', b'{"output": "x.y", "inputs": 7}'])
def test_requests_that_no_page_sends_are_not_errors_of_the_server(client, body) -> None:
    response = client.post(
        "/_dash-update-component", base_url="http://localhost", data=body, content_type="application/json"
    )
    assert 400 <= response.status_code < 500
    assert "Traceback" not in response.text


def test_an_empty_host_is_refused(presage_cli) -> None:
    code, _, error = presage_cli("serve", "--host", "", "--port", "0")
    assert code == 2
    assert "--host needs an address" in error


def test_a_busy_port_is_a_sentence(presage_cli) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, error = presage_cli("serve", "--port", taken.getsockname()[1])
    assert code == 2
    assert "choose another --port" in error


def test_an_unknown_model_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="no model"):
        create_app(extra_models=["nonsense"], runner=Nobody())
