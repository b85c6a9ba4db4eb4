"""Screenshots of the page with tables of 12, 30, 60 and 150 variables: light and dark, 1440 and 700 pixels wide.

    python scripts/screenshot_page.py FOLDER [SIZE ...]

The tables are simulated, with one column of intervention targets; the smallest also has columns of text. Needs the
extras web and browser, and chromium on the path.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from headless import FLAGS

import presage

SIZES = (12, 30, 60, 150)
WIDTHS = (1440, 700)
THEMES = ("light", "dark")


def table(d: int) -> pd.DataFrame:
    """A simulated table of d variables."""
    simulated = presage.simulate("rff", d=d, n=400, n_interventional=100, seed=d)
    names = [f"gene{j:03d}" for j in range(d)]
    frame = pd.DataFrame(simulated.x.round(3), columns=names)
    frame["target"] = ["control" if not row.any() else names[int(np.argmax(row))] for row in simulated.interventions]
    if d == min(SIZES):
        rng = np.random.default_rng(d)
        frame.insert(0, "sample_id", rng.permutation(len(frame)) + 10_001)
        frame["site"] = rng.choice(["Bonn", "Graz", "Jena"], size=len(frame))
    return frame


def take(page: Any, path: Path, folder: Path) -> None:
    """Upload a table, run, choose the most probable edge; pictures of the upload and of the whole answer."""
    with page.expect_file_chooser() as chooser:
        page.click("#drop")
    chooser.value.set_files(path)
    page.locator("#preview h1", has_text=path.name).wait_for()
    page.wait_for_timeout(500)
    name = f"{path.stem}-{page.viewport_size['width']}-{page.evaluate('document.documentElement.dataset.theme')}"
    page.screenshot(path=folder / f"{name}-columns.png", full_page=True)
    page.click("#run:not([disabled])")
    page.locator("#answer-head h1", has_text=path.name).wait_for()
    page.wait_for_function("window.presageGraph && window.presageGraph.edges().length > 0")
    page.wait_for_timeout(1500)  # graph and plots are drawn
    page.screenshot(path=folder / f"{name}.png", full_page=True)
    page.locator("#edge-table tr[data-i]").first.click()
    page.wait_for_selector("#details.open #scatter .main-svg")
    page.evaluate("document.querySelector('.graph-box').scrollIntoView({ block: 'start' })")
    page.wait_for_timeout(1200)
    page.screenshot(path=folder / f"{name}-edge.png")
    wide = page.evaluate("document.documentElement.scrollWidth")
    print(f"wrote {name}.png" + (f"; the page is {wide} pixels wide" if wide > page.viewport_size["width"] else ""))


def main(folder: str, *sizes: str) -> None:
    """Write all screenshots to a folder."""
    from playwright.sync_api import sync_playwright

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    server = subprocess.Popen(
        [sys.executable, "-u", "-m", "presage", "serve", "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    address = server.stdout.readline().split()[3]
    try:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            for d in [int(size) for size in sizes] or SIZES:
                path = place / f"table{d}.csv"
                table(d).to_csv(path, index=False)
                for width in WIDTHS:
                    for theme in THEMES:
                        page = browser.new_page(
                            viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True
                        )
                        page.set_default_timeout(120_000)
                        page.goto(address)
                        page.wait_for_selector("#drop")
                        take(page, path, place)
                        page.close()
            browser.close()
    finally:
        server.terminate()
        server.wait(20)


if __name__ == "__main__":
    main(*sys.argv[1:])
