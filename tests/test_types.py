from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from presage.errors import DataError
from presage.types import Batch, Dataset

X = np.array([[1.0, 2.0, 3.0], [4.0, np.nan, 6.0]])


def test_defaults() -> None:
    data = Dataset(x=X)
    assert (data.n, data.d, data.names, data.kind, data.graph) == (2, 3, ("x0", "x1", "x2"), "real", None)
    assert not data.interventions.any()
    assert data.missing.tolist() == [[False] * 3, [False, True, False]]
    assert data.x[1, 1] == 0.0


@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.int64]),
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6),
        elements=st.integers(-1000, 1000),
    ),
    st.data(),
)
def test_nothing_of_the_callers_is_shared_or_changed(x, data) -> None:
    missing = data.draw(hnp.arrays(bool, x.shape))
    before, mask_before = x.copy(), missing.copy()
    dataset = Dataset(x=x, missing=missing)
    assert (x == before).all()
    assert (missing == mask_before).all()
    assert not np.shares_memory(dataset.x, x)
    assert not np.shares_memory(dataset.missing, missing)
    assert (dataset.x[~missing] == x[~missing]).all()
    assert (dataset.x[missing] == 0).all()
    for array in (dataset.x, dataset.missing, dataset.interventions):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": np.zeros(3)}, "must be a table"),
        ({"x": np.zeros((3, 0))}, "at least one column"),
        ({"x": np.array([["a"]])}, "must be numbers"),
        ({"x": np.array([[1.0 + 2j]])}, "must be numbers"),
        ({"x": np.array([[np.inf, 1.0]])}, "infinities"),
        ({"x": X, "kind": "integers"}, "kind must be"),
        ({"x": np.array([[1.5]]), "kind": "counts"}, "whole numbers"),
        ({"x": np.array([[-1.0]]), "kind": "counts"}, "whole numbers"),
        ({"x": X, "names": ("a", "b")}, "3 columns but 2 names"),
        ({"x": X, "names": ("a", "b", "a")}, "more than once: a"),
        ({"x": X, "interventions": np.zeros((3, 3))}, "intervention mask has shape"),
        ({"x": X, "interventions": np.full((2, 3), 2)}, "only 0 and 1"),
        ({"x": X, "missing": np.full((2, 3), "x")}, "only 0 and 1"),
        ({"x": X, "graph": np.zeros((2, 3))}, "3 x 3 table"),
        ({"x": X, "graph": np.full((3, 3), 0.5)}, "0 and 1"),
        ({"x": X, "annotations": {"batch": np.zeros(3)}}, "'batch' has 3 entries for 2 rows"),
        ({"x": X, "annotations": {"batch": np.array(1)}}, "'batch' must have one entry for each of the 2 rows"),
    ],
)
def test_bad_datasets_are_refused(fields, message) -> None:
    with pytest.raises(DataError, match=message):
        Dataset(**fields)


def test_take_keeps_everything_in_step() -> None:
    rng = np.random.default_rng(0)
    data = Dataset(
        x=np.where(rng.random((6, 3)) < 0.2, np.nan, rng.integers(0, 9, (6, 3))),
        interventions=rng.random((6, 3)) < 0.3,
        names=("a", "b", "c"),
        kind="counts",
        graph=np.triu(np.ones((3, 3)), 1),
        annotations={"cell": np.arange(6)},
    )
    some = data.take(np.array([4, 1]))
    for name in ("x", "interventions", "missing"):
        assert (getattr(some, name) == getattr(data, name)[[4, 1]]).all()
    assert some.annotations["cell"].tolist() == [4, 1]
    assert (some.names, some.kind) == (data.names, data.kind)
    assert (some.graph == data.graph).all()
    assert data.take(np.arange(6) % 2 == 0).n == 3


def test_row_annotations_cannot_be_changed_through_the_caller() -> None:
    labels = np.arange(2)
    data = Dataset(x=X, annotations={"cell": labels})
    labels[0] = 9
    assert data.annotations["cell"].tolist() == [0, 1]


def test_batches_slice_and_concatenate() -> None:
    rng = np.random.default_rng(1)
    batch = Batch(
        x=rng.normal(size=(5, 4, 3)),
        interventions=np.zeros((5, 4, 3), dtype=bool),
        graph=np.zeros((5, 3, 3), dtype=np.int8),
        names=[(f"{k}a", "b", "c") for k in range(5)],
        annotations={"cell": np.arange(20).reshape(5, 4)},
    )
    assert isinstance(batch[1], Dataset)
    assert batch[1].names == ("1a", "b", "c")
    assert (batch[-1].x == batch.x[4]).all()
    again = Batch.concatenate([batch[:2], batch[2:3], batch[3:]])
    assert len(again) == len(list(batch)) == 5
    assert (again.x == batch.x).all()
    assert list(again.names) == list(batch.names)
    assert (again.annotations["cell"] == batch.annotations["cell"]).all()
    with pytest.raises(IndexError):
        batch[5]
