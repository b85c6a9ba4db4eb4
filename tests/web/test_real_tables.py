"""The four tables as people have them, uploaded to the page: its answers and warnings are those of `discover`."""

from __future__ import annotations

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
def test_the_page_answers_like_discover(make: Callable[[Path], Case], tmp_path: Path) -> None:
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
    expected = presage.discover(case.path, **case.options)
    assert found.names == expected.names
    assert found.data["column_kinds"] == expected.data["column_kinds"]
    np.testing.assert_allclose(found.matrix, expected.matrix, atol=1e-6)
    for sentence in case.sentences:
        assert any(sentence in warning for warning in found.warnings), (sentence, found.warnings)
