"""Parts a domain is made of: frozen dataclasses with options, that print, compare and travel as JSON.

A part lists its *options*: every tuple-valued field declared with `options()` holds the alternatives of the
paper's tables. `resolve(rng)` settles on one alternative per field, once for each dataset, "uniformly randomly
from all possible combinations". A part of your own is a small subclass with `@register`; nothing else is needed
for it to be used in a domain, printed, saved in a checkpoint and read back.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, TypeVar

import numpy as np

from presage.errors import ConfigError

__all__ = ["Component", "Range", "from_json", "options", "readable", "register", "to_json"]

Range = tuple[float, float]
"""A pair (low, high) to draw from uniformly."""

_REGISTRY: dict[str, type[Component]] = {}
C = TypeVar("C", bound="Component")


def options(*default: Any, signed: bool = False) -> Any:
    """A field that holds alternatives, of which `resolve` draws one for each dataset.

    `signed` is for readers: ranges of a signed field are drawn from with either sign, and print as U±(a, b).
    """
    return field(default=tuple(default), metadata={"options": True, "signed": signed})


def register(cls: type[C]) -> type[C]:
    """Make a part known by its class name, so that domains that use it can be read back from JSON."""
    known = _REGISTRY.setdefault(cls.__name__, cls)
    if known is not cls and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ConfigError(f"two different parts are called {cls.__name__!r}; rename one of them")
    _REGISTRY[cls.__name__] = cls
    return cls


@dataclass(frozen=True, kw_only=True)
class Component:
    """Base of graph models, mechanisms, noises, interventions, platforms and whole domains."""

    label: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            value = _plain(getattr(self, spec.name))
            object.__setattr__(self, spec.name, value)
            where = f"{type(self).__name__}.{spec.name}"
            if spec.metadata.get("options") and (not isinstance(value, tuple) or not value):
                raise ConfigError(f"{where} must be a tuple of at least one option, not {value!r}")
            for number in _numbers(value):
                if not math.isfinite(number):
                    raise ConfigError(f"{where} holds {number}; every parameter must be a finite number")
        try:
            self.check()
        except (TypeError, ValueError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"{type(self).__name__} has a parameter of the wrong kind: {error}") from error

    def check(self) -> None:
        """Raise `ConfigError` when parameters make no sense together. Subclasses override."""

    def resolve(self: C, rng: np.random.Generator) -> C:
        """The same part with one option left in every field."""
        chosen = {
            name: (value[int(rng.random() * len(value))],)
            for name in self._option_names()
            if len(value := getattr(self, name)) > 1
        }
        if not chosen:
            return self
        # A resolved part is made of checked values: skip __post_init__, this runs for every dataset.
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **chosen)
        return copy

    @classmethod
    @cache
    def _option_names(cls) -> tuple[str, ...]:
        return tuple(spec.name for spec in dataclasses.fields(cls) if spec.metadata.get("options"))

    def only(self, name: str) -> Any:
        """The value of a resolved field."""
        (value,) = getattr(self, name)
        return value

    def describe(self) -> list[tuple[str, str]]:
        """Rows (parameter, readable value) for tables."""
        return [
            (
                spec.name.replace("_", " "),
                readable(
                    getattr(self, spec.name),
                    alternatives=bool(spec.metadata.get("options")),
                    signed=bool(spec.metadata.get("signed")),
                ),
            )
            for spec in dataclasses.fields(self)
        ]


def to_json(value: Any) -> Any:
    """Plain JSON data for a component, or for tuples and dicts of them."""
    if isinstance(value, Component):
        body = {spec.name: to_json(getattr(value, spec.name)) for spec in dataclasses.fields(value)}
        return {"type": type(value).__name__, **body}
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    return value


def from_json(data: Any) -> Any:
    """Back from `to_json`. Unknown types and unknown fields are refused by name."""
    if isinstance(data, dict) and "type" in data:
        kind = data["type"]
        if not isinstance(kind, str) or kind not in _REGISTRY:
            raise ConfigError(f"unknown part {kind!r}; import the module that defines it, or use one of: {_known()}")
        cls = _REGISTRY[kind]
        fields = {spec.name for spec in dataclasses.fields(cls)}
        extra = sorted(set(data) - fields - {"type"})
        if extra:
            raise ConfigError(f"{kind} has no field {extra[0]!r}; it has: {', '.join(sorted(fields)) or 'none'}")
        lacking = sorted(spec.name for spec in dataclasses.fields(cls) if _required(spec) and spec.name not in data)
        if lacking:
            raise ConfigError(f"{kind} needs the field {lacking[0]!r}")
        return cls(**{key: from_json(value) for key, value in data.items() if key != "type"})
    if isinstance(data, list):
        return tuple(from_json(item) for item in data)
    return data


def _required(spec: dataclasses.Field[Any]) -> bool:
    return spec.default is dataclasses.MISSING and spec.default_factory is dataclasses.MISSING


def _known() -> str:
    return ", ".join(sorted(_REGISTRY))


def _plain(value: Any) -> Any:
    """Tuples instead of lists (JSON has no tuples) and Python's numbers instead of NumPy's (JSON knows only those)."""
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    return value.item() if isinstance(value, np.generic) else value


def _numbers(value: Any) -> list[float]:
    if isinstance(value, tuple):
        return [number for item in value for number in _numbers(item)]
    return [value] if isinstance(value, float) else []


def readable(value: Any, *, alternatives: bool = False, signed: bool = False) -> str:
    """A parameter as people write it; `alternatives` says that a tuple lists options.

    >>> readable(((1.0, 3.0), (2.0, 4.0)), alternatives=True)
    'U(1, 3) or U(2, 4)'
    """
    if isinstance(value, Component):
        return f"{type(value).__name__}({', '.join(f'{k} {v}' for k, v in value.describe())})"
    if alternatives:
        return " or ".join(readable(item, signed=signed) for item in value)
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(item, (int, float)) for item in value):
        return f"U{'±' if signed else ''}({value[0]:g}, {value[1]:g})"
    if isinstance(value, tuple):
        return "; ".join(readable(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
