"""report.html is one self-contained page; names and cards cannot inject markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import presage
from models_for_tests import save_tiny
from presage.inference.result import Result
from presage.report.html import markdown_html, report_html
from presage.report.plots import graph_figure, heat_map_figure, scatter_figure

VOID = {"meta", "img", "br", "link", "hr", "input"}


class Checker(HTMLParser):
    """Every tag is closed in order; collects the text and all addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for key, value in attrs if key in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return checker


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    path = save_tiny(tmp_path_factory.mktemp("m") / "tiny.safetensors", with_summaries=True)
    x = np.random.default_rng(0).standard_cauchy(size=(60, 5))
    known = presage.Knowledge(required=[("x0", "x1")], forbidden=[("x2", "x3")], tiers=[["x0"], ["x4"]], roots=["x2"])
    return presage.discover(x, [["x0"]] * 10 + [None] * 50, model=path, known=known)


def test_the_page_is_whole_and_self_contained(result: Result) -> None:
    page = report_html(result)
    checker = read(page)
    assert {address[:22] for address in checker.addresses} == {"data:image/png;base64,"}
    assert not re.search(r"https?://|@import|url\(", page)


def test_the_page_has_edges_warnings_knowledge_and_card(result: Result) -> None:
    text = " ".join(" ".join(read(report_html(result)).text).split())
    for part in ("x0 → x1", "Warnings", "is unusual for the model", "x2 has no causes", "{x0} before {x4}",
                 "x2 → x3 does not", "Model card", "Untrained; for tests.", "Limits", "at this size"):  # fmt: skip
        assert part in text, part
    for warning in result.warnings:
        assert warning[1:30] in text


def test_the_report_names_its_data_command_and_variables(tmp_path: Path) -> None:
    model = save_tiny(tmp_path / "tiny.safetensors")
    table = np.random.default_rng(0).normal(size=(40, 3)).round(3).astype(str)
    table[:4, 1] = ""
    (tmp_path / "cells <1>.csv").write_text("a,b,c\n" + "\n".join(",".join(row) for row in table) + "\n")
    result = presage.discover(tmp_path / "cells <1>.csv", model=model)
    result.data["command"] = "presage discover 'cells <1>.csv'"
    page = report_html(result)
    text = " ".join(" ".join(read(page).text).split())
    assert "<title>cells &lt;1&gt;.csv: causal discovery" in page
    assert f"Presage {presage.__version__}, model tiny" in text
    assert "presage discover 'cells <1>.csv'" in text
    assert "b continuous 10.0 %" in text
    assert "a continuous none" in text
    assert "<details><summary>Model card" in page  # folded
    code = report_html(result, title="Simulated", code="import presage")
    assert "<h1>Simulated</h1>" in code
    assert "import presage" in code


def test_the_most_probable_edges_have_scatter_plots() -> None:
    data = presage.simulate("linear", d=5, n=30, seed=0)
    matrix = np.where(np.triu(np.ones((5, 5)), 1) > 0, 0.9, 0.0)
    shown = report_html(Result(unconstrained=matrix, names=data.names, excerpt=data))
    assert "Data of the most probable edges" in shown
    without = report_html(Result(unconstrained=matrix, names=data.names))
    assert "Data of the most probable edges" not in without
    figure = scatter_figure(data, [(0, 1, "first"), (2, 3, "second"), (0, 4, "third"), (1, 2, "fourth")])
    assert [axes.get_title() for axes in figure.axes[:4]] == ["first", "second", "third", "fourth"]
    points = np.concatenate([part.get_offsets() for part in figure.axes[1].collections])
    assert {tuple(row) for row in points} == {tuple(row) for row in data.x[:, [2, 3]]}


