"""The page without a browser: sources, sessions, runs, figures, knowledge and downloads."""

from __future__ import annotations

import io
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
from presage.errors import ConfigError, DataError
from presage.inference.inputs import read_inputs
from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.web import data_callbacks, exports, result_callbacks, view
from presage.web.app import create_app
from presage.web.jobs import Runner
from presage.web.sessions import Analysis, Session, Sessions
from presage.web.sources import MAX_VARIABLES, Example, Simulation, Upload
from worker_for_tests import slow_worker

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


class Nobody(Runner):
    """Runs nothing."""

    def __init__(self) -> None:
        super().__init__(places=0)


# Sources


def test_an_upload_is_shown_checked_and_not_left_on_the_disk(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    upload = Upload("C:\\data\\cells.csv", csv())
    assert upload.preview.title == "cells.csv"
    assert upload.preview.guess == "target"
    assert upload.preview.columns == ["target", "a", "b", "c"]
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
    session = Session("k", 0.0)
    with pytest.raises(DataError, match="larger than the limit of 1 MB"):
        data_callbacks.store_upload(session, "data", "x.csv", b"1" * ((1 << 20) + 1), 1 << 20)
    with pytest.raises(DataError, match="empty"):
        data_callbacks.store_upload(session, "data", "x.csv", b"", 1 << 20)
    data_callbacks.store_upload(session, "data", "x.csv", csv(), 1 << 20)
    data_callbacks.store_upload(session, "mask", "m.csv", csv(), 1 << 20)
    assert isinstance(session.source, Upload)
    assert session.mask is not None


# Sessions


def test_sessions_are_limited_and_expire() -> None:
    now = [0.0]
    sessions = Sessions(limit=3, bytes_limit=1000, minutes=1.0, clock=lambda: now[0])
    first = sessions.open()
    for _ in range(3):
        now[0] += 1.0
        last = sessions.open()
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


# Runs


def until(condition) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it never happened")


def test_runs_are_concurrent_and_can_be_cancelled() -> None:
    runner = Runner(places=2, target=slow_worker)
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
    runner = Runner(places=1, target=slow_worker, memory_limit=300 << 20)
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
    session = Session("k", 0.0)
    with pytest.raises(ConfigError, match="choose data first"):
        data_callbacks.prepare_run(session, "none", None, str(model), "look")
    session.source = Upload("x.csv", csv())
    with pytest.raises(ConfigError, match="no model"):
        data_callbacks.prepare_run(session, "none", None, None, "look")
    with pytest.raises(ConfigError, match="mask first"):
        data_callbacks.prepare_run(session, "mask", None, str(model), "look")
    task, run = data_callbacks.prepare_run(session, "column:target", None, str(model), "real")
    assert task["inputs"].dataset is run.dataset
    assert run.dataset.d == 3
    assert run.arguments == {"interventions": "target", "model": str(model), "counts": False}


# What is shown


def test_views_threshold_top_and_acyclic(result) -> None:
    assert view.View(threshold=0.5).graph(result).sum() == (MATRIX > 0.5).sum() == 5
    assert view.View(top=2).graph(result).sum() == 2
    assert view.View(top=99).graph(result).sum() == 12
    assert view.View(acyclic=True).graph(result).sum() < 5
    assert "cycle" in result_callbacks.count_text(result, view.View(), 0.5)
    assert "acyclic" in result_callbacks.count_text(result, view.View(acyclic=True), 0.5)


def test_elements_know_right_extra_and_missed(result) -> None:
    truth = np.zeros((4, 4), dtype=np.int8)
    truth[0, 1] = truth[3, 0] = 1
    shown = view.View(threshold=0.8)
    places = view.node_positions(result, shown)
    known = Knowledge(required=[("c", "d")], roots=["a"])
    found = view.elements(result, shown, places, truth=truth, known=known, chosen=(0, 1))
    classes = {item["data"]["id"]: item["classes"] for item in found}
    assert classes["e0-1"] == "right chosen"
    assert classes["e2-3"] == "extra required"
    assert classes["e3-0"] == "missed"
    assert "root" in classes["n0"]
    assert len(found) == 4 + 3
    plain = view.elements(result, shown, places)
    assert [item["data"]["id"] for item in plain[4:]] == ["e2-3", "e0-1"]


def test_heat_map_has_causes_in_rows(result) -> None:
    figure = view.heat_figure(result, (0, 1))
    assert figure["data"][0]["z"][0][1] == 0.9
    assert figure["data"][0]["z"][1][1] is None
    assert figure["data"][0]["text"][0][1] == "a → b: 0.90"
    box = figure["layout"]["shapes"][0]
    assert (box["x0"], box["y0"]) == (0.5, -0.5)


def test_scatter_groups_rows_by_intervention() -> None:
    dataset = presage.load_example("rff")
    figure = view.pair_figure(dataset, 0, 1)
    counts = [len(trace["x"]) for trace in figure["data"]]
    assert sum(counts) == dataset.n
    set_ = int(dataset.interventions[:, 0].sum())
    assert any(f"x0 intervened on ({set_})" == trace["name"] for trace in figure["data"])
    assert sum(len(trace["x"]) for trace in view.variable_figure(dataset, 0)["data"]) == dataset.n


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
    known = result_callbacks.update_knowledge({}, "forbid", NAMES, [2, 1], {})
    assert known.forbidden == (("c", "b"),)
    after = result.with_knowledge(known)
    assert after.matrix[2, 1] == 0
    assert after.warnings == result.warnings != []  # a <-> b is still a cycle
    known = result_callbacks.update_knowledge(known.to_json(), "require", NAMES, [0, 1], {})
    after = result.with_knowledge(known)
    assert after.matrix[0, 1] == 1
    assert after.matrix[1, 0] == 0
    assert after.warnings == []
    assert np.array_equal(after.matrix, known.apply(MATRIX, NAMES))
    known = result_callbacks.update_knowledge(known.to_json(), "forbid", NAMES, [0, 1], {})
    assert known.required == ()
    known = result_callbacks.update_knowledge(known.to_json(), "forget", NAMES, [0, 1], {})
    assert known.forbidden == (("c", "b"),)
    known = result_callbacks.update_knowledge(known.to_json(), "drop", NAMES, [], {"forbidden": ["c", "b"]})
    assert not known
    known = result_callbacks.update_knowledge({}, "root", NAMES, [3], {})
    assert known.roots == ("d",)
    assert not result_callbacks.update_knowledge(known.to_json(), "unroot", NAMES, [3], {})


def test_variables_move_between_tiers() -> None:
    known = result_callbacks.update_knowledge({}, "tier", NAMES, [], {"name": "a", "tier": 0})
    known = result_callbacks.update_knowledge(known.to_json(), "tier", NAMES, [], {"name": "b", "tier": 1})
    known = result_callbacks.update_knowledge(known.to_json(), "tier", NAMES, [], {"name": "c", "tier": 0})
    assert known.tiers == (("a", "c"), ("b",))
    titles = [column.children[0].children for column in result_callbacks.tier_columns(NAMES, known)]
    assert titles == ["no tier", "tier 1 (first)", "tier 2", "new tier: drop here"]
    known = result_callbacks.update_knowledge(known.to_json(), "tier", NAMES, [], {"name": "b", "tier": -1})
    assert known.tiers == (("a", "c"),)
    assert not result_callbacks.update_knowledge(known.to_json(), "no-tiers", NAMES, [], {})


def test_contradictions_are_sentences(result) -> None:
    known = result_callbacks.update_knowledge({}, "root", NAMES, [1], {})
    with pytest.raises(ConfigError, match="root"):
        result_callbacks.update_knowledge(known.to_json(), "require", NAMES, [0, 1], {})
    both = Knowledge(required=[("a", "b"), ("b", "a")])
    with pytest.raises(ConfigError, match="cycle"):
        result.with_knowledge(both)


# Downloads


def test_downloads(result) -> None:
    files = {kind: exports.file_content(kind, result, 0.8, False, "code\n") for kind in exports.KINDS}
    assert "<!doctype html>" in files["report.html"]
    edges = pd.read_csv(io.StringIO(files["edges.csv"]))
    assert edges["source"].tolist() == ["c", "a"]
    graph = nx.parse_graphml(files["graph.graphml"])
    assert set(graph.edges) == {("c", "d"), ("a", "b")}
    assert pd.read_csv(io.StringIO(files["probabilities.csv"]), index_col=0).loc["a", "b"] == 0.9
    assert files["reproduce.py"] == "code\n"


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
    task, run = data_callbacks.prepare_run(session, choice, None, str(model), "look")
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
    return create_app(extra_models=[str(model)], limit=1 << 20, runner=Nobody(), local=True).server.test_client()


def test_the_page_names_no_other_host(client) -> None:
    text = client.get("/", base_url="http://localhost").text
    assert '<script src="/' in text
    assert 'src="http' not in text
    assert 'href="http' not in text
    with client.get("/assets/style.css", base_url="http://localhost") as style:
        assert "http" not in style.text


def test_every_visit_is_a_session_of_its_own(client) -> None:
    keys = {client.get("/_dash-layout", base_url="http://localhost").json["props"]["data-session"] for _ in range(2)}
    assert len(keys) == 2


def test_other_host_names_are_refused(client) -> None:
    assert client.get("/", base_url="http://evil.example").status_code == 403


def test_uploads_by_http(client) -> None:
    key = client.get("/_dash-layout", base_url="http://localhost").json["props"]["data-session"]

    def post(content: bytes, name: str = "x.csv", session: str = key, header: bool = True):
        return client.post(
            "/upload",
            base_url="http://localhost",
            query_string={"session": session, "name": name, "role": "data"},
            data=content,
            headers={"X-Presage": "upload"} if header else {},
        ).json

    assert post(csv()) == {"ok": True}
    assert "empty" in post(b"")["error"]
    assert "not a text file" in post(b"\x00")["error"]
    assert "larger than the limit of 1 MB" in post(b"1" * ((1 << 20) + 5))["error"]
    assert "reload" in post(csv(), session="unknown")["error"]
    assert "page only" in post(csv(), header=False)["error"]


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
