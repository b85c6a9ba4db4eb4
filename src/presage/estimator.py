"""`PresageDiscovery`: discovery as a scikit-learn estimator."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from presage.inference.hub import DEFAULT_MODEL

if TYPE_CHECKING:
    import networkx as nx

    from presage.inference.knowledge import Knowledge
    from presage.inference.model import Model

__all__ = ["PresageDiscovery"]


class PresageDiscovery(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Causal discovery with `fit`, for code that expects estimators; options as in `presage.discover`.

    threshold: edges of `adjacency_` and `graph_` are above this probability. acyclic: whether these are the most
    probable acyclic graph; None: if the model was trained on acyclic graphs.

    After `fit`: result_ (the `presage.Result`), probabilities_ (float64 [d, d], row causes column), adjacency_
    (int8 [d, d]), graph_ (networkx.DiGraph), feature_names_in_ (names of the d variables), n_features_in_ (d).

    >>> import presage
    >>> data = presage.load_example("linear")
    >>> found = presage.PresageDiscovery(model="linear").fit(data.x, interventions=data.interventions)
    >>> found.adjacency_.shape == data.graph.shape
    True
    """

    def __init__(
        self,
        *,
        model: str | os.PathLike[str] | Model = DEFAULT_MODEL,
        threshold: float = 0.5,
        acyclic: bool | None = None,
        counts: bool | None = None,
        known: Knowledge | None = None,
        bootstrap: int = 0,
        device: str | None = None,
    ) -> None:
        self.model = model
        self.threshold = threshold
        self.acyclic = acyclic
        self.counts = counts
        self.known = known
        self.bootstrap = bootstrap
        self.device = device

    def fit(self, X: Any, y: Any = None, *, interventions: Any = None) -> PresageDiscovery:
        """Discover the graph of a table [n, d]; `X` and `interventions` as in `presage.discover`, `y` is ignored."""
        from presage.inference.discovery import discover
        from presage.inference.result import check_threshold

        check_threshold(self.threshold)  # before the network runs
        result = discover(
            X,
            interventions,
            model=self.model,
            counts=self.counts,
            known=self.known,
            bootstrap=self.bootstrap,
            device=self.device,
        )
        acyclic = result.acyclic_model if self.acyclic is None else self.acyclic
        self.result_ = result
        self.probabilities_ = result.matrix.copy()
        self.adjacency_ = result.adjacency(self.threshold, acyclic)
        self.graph_: nx.DiGraph = result.graph(self.threshold, acyclic)
        self.feature_names_in_ = np.array(result.names, dtype=object)
        self.n_features_in_ = len(result.names)
        return self
