"""Recorded results: csv files in, tables and pictures out; later runs replace what they measured again."""

import numpy as np
import pandas as pd
import pytest

from presage.baselines.run import Outcome
from presage.bench import engine, instances, tasks
from presage.bench.engine import RunOptions
from presage.bench.experiments import get_experiment
from presage.bench.instances import instance
from presage.bench.plan import Choice
from presage.bench.records import read_record
from presage.bench.results import write_results
from presage.bench.run import run_experiment
from presage.errors import ConfigError, DataError
from presage.types import Dataset


@pytest.fixture
def answers(monkeypatch):
    """Every method answers with the true graph, weakened by a factor that a test may change."""
    factor = {"value": 1.0}

    def execute(task, options):
        graph = np.asarray(instance(task).graph, dtype=float)
        return Outcome(
            status="ok",
            kind="probabilities",
            matrices=factor["value"] * graph[None],
            seconds=0.1,
            cpu_seconds=2.04,
            peak_memory=3e8,
        )

    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 5))
    fake = Dataset(x=x, names=tuple("abcde"), graph=np.triu(np.ones((5, 5), dtype=int), k=1))
    monkeypatch.setattr("presage.data.examples.load_sachs", lambda: fake)
    # Instances are drawn once per process; other tests put other data in this place.
    for cached in (instances._draw, instances._key):
        cached.cache_clear()
    monkeypatch.setattr(engine, "_execute", execute)
    monkeypatch.setattr(tasks, "model_fingerprint", lambda name: f"{name} {factor['value']}")
    yield factor
    for cached in (instances._draw, instances._key):
        cached.cache_clear()


def record(tmp_path, *methods, out="out", experiment="sachs"):
    run_experiment(
        get_experiment(experiment),
        tmp_path / out,
        choice=Choice(methods=methods, instances=1, columns=() if experiment == "sachs" else ("linear",)),
        options=RunOptions(),
        records=tmp_path / "records",
    )
    return pd.read_csv(tmp_path / "records" / experiment / "results.csv")


def test_results_are_written_from_records_alone(answers, tmp_path):
    with pytest.raises(ConfigError, match="no recorded results"):
        write_results(tmp_path / "records", tmp_path / "RESULTS.md")
    record(tmp_path, "ges", "presage:rff")
    text = write_results(tmp_path / "records", tmp_path / "report" / "RESULTS.md").read_text()
    assert "## sachs" in text
    assert "Our networks: 1 instance" in text
    assert "The longest answer took 2.0 s" in text
    assert "Limits of a run (wall clock): 3600 s" in text
    assert "No results are recorded of: table-30," in text
    assert "| GES | 1/1 | 0 / 35 |" in text
    pictures = {path.name for path in (tmp_path / "report" / "pictures").iterdir()}
    assert pictures == {"sachs.png", "illustration.png"}
    drawn = (tmp_path / "report" / "pictures" / "sachs.png").read_bytes()
    assert drawn == (tmp_path / "out" / "sachs" / "sachs.png").read_bytes()


def test_a_recorded_csv_has_metrics_and_provenance_of_every_run(answers, tmp_path):
    frame = record(tmp_path, "ges", "igsp")
    assert len(frame) == 2
    assert set(frame["method"]) == {"ges", "igsp"}
    for column in ("shd", "auprc", "cpu_seconds", "peak_memory", "finished", "machine", "time_limit", "clock", "key"):
        assert frame[column].notna().all()
    assert frame["key"].str.len().eq(64).all()


def test_a_later_run_replaces_its_own_rows_only(answers, tmp_path):
    record(tmp_path, "ges", "presage:rff")
    answers["value"] = 0.1  # below the threshold: no edges
    frame = record(tmp_path, "presage:rff", "pc")
    found = frame.set_index(["section", "row"])["edges"].to_dict()
    assert found == {
        ("observational", "ges"): 10,
        ("observational", "pc"): 0,
        ("observational", "presage:rff"): 0,
        ("interventional", "presage:rff"): 0,
    }
    kept = read_record(tmp_path / "records" / "sachs")
    edges = kept.extras["edges"]
    assert edges[(edges["row"] == "presage:rff")]["probability"].eq(0.1).all()
    assert edges[(edges["row"] == "ges")]["probability"].eq(1.0).all()
    assert (edges["row"] == "reference").sum() == 20  # ten in each section


def test_reading_and_writing_a_record_changes_nothing(answers, tmp_path):
    record(tmp_path, "ges", "presage:linear")
    read_record(tmp_path / "records" / "sachs").save(tmp_path / "copy")
    for name in ("results.csv", "edges.csv", "run.json"):
        assert (tmp_path / "copy" / name).read_bytes() == (tmp_path / "records" / "sachs" / name).read_bytes()


def test_a_smaller_version_is_not_recorded(answers, tmp_path):
    with pytest.raises(ConfigError, match="not recorded"):
        run_experiment(
            get_experiment("table-30"),
            tmp_path,
            choice=Choice(methods=("empty",), variables=5),
            options=RunOptions(),
            records=tmp_path / "records",
        )


def test_calibration_curves_are_recorded(answers, tmp_path):
    record(tmp_path, "presage", experiment="calibration")
    curves = pd.read_csv(tmp_path / "records" / "calibration" / "calibration.csv")
    assert set(curves["row"]) == {"presage"}
    assert len(curves) == 2 * 10  # two sections, ten bins
    assert curves.groupby("section")["count"].sum().eq(30 * 30).all()
    text = write_results(tmp_path / "records", tmp_path / "RESULTS.md").read_text()
    assert "(pictures/calibration.png)" in text


def test_damaged_records_are_named(answers, tmp_path):
    record(tmp_path, "ges")
    (tmp_path / "records" / "sachs" / "results.csv").unlink()
    with pytest.raises(DataError, match="holds no results of a benchmark"):
        read_record(tmp_path / "records" / "sachs")
