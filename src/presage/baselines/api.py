"""The interface of baselines: `fit(Dataset) -> Estimate`, and the manifest of each method.

This module and the adapters are also imported in the separate environments of other methods. They may rely on NumPy
only.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from presage.columns import ColumnKind
from presage.data.standardize import standardize_dataset
from presage.errors import ConfigError, InternalError
from presage.rng import Stream, generator
from presage.types import Dataset

__all__ = ["Baseline", "Estimate", "EstimateKind", "Problem"]

EstimateKind = Literal["probabilities", "graph", "cpdag"]
Selection = Literal["likelihood", "truth"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """The result of a method on a dataset.

    matrix: [d, d] between 0 and 1, row causes column. kind: "probabilities"; "graph" for one directed graph; "cpdag"
    for an equivalence class, where i - j is undirected if both entries are 1.
    confounded: [d, d] between 0 and 1, symmetric, the probability of a hidden common cause; None for methods that
    assume that there is none.
    score: held-out log-likelihood per row, higher is better, for methods that choose their settings by it.
    note: what a reader of the result should know.
    """

    matrix: np.ndarray
    kind: EstimateKind
    confounded: np.ndarray | None = None
    score: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        matrix = _pairs(self.matrix)
        if self.kind != "probabilities" and not np.isin(matrix, (0.0, 1.0)).all():
            raise InternalError(f"an estimate of kind {self.kind!r} must hold only 0 and 1")
        object.__setattr__(self, "matrix", matrix)
        if self.confounded is not None:
            confounded = _pairs(self.confounded)
            if confounded.shape != matrix.shape or (confounded != confounded.T).any():
                raise InternalError("pairs with a hidden common cause must be a symmetric matrix of the same shape")
            object.__setattr__(self, "confounded", confounded)


def _pairs(values: np.ndarray) -> np.ndarray:
    """Numbers between 0 and 1 for every pair [d, d], the diagonal 0."""
    matrix = np.array(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InternalError(f"an estimate must be a square matrix, not of shape {matrix.shape}")
    np.fill_diagonal(matrix, 0.0)
    if not ((matrix >= 0.0) & (matrix <= 1.0)).all():
        raise InternalError("an estimate must hold numbers between 0 and 1")
    return matrix


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """A dataset, prepared for an algorithm.

    x: [n, d] float64, standardized as for the network; raw: [n, d] as measured; mask: [n, d] bool, where a variable
    was intervened on; missing: [n, d] bool, cells that were not measured; column_kinds: [d] of
    `presage.columns.ColumnKind`. rng and seed serve methods that draw random numbers.
    """

    x: np.ndarray
    raw: np.ndarray
    mask: np.ndarray
    missing: np.ndarray
    column_kinds: np.ndarray
    counts: bool
    rng: np.random.Generator
    seed: int

    @classmethod
    def of(cls, data: Dataset, seed: int) -> Problem:
        """The dataset, standardized in the same way for every method."""
        return cls(
            x=standardize_dataset(data).astype(np.float64),
            raw=np.array(data.x),
            mask=np.array(data.interventions),
            missing=np.array(data.missing),
            column_kinds=np.array(data.column_kinds),
            counts=data.kind == "counts",
            rng=generator(seed, Stream.ANSWER),
            seed=seed,
        )

    @property
    def d(self) -> int:
        """Number of variables."""
        return int(self.x.shape[1])

    @property
    def discrete(self) -> np.ndarray:
        """Columns of categories (binary, ordinal, nominal, environment): [d] bool."""
        return self.column_kinds >= ColumnKind.BINARY

    def regular(self, scale: float = 1e-2) -> np.ndarray:
        """Values with an invertible covariance: small noise on counts and on constant columns, as in the paper."""
        noise = scale * self.rng.standard_normal(self.x.shape)
        return self.x + (noise if self.counts else noise * (self.x.std(axis=0) == 0.0))

    def centred(self, standardize: bool) -> np.ndarray:
        """Values of mean 0 [n, d] for least squares, which finds a causal order by the scale of the noise.

        Standardized values no longer show that scale.
        """
        return self.x if standardize else self.raw - self.raw.mean(axis=0)

    def split(self, share: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
        """A random split into rows to fit and held-out rows."""
        order = self.rng.permutation(len(self.x))
        cut = max(1, round(share * len(order)))
        return order[:cut], order[cut:]

    def environments(self) -> tuple[list[np.ndarray], list[list[int]]]:
        """Row indices by set of targets, and those sets; the observational rows first if there are any."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for row, targets in enumerate(self.mask):
            groups.setdefault(tuple(np.flatnonzero(targets).tolist()), []).append(row)
        keys = sorted(groups)
        return [np.array(groups[key]) for key in keys], [list(key) for key in keys]


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The manifest of a method.

    entry: "module:function" within `presage.baselines.methods`. environment: "ours", or a name of `ENVIRONMENTS`.
    interventions: whether intervention targets are used; if not, they are dropped and all rows kept, as in the paper.
    defaults: every setting with its default. grid: settings to choose from, as in the paper's appendix. selection: by
    held-out likelihood, or by the true graph of held-out instances (which favours the method), or None.
    """

    name: str
    title: str
    entry: str
    reference: str
    environment: str = "ours"
    extra: str = ""
    interventions: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    selection: Selection | None = None
    isolated: bool = True
    """Whether the benchmark runs it in a separate process with a time limit; our own networks need neither."""
    point_estimate: bool = True
    specialised: bool = False
    """Whether it is made for discrete or mixed columns or hidden causes: not part of the paper's experiments."""
    trivial: bool = False
    """Whether it needs no causal reasoning: tables show it apart and never mark it as the best."""

    def settings(self, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The defaults with changes; an unknown setting is refused by name."""
        changes = dict(changes or {})
        unknown = sorted(set(changes) - set(self.defaults))
        if unknown:
            known = ", ".join(sorted(self.defaults)) or "none"
            raise ConfigError(f"{self.name} has no setting {unknown[0]!r}; it has: {known}")
        return {**self.defaults, **changes}

    def function(self) -> Callable[..., Estimate]:
        """The adapter."""
        module, _, name = self.entry.partition(":")
        adapter: Callable[..., Estimate] = getattr(importlib.import_module(f"presage.baselines.methods.{module}"), name)
        return adapter

    def fit(self, data: Dataset, *, seed: int = 0, **settings: Any) -> Estimate:
        """Run the method in this process and environment."""
        if not self.interventions and data.interventions.any():
            data = replace(data, interventions=None)  # type: ignore[arg-type]  # None means nowhere
        settings, function = self.settings(settings), self.function()
        if data.d == 1:  # many packages fail on a single variable
            return Estimate(matrix=np.zeros((1, 1)), kind="graph")
        answer = function(Problem.of(data, seed), **settings)
        if answer.matrix.shape != (data.d, data.d):
            raise InternalError(f"{self.name} answered with shape {answer.matrix.shape} for {data.d} variables")
        return answer
