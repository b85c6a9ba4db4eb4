"""Content generated from code and results when the site is built: list of models, model cards, benchmark tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def models() -> str:
    """A table of the bundled models."""
    import presage

    lines = ["| name | values | description |", "| --- | --- | --- |"]
    lines += [f"| `{row.name}` | {row.kind} | {row.about} |" for row in presage.models().itertuples(index=False)]
    return "\n".join(lines)


def cards() -> str:
    """The cards of the bundled models, as `presage card NAME` prints them."""
    import presage

    names = presage.models()["name"].tolist()
    # Headings go one level down, because the page has its own title.
    return "\n".join(re.sub(r"^#", "##", str(presage.load_model(name).card), flags=re.MULTILINE) for name in names)


def results() -> str:
    """The content of benchmarks/RESULTS.md."""
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    return re.sub(r"^#", "##", text, flags=re.MULTILINE)


def contributing() -> str:
    """CONTRIBUTING.md without its title."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n", 1)[1]
    return text.replace("`docs/simulate.md`", "[Simulated datasets](simulate.md)")


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the pictures of the results, with the same relative paths as in benchmarks/RESULTS.md."""
    from mkdocs.structure.files import File

    for picture in sorted((ROOT / "benchmarks" / "pictures").glob("*.png")):
        files.append(File.generated(config, f"pictures/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the markers of a page by generated content."""
    for mark, make in (
        ("<!-- models -->", models),
        ("<!-- cards -->", cards),
        ("<!-- results -->", results),
        ("<!-- contributing -->", contributing),
    ):
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    return markdown
