"""The package uses the terms of its field: names that were replaced must not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SUFFIXES = (".html", ".ipynb", ".js", ".md", ".py")
FOUND = sorted(path for folder in ("src", "docs") for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES)
FILES = [*FOUND, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]

# Replaced term -> term to use. Only terms that have no other meaning in this package.
REPLACED = {
    r"foreign": "out of distribution",
    r"drawn_in|(?:is|are) drawn in(?: to|,)": "winsorized",
    r"outer_hits?|n_hits|hits": "outer_intervened, n_intervened",
    r"loosely held|held loosely|holds? them loosely": "soft interventions",
    r"targets (?:not )?told": "with / without intervention labels",
    r"crew|_hire|_hear|_dismiss|_?shelf": "WorkerPool, RingBuffer",
    r"take_over|goes on from": "warm_start, initialised from",
    r"whence|wherefrom|thereof|wherein": "a plain construction",
    r"what is none|said so|says so itself": "a plain construction",
    r"of the house|import floor|a floor (?:below|above)": "layer",
}


@pytest.mark.parametrize("pattern", REPLACED)
def test_replaced_terms_do_not_occur(pattern: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])", line, re.IGNORECASE)
    ]
    assert not found, f"write {REPLACED[pattern]!r} instead:\n" + "\n".join(found)


def test_the_search_covers_code_pages_and_templates() -> None:
    assert {path.suffix for path in FILES} >= {".py", ".md", ".html", ".js"}
    assert len(FILES) > 150
