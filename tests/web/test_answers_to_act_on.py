"""Stability of probabilities and suggested experiments on the page and in the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("dash", reason="the page needs the extra web")

import presage
from models_for_tests import save_tiny
from presage.columns import ColumnKind
from presage.errors import ConfigError
from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.report.html import report_html
from presage.report.suggestions import suggested_experiments
from presage.types import Dataset
from presage.web.data_callbacks import prepare_run, settings_changed
from presage.web.panel import edge_part, total_effect_part
from presage.web.parts import experiments_part
from presage.web.sessions import Analysis, Session
from presage.web.sources import Simulation, Upload
from presage.web.table import edge_rows, edge_table
from presage.web.worker import RESAMPLES, answer

NAMES = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("models") / "tiny.safetensors")


def dataset(interventions: np.ndarray) -> Dataset:
    x = np.random.default_rng(0).normal(size=(len(interventions), 4))
    return Dataset(x=x, interventions=interventions, names=NAMES)


def doubtful() -> Result:
    """The direction of every edge is open."""
    matrix = np.full((4, 4), 0.45)
    np.fill_diagonal(matrix, 0.0)
    return Result(unconstrained=matrix, names=NAMES, model="m")


def test_stability_is_a_setting_that_answers_like_discover_with_bootstrap(model) -> None:
    session = Session("k", 0.0, source=Simulation("linear", 4, 60, 0.5, 1))
    settings = ("none", None, str(model), "look", {})
    task, run = prepare_run(session, *settings, ["on"], offered={str(model)})
    assert run.arguments["bootstrap"] == RESAMPLES
    shares: list[float] = []
    found = answer(task, lambda stage, share: shares.append(share))
    expected = presage.discover(task["inputs"], model=model, bootstrap=RESAMPLES)
    assert found.stability is not None
    np.testing.assert_allclose(found.stability, expected.stability)
    assert shares == sorted(shares)
    assert sum(share < 0.5 for share in shares) > 5  # the bar does not fill up with the first resample
    assert shares[-1] > 0.95
    session.analysis = Analysis(**vars(run), result=found)
    assert settings_changed(session, *settings, [])
    assert not settings_changed(session, *settings, ["on"])


def test_stability_is_shown_beside_the_probability_unless_knowledge_decides() -> None:
    spread = np.full((4, 4), 0.07)
    before = Result(unconstrained=np.full((4, 4), 0.6) - 0.6 * np.eye(4), names=NAMES, stability=spread)
    after = before.with_knowledge(Knowledge(required=[("a", "b")]))
    rows = {
        (row.source, row.target): row for row in edge_rows(after, np.ones((4, 4), dtype=int) - np.eye(4, dtype=int))
    }
    assert rows["c", "d"].stability == pytest.approx(0.07)
    assert rows["a", "b"].stability is None
    assert "± 0.07" in str(edge_table(list(rows.values()), {}))
    assert "stability" not in str(edge_table(list(rows.values()), {}, left_out=["stability"]))
    assert "± 0.07" in str(edge_part(after, before, 2, 3))
    assert "±" not in str(edge_part(after, before, 0, 1))


def test_suggested_experiments_leave_out_past_targets_and_environments() -> None:
    mask = np.zeros((20, 4), dtype=bool)
    mask[:5, 1] = True
    data = dataset(mask)
    names = [name for name, _ in suggested_experiments(doubtful(), data, k=4)]
    assert sorted(names) == ["a", "c", "d"]
    kinds = np.array([0, 0, 0, ColumnKind.ENVIRONMENT], dtype=np.int8)
    codes = np.concatenate([data.x[:, :3], np.tile([[0.0], [1.0]], (10, 1))], axis=1)
    with_environment = Dataset(x=codes, interventions=mask, names=NAMES, column_kinds=kinds)
    assert sorted(name for name, _ in suggested_experiments(doubtful(), with_environment, k=4)) == ["a", "c"]
    everywhere = dataset(np.eye(4, dtype=bool).repeat(5, axis=0))
    assert suggested_experiments(doubtful(), everywhere) == []
    assert "No further intervention" in str(experiments_part(doubtful(), []))


def test_a_certain_graph_needs_no_experiment() -> None:
    certain = Result(unconstrained=np.triu(np.ones((4, 4)), 1), names=NAMES)
    assert suggested_experiments(certain, None) == []


def test_the_report_suggests_experiments_where_sampling_graphs_is_quick() -> None:
    page = report_html(doubtful())
    found = suggested_experiments(doubtful(), None)
    assert len(found) == 3
    assert page.index("Next experiments") < page.index(found[0][1])
    many = Result(unconstrained=np.full((31, 31), 0.4) - 0.4 * np.eye(31), names=tuple(f"v{j}" for j in range(31)))
    assert "Next experiments" not in report_html(many)


def test_the_total_effect_of_an_edge_is_that_of_the_result() -> None:
    rng = np.random.default_rng(3)
    a = rng.normal(size=500)
    frame = np.column_stack([a, 2.0 * a + rng.normal(size=500), rng.normal(size=500)])
    result = presage.discover(frame, model="linear")
    expected = result.total_effect(result.names[0], result.names[1])
    text = str(total_effect_part(result, 0, 1))
    assert f"{expected.effect:+.2f}".replace("-", "−") in text
    assert f"ancestor in {100 * expected.probability:.0f} %" in text
    assert "No total effect" in str(total_effect_part(doubtful(), 0, 1))  # a result without data


def test_soft_interventions_are_a_setting_that_answers_like_discover(tmp_path) -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    frame["target"] = ["a" if k >= 60 else "control" for k in range(80)]
    path = tmp_path / "cells.csv"
    frame.to_csv(path, index=False)
    session = Session("k", 0.0, source=Upload("cells.csv", path.read_bytes()))
    settings = ("column:target", None, "general", "look", {}, [])
    task, run = prepare_run(session, *settings, ["soft"], offered={"general"})
    assert run.arguments["interventions"] == {"targets": "target", "kind": "soft"}
    found = answer(task, lambda *what: None)
    expected = presage.discover(path, run.arguments["interventions"])
    np.testing.assert_allclose(found.matrix, expected.matrix, atol=1e-6)
    assert found.data["soft_targets"] == ["a"]
    session.analysis = Analysis(**vars(run), result=found)
    assert settings_changed(session, *settings, [])
    assert not settings_changed(session, *settings, ["soft"])
    without = ("none", *settings[1:])
    _, run = prepare_run(session, *without, ["soft"], offered={"general"})  # a box that is hidden has no meaning
    assert "interventions" not in run.arguments


def test_a_model_without_soft_interventions_refuses_them_with_a_sentence() -> None:
    source = Simulation("linear", 4, 60, 0.5, 1)
    mask = source.dataset().interventions.astype(int)
    names = source.dataset().names
    content = pd.DataFrame(mask, columns=names).to_csv(index=False).encode()
    session = Session("k", 0.0, source=source, mask=Upload("mask.csv", content))
    task, _ = prepare_run(session, "mask", None, "linear", "look", {}, [], ["soft"], offered={"linear"})
    with pytest.raises(ConfigError, match="not trained with soft interventions"):
        answer(task, lambda *what: None)
