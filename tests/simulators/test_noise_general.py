from __future__ import annotations

import json

import numpy as np
import pytest

from presage.config import from_json, to_json
from presage.errors import ConfigError
from presage.simulators import noise_general

# With their excess kurtosis, where it exists and does not depend on what is drawn.
FAMILIES = (
    (noise_general.GaussianNoise(), 0.0),
    (noise_general.LaplaceNoise(), 3.0),
    (noise_general.StudentNoise(df=(9.0, 9.0)), 6.0 / 5.0),
    (noise_general.UniformNoise(), -1.2),
    (noise_general.GumbelNoise(), 2.4),
    (noise_general.ExponentialNoise(), 6.0),
    (noise_general.LogNormalNoise(sigma=(0.4, 0.4)), 3.26),
    (noise_general.MixtureNoise(), None),
)


@pytest.mark.parametrize(("family", "kurtosis"), FAMILIES, ids=lambda value: type(value).__name__)
def test_noise_is_standardized(family, kurtosis) -> None:
    for seed in range(6):
        noise = family.standard(np.random.default_rng(seed), 100_000)
        assert noise.mean() == pytest.approx(0.0, abs=0.02)
        assert noise.var() == pytest.approx(1.0, abs=0.06)
        if kurtosis is not None:
            assert (noise**4).mean() - 3.0 == pytest.approx(kurtosis, abs=0.15 + 0.2 * abs(kurtosis))


def test_cauchy_noise_has_normal_quartiles_and_a_limit() -> None:
    noise = noise_general.CauchyNoise(limit=50.0).standard(np.random.default_rng(0), 100_000)
    np.testing.assert_allclose(np.quantile(noise, [0.25, 0.5, 0.75]), [-0.6745, 0.0, 0.6745], atol=0.02)
    assert np.abs(noise).max() == 50.0


@pytest.mark.parametrize(
    "family", [noise_general.GumbelNoise(), noise_general.ExponentialNoise()], ids=lambda f: type(f).__name__
)
def test_skewed_noise_leans_to_either_side(family) -> None:
    skews = [(family.standard(np.random.default_rng(seed), 4000) ** 3).mean() for seed in range(40)]
    assert 8 <= sum(skew > 0 for skew in skews) <= 32
    assert min(np.abs(skews)) > 0.5


def test_mixtures_are_bimodal_or_contaminated() -> None:
    kurtosis = [
        (noise_general.MixtureNoise().standard(np.random.default_rng(seed), 20_000) ** 4).mean() - 3
        for seed in range(60)
    ]
    assert sum(value < -0.3 for value in kurtosis) > 10
    assert sum(value > 0.8 for value in kurtosis) > 10


@pytest.mark.parametrize(
    "family", [*(family for family, _ in FAMILIES), noise_general.CauchyNoise()], ids=lambda f: type(f).__name__
)
def test_shapes_seeds_and_json(family) -> None:
    assert family.standard(np.random.default_rng(1), (3, 4)).shape == (3, 4)
    np.testing.assert_array_equal(
        family.standard(np.random.default_rng(1), 9), family.standard(np.random.default_rng(1), 9)
    )
    assert from_json(json.loads(json.dumps(to_json(family)))) == family


@pytest.mark.parametrize(
    "make",
    [
        lambda: noise_general.StudentNoise(df=(2.0, 3.0)),
        lambda: noise_general.LogNormalNoise(sigma=(0.0, 1.0)),
        lambda: noise_general.MixtureNoise(width=(0.5, 2.0)),
        lambda: noise_general.CauchyNoise(limit=0.0),
    ],
)
def test_bad_parameters_are_refused(make) -> None:
    with pytest.raises(ConfigError):
        make()