def test_hidden_causes_and_effects_are_reported() -> None:
    hidden = np.zeros((3, 3))
    hidden[0, 2] = hidden[2, 0] = 0.8
    effect = np.full((3, 3), np.nan)
    effect[0, 1] = -0.4
    matrix = np.array([[0.0, 0.9, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    result = Result(
        unconstrained=matrix, names=("a", "b", "c"), hidden_causes=hidden, effect=effect, effect_scale=abs(effect) / 9
    )
    text = " ".join(" ".join(read(report_html(result)).text).split())
    assert "a ↔ c 0.80" in text
    assert "-0.40" in text
    plain = " ".join(read(report_html(Result(unconstrained=matrix, names=("a", "b", "c")))).text)
    assert "Hidden common causes" not in plain


@pytest.mark.parametrize("d", [60, 150])
def test_many_variables_get_large_pictures_of_their_own(d: int) -> None:
    rng = np.random.default_rng(d)
    matrix = np.triu(rng.random((d, d)) < 2.0 / d, 1) * 0.9
    order = rng.permutation(d)
    result = Result(unconstrained=matrix[np.ix_(order, order)], names=tuple(f"gene{j}" for j in range(d)))
    page = report_html(result)
    read(page)
    assert 'alt="Graph of the edges above 0.5"' in page
    assert 'alt="Heat map of edge probabilities"' in page
    axes = heat_map_figure(result).axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(labels) == sorted(result.names)  # every variable is named
    place = [labels.index(name) for name in result.names]
    assert all(place[i] < place[j] for i, j in np.argwhere(result.matrix > 0.5))  # causes come first
    drawing = graph_figure(result).axes[0]
    linked = (result.matrix > 0.5).any(axis=0) | (result.matrix > 0.5).any(axis=1)
    assert {text.get_text() for text in drawing.texts} == {result.names[j] for j in np.flatnonzero(linked)}


def test_no_spreadsheet_reads_exported_names_as_formulas(tmp_path: Path) -> None:
    import pandas as pd

    names = ("=1+2", "@sum", "-b", "plain")
    Result(unconstrained=np.triu(np.full((4, 4), 0.8), 1), names=names).save(tmp_path)
    edges = pd.read_csv(tmp_path / "edges.csv")
    assert set(edges["source"]) | set(edges["target"]) == {"'=1+2", "'@sum", "'-b", "plain"}
    table = pd.read_csv(tmp_path / "probabilities.csv", index_col=0)
    assert list(table.columns) == list(table.index) == ["'=1+2", "'@sum", "'-b", "plain"]


def test_a_result_without_edges_and_warnings() -> None:
    page = report_html(Result(unconstrained=np.zeros((3, 3)), names=("a", "b", "c"), model="m"))
    text = " ".join(read(page).text)
    assert "No warnings" in text
    assert "There are none. The most probable edges are:" in text
    assert "not checked" in text


def test_names_cannot_inject_markup() -> None:
    names = ("<script>alert(1)</script>", '"><img src=x>', "b&c")
    matrix = np.array([[0.0, 0.9, 0.8], [0.7, 0.0, 0.9], [0.0, 0.0, 0.0]])
    page = report_html(Result(unconstrained=matrix, names=names, model="<b>", data_warnings=("<i>odd",)))
    assert "<script>" not in page
    assert "<img src=x>" not in page
    assert "<i>odd" not in page
    checker = read(page)
    assert any("b&c" in text for text in checker.text)


def test_long_lists_are_cut_and_cycles_reported() -> None:
    matrix = np.full((9, 9), 0.9)
    np.fill_diagonal(matrix, 0.0)
    text = " ".join(read(report_html(Result(unconstrained=matrix, names=tuple("abcdefghi"), model="m"))).text)
    assert "32 more in edges.csv" in text
    assert "(a proven optimum) leaves out 36 of these edges" in text


def test_markdown_is_rendered_with_tables_and_without_raw_html() -> None:
    page = str(markdown_html("# a\n\n| x | y |\n| - | - |\n| 1 | <b>2</b> |\n\n- item\n\n![p](http://h/p.png)\n"))
    read(page)
    assert "<h2>a</h2>" in page
    assert "<td>&lt;b&gt;2&lt;/b&gt;</td>" in page
    assert "<li>item</li>" in page
    assert "<img" not in page


def test_notebooks_show_summary_edges_and_picture(result: Result) -> None:
    page = result._repr_html_()
    checker = read(page)
    text = " ".join(" ".join(checker.text).split())
    assert "model tiny : 5 variables" in text
    assert "x0 → x1" in text
    assert [address[:22] for address in checker.addresses] == ["data:image/png;base64,"]


def test_the_page_is_saved(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path)
    read((tmp_path / "report.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["general", "scm", "linear", "rff", "grn"])
def test_every_bundled_model_states_its_pooled_calibration(name: str) -> None:
    bins = presage.load_model(name).card.calibration
    assert len(bins) >= 8
    assert sum(one.pairs for one in bins) > 10_000  # many datasets, not one
    assert all(0 <= one.probability <= 1 and 0 <= one.share <= 1 for one in bins)


def test_the_report_shows_the_calibration_of_the_model_and_not_of_the_data(result: Result) -> None:
    card = presage.load_model("linear").card
    measured = "How reliable are the model"
    assert measured in report_html(replace(result, card=card))
    without = {title: rows for title, rows in card.notes.items() if not title.startswith("calibration")}
    assert measured not in report_html(replace(result, card=replace(card, notes=without)))
    assert replace(card, notes={"calibration": "good"}).calibration == ()
    # The true graph of the data changes nothing: one dataset is too small to measure calibration.
    dataset = presage.load_example("linear")
    known = presage.discover(dataset, model="linear")
    reports = [report_html(known, dataset=data) for data in (dataset, replace(dataset, graph=None))]
    assert len({re.sub("<dt>date</dt><dd>.*?</dd>", "", report) for report in reports}) == 1
