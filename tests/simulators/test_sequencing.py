"""Measurement noise against closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from presage.errors import ConfigError
from presage.simulators.sequencing import (
    PLATFORMS,
    Platform,
    counts,
    dropout,
    library_size,
    outlier_genes,
    platform,
)


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    return np.random.default_rng(0).gamma(2.0, 1.5, size=(2000, 30))


def test_outlier_genes_share_one_factor_in_all_cells(clean: np.ndarray) -> None:
    ratio = outlier_genes(np.random.default_rng(1), clean, 0.3, 2.0, 0.5) / clean
    assert np.allclose(ratio, ratio[:1])
    is_outlier = ratio[0] != 1.0
    assert 2 <= is_outlier.sum() <= 18


def test_outlier_factors_are_log_normal() -> None:
    one = np.ones((1, 200_000))
    x = outlier_genes(np.random.default_rng(2), one, 0.05, 3.0, 1.0)[0]
    factors = np.log(x[x != 1.0])
    assert len(factors) == pytest.approx(10_000, abs=4 * np.sqrt(9_500))
    assert stats.kstest(factors, stats.norm(3.0, 1.0).cdf).pvalue > 1e-3


def test_library_sizes_follow_their_log_normal(clean: np.ndarray) -> None:
    x = library_size(np.random.default_rng(3), clean, 6.0, 0.4)
    total = np.log(x.sum(axis=1))
    assert stats.kstest(total, stats.norm(6.0, 0.4).cdf).pvalue > 1e-3
    assert np.allclose(x / x.sum(axis=1, keepdims=True), clean / clean.sum(axis=1, keepdims=True))


def test_an_empty_cell_stays_empty() -> None:
    x = np.array([[0.0, 0.0], [1.0, 3.0]])
    assert not library_size(np.random.default_rng(0), x, 5.0, 0.5)[0].any()


@pytest.mark.parametrize("steepness", [2.0, 8.0])
def test_fraction_of_zeros_follows_the_logistic_function_of_the_percentile(clean: np.ndarray, steepness: float) -> None:
    level = np.log1p(clean)
    before = 0.0
    for percentile in (10.0, 45.0, 74.0, 82.0, 95.0):
        x = dropout(np.random.default_rng(4), clean, percentile, steepness)
        lost = 1 / (1 + np.exp(steepness * (level - np.percentile(level, percentile))))
        zeros = (x == 0).mean()
        assert zeros == pytest.approx(lost.mean(), abs=4 * np.sqrt(0.25 / clean.size))
        assert zeros > before
        before = zeros
        assert np.array_equal(x[x > 0], clean[x > 0])


def test_dropout_probability_at_each_level(clean: np.ndarray) -> None:
    kept = np.mean([dropout(np.random.default_rng(k), clean, 60.0, 8.0) > 0 for k in range(50)], axis=0)
    level = np.log1p(clean)
    expected = 1 / (1 + np.exp(-8.0 * (level - np.percentile(level, 60.0))))
    for low in np.arange(0.1, 0.9, 0.1):
        group = (expected >= low) & (expected < low + 0.1)
        error = 0.5 / np.sqrt(50 * group.sum())
        assert kept[group].mean() == pytest.approx(expected[group].mean(), abs=5 * error)


def test_zero_steepness_drops_half_of_the_values(clean: np.ndarray) -> None:
    x = dropout(np.random.default_rng(5), clean, 50.0, 0.0)
    assert (x == 0).mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(clean.size))


def test_a_very_steep_dropout_thresholds_at_the_percentile(clean: np.ndarray) -> None:
    x = dropout(np.random.default_rng(5), clean, 30.0, 1e6)
    assert (x == 0).mean() == pytest.approx(0.3, abs=1e-3)
    assert x[x > 0].min() > clean[x == 0].max() - 1e-3


def test_counts_are_poisson() -> None:
    x = np.repeat([0.0, 0.7, 12.0, 4e4], 20_000)[None]
    drawn = counts(np.random.default_rng(6), x)[0].reshape(4, -1)
    assert not drawn[0].any()
    for row, mean in zip(drawn[1:], (0.7, 12.0, 4e4), strict=True):
        assert row.mean() == pytest.approx(mean, abs=4 * np.sqrt(mean / 20_000))
        assert row.var() == pytest.approx(mean, rel=0.06)


def test_platforms_match_the_papers_table() -> None:
    assert list(PLATFORMS) == ["10x-chromium", "illumina-hiseq2000", "drop-seq", "smart-seq"]
    fields = ("outlier_share", "outlier_mu", "outlier_sigma", "library_mu", "library_sigma")
    fields += ("dropout_percentile", "dropout_steepness")
    table = {
        "10x-chromium": ((0.01,), (3.0, 5.0), (1.0,), (4.5, 6.0), (0.3, 0.4, 0.7), (45.0, 74.0, 82.0), (8.0,)),
        "illumina-hiseq2000": ((0.01,), (0.8,), (1.0,), (7.0,), (0.4,), (80.0,), (8.0,)),
        "drop-seq": ((0.01,), (3.0,), (1.0,), (4.4,), (0.8,), (85.0,), (8.0,)),
        "smart-seq": ((0.01,), (4.5,), (1.0,), (10.8,), (0.55,), (92.0,), (2.0,)),
    }
    for name, row in table.items():
        assert tuple(getattr(platform(name), field) for field in fields) == row


def test_unknown_platforms_and_invalid_parameters_raise() -> None:
    with pytest.raises(ConfigError, match="drop-seq"):
        platform("nanopore")
    for change in (
        {"outlier_share": (1.5,)},
        {"dropout_percentile": (101.0,)},
        {"library_sigma": (-0.1,)},
        {"library_mu": (60.0,)},
    ):
        with pytest.raises(ConfigError):
            Platform(**change)


@settings(max_examples=30, deadline=None)
@given(name=st.sampled_from(sorted(PLATFORMS)), seed=st.integers(0, 1000), n=st.integers(0, 20), d=st.integers(1, 6))
def test_measure_returns_integers_and_does_not_modify_its_input(name: str, seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    clean = rng.gamma(1.0, 2.0, size=(n, d)).astype(np.float32)
    clean[rng.random((n, d)) < 0.3] = 0.0
    before = clean.copy()
    x = platform(name).measure(rng, clean)
    assert np.array_equal(clean, before)
    assert x.shape == (n, d)
    assert x.dtype == np.float64
    assert (x >= 0).all()
    assert np.array_equal(x, np.floor(x))
    assert not x[clean == 0].any()
