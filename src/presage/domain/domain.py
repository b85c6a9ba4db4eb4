"""A domain is a frozen configuration that samples batches of (graph, data)."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import psutil

from presage.config import Component, param, readable, register
from presage.errors import ConfigError
from presage.graphs.random import GraphModel
from presage.rng import Stream, generator
from presage.simulators.interventions import Interventions
from presage.simulators.mechanisms import Mechanism
from presage.simulators.noise import Noise
from presage.simulators.scm import sample_scm
from presage.types import Batch, Dataset, Kind

__all__ = ["Domain", "ScmDomain", "check_size"]


def check_size(*, d: int, n: int, n_interventional: int, size: int) -> None:
    """Raise `ConfigError` for an invalid size."""
    for name, value, least in (("d", d, 1), ("n", n, 1), ("n_interventional", n_interventional, 0), ("size", size, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ConfigError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if n_interventional > n:
        raise ConfigError(f"n_interventional ({n_interventional}) is part of the n rows, so it cannot exceed n ({n})")
    # Values and mask of every dataset; several working arrays of that size while one is sampled.
    d, n, size = int(d), int(n), int(size)
    needed, available = size * (9 * n * d + d * d) + 24 * n * d + 16 * d * d, psutil.virtual_memory().available
    if needed > available:
        raise ConfigError(
            f"{size:.3g} x {n:.3g} rows x {d:.3g} variables need about {needed / 2**30:.3g} GiB of memory, but "
            f"{available / 2**30:.3g} GiB are available; ask for less"
            if needed < 1e300
            else "no computer has the memory for that many rows, variables or datasets; ask for less"
        )


@dataclass(frozen=True, kw_only=True)
class Domain(Component, ABC):
    """A distribution over datasets with known graphs. Subclasses implement `draw`."""

    kind: ClassVar[Kind] = "real"
    acyclic: ClassVar[bool] = True
    """Whether graphs are acyclic as a rule (the paper: yes for SCMs, no for genes)."""
    interventional_strata: ClassVar[tuple[str, ...]] = ("interventional", "pooled")
    """Names of the strata whose held-out datasets have interventional rows."""

    @classmethod
    def import_subclasses(cls) -> None:
        import presage.domain.general
        import presage.domain.genes  # noqa: F401 - both register themselves; most callers need neither

    @property
    def soft_interventions(self) -> bool:
        """Whether some interventions change the mechanism of their target instead of replacing it."""
        return False

    @property
    def several_targets(self) -> bool:
        """Whether some rows have more than one target."""
        return False

    @abstractmethod
    def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        """One raw dataset: x [n, d], interventions [n, d] bool, graph [d, d] int8, and optionally names and rows.

        The first n - n_interventional rows are observational.
        """

    def strata(self) -> dict[str, Domain]:
        """Named variants of the domain on which training validates separately; none by default."""
        return {}

    def describe(self) -> list[tuple[str, str]]:
        """Pairs (parameter, readable value); a pair without a value is a heading."""
        rows = []
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            parts = value if isinstance(value, tuple) else (value,)
            if not all(isinstance(part, Component) for part in parts):
                rows.append(
                    (spec.name.replace("_", " "), readable(value, alternatives=bool(spec.metadata.get("options"))))
                )
                continue
            rows.append((spec.name.replace("_", " "), ""))
            for part in parts:
                rows.append((f"  {type(part).__name__}", ""))
                rows.extend((f"    {name}", text) for name, text in part.describe())
        return rows

    def __str__(self) -> str:
        rows = self.describe()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}".rstrip() for name, text in rows)

    def sample_one(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int = 0) -> Dataset:
        """One dataset from the random numbers of a generator."""
        return Batch.stack([self.draw(rng, d=d, n=n, n_interventional=n_interventional)], self.kind)[0]

    def sample(
        self,
        *,
        d: int,
        n: int,
        n_interventional: int = 0,
        seed: int = 0,
        size: int = 1,
        stream: Stream = Stream.TEST,
        start: int = 0,
    ) -> Batch:
        """Datasets start, start + 1, ... of a seed. Each depends only on the seed and its index, not on `size`."""
        check_size(d=d, n=n, n_interventional=n_interventional, size=size)
        items = [
            self.draw(generator(seed, stream, start + k), d=d, n=n, n_interventional=n_interventional)
            for k in range(size)
        ]
        return Batch.stack(items, self.kind)


@register
@dataclass(frozen=True, kw_only=True)
class ScmDomain(Domain):
    """Structural causal models. Each dataset samples one component of each kind uniformly."""

    graphs: tuple[GraphModel, ...] = param(min_length=1)
    mechanisms: tuple[Mechanism, ...] = param(min_length=1)
    noises: tuple[Noise, ...] = param(min_length=1)
    interventions: Interventions = Interventions()

    @property
    def soft_interventions(self) -> bool:
        return any(high > 0 for _, high in self.interventions.softness)

    def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        graph = _choose(rng, self.graphs).sample(rng, d)
        mechanism = _choose(rng, self.mechanisms).resolve(rng)
        noise = _choose(rng, self.noises).resolve(rng)
        mask, values, softness = self.interventions.sample(rng, d=d, n=n, n_interventional=n_interventional)
        x = sample_scm(rng, graph, mechanism, noise, mask, values, softness)
        return {"x": x, "interventions": mask, "graph": graph}


def _choose(rng: np.random.Generator, parts: tuple[Any, ...]) -> Any:
    return parts[int(rng.random() * len(parts))]
