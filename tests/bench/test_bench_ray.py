"""The engine `ray` on a local cluster gives what processes give, and a killed run is continued."""

import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from presage.bench.engine import RunOptions
from presage.bench.experiments import get_experiment
from presage.bench.plan import Choice
from presage.bench.run import run_experiment

pytestmark = pytest.mark.slow
CHOICE = Choice(methods=("random", "igsp"), instances=2, variables=5, rows=60, columns=("linear",))


@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_results(tmp_path):
    pytest.importorskip("ray")
    frames = []
    for engine in ("processes", "ray"):
        run = run_experiment(
            get_experiment("table-30"), tmp_path / engine, choice=CHOICE, options=RunOptions(jobs=2, engine=engine)
        )
        assert run.executed == 4
        frames.append(run.frame.drop(columns=["seconds", "cpu_seconds"]))
    pd.testing.assert_frame_equal(*frames)
    tables = [(tmp_path / engine / "table-30" / "table.md").read_text() for engine in ("processes", "ray")]
    assert tables[0] == tables[1]


def test_a_run_killed_without_warning_is_continued(tmp_path):
    command = [sys.executable, "-m", "presage", "bench", "table-30", "--methods", "random,igsp", "--instances", "3"]
    command += ["-d", "5", "-n", "60", "--columns", "linear", "--out", str(tmp_path), "--json"]
    results = tmp_path / "cache" / "results"

    def done():
        return len([path for path in results.rglob("*.npz") if not path.name.startswith(".")])

    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while child.poll() is None and done() < 2:
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    before = done()
    assert 2 <= before < 6
    again = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert again["cached"] == before
    assert again["executed"] == 6 - before
