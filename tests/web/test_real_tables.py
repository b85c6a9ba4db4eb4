"""Four real-world tables through library, command line and page: the same answers and the same warnings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("dash", reason="the page needs the extra web")
pytest.importorskip("dash_cytoscape", reason="the page needs the extra web")

import presage
from page_for_tests import Here, Recorder, key, post_file, start_run
from presage.web.app import create_app
from presage.web.worker import answer
from tables_for_tests import CASES, Case


@pytest.mark.parametrize("make", CASES)
def test_library_command_line_and_page_agree(
    make: Callable[[Path], Case], tmp_path: Path, presage_cli: Callable[..., tuple[int, str, str]]
) -> None:
    case = make(tmp_path)
    recorder = Recorder()
    client = create_app(runner=recorder, reader=Here(), local=True).server.test_client()
    assert post_file(client, case.path.name, case.path.read_bytes(), key(1)) == {"ok": True}
    roles = dict.fromkeys(case.options.get("exclude", ()), "ignored")
    roles |= {name: " < ".join(levels) for name, levels in case.options.get("roles", {}).items()}
    if "environment" in case.options:
        roles[case.options["environment"]] = "environment"
    targets = case.options.get("interventions")
    assert start_run(client, key(1), f"column:{targets}" if targets else "none", "general", roles) is None
    found = answer(recorder.tasks[-1], lambda *what: None)
    known = presage.Knowledge(required=[(found.names[1], found.names[0])], roots=[found.names[1]])
    (tmp_path / "known.json").write_text(json.dumps(known.to_json()))
    shown = found.with_knowledge(known)  # as the page does
    expected = presage.discover(case.path, known=known, **case.options)
    code, out, _ = presage_cli("discover", case.path, "--known", tmp_path / "known.json", "--json", *case.flags)
    assert code == 0
    printed = json.loads(out)
    assert list(shown.names) == list(expected.names) == printed["names"]
    assert shown.data["column_kinds"] == expected.data["column_kinds"] == printed["data"]["column_kinds"]
    for matrix in (shown.matrix, printed["probabilities"]):
        np.testing.assert_allclose(matrix, expected.matrix, atol=1e-6)
    assert shown.warnings == expected.warnings == printed["warnings"]
    for sentence in case.sentences:
        assert any(sentence in warning for warning in expected.warnings), (sentence, expected.warnings)
