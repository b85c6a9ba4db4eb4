"""Measurement noise of sequencing platforms: outlier genes, library size, dropout, counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from presage.config import Component, options, register
from presage.errors import ConfigError

__all__ = ["PLATFORMS", "Platform", "counts", "dropout", "library_size", "outlier_genes", "platform"]


@register
@dataclass(frozen=True, kw_only=True)
class Platform(Component):
    """Measurement noise of a platform; the steps run in the order of the fields.

    outlier_share, outlier_mu, outlier_sigma: each gene is an outlier with probability outlier_share; outliers are
    multiplied by a log-normal factor. library_mu, library_sigma: the total count of each cell is log-normal.
    dropout_percentile, dropout_steepness: a value is kept with probability sigmoid(steepness * (log(1 + x) - q)), q the
    percentile of log(1 + x) over the dataset.
    """

    name: str = "custom"
    outlier_share: tuple[float, ...] = options(0.01)
    outlier_mu: tuple[float, ...] = options(3.0)
    outlier_sigma: tuple[float, ...] = options(1.0)
    library_mu: tuple[float, ...] = options(6.0)
    library_sigma: tuple[float, ...] = options(0.4)
    dropout_percentile: tuple[float, ...] = options(74.0)
    dropout_steepness: tuple[float, ...] = options(8.0)

    def check(self) -> None:
        if not all(0.0 <= share <= 1.0 for share in self.outlier_share):
            raise ConfigError("Platform.outlier_share must lie between 0 and 1")
        if not all(0.0 <= percentile <= 100.0 for percentile in self.dropout_percentile):
            raise ConfigError("Platform.dropout_percentile must lie between 0 and 100")
        for field in ("outlier_sigma", "library_sigma", "dropout_steepness"):
            if min(getattr(self, field)) < 0:
                raise ConfigError(f"Platform.{field} must be at least 0")
        if max(self.library_mu) > math.log(1e12):
            raise ConfigError("Platform.library_mu is the logarithm of the counts per cell; it must be at most 27")

    def measure(self, rng: np.random.Generator, clean: np.ndarray) -> np.ndarray:
        """Resolve the options and sample counts [n, d] (integers as float64) from clean expression [n, d]."""
        resolved = self.resolve(rng)
        x = outlier_genes(
            rng, clean, resolved.only("outlier_share"), resolved.only("outlier_mu"), resolved.only("outlier_sigma")
        )
        x = library_size(rng, x, resolved.only("library_mu"), resolved.only("library_sigma"))
        x = dropout(rng, x, resolved.only("dropout_percentile"), resolved.only("dropout_steepness"))
        return counts(rng, x)


def outlier_genes(rng: np.random.Generator, x: np.ndarray, share: float, mu: float, sigma: float) -> np.ndarray:
    """Multiply each gene, with probability `share`, by a LogNormal(mu, sigma) factor, the same in all cells."""
    d = x.shape[1]
    factor = np.where(rng.random(d) < share, rng.lognormal(mu, sigma, d), 1.0)
    outliers: np.ndarray = x * factor
    return outliers


def library_size(rng: np.random.Generator, x: np.ndarray, mu: float, sigma: float) -> np.ndarray:
    """Scale each cell so that its total is LogNormal(mu, sigma); empty cells stay empty."""
    total = x.sum(axis=1, keepdims=True, dtype=np.float64)
    scaled: np.ndarray = x * (rng.lognormal(mu, sigma, total.shape) / np.where(total > 0, total, 1.0))
    return scaled


def dropout(rng: np.random.Generator, x: np.ndarray, percentile: float, steepness: float) -> np.ndarray:
    """Keep values with probability sigmoid(steepness * (log(1 + x) - q)), q the percentile of log(1 + x)."""
    if x.size == 0:
        return np.array(x)
    # float32 is precise enough for probabilities, and NumPy vectorises its logarithms and exponentials.
    level = np.log(1.0 + x.astype(np.float32))
    below = np.float32(steepness) * (np.float32(np.percentile(level, percentile)) - level)
    odds = np.exp(np.minimum(below, np.float32(80.0)))  # of dropping versus keeping; clipped before float32 overflows
    kept = rng.random(x.shape, dtype=np.float32) * (1.0 + odds) < 1.0
    return np.where(kept, x, 0.0)


def counts(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Poisson counts with mean x, as float64."""
    observed = np.zeros(x.shape)
    present = x > 0  # most values are zero: sample only the others
    observed[present] = rng.poisson(x[present])
    return observed


# The paper's table for the GRN domain, after the calibrations published with SERGIO.
PLATFORMS: dict[str, Platform] = {
    platform.name: platform
    for platform in (
        Platform(
            name="10x-chromium",
            outlier_mu=(3.0, 5.0),
            library_mu=(4.5, 6.0),
            library_sigma=(0.3, 0.4, 0.7),
            dropout_percentile=(45.0, 74.0, 82.0),
        ),
        Platform(
            name="illumina-hiseq2000",
            outlier_mu=(0.8,),
            library_mu=(7.0,),
            library_sigma=(0.4,),
            dropout_percentile=(80.0,),
        ),
        Platform(
            name="drop-seq",
            outlier_mu=(3.0,),
            library_mu=(4.4,),
            library_sigma=(0.8,),
            dropout_percentile=(85.0,),
        ),
        Platform(
            name="smart-seq",
            outlier_mu=(4.5,),
            library_mu=(10.8,),
            library_sigma=(0.55,),
            dropout_percentile=(92.0,),
            dropout_steepness=(2.0,),
        ),
    )
}


def platform(name: str) -> Platform:
    """The calibrated platform of a name.

    >>> platform("smart-seq").dropout_steepness
    (2.0,)
    """
    if name not in PLATFORMS:
        raise ConfigError(f"there is no platform {name!r}; choose one of: {', '.join(PLATFORMS)}")
    return PLATFORMS[name]
