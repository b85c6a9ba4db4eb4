"""Batches simulated for their step."""

import numpy as np

from presage.data.fresh import FreshBatches
from presage.data.settings import RowsConfig
from presage.domain.catalog import get_domain
from presage.domain.general import GeneralDomain

ROWS = RowsConfig(n=(20, 400), max_cells=600, interventional_probability=0.5)


def _batches(domain: str = "general", seed: int = 0) -> FreshBatches:
    return FreshBatches(get_domain(domain), ROWS, batch_sizes={3: 4, 12: 3}, seed=seed)


def test_a_batch_depends_on_seed_d_and_step_only() -> None:
    one, two = _batches(), _batches()
    two.draw(12, step=1)
    for step in (5, 2):
        np.testing.assert_array_equal(one.draw(3, step).x, two.draw(3, step).x)
    assert not np.array_equal(one.draw(3, 5).x, one.draw(3, 6).x[:, : one.draw(3, 5).x.shape[1]])


def test_shards_are_parts_of_the_batch() -> None:
    whole, parts = _batches().draw(12, 3), [_batches().draw(12, 3, shard, 2) for shard in range(2)]
    np.testing.assert_array_equal(whole.x, np.concatenate([part.x for part in parts]))
    assert [len(part.x) for part in parts] == [2, 1]
    assert whole.columns is not None
    assert whole.columns["kinds"].shape == (3, 12)
    assert whole.effects is not None
    assert np.isfinite(whole.effects[whole.graph == 0]).sum() == 0


def test_wide_tables_have_fewer_rows() -> None:
    sizes = {d: max(_batches().draw(d, step).x.shape[1] for step in range(40)) for d in (3, 12)}
    assert sizes[12] <= 600 // 12
    assert 150 < sizes[3] <= 200


def test_domains_of_one_kind_are_standardized() -> None:
    batch = _batches("rff").draw(3, 0)
    assert batch.columns is None
    np.testing.assert_allclose(batch.x.std(axis=1), 1.0, atol=1e-3)


def test_strata_are_the_domain_with_shares_forced() -> None:
    strata = GeneralDomain().strata()
    named = {"continuous", "discrete", "mixed", "confounded", "interventional", "pooled", "environment"}
    assert set(strata) == named | {"expression", "feedback"}
