"""What a domain is: a frozen dataclass that samples batches of (graph, data)."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from presage.config import Component, readable, register
from presage.errors import ConfigError
from presage.graphs.random import GraphModel
from presage.rng import Stream, generator
from presage.simulators.interventions import Interventions
from presage.simulators.mechanisms import Mechanism
from presage.simulators.noise import Noise
from presage.simulators.scm import sample_scm
from presage.types import Batch, Kind

__all__ = ["Domain", "ScmDomain", "check_size"]


def check_size(*, d: int, n: int, n_interventional: int, size: int) -> None:
    """Say what is wrong with a requested size."""
    for name, value, least in (("d", d, 1), ("n", n, 1), ("n_interventional", n_interventional, 0), ("size", size, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ConfigError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if n_interventional > n:
        raise ConfigError(f"n_interventional ({n_interventional}) counts among the n rows, so it cannot exceed n ({n})")


@dataclass(frozen=True, kw_only=True)
class Domain(Component, ABC):
    """A distribution over datasets with known graphs. Subclasses implement `draw`."""

    kind: ClassVar[Kind] = "real"
    acyclic: ClassVar[bool] = True
    """Whether training asks the network for acyclic answers (the paper: yes for SCMs, no for genes)."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        """One raw dataset: x [n, d], interventions [n, d] bool, graph [d, d] int8, and optionally names and rows.

        The first n - n_interventional rows are observational.
        """

    def strata(self) -> dict[str, Domain]:
        """Named variants of the domain on which training validates separately; none by default."""
        return {}

    def describe(self) -> list[tuple[str, str]]:
        """Rows (parameter, readable value); a row without a value is a heading."""
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
        """Datasets number start, start + 1, ... of a seed; each depends on its own number only, not on `size`."""
        check_size(d=d, n=n, n_interventional=n_interventional, size=size)
        items = [
            self.draw(generator(seed, stream, start + k), d=d, n=n, n_interventional=n_interventional)
            for k in range(size)
        ]
        return Batch.stack(items, self.kind)


@register
@dataclass(frozen=True, kw_only=True)
class ScmDomain(Domain):
    """Structural causal models: each dataset draws one of each kind of part, uniformly."""

    graphs: tuple[GraphModel, ...]
    mechanisms: tuple[Mechanism, ...]
    noises: tuple[Noise, ...]
    interventions: Interventions = Interventions()

    def check(self) -> None:
        for name, kind in (("graphs", GraphModel), ("mechanisms", Mechanism), ("noises", Noise)):
            parts = getattr(self, name)
            if not isinstance(parts, tuple) or not parts or not all(isinstance(part, kind) for part in parts):
                raise ConfigError(f"{name} must be a tuple of at least one {kind.__name__}")

    def draw(self, rng: np.random.Generator, *, d: int, n: int, n_interventional: int) -> dict[str, Any]:
        graph = _choose(rng, self.graphs).sample(rng, d)
        mechanism = _choose(rng, self.mechanisms).resolve(rng)
        noise = _choose(rng, self.noises).resolve(rng)
        mask, values, softness = self.interventions.sample(rng, d=d, n=n, n_interventional=n_interventional)
        x = sample_scm(rng, graph, mechanism, noise, mask, values, softness)
        return {"x": x, "interventions": mask, "graph": graph}


def _choose(rng: np.random.Generator, parts: tuple[Any, ...]) -> Any:
    return parts[int(rng.random() * len(parts))]
