"""The out-of-distribution check: few false alarms, alarms where accuracy suffers, plain JSON, independence of units."""

from __future__ import annotations

import json

import numpy as np
import pytest

import presage
from models_for_tests import summaries
from presage.errors import ModelFileError
from presage.inference.hub import load_model
from presage.ood.check import OODReport, compare, fit_reference, measure_shifts
from presage.ood.shifts import COUNT_SHIFTS, SHIFTS
from presage.ood.summaries import LABELS, summarize
from presage.training.predicting import predictor
from presage.types import Dataset


def check(dataset: Dataset, domain: str = "linear") -> OODReport:
    probabilities = predictor(load_model(domain).network)(dataset)
    return compare(summaries(domain), summarize(dataset, 200).with_prediction(probabilities))


@pytest.mark.parametrize("digits", [1, 2, 3, 4])
def test_usual_and_rounded_datasets_are_rarely_flagged(digits: int) -> None:
    batch = presage.simulate("linear", d=10, n=150, n_interventional=40, seed=5, size=30)
    rounded = [SHIFTS[f"rounded to {digits} digits"](data, np.random.default_rng(0)) for data in batch]
    # 4 of 30: four standard errors above 2.5 % for a reference of 160 datasets.
    assert sum(check(data).is_ood for data in batch) <= 4
    if digits > 1:  # a single digit does cost accuracy
        assert sum(check(data).is_ood for data in rounded) <= 4


def test_more_rows_than_in_training_are_not_unusual() -> None:
    report = check(presage.simulate("linear", d=8, n=3000, seed=3))
    assert not report.is_ood
    assert report.subsampled


def test_one_binary_column_is_not_unusual() -> None:
    flagged = 0
    for data in presage.simulate("linear", d=10, n=150, seed=6, size=30):
        x = data.x.copy()
        x[:, 3] = x[:, 3] > np.median(x[:, 3])
        flagged += check(Dataset(x=x)).is_ood
    assert flagged <= 4  # as for rounded datasets above


def test_the_score_follows_the_loss_of_accuracy() -> None:
    predict = predictor(load_model("linear").network)
    shifted = measure_shifts("linear", predict, datasets=6, variables=(3, 15), rows=(40, 200), number=5)
    scores = np.array([compare(summaries("linear"), item.summary).score for item in shifted])
    assert ((scores >= 0) & (scores <= 1)).all()
    losses = np.array([item.loss for item in shifted])
    names = np.array([item.shift for item in shifted])
    means = np.array([(losses[names == name].mean(), scores[names == name].mean()) for name in SHIFTS])
    assert np.corrcoef(means.T)[0, 1] > 0.4


def test_the_report_names_what_is_unusual_and_what_it_costs() -> None:
    x = np.random.default_rng(0).standard_cauchy(size=(150, 8)) * (np.random.default_rng(1).random((150, 8)) < 0.5)
    report = check(Dataset(x=x))
    assert report.findings
    first = report.findings[0]
    assert first.loss > 0
    assert not first.low <= first.value <= first.high
    text = report.sentence("lin")
    assert "'lin'" in text
    assert LABELS[first.name] in text
    assert f"lose about {report.score:.1f} AUPRC" in text
    assert OODReport.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_the_reference_is_plain_json_and_reproducible() -> None:
    options = {"datasets": 60, "variables": (3, 8), "rows": (30, 60)}
    predict = predictor(load_model("linear").network)
    one, two = (fit_reference("linear", predict, 3, **options) for _ in range(2))
    assert json.loads(json.dumps(one)) == one == two
    assert fit_reference("linear", predict, 4, **options) != one


