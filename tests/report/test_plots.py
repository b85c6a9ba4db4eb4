"""Pictures: layouts point downwards without overlaps, figures are made without pyplot, bad records are explained."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presage.errors import ConfigError, DataError
from presage.graphs.layout import layered_positions
from presage.inference.result import Result
from presage.report.plots import (
    calibration_figure,
    draw_graph,
    draw_heat_map,
    figure_bytes,
    learning_curve_figure,
    reliability_figure,
)


def random_dag(seed: int, d: int, share: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    graph = np.triu(rng.random((d, d)) < share, 1)
    order = rng.permutation(d)
    return graph[np.ix_(order, order)].astype(np.int8)


@settings(max_examples=40)
@given(seed=st.integers(0, 999), d=st.integers(1, 50), share=st.sampled_from([0.0, 0.05, 0.15, 0.5]))
def test_causes_stand_above_effects_and_nothing_overlaps(seed: int, d: int, share: float) -> None:
    graph = random_dag(seed, d, share)
    places = layered_positions(graph)
    assert np.isfinite(places).all()
    for i, j in np.argwhere(graph):
        assert places[i, 1] > places[j, 1]
    gaps = np.abs(places[:, None] - places[None, :])
    close = (gaps[..., 0] < 0.9) & (gaps[..., 1] < 0.3) & ~np.eye(d, dtype=bool)
    assert not close.any()


@pytest.mark.parametrize("d", [1, 2, 11, 50, 80])
def test_figures_of_all_sizes_are_drawn(d: int) -> None:
    rng = np.random.default_rng(d)
    matrix = rng.beta(0.2, 2.0, size=(d, d))
    np.fill_diagonal(matrix, 0.0)
    result = Result(unconstrained=matrix, names=tuple(f"variable number {j}" for j in range(d)), model="m")
    figure = result.plot()
    heat, drawing = figure.axes[:2]
    count = int((matrix > 0.5).sum())
    assert len(drawing.patches) == count
    assert len(drawing.texts) == d
    assert drawing.get_title().startswith(f"{count} edge")
    shown = [label.get_text() for label in heat.get_yticklabels()]
    assert shown == ([] if d > 60 else [f"variable number {j}"[:16] if len(f"variable number {j}") <= 16
                                        else f"variable number {j}"[:15] + "…" for j in range(d)])  # fmt: skip
    np.testing.assert_allclose(heat.images[0].get_array().filled(0.0), matrix)
    assert figure_bytes(figure, dpi=40).startswith(b"\x89PNG")


def test_strange_names_do_not_break_drawing() -> None:
    names = ("$x_{", "a\nb", "\x00", "")
    result = Result(unconstrained=np.triu(np.full((4, 4), 0.8), 1), names=names, model="m")
    assert figure_bytes(result.plot(), dpi=40).startswith(b"\x89PNG")


def test_stronger_edges_are_wider() -> None:
    from matplotlib.figure import Figure

    matrix = np.array([[0.0, 0.99, 0.0], [0.0, 0.0, 0.55], [0.0, 0.0, 0.0]])
    graph = (matrix > 0.5).astype(np.int8)
    axes = Figure().subplots()
    draw_graph(axes, graph, matrix, list("abc"), layered_positions(graph))
    weak, strong = axes.patches  # the weakest is drawn first, so that it does not cover others
    assert strong.get_linewidth() > 2 * weak.get_linewidth()
    draw_heat_map(axes, matrix, list("abc"))


def test_negative_effects_are_red_and_hidden_causes_dashed() -> None:
    matrix = np.array([[0.0, 0.9, 0.9], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    effect = np.array([[np.nan, 0.5, -0.5], [np.nan] * 3, [np.nan] * 3])
    hidden = np.array([[0.0, 0.1, 0.0], [0.1, 0.0, 0.8], [0.0, 0.8, 0.0]])
    result = Result(
        unconstrained=matrix, names=tuple("abc"), effect=effect, effect_scale=0 * effect, hidden_causes=hidden
    )
    drawing = result.plot().axes[1]
    positive, negative, both = drawing.patches
    assert positive.get_edgecolor()[2] > positive.get_edgecolor()[0]
    assert negative.get_edgecolor()[0] > negative.get_edgecolor()[2]
    assert both.get_linestyle() not in ("-", "solid")
    assert "hidden common cause" in drawing.get_title()


def test_calibration_shows_shares_of_true_edges() -> None:
    p = np.array([[0.0, 0.25, 0.25], [0.25, 0.0, 0.25], [0.75, 0.75, 0.0]])
    truth = np.array([[0, 1, 0], [0, 0, 0], [1, 1, 0]])
    figure = calibration_figure(p, truth)
    points = figure.axes[0].lines[1].get_xydata()
    np.testing.assert_allclose(points, [[0.25, 0.25], [0.75, 1.0]])
    stacked = calibration_figure(np.stack([p, p]), np.stack([truth, truth]))
    np.testing.assert_allclose(stacked.axes[0].lines[1].get_xydata(), points)
    with pytest.raises(DataError, match="one shape"):
        calibration_figure(p, truth[:2])


def test_intervals_of_a_calibration_curve_are_wilsons() -> None:
    figure = reliability_figure([(0.1, 0.0, 10), (0.5, 0.5, 100), (0.9, 1.0, 1000)])
    segments = figure.axes[0].collections[0].get_segments()
    # From the formula of Wilson (1927) with z = 1.96.
    expected = [(0.0, 0.27754), (0.40383, 0.59617), (0.99617, 1.0)]
    np.testing.assert_allclose([(low[1], high[1]) for low, high in segments], expected, atol=1e-4)


def test_learning_curves_come_from_records(tmp_path: Path) -> None:
    records = [{"step": k, "loss": 1 / (k + 1), "ok": True, "note": "x"} for k in range(80)]
    records += [{"step": 10, "val_auprc": 0.2}, {"step": 20, "val_auprc": 0.4}, {"start": 1}]
    (tmp_path / "metrics.jsonl").write_text("\n".join(json.dumps(record) for record in records))
    for source in (records, tmp_path, tmp_path / "metrics.jsonl"):
        figure = learning_curve_figure(source)
        assert [axes.get_title() for axes in figure.axes] == ["loss", "val auprc"]
        np.testing.assert_allclose(figure.axes[1].lines[0].get_xydata(), [[10, 0.2], [20, 0.4]])
    with pytest.raises(DataError, match="at least two values"):
        learning_curve_figure([{"step": 1, "loss": 2.0}])
    with pytest.raises(ConfigError, match="no training record"):
        learning_curve_figure(tmp_path / "absent")
    (tmp_path / "metrics.jsonl").write_text("{")
    with pytest.raises(DataError, match="line 1: not JSON"):
        learning_curve_figure(tmp_path)


def test_plots_leave_pyplot_alone() -> None:
    code = (
        "import sys, numpy as np; from presage.inference.result import Result\n"
        "Result(unconstrained=np.zeros((2, 2)), names=('a', 'b'), model='m').plot()\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
