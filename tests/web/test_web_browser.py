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
    page = browser.new_page(viewport={"width": 1400, "height": 900})
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


def run(page: sync_api.Page) -> None:
    page.click("#run:not([disabled])")
    page.wait_for_selector("#result:not([hidden])")
    page.wait_for_function("window.presageGraph && window.presageGraph.nodes().length > 0")


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
    run(page)
    # "The 6 most probable" shows all ordered pairs of three variables, then the threshold takes over again.
    page.fill("#top", "6")
    page.wait_for_function("window.presageGraph.edges().length === 6")
    # Forbid the edge that is clicked; it disappears at once.
    page.evaluate("window.presageGraph.$('#e0-1').emit('tap')")
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
    page.locator("#heat .nsewdrag").first.hover(position={"x": 150, "y": 60})
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


def test_example_truth_and_threshold(page) -> None:
    page.get_by_text("Example", exact=True).first.click()
    page.click("#use-example")
    page.wait_for_selector("#preview table")
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
    page.wait_for_function("document.querySelector('#error').innerText.includes('bad.csv')")
    assert "Traceback" not in page.inner_text("body")
    large = tmp_path / "large.csv"
    large.write_bytes(b"1,2\n" * 300_000)
    upload(page, large)
    page.wait_for_function("document.querySelector('#error').innerText.includes('limit is 1 MB')")
    assert page.is_disabled("#run")


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
    assert other.is_hidden("#result")
    other.close()
    if page.is_visible("#cancel"):
        page.click("#cancel", force=True)
    page.wait_for_selector("#progress", state="hidden")
    assert "cancelled" in page.inner_text("#error") or page.is_visible("#result")


@pytest.mark.parametrize("width", [1400, 700])
def test_nothing_is_wider_than_the_window(page, width) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.get_by_text("Example", exact=True).first.click()
    page.click("#use-example")
    page.wait_for_selector("#preview table")
    run(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#heat").bounding_box()["height"] > 400
