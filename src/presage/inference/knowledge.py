"""Background knowledge: required and forbidden edges, tiers, roots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.config import Config, register
from presage.errors import ConfigError
from presage.graphs.ops import descendants, is_acyclic
from presage.inference.inputs.names import did_you_mean, listed

__all__ = ["Knowledge"]

Edge = tuple[str, str]


@register
@dataclass(frozen=True, kw_only=True)
class Knowledge(Config):
    """Background knowledge about variables, by name.

    required: edges (cause, effect) that exist. forbidden: edges that do not.
    tiers: groups of variables from earliest to latest; no variable causes one of an earlier group. Variables in no
    group are free. roots: variables without causes among the others.

    >>> Knowledge(required=[("smoking", "cancer")], roots=["age"]).roots
    ('age',)
    """

    required: Sequence[Edge] = ()
    forbidden: Sequence[Edge] = ()
    tiers: Sequence[Sequence[str]] = ()
    roots: Sequence[str] = ()

    def check(self) -> None:
        set_ = object.__setattr__
        set_(self, "required", _edges(self.required, "required"))
        set_(self, "forbidden", _edges(self.forbidden, "forbidden"))
        tiers = tuple(_names(tier, "every tier") for tier in _sequence(self.tiers, "tiers"))
        set_(self, "tiers", tiers)
        set_(self, "roots", _names(self.roots, "roots"))
        members = [name for tier in tiers for name in tier]
        if len(set(members)) < len(members):
            twice = next(name for name in members if members.count(name) > 1)
            raise ConfigError(f"{twice!r} is in the tiers twice; put every variable into one tier only")
        both = set(self.required) & set(self.forbidden)
        if both:
            cause, effect = sorted(both)[0]
            raise ConfigError(f"the edge {cause} -> {effect} is both required and forbidden; decide which")
        rank = {name: k for k, tier in enumerate(tiers) for name in tier}
        for cause, effect in self.required:
            if effect in self.roots:
                raise ConfigError(f"{cause} -> {effect} is required, but {effect!r} is a root, which has no causes")
            if cause in rank and effect in rank and rank[cause] > rank[effect]:
                raise ConfigError(f"{cause} -> {effect} is required, but {cause!r} is in a later tier than {effect!r}")

    def __bool__(self) -> bool:
        return bool(self.required or self.forbidden or self.tiers or self.roots)

    def masks(self, names: Sequence[str], acyclic: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Required and forbidden edges as bool [d, d] (row causes column), including those that they imply.

        acyclic: required paths forbid every edge back along them.
        """
        position = {name: j for j, name in enumerate(names)}
        d = len(names)
        required, forbidden = np.zeros((d, d), dtype=bool), np.eye(d, dtype=bool)

        def index(name: str) -> int:
            if name not in position:
                raise ConfigError(
                    f"the background knowledge names {listed([name])}, which is not a variable of the data"
                    + did_you_mean(name, names)
                )
            return position[name]

        for cause, effect in self.required:
            required[index(cause), index(effect)] = True
        for cause, effect in self.forbidden:
            forbidden[index(cause), index(effect)] = True
        for name in self.roots:
            forbidden[:, index(name)] = True
        tiers = [[index(name) for name in tier] for tier in self.tiers]
        for k, later in enumerate(tiers):
            for earlier in tiers[:k]:
                forbidden[np.ix_(later, earlier)] = True
        if acyclic and required.any():
            if not is_acyclic(required):
                raise ConfigError("the required edges form a cycle, but this model predicts acyclic graphs")
            forbidden |= descendants(required).T
        return required, forbidden

    def apply(self, probabilities: np.ndarray, names: Sequence[str], acyclic: bool = True) -> np.ndarray:
        """A copy of the probabilities with 1 for required and 0 for forbidden edges.

        >>> Knowledge(required=[("a", "b")]).apply(np.array([[0.0, 0.3], [0.6, 0.0]]), ["a", "b"]).tolist()
        [[0.0, 1.0], [0.0, 0.0]]
        """
        required, forbidden = self.masks(names, acyclic)
        known: np.ndarray = np.where(required, 1.0, np.where(forbidden, 0.0, probabilities))
        return known


def _sequence(value: Any, what: str) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"{what} must be a list, not {value!r}")
    return tuple(value)


def _names(value: Any, what: str) -> tuple[str, ...]:
    names = _sequence(value, what)
    for name in names:
        if not isinstance(name, str):
            raise ConfigError(f"{what} must hold names of variables, not {name!r}")
    return tuple(names)


def _edges(value: Any, what: str) -> tuple[Edge, ...]:
    edges = []
    for edge in _sequence(value, what):
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise ConfigError(f"{what} edges must be pairs (cause, effect) of names, not {edge!r}")
        cause, effect = _names(edge, f"{what} edges")
        if cause == effect:
            raise ConfigError(f"the {what} edge {cause} -> {effect} leads from a variable to itself; leave it out")
        edges.append((cause, effect))
    return tuple(edges)
