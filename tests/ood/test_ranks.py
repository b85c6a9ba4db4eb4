"""Ranks of the summaries agree with those of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from presage.ood.summaries import _ranks


@pytest.mark.parametrize("levels", [1, 2, 5, 10_000])
def test_ranks_share_ties_as_in_scipy(levels: int) -> None:
    column = np.random.default_rng(0).integers(levels, size=500) / 7.0
    np.testing.assert_array_equal(_ranks(column), rankdata(column))
