"""Pages that are made from the code and from results when the site is built: model cards, benchmark tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def cards() -> str:
    """The cards of the bundled models, as `presage card NAME` prints them."""
    import presage

    names = presage.models()["name"].tolist()
    if not names:
        return "No model is bundled in this version of the source; `presage train` makes one.\n"
    # Headings go one level down: the page has a title of its own.
    return "\n".join(re.sub(r"^#", "##", str(presage.load_model(name).card), flags=re.MULTILINE) for name in names)


def results() -> str:
    """benchmarks/RESULTS.md, or what to do to get it."""
    path = ROOT / "benchmarks" / "RESULTS.md"
    if not path.is_file():
        return "No results are stored in this version of the source; the commands below make them.\n"
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^#", "##", text, flags=re.MULTILINE)


def contributing() -> str:
    """CONTRIBUTING.md without its title."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n", 1)[1]
    return text.replace("`docs/simulate.md`", "[Simulated datasets](simulate.md)")


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """The pictures of the results, at the same place beside their page as beside benchmarks/RESULTS.md."""
    from mkdocs.structure.files import File

    for picture in sorted((ROOT / "benchmarks" / "pictures").glob("*.png")):
        files.append(File.generated(config, f"pictures/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in what is generated."""
    for mark, make in (
        ("<!-- cards -->", cards),
        ("<!-- results -->", results),
        ("<!-- contributing -->", contributing),
    ):
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    return markdown
