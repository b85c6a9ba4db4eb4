"""The out-of-distribution check: few false alarms, detection of other domains, plain JSON, independence of units."""

from __future__ import annotations

import json

import numpy as np
import pytest

import presage
from models_for_tests import summaries
from presage.errors import ModelFileError
from presage.ood.check import OODReport, compare, fit_reference
from presage.ood.summaries import LABELS, summarize
from presage.types import Dataset


def flagged_share(reference: dict, domain: str, size: int = 60, **sizes: int) -> float:
    batch = presage.simulate(domain, **{"d": 10, "n": 100, "n_interventional": 30, "seed": 5, "size": size, **sizes})
    return float(
        np.mean([compare(reference, Dataset(x=item.x, interventions=item.interventions)).is_ood for item in batch])
    )


def test_false_alarms_are_rare_and_detection_is_not() -> None:
    reference = summaries("linear")
    # 240 reference datasets set the level of 2.5 % loosely; 0.1 is three standard errors above 5 % for 60 datasets.
    assert flagged_share(reference, "linear") <= 0.1
    assert flagged_share(reference, "linear", n_interventional=0) <= 0.1
    assert flagged_share(reference, "rff-ood") >= 0.5
    assert flagged_share(reference, "grn", size=5) == 1.0


def test_the_report_names_what_is_outside_and_how_far() -> None:
    x = np.random.default_rng(0).standard_cauchy(size=(150, 8))
    report = compare(summaries("linear"), Dataset(x=x))
    assert report.is_ood
    first = report.findings[0]
    assert first.distance > 0
    assert not first.low <= first.value <= first.high
    assert any("kurtosis" in finding.name for finding in report.findings)
    text = report.sentence("lin")
    assert "'lin'" in text
    assert LABELS[first.name] in text
    stored = json.loads(json.dumps(report.to_json()))
    assert stored["is_ood"] is True
    assert OODReport.from_json(stored) == report


def test_the_reference_is_plain_json_and_reproducible() -> None:
    options = {"datasets": 60, "variables": (3, 8), "rows": (30, 60)}
    one, two = (fit_reference("linear", 3, **options) for _ in range(2))
    assert json.loads(json.dumps(one)) == one == two
    assert fit_reference("linear", 4, **options) != one


@pytest.mark.parametrize("kind", ["real", "counts"])
def test_summaries_do_not_depend_on_units_or_order(kind: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 5)) @ rng.normal(size=(5, 5)) if kind == "real" else rng.poisson(5.0, (100, 5))
    u = rng.random(x.shape) < 0.2
    base = summarize(Dataset(x=x, interventions=u, kind=kind))  # type: ignore[arg-type]
    assert all(np.isfinite(list(base.values())))
    rows, columns = rng.permutation(100), rng.permutation(5)
    grid = np.ix_(rows, columns)
    moved = summarize(Dataset(x=x[grid], interventions=u[grid], kind=kind))  # type: ignore[arg-type]
    for name, value in base.items():
        assert np.isclose(moved[name], value, atol=1e-5), name
    if kind == "real":
        scaled = summarize(Dataset(x=x * [1, 10, 100, 0.1, -3], interventions=u))
        for name, value in base.items():
            assert np.isclose(scaled[name], value, atol=1e-4), name


@pytest.mark.parametrize(
    "x",
    [np.zeros((5, 3)), np.ones((2, 1)), np.arange(6.0).reshape(6, 1), np.full((4, 2), np.nan), np.eye(3) * 1e300],
    ids=["zeros", "ones", "one column", "nothing", "huge"],
)
def test_degenerate_data_still_gets_a_finite_score(x: np.ndarray) -> None:
    assert np.isfinite(compare(summaries("linear"), Dataset(x=x)).score)


def test_large_tables_are_subsampled() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30_000, 3))
    assert summarize(Dataset(x=x)) == summarize(Dataset(x=x[np.unique(np.linspace(0, 29_999, 2000).astype(int))]))


def test_damaged_references_are_refused() -> None:
    dataset = Dataset(x=np.random.default_rng(0).normal(size=(50, 3)))
    for change in ({"version": 9}, {"names": None}, {"mixture": {}}, {"quantiles": [[1.0]]}):
        with pytest.raises(ModelFileError, match="summaries"):
            compare({**summaries("linear"), **change}, dataset)


def test_discover_warns_about_out_of_distribution_data(tmp_path) -> None:
    from models_for_tests import save_tiny

    model = presage.load_model(save_tiny(tmp_path / "lin.safetensors", with_summaries=True))
    usual = presage.simulate("linear", d=8, n=150, seed=11)
    shifted = np.random.default_rng(0).standard_cauchy(size=(150, 8))
    assert presage.discover(usual, model=model).ood is not None
    found = presage.discover(shifted, model=model)
    assert any("out of distribution for the model 'lin'" in warning for warning in found.warnings)
    assert found.ood is not None
    assert found.ood.score > presage.discover(usual, model=model).ood.score
