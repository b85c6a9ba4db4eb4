"""Acting on answers through the public functions: effects, experiments, stability, equivalence class, AnnData."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import presage
from models_for_tests import save_tiny
from presage.errors import ConfigError
from presage.graphs.cpdag import cpdag
from presage.graphs.ops import descendants
from presage.inference.moments import Moments
from presage.inference.result import Result


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> presage.Model:
    return presage.load_model(save_tiny(tmp_path_factory.mktemp("models") / "tiny.safetensors"))


@pytest.fixture(scope="module")
def dataset() -> presage.Dataset:
    return presage.simulate("linear", d=5, n=160, n_interventional=60, seed=3)


@pytest.fixture(scope="module")
def result(model: presage.Model, dataset: presage.Dataset) -> Result:
    return presage.discover(dataset, model=model, bootstrap=5)


def certain(graph: np.ndarray, dataset: presage.Dataset) -> Result:
    return Result(unconstrained=graph.astype(float), names=dataset.names, moments=Moments.of(dataset))


def test_total_effects_of_a_known_graph_equal_regression_on_the_rows(dataset: presage.Dataset) -> None:
    graph = np.asarray(dataset.graph)
    found = certain(graph, dataset)
    x = dataset.x[:100]  # the observational rows
    for i, j in np.argwhere(descendants(graph)):
        inputs = np.column_stack([x[:, i], x[:, np.flatnonzero(graph[:, i])], np.ones(100)])
        slope = np.linalg.lstsq(inputs, x[:, j], rcond=None)[0][0]
        effect = found.total_effect(f"x{i}", f"x{j}", units="raw")
        assert effect.effect == pytest.approx(slope, rel=1e-5)
        assert effect.low < slope < effect.high
        assert effect.probability == 1
    frame = found.effects(units="raw")
    assert len(frame) == descendants(graph).sum()


def test_total_effects_weigh_sampled_graphs_by_their_probability(dataset: presage.Dataset) -> None:
    matrix = np.zeros((5, 5))
    matrix[0, 1] = 0.3
    found = Result(unconstrained=matrix, names=dataset.names, moments=Moments.of(dataset))
    effect = found.total_effect("x0", "x1")
    assert effect.probability == pytest.approx(0.3, abs=0.08)
    assert effect.effect == pytest.approx(effect.probability * np.corrcoef(dataset.x[:100, :2].T)[0, 1], rel=1e-5)
    assert found.effects().empty
    assert len(found.effects(0.1)) == 1
    known = found.with_knowledge(presage.Knowledge(required=[("x0", "x1")]))
    assert known.total_effect("x0", "x1").probability == 1


def test_a_possible_hidden_cause_is_shown_with_the_effect(dataset: presage.Dataset) -> None:
    hidden = np.full((5, 5), 0.25)
    found = Result(
        unconstrained=np.zeros((5, 5)), hidden_causes=hidden, names=dataset.names, moments=Moments.of(dataset)
    ).total_effect("x0", "x1")
    assert found.confounded == 0.25
    assert repr(found).endswith("hidden common cause with probability 0.25)")


def test_experiments_name_the_variables_in_doubt(dataset: presage.Dataset) -> None:
    matrix = np.zeros((5, 5))
    matrix[2, 3] = matrix[3, 2] = 0.5
    matrix[0, 1] = 1.0
    found = Result(unconstrained=matrix, names=dataset.names).next_experiments(3)
    assert set(found["variable"][:2]) == {"x2", "x3"}
    # Given no cycle, x3 is a descendant of x2 with probability 1/3.
    assert found["information"][0] == pytest.approx(-(np.log2(1 / 3) / 3 + 2 * np.log2(2 / 3) / 3), abs=0.06)
    assert found["information"][2] == 0
    rest = Result(unconstrained=matrix, names=dataset.names).next_experiments(1, exclude=["x2", "x3"])
    assert rest["information"].tolist() == [0.0]


def test_requests_that_make_no_sense_get_a_sentence(result: Result) -> None:
    for call, sentence in (
        (lambda: result.total_effect("x0", "y"), "no variable 'y'"),
        (lambda: result.total_effect("x0", "x0"), "both 'x0'"),
        (lambda: result.effects(2.0), "from 0 to 1"),
        (lambda: result.next_experiments(-1), "whole number"),
        (lambda: result.next_experiments(1, exclude="x0"), "list of names"),
        (lambda: result.next_experiments(1, exclude=["y"]), "no variable 'y'"),
        (lambda: Result(unconstrained=result.matrix, names=result.names).effects(), "no moments"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            call()


def test_bootstrap_gives_each_edge_its_stability(
    model: presage.Model, dataset: presage.Dataset, result: Result
) -> None:
    assert result.stability is not None
    assert (np.diag(result.stability) == 0).all()
    assert (result.stability[~np.eye(5, dtype=bool)] > 0).all()
    assert list(result.edges(0.0).columns)[-1] == "stability"
    for row in result.top(3).itertuples():
        assert row.stability == result.stability[dataset.names.index(row.source), dataset.names.index(row.target)]
    plain = presage.discover(dataset, model=model)
    assert "stability" not in plain.edges(0.0)
    np.testing.assert_array_equal(plain.matrix, result.matrix)
    again = presage.discover(dataset, model=model, bootstrap=5)
    np.testing.assert_array_equal(again.stability, result.stability)


def test_more_rows_are_more_stable(model: presage.Model) -> None:
    dataset = presage.simulate("linear", d=4, n=2000, seed=1)
    spreads = [
        presage.discover(dataset.take(np.arange(n)), model=model, bootstrap=8).stability.mean()  # type: ignore[union-attr]
        for n in (40, 2000)
    ]
    assert spreads[1] < spreads[0] / 2


def test_edges_fixed_by_knowledge_are_stable(result: Result) -> None:
    known = result.with_knowledge(presage.Knowledge(required=[("x0", "x1")]))
    frame = known.edges(0.0).set_index(["source", "target"])
    assert frame.loc[("x0", "x1"), "stability"] == 0
    assert frame.loc[("x2", "x3"), "stability"] > 0


def test_constant_columns_have_no_stability_and_no_effect(model: presage.Model, dataset: presage.Dataset) -> None:
    x = dataset.x.copy()
    x[:, 1] = 7.0
    found = presage.discover(x, model=model, bootstrap=2)
    assert (found.stability[1] == 0).all()
    assert (found.stability[:, 1] == 0).all()
    assert found.total_effect("x1", "x2", units="raw").effect == 0


def test_a_saved_result_keeps_effects_and_stability(result: Result, tmp_path: Path) -> None:
    again = Result.load(result.save(tmp_path / "out"))
    pd.testing.assert_frame_equal(again.edges(0.0), result.edges(0.0))
    pd.testing.assert_frame_equal(again.effects(0.2), result.effects(0.2))
    assert again.total_effect("x0", "x1") == result.total_effect("x0", "x1")
    pd.testing.assert_frame_equal(again.next_experiments(5), result.next_experiments(5))
    assert "stability" in pd.read_csv(tmp_path / "out" / "edges.csv")
    edge = result.top(1).iloc[0]
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"{edge['probability']:.2f} ± {edge['stability']:.2f}" in report


def test_the_equivalence_class_is_that_of_the_most_probable_acyclic_graph(result: Result) -> None:
    for threshold in (0.3, 0.5):
        np.testing.assert_array_equal(result.cpdag(threshold), cpdag(result.adjacency(threshold)))


def test_results_go_into_anndata_and_through_a_file(result: Result, dataset: presage.Dataset, tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    adata = dataset.to_anndata()
    filled = result.to_anndata(adata)
    assert "presage" not in adata.varp
    assert "presage" not in adata.uns
    filled.write_h5ad(tmp_path / "filled.h5ad")
    again = anndata.read_h5ad(tmp_path / "filled.h5ad")
    np.testing.assert_allclose(again.varp["presage"].toarray(), result.matrix)
    assert again.uns["presage"]["model"] == "tiny"
    assert list(again.uns["presage"]["warnings"]) == result.warnings
    assert result.to_anndata(adata, copy=False) is adata
    assert "presage" in adata.varp


@pytest.mark.parametrize("device", ["nonsense", "meta", "cuda:99", 3])
def test_devices_that_cannot_be_used_get_a_sentence(model: presage.Model, device: object) -> None:
    for call in (
        lambda: presage.load_model(model, device=device),
        lambda: presage.discover(np.ones((3, 2)), model=model, device=device),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigError, match="device"):
            call()


def test_the_cpu_is_a_device(model: presage.Model, dataset: presage.Dataset, result: Result) -> None:
    found = presage.discover(dataset, model=model, device="cpu")
    np.testing.assert_array_equal(found.matrix, result.matrix)
    assert presage.load_model(model, device="cpu").device.type == "cpu"
