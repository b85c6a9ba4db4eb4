"""The page in a real browser, from an upload to the downloads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from headless import FLAGS

pytest.importorskip("dash", reason="the page needs the extra web")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: the extra browser")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine"),
]

WAIT = 120_000  # milliseconds; the machine may be busy


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    from models_for_tests import save_tiny

    model = save_tiny(tmp_path_factory.mktemp("model") / "tiny.safetensors")
    command = [sys.executable, "-m", "presage", "serve", "--port", "0", "--model", str(model), "--limit", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    line = process.stdout.readline()
    yield line.split()[3]
    process.terminate()
    process.wait(20)
    process.stdout.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, address) -> Iterator[sync_api.Page]:
    # Waiting for expressions needs eval, which the policy of the page forbids; one test below keeps the policy.
    page = browser.new_page(viewport={"width": 1440, "height": 900}, bypass_csp=True)
    page.set_default_timeout(WAIT)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else problems.append(r.url))
    page.goto(address)
    page.wait_for_selector("#drop")
    yield page
    page.close()
    assert problems == []  # no error in a script, and nothing asked of any other host


@pytest.fixture
def cells(tmp_path) -> Path:
    rng = np.random.default_rng(0)
    a = rng.normal(size=80)
    frame = pd.DataFrame({"a": a, "b": 2 * a + rng.normal(size=80), "c": rng.normal(size=80)})
    frame["target"] = ["a" if k >= 60 else "control" for k in range(80)]
    frame.to_csv(tmp_path / "cells.csv", index=False)
    return tmp_path / "cells.csv"


def upload(page: sync_api.Page, path: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.click("#drop")
    chooser.value.set_files(path)


def run(page: sync_api.Page, name: str = "") -> None:
    """Run, and wait for the answer about the data of this name."""
    page.click("#run:not([disabled])")
    page.wait_for_function(
        "name => !document.querySelector('#result').hidden && document.querySelector('#answer-head h1')"
        " && document.querySelector('#answer-head h1').innerText.includes(name)"
        " && !document.querySelector('#answer-head .example-note')",
        arg=name,
    )
    page.wait_for_function("window.presageGraph && window.presageGraph.nodes().length > 0")
    page.wait_for_timeout(400)  # the graph is fitted and marked after it is drawn


def analyse(page: sync_api.Page, path: Path) -> None:
    upload(page, path)
    page.wait_for_selector("#preview table")
    run(page, path.name)


def example(page: sync_api.Page) -> None:
    page.get_by_text("Example", exact=True).first.click()
    page.click("#use-example")
    page.wait_for_selector("#preview table")


def table_file(folder: Path, d: int, edges: int = 0) -> Path:
    """A csv of d variables."""
    x = np.random.default_rng(d).normal(size=(60, d))
    path = folder / f"table{d}.csv"
    pd.DataFrame(x, columns=[f"gene{j}" for j in range(d)]).to_csv(path, index=False)
    return path


def pick(page: sync_api.Page, source: int, target: int) -> None:
    """Click an edge of the graph with the mouse, in the middle of its curve."""
    place = page.evaluate(
        """([i, j]) => {
          const e = window.presageGraph.$(`#e${i}-${j}`), m = e.renderedMidpoint();
          const box = window.presageGraph.container().getBoundingClientRect();
          return [box.x + m.x, box.y + m.y];
        }""",
        [source, target],
    )
    page.mouse.click(*place)


def edges(page: sync_api.Page) -> int:
    return page.evaluate("window.presageGraph.edges().length")


def taken(page: sync_api.Page, kind: str, folder: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name=kind, exact=True).click()
    download.value.save_as(folder / kind)
    return folder / kind


def test_from_an_upload_to_the_downloads(page, cells, tmp_path) -> None:
    upload(page, cells)
    page.wait_for_selector("#preview table")
    assert "80 rows, 3 columns of numbers" in page.inner_text("#preview")
    page.get_by_text("Column target").wait_for()
    run(page, "cells.csv")
    # "The 6 most probable" shows all ordered pairs of three variables, then the threshold takes over again.
    page.fill("#top", "6")
    page.wait_for_function("window.presageGraph.edges().length === 6")
    # Forbid the edge that is clicked; it disappears at once.
    page.wait_for_timeout(500)
    page.locator("#graph-place").scroll_into_view_if_needed()
    pick(page, 0, 1)
    page.wait_for_selector("#scatter-place:not([hidden])")
    assert page.inner_text("#chosen-title") == "a → b"
    page.wait_for_function("document.querySelector('#scatter').innerText.includes('a intervened on (20)')")
    page.click("#forbid")
    page.get_by_text("a → b does not exist").wait_for()
    page.wait_for_function("window.presageGraph.$('#e0-1').length === 0")
    # A tier by dragging.
    chip, tier = page.locator(".chip", has_text="c").first, page.locator(".tier").last
    chip.scroll_into_view_if_needed()
    start, end = chip.bounding_box(), tier.bounding_box()
    page.mouse.move(start["x"] + 4, start["y"] + 4)
    page.mouse.down()
    page.mouse.move(end["x"] + 30, end["y"] + 60, steps=4)
    page.mouse.up()
    page.wait_for_function("document.querySelectorAll('.tier').length === 3")
    page.wait_for_function("document.querySelector('#lines').innerText.includes('forbidden')")
    # Hovering over the heat map marks the nodes of the edge in the graph.
    page.locator("#heat").scroll_into_view_if_needed()
    page.locator("#heat .nsewdrag").first.hover(position={"x": 300, "y": 60})
    page.wait_for_function("window.presageGraph.elements('.pointed').length >= 2")
    lines = page.inner_text("#lines")
    assert "interventions='target'" in lines
    assert "tiers=[['c']]" in lines
    report = taken(page, "report.html", tmp_path).read_text()
    assert "a → b does not exist" in report
    found = pd.read_csv(taken(page, "edges.csv", tmp_path))
    assert not ((found["source"] == "a") & (found["target"] == "b")).any()
    graph = nx.read_graphml(taken(page, "graph.graphml", tmp_path))
    assert set(graph.nodes) == {"a", "b", "c"}
    assert not graph.has_edge("a", "b")


def test_the_page_works_under_its_own_policy(browser, address, cells) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(WAIT)
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if "Policy" in message.text else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(address)
    page.wait_for_selector("#drop")
    upload(page, cells)
    page.wait_for_selector("#preview table")
    page.click("#run:not([disabled])")
    page.locator("#answer-head h1", has_text="cells.csv").wait_for()
    page.wait_for_selector("#heat .main-svg")
    page.wait_for_selector("#graph canvas")
    page.fill("#top", "6")
    page.locator("#edge-table tr[data-i]").nth(5).click()
    page.wait_for_selector("#details.open #scatter .main-svg")
    page.close()
    assert problems == []


def test_example_truth_and_threshold(page) -> None:
    example(page)
    run(page)
    page.wait_for_selector("#scores table")
    assert "AUPRC" in page.inner_text("#scores")
    page.get_by_text("colour by truth").click()
    page.wait_for_function(
        "!window.presageGraph.edges('.missed').length && !window.presageGraph.edges('.right').length"
    )
    before, text = edges(page), page.inner_text("#threshold-text")
    page.locator("#threshold [role=slider]").press("End")
    page.wait_for_function("before => document.querySelector('#threshold-text').innerText !== before", arg=text)
    page.wait_for_function("before => window.presageGraph.edges().length <= before", arg=before)
    assert page.inner_text("#threshold-text") == "0.99"
    assert page.evaluate("window.presageGraph.edges().every(e => e.data('p') > 0.98)")
    page.click("#use-example")  # new data: the old answer goes
    page.wait_for_selector("#result", state="hidden")
    assert page.is_visible("#preview table")


def test_bad_and_large_files_are_sentences(page, tmp_path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2,3\n4,5,6\n")
    upload(page, bad)
    page.wait_for_function("document.querySelector('#data-error').innerText.includes('bad.csv')")
    assert "Traceback" not in page.inner_text("body")
    large = tmp_path / "large.csv"
    large.write_bytes(b"1,2\n" * 300_000)
    upload(page, large)
    page.wait_for_function("document.querySelector('#data-error').innerText.includes('limit is 1 MB')")
    assert page.is_disabled("#run")


def test_an_empty_page_shows_an_example_answer_to_click_through(page) -> None:
    page.wait_for_selector("#result:not([hidden])")
    assert "example answer" in page.inner_text("#answer-head")
    assert page.is_disabled("#run")
    page.locator("#edge-table tr[data-i], .list button").first.click()
    page.wait_for_selector("#details.open #scatter .main-svg")
    example(page)
    page.wait_for_selector("#result", state="hidden")  # data of the user's own: the example goes


def test_the_answer_says_what_was_run_and_when_settings_have_changed(page, cells) -> None:
    analyse(page, cells)
    head = page.inner_text("#answer-head")
    for part in ("cells.csv", "80", "3", "tiny", " s"):
        assert part in head
    assert page.is_hidden("#stale")
    page.click("#counts")
    page.get_by_text("read as real values").click()
    page.wait_for_selector(".dash-dropdown-content", state="hidden")  # the list closes after a choice
    page.wait_for_selector("#stale:not([hidden])")
    page.click("#run-again")
    page.wait_for_selector("#stale", state="hidden")
    page.wait_for_function("document.querySelector('#lines').innerText.includes('counts=False')")


def test_after_a_refused_file_nothing_can_be_run_and_the_reason_is_beside_the_button(page, cells, tmp_path) -> None:
    analyse(page, cells)
    bad = tmp_path / "bad.csv"
    bad.write_bytes(b"\x00\x01")
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.evaluate("document.querySelector('#drop').scrollIntoView = () => {}")
    upload(page, bad)
    page.wait_for_function("document.querySelector('#data-error').innerText.includes('bad.csv')")
    page.wait_for_selector("#result", state="hidden")
    assert page.is_disabled("#run")
    box = page.locator("#data-error").bounding_box()
    assert 0 <= box["y"] <= 900 - box["height"]
    assert box["y"] - page.locator("#drop").bounding_box()["y"] < 300


def test_loading_the_page_again_brings_the_last_state_back(page, cells) -> None:
    analyse(page, cells)
    page.fill("#top", "6")
    page.wait_for_function("window.presageGraph.edges().length === 6")
    page.locator("#edge-table tr[data-i]").first.click()
    page.wait_for_selector("#details.open")
    page.click("#require")
    page.locator("#known-list .tag").wait_for()
    fact = page.inner_text("#known-list .tag")
    page.reload()
    page.wait_for_function("(h => h && h.innerText === 'cells.csv')(document.querySelector('#answer-head h1'))")
    page.locator("#known-list .tag").wait_for()
    assert page.inner_text("#known-list .tag") == fact
    assert not page.is_disabled("#run")
    assert "Column target" in page.inner_text("#interventions")


def test_the_first_click_counts_after_the_page_has_moved(page, cells) -> None:
    """The graph library remembers its place on the screen; a page that grows above it must not mislead it."""
    analyse(page, cells)
    page.fill("#top", "6")
    page.wait_for_function("window.presageGraph.edges().length === 6")
    page.wait_for_timeout(500)
    page.evaluate("document.documentElement.style.overflowAnchor = 'none'")  # no scrolling that would undo the move
    page.evaluate("window.scrollBy(0, document.querySelector('#graph-place').getBoundingClientRect().y - 60)")
    box = page.locator("#graph-place").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)  # the library takes note of its place
    page.mouse.move(5, 5)
    page.evaluate("document.querySelector('#warnings').style.paddingBottom = '130px'")
    pick(page, 0, 2)
    page.wait_for_function("document.querySelector('#chosen-title').innerText === 'a → c'")


def test_the_panel_of_an_edge_is_beside_the_graph(page) -> None:
    example(page)
    run(page)
    page.fill("#top", "12")
    page.wait_for_function("window.presageGraph.edges().length >= 12")
    page.locator("#graph-place").scroll_into_view_if_needed()
    page.locator("#edge-table tr[data-i]").first.click()
    page.wait_for_selector("#details.open #scatter .main-svg")
    graph, panel = page.locator("#graph-place").bounding_box(), page.locator("#details").bounding_box()
    assert panel["x"] >= graph["x"] + graph["width"]
    assert panel["y"] < 900
    assert page.locator("#details .bars > div").count() >= 2
    # The same edge is marked in graph, heat map and table.
    page.wait_for_function("window.presageGraph.edges('.chosen').length === 1")
    page.wait_for_function("document.querySelectorAll('tr.picked').length === 1")
    page.wait_for_function(
        "document.querySelector('#heat .js-plotly-plot').layout.shapes.some(s => s.name === 'chosen')"
    )
    title = page.inner_text("#chosen-title")
    page.click("#turn")
    reverse = " → ".join(reversed(title.split(" → ")))
    page.wait_for_function("title => document.querySelector('#chosen-title').innerText === title", arg=reverse)
    page.click("#unchoose")
    page.wait_for_selector("#details:not(.open)")
    # A cell of the heat map opens it, too.
    page.locator("#heat").scroll_into_view_if_needed()
    page.locator("#heat .nsewdrag").first.click(position={"x": 300, "y": 40})
    page.wait_for_selector("#details.open")


def covered_edges(page: sync_api.Page) -> list[int]:
    """Number of edges that pass behind a box of another variable, and of pairs of boxes that overlap."""
    return page.evaluate(
        """() => {
          const graph = window.presageGraph, nodes = graph.nodes().toArray();
          const inside = (q, n, m) => Math.abs(q.x - n.position().x) < n.width() / 2 - m
            && Math.abs(q.y - n.position().y) < n.height() / 2 - m;
          const behind = graph.edges().filter(e => {
            const controls = e.controlPoints(), last = controls.length - 1;
            const half = (p, q) => ({ x: (p.x + q.x) / 2, y: (p.y + q.y) / 2 });
            const others = graph.nodes().not(e.connectedNodes());
            return controls.some((c, k) => {
              const a = k ? half(controls[k - 1], c) : e.source().position();
              const b = k < last ? half(c, controls[k + 1]) : e.target().position();
              for (let t = 0; t <= 1; t += 0.01) {
                const at = (f) => (1 - t) ** 2 * a[f] + 2 * t * (1 - t) * c[f] + t * t * b[f];
                const q = { x: at("x"), y: at("y") };
                if (others.some(n => inside(q, n, 0.5))) return true;
              }
              return false;
            });
          });
          const overlaps = nodes.filter((n, k) => nodes.slice(k + 1).some(m =>
            Math.abs(n.position().x - m.position().x) < (n.width() + m.width()) / 2
            && Math.abs(n.position().y - m.position().y) < (n.height() + m.height()) / 2));
          return [behind.length, overlaps.length];
        }"""
    )


def test_edges_are_drawn_around_other_variables(page) -> None:
    example(page)
    run(page)
    page.fill("#top", "16")
    page.click("#tidy")
    page.wait_for_function("window.presageGraph.edges().length >= 16")
    page.wait_for_timeout(600)
    assert covered_edges(page) == [0, 0]


@pytest.mark.parametrize("d", [60, 150])
def test_large_graphs_have_no_edge_behind_a_box_and_no_overlapping_boxes(page, tmp_path, d) -> None:
    upload(page, table_file(tmp_path, d))
    page.locator("#preview h1", has_text=f"table{d}.csv").wait_for()
    run(page, f"table{d}.csv")
    page.fill("#top", str(3 * d // 2))
    page.wait_for_function("k => document.querySelector('#count').innerText.includes(`the ${k} most`)", arg=3 * d // 2)
    page.click("#tidy")
    page.wait_for_timeout(3000)  # the variables are placed again
    assert edges(page) >= 3 * d // 2
    assert covered_edges(page) == [0, 0]


def test_the_table_is_searched_and_sorted(page) -> None:
    example(page)
    run(page)
    page.fill("#top", "30")
    page.wait_for_function("document.querySelectorAll('#edge-table tbody tr').length === 30")
    causes = "[...document.querySelectorAll('#edge-table tbody tr')].map(r => r.cells[0].innerText)"
    page.locator("#edge-table button", has_text="cause").first.click()
    page.wait_for_function(f"(c => JSON.stringify(c) === JSON.stringify([...c].sort()))({causes})")
    page.fill("#table-search", "x3 -> ")
    page.wait_for_function(f"{causes}.length > 0 && {causes}.every(name => name === 'x3')")
    page.fill("#table-search", "nothing like this")
    page.get_by_text("No edges to list").wait_for()


def test_a_variable_is_found_among_many_and_the_rest_is_faded(page, tmp_path) -> None:
    upload(page, table_file(tmp_path, 60))
    page.wait_for_selector("#preview table")
    run(page, "table60.csv")
    page.fill("#top", "70")
    page.wait_for_function("window.presageGraph.edges().length === 70")
    page.wait_for_function("document.querySelector('#heat .js-plotly-plot').data[0].x.length === 60")
    page.click("#tidy")
    page.wait_for_timeout(800)
    overlaps = page.evaluate(
        """() => { const boxes = window.presageGraph.nodes().map(n => n.boundingBox({ includeLabels: false }));
          let count = 0;
          boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => {
            if (a.x1 < b.x2 - 1 && b.x1 < a.x2 - 1 && a.y1 < b.y2 - 1 && b.y1 < a.y2 - 1) count += 1; }));
          return count; }"""
    )
    assert overlaps == 0
    busy = page.evaluate("window.presageGraph.nodes().sort((a, b) => b.degree() - a.degree())[0].data('name')")
    page.click("#focus")
    page.keyboard.type(busy)
    page.get_by_role("option", name=busy, exact=True).first.click()
    page.wait_for_function("window.presageGraph.nodes('.faded').length > 0")
    near = page.evaluate("window.presageGraph.nodes().not('.faded').length")
    page.wait_for_function("n => document.querySelector('#heat .js-plotly-plot').data[0].x.length === n", arg=near)
    assert "of 70" in page.inner_text("#table-count")
    page.click("#fit")
    page.wait_for_function("window.presageGraph.nodes('.faded').length === 0")


def test_the_card_is_a_dialog_that_closes(page) -> None:
    page.click("#show-card")
    page.wait_for_selector("dialog[open]")
    assert "Untrained; for tests." in page.inner_text("#card")
    assert page.locator("dialog").bounding_box()["width"] > 600
    page.click("#hide-card")
    page.wait_for_selector("dialog:not([open])", state="attached")
    page.click("#show-card")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_function("!document.querySelector('dialog').open")


def test_models_say_what_they_are_for_and_which_is_recommended(page, tmp_path) -> None:
    counts = tmp_path / "counts.csv"
    values = np.random.default_rng(0).poisson(20.0, size=(60, 3))
    pd.DataFrame(values, columns=["g1", "g2", "g3"]).to_csv(counts, index=False)
    assert "for real-valued tables" in page.inner_text("#model")
    upload(page, counts)
    page.wait_for_selector("#use-recommended")
    assert "for counts" in page.inner_text("#use-recommended")
    page.click("#use-recommended")
    page.get_by_text("Recommended for this table.").wait_for()
    assert "for counts" in page.inner_text("#model")


def test_dark_colours_by_preference_and_by_button(browser, address) -> None:
    page = browser.new_page(color_scheme="dark", bypass_csp=True)
    page.set_default_timeout(WAIT)
    page.goto(address)
    page.wait_for_selector("#result:not([hidden])")

    def lightness() -> float:
        colour = page.evaluate("getComputedStyle(document.querySelector('.box')).backgroundColor")
        return sum(int(part) for part in colour.strip("rgb()").split(","))

    assert lightness() < 200
    page.wait_for_function("window.presageGraph && window.presageGraph.nodes().length > 0")
    ink = "window.presageGraph.nodes()[0].style('color')"
    page.wait_for_function(f"{ink}.match(/\\d+/g).reduce((s, k) => s + Number(k), 0) > 500")
    page.click("#theme-button")
    page.wait_for_function(f"{ink}.match(/\\d+/g).reduce((s, k) => s + Number(k), 0) < 300")
    assert lightness() > 700
    page.reload()
    page.wait_for_selector("#result:not([hidden])")
    assert lightness() > 700  # the choice is remembered
    page.close()


def test_everything_can_be_reached_with_the_keyboard(page, cells) -> None:
    analyse(page, cells)
    page.fill("#top", "6")
    page.wait_for_function("document.querySelectorAll('#edge-table tbody tr').length === 6")
    page.focus("#graph-place")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#details.open")
    first = page.inner_text("#chosen-title")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("before => document.querySelector('#chosen-title').innerText !== before", arg=first)
    page.keyboard.press("Escape")
    page.wait_for_selector("#details:not(.open)")
    page.locator("#edge-table tbody tr").nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#details.open")
    page.locator(".chip", has_text="c").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelectorAll('.tier').length === 3")
    page.locator("#bring [role=tab]").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector("#use-example")


def test_sliders_of_a_simulation_show_their_values(page) -> None:
    page.get_by_text("Simulate", exact=True).first.click()
    page.wait_for_selector("#use-simulation")
    assert [page.locator(f".slider:has(#{name}) input").first.input_value() for name in ("sim-d", "sim-n")] == [
        "12",
        "400",
    ]


def role_of(page: sync_api.Page, column: str) -> str:
    return page.locator(f"select[data-column={column}]").input_value()


def test_roles_of_columns_are_shown_and_changed_before_a_run(page, cells, tmp_path) -> None:
    frame = pd.read_csv(cells)
    frame["site"] = np.resize(["Bonn", "Graz", "Jena"], len(frame))
    frame["batch"] = np.resize(["first", "second", "third", "fourth"], len(frame))
    frame["sample_id"] = np.arange(len(frame)) + 501
    path = tmp_path / "roles.csv"
    frame.to_csv(path, index=False)
    upload(page, path)
    page.wait_for_function("document.querySelector('#column-summary').innerText.includes('5 variables')")
    assert [role_of(page, name) for name in ("a", "site", "target", "sample_id")] == [
        "continuous",
        "nominal",
        "intervention",
        "ignored",
    ]
    assert "it identifies rows" in page.inner_text("tr:has(select[data-column=sample_id])")
    # A role that is impossible is a sentence beside the button; nothing is run.
    page.select_option("select[data-column=site]", "binary")
    page.wait_for_selector("tr.changed select[data-column=site]")
    page.click("#run:not([disabled])")
    page.wait_for_function("document.querySelector('#run-error').innerText.includes('has 3 levels')")
    box, button = page.locator("#run-error").bounding_box(), page.locator("#run").bounding_box()
    assert 0 <= box["y"] - button["y"] < 120
    # Levels of an ordinal column are put in order; the column of interventions is the one of the drop-down.
    page.select_option("select[data-column=site]", "ordinal")
    page.fill(".levels input", "Jena < Graz < Bonn")
    page.press(".levels input", "Enter")
    page.select_option("select[data-column=batch]", "environment")
    page.select_option("select[data-column=c]", "ignored")
    page.select_option("select[data-column=target]", "ignored")
    page.get_by_text("No interventions").wait_for()
    page.select_option("select[data-column=target]", "intervention")
    page.get_by_text("Column target").wait_for()
    run(page, "roles.csv")
    lines = page.inner_text("#lines")
    for part in ("interventions='target'", "'site': 'Jena < Graz < Bonn'", "'batch': 'environment'", "'c': 'ignored'"):
        assert part in lines
    page.select_option("select[data-column=c]", "continuous")
    page.wait_for_selector("#stale:not([hidden])")
    page.reload()
    page.wait_for_function("(h => h && h.innerText === 'roles.csv')(document.querySelector('#answer-head h1'))")
    page.wait_for_selector("tr.changed select[data-column=batch]")
    assert [role_of(page, name) for name in ("site", "batch", "c")] == ["ordinal", "environment", "continuous"]
    upload(page, cells)  # other data: other columns
    page.locator("#preview h1", has_text="cells.csv").wait_for()
    page.wait_for_function("document.querySelector('#column-summary').innerText.startsWith('3 variables')")


def test_stability_and_experiments_are_shown_when_asked_for(page, cells) -> None:
    upload(page, cells)
    page.wait_for_selector("#preview table")
    page.click("#stability label")
    run(page, "cells.csv")
    page.fill("#top", "6")
    page.wait_for_function("document.querySelectorAll('#edge-table tbody tr').length === 6")
    assert page.locator("#edge-table td", has_text="±").count() == 6
    assert "bootstrap=20" in page.inner_text("#lines")
    page.click("#suggest")
    page.wait_for_function("document.querySelector('#experiments').innerText.trim() !== ''")
    found = page.locator("#experiments button")
    assert "a" not in found.all_inner_texts()  # intervened on already
    if found.count():
        name = found.first.inner_text()
        found.first.click()
        page.wait_for_function("name => document.querySelector('#chosen-title').innerText === name", arg=name)


def test_soft_interventions_can_be_chosen_where_there_are_targets(page, cells) -> None:
    assert page.is_hidden("#soft")  # no data, no interventions
    upload(page, cells)
    page.get_by_text("Column target").wait_for()
    page.wait_for_selector("#soft label")
    page.click("#soft label")
    page.click("#run:not([disabled])")  # the tiny model was trained with hard interventions only
    page.wait_for_function("document.querySelector('#run-error').innerText.includes('soft interventions')")
    page.evaluate("window.dash_clientside.set_props('model', { value: 'general' })")
    page.wait_for_timeout(500)
    run(page, "cells.csv")
    assert "'kind': 'soft'" in page.inner_text("#lines")
    page.click("#soft label")
    page.wait_for_selector("#stale:not([hidden])")


def test_the_panel_states_the_total_effect(page, cells) -> None:
    analyse(page, cells)
    page.fill("#top", "6")
    page.locator("#edge-table tr[data-i]").first.click()
    page.wait_for_function("document.querySelector('#total-effect').innerText.includes('Total effect')")
    assert "% interval" in page.inner_text("#total-effect").replace(" %", "%")
    page.click("#unchoose")
    page.wait_for_function("document.querySelector('#total-effect').innerText === ''")


def test_zoom_keeps_the_pace_of_the_library(page) -> None:
    page.wait_for_selector("#result:not([hidden])")
    page.wait_for_function("window.presageGraph && window.presageGraph.nodes().length > 0")
    assert page.evaluate("window.presageGraph._private.options.wheelSensitivity ?? 1") == 1
    assert page.evaluate("[window.presageGraph.minZoom(), window.presageGraph.maxZoom()]") == [0.1, 3]


def test_the_legend_and_the_diagonal_say_what_is_drawn(page) -> None:
    page.wait_for_selector("#result:not([hidden])")
    page.wait_for_function("document.querySelector('#legend').innerText.includes('probable (wider)')")
    for part in ("right", "extra", "missed", "no edge shown"):
        assert part in page.inner_text("#legend")
    page.wait_for_selector("#heat .main-svg")
    diagonal = "(p => p.data[0].z.every((row, k) => row[k] === null))(document.querySelector('#heat .js-plotly-plot'))"
    assert page.evaluate(diagonal)  # no probability, hence no colour of one


def test_cancel_works_and_a_second_page_does_not_wait(browser, page, address) -> None:
    page.get_by_text("Example", exact=True).first.click()
    page.click("#use-example")
    page.wait_for_selector("#preview table")
    other = browser.new_page()
    other.set_default_timeout(WAIT)
    page.click("#run:not([disabled])")
    page.wait_for_selector("#progress:not([hidden])")
    other.goto(address)
    other.wait_for_selector("#drop")
    assert other.is_disabled("#run")  # a session of its own, without data
    other.close()
    if page.is_visible("#cancel"):
        page.click("#cancel", force=True)
    page.wait_for_selector("#progress", state="hidden")
    assert "cancelled" in page.inner_text("#run-error") or page.is_visible("#result")


@pytest.mark.parametrize("width", [1440, 700])
def test_nothing_is_wider_than_the_window(page, width) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    example(page)
    run(page)
    page.fill("#top", "5")
    page.locator("#edge-table tr[data-i]").first.click()
    page.wait_for_selector("#details.open #scatter .main-svg")
    panel = page.locator("#details").bounding_box()
    assert panel["y"] < 900 - 200  # in view, also on a narrow screen
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#heat").bounding_box()["height"] >= 400