@pytest.mark.parametrize("kind", ["real", "counts"])
def test_summaries_do_not_depend_on_units(kind: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 5)) @ rng.normal(size=(5, 5)) if kind == "real" else rng.poisson(5.0, (100, 5))
    u = rng.random(x.shape) < 0.2
    base = summarize(Dataset(x=x, interventions=u, kind=kind)).values  # type: ignore[arg-type]
    assert all(np.isfinite(list(base.values())))
    columns = rng.permutation(5)
    moved = summarize(Dataset(x=x[:, columns], interventions=u[:, columns], kind=kind)).values  # type: ignore[arg-type]
    for name, value in base.items():
        assert np.isclose(moved[name], value, atol=1e-5), name
    if kind == "real":
        scaled = summarize(Dataset(x=x * [1, 10, 100, 0.1, -3], interventions=u)).values
        for name, value in base.items():
            assert np.isclose(scaled[name], value, atol=1e-4), name


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_of_real_values_keep_the_graph(name: str) -> None:
    data = presage.simulate("general", d=6, n=60, n_interventional=20, seed=3)
    before = data.x.copy()
    shifted = SHIFTS[name](data, np.random.default_rng(0))
    np.testing.assert_array_equal(shifted.graph, data.graph)
    np.testing.assert_array_equal(data.x, before)
    assert shifted.d == 6


@pytest.mark.parametrize("name", COUNT_SHIFTS)
def test_shifts_of_counts_stay_counts(name: str) -> None:
    x = np.random.default_rng(0).poisson(4.0, (60, 5))
    data = Dataset(x=x, kind="counts", graph=np.zeros((5, 5), dtype=int))
    assert COUNT_SHIFTS[name](data, np.random.default_rng(0)).kind == "counts"


@pytest.mark.parametrize(
    "x",
    [np.zeros((5, 3)), np.ones((2, 1)), np.arange(6.0).reshape(6, 1), np.full((4, 2), np.nan), np.eye(3) * 1e300],
    ids=["zeros", "ones", "one column", "nothing", "huge"],
)
def test_degenerate_data_still_gets_a_finite_score(x: np.ndarray) -> None:
    data = Dataset(x=x)
    report = compare(summaries("linear"), summarize(data).with_prediction(np.zeros((data.d, data.d))))
    assert np.isfinite(report.score)


def test_large_tables_are_subsampled() -> None:
    x = np.random.default_rng(0).normal(size=(30_000, 3))
    found = summarize(Dataset(x=x))
    assert found.subsampled
    assert found.values == summarize(Dataset(x=x[np.unique(np.linspace(0, 29_999, 2000).astype(int))])).values


def test_damaged_references_are_refused() -> None:
    data = Dataset(x=np.random.default_rng(0).normal(size=(50, 3)))
    summary = summarize(data).with_prediction(np.zeros((3, 3)))
    for change in ({"version": 9}, {"names": None}, {"weights": [1.0]}, {"quantiles": [[1.0]]}):
        with pytest.raises(ModelFileError, match="summaries"):
            compare({**summaries("linear"), **change}, summary)


def test_discover_reports_the_check(tmp_path) -> None:
    from models_for_tests import save_tiny

    model = presage.load_model(save_tiny(tmp_path / "lin.safetensors", with_summaries=True))
    usual = presage.simulate("linear", d=8, n=150, seed=11)
    found = presage.discover(usual, model=model)
    assert found.ood is not None
    unusual = presage.discover(np.random.default_rng(0).standard_cauchy(size=(150, 8)), model=model)
    assert unusual.ood is not None
    assert unusual.ood.is_ood == any("unusual for the model 'lin'" in warning for warning in unusual.warnings)


@pytest.mark.parametrize("levels", [2, 5, 10_000])
def test_ranks_share_ties_as_in_scipy(levels: int) -> None:
    from scipy.stats import rankdata

    from presage.ood.summaries import standardized_ranks

    columns = np.random.default_rng(0).integers(levels, size=(500, 3)) / 7.0
    expected = rankdata(columns, axis=0)
    expected = (expected - expected.mean(axis=0)) / expected.std(axis=0)
    np.testing.assert_allclose(standardized_ranks(columns), expected)
