"""Redraw the figures of README and documentation: the bundled example, and the web page in a headless Chromium.

    python scripts/draw_docs.py

Needs the extras web and browser, and chromium on the path.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from headless import FLAGS

import presage
from presage.report.plots import figure_bytes

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


def main() -> None:
    """Write example.png, page-wide.png and page-narrow.png."""
    result = presage.discover(presage.load_example("rff"))
    (IMAGES / "example.png").write_bytes(figure_bytes(result.plot(), dpi=90))
    command = [sys.executable, "-u", "-m", "presage", "serve", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        take_screenshots(server.stdout.readline().split()[3])
    finally:
        server.terminate()
        server.wait(20)


def take_screenshots(address: str) -> None:
    """Use the page and take screenshots at widths of 1400 and 700 pixels."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(120_000)
        page.goto(address)
        page.get_by_text("Example", exact=True).first.click()
        page.click("#use-example")
        page.wait_for_selector("#preview table")
        page.click("#run:not([disabled])")
        page.wait_for_selector("#result:not([hidden])")
        page.wait_for_function("window.presageGraph && window.presageGraph.edges('.right').length > 0")
        page.evaluate("window.presageGraph.edges('.right')[0].emit('tap')")
        page.wait_for_selector("#scatter-place:not([hidden]) .legend")
        page.wait_for_timeout(2000)  # wait for the plots
        page.screenshot(
            path=IMAGES / "page-wide.png", clip={"x": 0, "y": 0, "width": 1400, "height": 1430}, full_page=True
        )
        page.set_viewport_size({"width": 700, "height": 1000})
        page.wait_for_timeout(2000)
        top = page.locator("#warnings").bounding_box()["y"] + page.evaluate("window.scrollY") - 12
        clip = {"x": 0, "y": top, "width": 700, "height": 1950}
        page.screenshot(path=IMAGES / "page-narrow.png", clip=clip, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
