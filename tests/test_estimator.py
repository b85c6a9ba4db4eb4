"""The scikit-learn style estimator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import presage
from models_for_tests import save_tiny
from presage.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("models") / "tiny.safetensors")


@pytest.fixture(scope="module")
def dataset() -> presage.Dataset:
    return presage.simulate("linear", d=5, n=80, n_interventional=30, seed=2)


def test_fit_gives_what_discover_gives(path: Path, dataset: presage.Dataset) -> None:
    found = presage.PresageDiscovery(model=path, threshold=0.4).fit(dataset.x, interventions=dataset.interventions)
    result = presage.discover(dataset.x, dataset.interventions, model=path)
    np.testing.assert_array_equal(found.probabilities_, result.matrix)
    np.testing.assert_array_equal(found.adjacency_, result.adjacency(0.4))
    assert set(found.graph_.edges) == set(result.graph(0.4).edges)
    assert found.feature_names_in_.tolist() == list(dataset.names)
    assert found.n_features_in_ == 5
    cyclic = presage.PresageDiscovery(model=path, acyclic=False).fit(dataset.x)
    np.testing.assert_array_equal(cyclic.adjacency_, cyclic.probabilities_ > 0.5)


def test_parameters_follow_the_protocol(path: Path) -> None:
    known = presage.Knowledge(roots=["x0"])
    estimator = presage.PresageDiscovery(model=path, known=known, bootstrap=3)
    assert estimator.get_params() == {
        "model": path, "threshold": 0.5, "acyclic": None, "counts": None, "known": known, "bootstrap": 3,
        "device": None,
    }  # fmt: skip
    assert estimator.set_params(threshold=0.7) is estimator
    copied = clone(estimator)
    assert copied is not estimator
    assert copied.get_params() == estimator.get_params()
    assert not hasattr(copied, "adjacency_")
    with pytest.raises(ValueError, match="Invalid parameter"):
        estimator.set_params(limit=1)
    assert "threshold=0.7" in repr(estimator)


def test_names_come_from_the_table(path: Path, dataset: presage.Dataset) -> None:
    frame = pd.DataFrame(dataset.x, columns=list("abcde"))
    found = presage.PresageDiscovery(model=path).fit(frame)
    assert found.feature_names_in_.tolist() == list("abcde")
    assert list(found.graph_.nodes) == list("abcde")


def test_it_is_the_last_step_of_a_pipeline(path: Path, dataset: presage.Dataset) -> None:
    pipeline = make_pipeline(StandardScaler(), presage.PresageDiscovery(model=path))
    pipeline.fit(dataset.x, presagediscovery__interventions=dataset.interventions)
    direct = presage.PresageDiscovery(model=path).fit(dataset.x, interventions=dataset.interventions)
    np.testing.assert_allclose(pipeline[-1].probabilities_, direct.probabilities_, atol=1e-5)


def test_options_reach_discover(path: Path, dataset: presage.Dataset) -> None:
    known = presage.Knowledge(required=[("x0", "x1")])
    found = presage.PresageDiscovery(model=path, known=known, bootstrap=2).fit(dataset.x)
    assert found.adjacency_[0, 1] == 1
    assert "stability" in found.result_.top(1)
    for options, error in (
        ({"threshold": 2}, ConfigError),
        ({"device": "nonsense"}, ConfigError),
        ({"counts": True}, DataError),
        ({"bootstrap": 1}, ConfigError),
    ):
        with pytest.raises(error):
            presage.PresageDiscovery(model=path, **options).fit(dataset.x)  # type: ignore[arg-type]
