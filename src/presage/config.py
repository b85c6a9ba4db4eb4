"""The base of every configuration: domain components, networks, training, background knowledge.

A configuration is a frozen, keyword-only dataclass. Its annotations and `param` metadata say which values a field
takes; everything else is checked in `check`. It is stored as JSON, `{"type": "ClassName", field: value, ...}`, where
"type" may be left out if the class is known from the context. A class of your own is a subclass with `@register`;
nothing else is needed for it to be used, printed, saved in a checkpoint and read back.

A `Component` is a configuration whose fields may hold *options*: alternatives of which `resolve(rng)` draws one for
each dataset, "uniformly randomly from all possible combinations" as the paper's tables say.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, Union

import numpy as np

from presage.errors import ConfigError

__all__ = [
    "Component",
    "Config",
    "FieldError",
    "Range",
    "from_json",
    "options",
    "param",
    "readable",
    "register",
    "to_json",
]

Range = tuple[float, float]
"""A pair (low, high) to draw from uniformly."""

_REGISTRY: dict[str, type[Config]] = {}
C = TypeVar("C", bound="Config")
P = TypeVar("P", bound="Component")


class FieldError(ConfigError):
    """A field of a configuration has a value that it cannot take; the message names class and field."""

    def __init__(self, owner: str, name: str, problem: str) -> None:
        super().__init__(f"{owner}.{name} {problem}")
        self.name, self.problem = name, problem


def param(
    default: Any = MISSING,
    *,
    gt: float | None = None,
    ge: float | None = None,
    lt: float | None = None,
    le: float | None = None,
    ordered: bool = False,
    min_length: int = 0,
    convert: Callable[[Any], Any] | None = None,
) -> Any:
    """A dataclass field with bounds on every number in it.

    ordered: the values of a tuple must not decrease. min_length: of a tuple. convert: applied to a value before it is
    checked (for example a name that stands for an object).
    """
    bounds = {key: bound for key, bound in (("gt", gt), ("ge", ge), ("lt", lt), ("le", le)) if bound is not None}
    metadata = {"bounds": bounds, "ordered": ordered, "min_length": min_length, "convert": convert}
    return field(default=default, metadata=metadata)


def options(*default: Any, signed: bool = False, **bounds: float) -> Any:
    """A field that holds alternatives, of which `resolve` draws one for each dataset.

    signed: for display only; values of a signed range are drawn with either sign, and print as U±(a, b).
    bounds: gt, ge, lt, le as in `param`.
    """
    return field(default=tuple(default), metadata={"options": True, "signed": signed, "bounds": bounds})


def register(cls: type[C]) -> type[C]:
    """Make a configuration known by its class name, so that it can be read back from JSON."""
    known = _REGISTRY.setdefault(cls.__name__, cls)
    if known is not cls and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ConfigError(f"two different configurations are called {cls.__name__!r}; rename one of them")
    _REGISTRY[cls.__name__] = cls
    return cls


class _Spec(NamedTuple):
    name: str
    hint: Any
    metadata: Mapping[str, Any]
    required: bool


def _specs(cls: type[Config]) -> tuple[_Spec, ...]:
    """The fields of a class with their annotations, read once."""
    if cls not in _SPECS:
        _SPECS[cls] = _read_specs(cls)
    return _SPECS[cls]


_SPECS: dict[type[Config], tuple[_Spec, ...]] = {}


def _read_specs(cls: type[Config]) -> tuple[_Spec, ...]:
    try:
        hints = typing.get_type_hints(cls)
    except NameError:  # an annotation that only a type checker can resolve: such a class has no type checks
        hints = {}
    return tuple(
        _Spec(f.name, hints.get(f.name, Any), f.metadata, f.default is MISSING and f.default_factory is MISSING)
        for f in dataclasses.fields(cls)
    )


@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of every configuration."""

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for spec in _specs(type(self)):
            value = getattr(self, spec.name)
            if (convert := spec.metadata.get("convert")) is not None:
                value = convert(value)
            value = _plain(value)
            object.__setattr__(self, spec.name, value)
            problem = _problem(value, spec)
            if problem:
                raise FieldError(owner, spec.name, f"{problem}, not {_short(value)}")
        try:
            self.check()
        except (TypeError, ValueError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"{owner} has a value of the wrong type: {error}") from error

    def check(self) -> None:
        """Raise `ConfigError` when fields contradict each other. Subclasses override."""

    def fail(self, name: str, problem: str) -> FieldError:
        """The error about a field, to be raised in `check`."""
        return FieldError(type(self).__name__, name, problem)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data that `from_json` reads back."""
        body = {spec.name: to_json(getattr(self, spec.name)) for spec in _specs(type(self))}
        return {"type": type(self).__name__, **body}

    @classmethod
    def from_json(cls: type[C], data: Any) -> C:
        """Back from `to_json`. Unknown classes, unknown fields and missing fields are refused by name."""
        if not isinstance(data, Mapping):
            raise ConfigError(f"{cls.__name__} must be a JSON object, not {_short(data)}")
        kind = cls._class_of(data)
        specs = {spec.name: spec for spec in _specs(kind)}
        for name in data:
            if name not in specs and name != "type":
                raise ConfigError(
                    f"{kind.__name__} has no field {name!r}; it has: {', '.join(sorted(specs)) or 'none'}"
                )
        for spec in specs.values():
            if spec.required and spec.name not in data:
                raise ConfigError(f"{kind.__name__} needs the field {spec.name!r}")
        body = {}
        for name, value in data.items():
            if name == "type":
                continue
            try:
                body[name] = _read(value, specs[name].hint)
            except FieldError as error:
                raise FieldError(kind.__name__, f"{name}.{error.name}", error.problem) from error
            except ConfigError as error:
                raise ConfigError(f"{kind.__name__}.{name}: {error}") from error
        return kind(**body)

    @classmethod
    def import_subclasses(cls) -> None:
        """Import the modules that define subclasses; called when JSON names a class that is not known yet."""

    @classmethod
    def _class_of(cls: type[C], data: Mapping[str, Any]) -> type[C]:
        name = data.get("type", cls.__name__)
        if not isinstance(name, str) or name not in _REGISTRY:
            cls.import_subclasses()
        found = _REGISTRY.get(name) if isinstance(name, str) else None
        if found is None or not issubclass(found, cls):
            known = ", ".join(sorted(name for name, kind in _REGISTRY.items() if issubclass(kind, cls)))
            if "type" not in data:
                raise ConfigError(f'{cls.__name__} needs a "type", one of: {known}')
            raise ConfigError(
                f"there is no {cls.__name__} of type {name!r}; import the module that defines it or use one of: {known}"
            )
        return found


@dataclass(frozen=True, kw_only=True)
class Component(Config):
    """Base of graph models, mechanisms, noises, interventions, platforms and whole domains."""

    label: ClassVar[str] = ""

    def resolve(self: P, rng: np.random.Generator) -> P:
        """The same component with one option left in every field."""
        chosen = {
            name: (value[int(rng.random() * len(value))],)
            for name in self._option_names()
            if len(value := getattr(self, name)) > 1
        }
        if not chosen:
            return self
        # A resolved component is made of checked values: skip __post_init__, this runs for every dataset.
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **chosen)
        return copy

    @classmethod
    @cache
    def _option_names(cls) -> tuple[str, ...]:
        return tuple(spec.name for spec in _specs(cls) if spec.metadata.get("options"))

    def only(self, name: str) -> Any:
        """The value of a resolved field."""
        (value,) = getattr(self, name)
        return value

    def describe(self) -> list[tuple[str, str]]:
        """Pairs (parameter, readable value) for tables."""
        return [
            (
                spec.name.replace("_", " "),
                readable(
                    getattr(self, spec.name),
                    alternatives=bool(spec.metadata.get("options")),
                    signed=bool(spec.metadata.get("signed")),
                ),
            )
            for spec in _specs(type(self))
        ]


def to_json(value: Any) -> Any:
    """Plain JSON data for a configuration, or for tuples of them."""
    if isinstance(value, Config):
        return value.to_json()
    return [to_json(item) for item in value] if isinstance(value, (tuple, list)) else value


def from_json(data: Any) -> Any:
    """Back from `to_json`, where the data itself says which classes it holds."""
    return _read(data, Any)


def _read(data: Any, hint: Any) -> Any:
    """JSON data as a value of an annotated field."""
    if isinstance(data, list):
        return tuple(_read(item, _item_hint(hint, k)) for k, item in enumerate(data))
    if isinstance(data, Mapping):
        classes = [one for one in _alternatives(hint) if isinstance(one, type) and issubclass(one, Config)]
        if classes:
            return classes[0].from_json(data)
        if "type" in data:
            return Config.from_json(data)
    return data


def _item_hint(hint: Any, position: int) -> Any:
    """The annotation of one item of a tuple."""
    for one in _alternatives(hint):
        if typing.get_origin(one) is tuple:
            items = typing.get_args(one)
            return items[0] if items[-1] is Ellipsis else items[min(position, len(items) - 1)]
    return Any


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)


def _plain(value: Any) -> Any:
    """Tuples instead of lists (JSON has no tuples) and Python's numbers instead of NumPy's (JSON knows only those)."""
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    return value.item() if isinstance(value, np.generic) else value


# Checks of a field: its annotation first, then its metadata.


def _problem(value: Any, spec: _Spec) -> str:
    """What is wrong with the value of a field, as "must be ..."; empty if nothing is."""
    metadata = spec.metadata
    if metadata.get("options") and (not isinstance(value, tuple) or not value):
        return "must be a tuple of at least one option"
    if not _fits(value, spec.hint):
        return f"must be {_noun(spec.hint)}"
    numbers = list(_numbers(value))
    if not all(_is_finite(number) for number in numbers):
        return "must hold finite numbers only" if isinstance(value, tuple) else "must be a finite number"
    bounds = metadata.get("bounds") or {}
    if any(not _BOUNDS[key](number, bound) for key, bound in bounds.items() for number in numbers):
        return _bounds_noun(bounds)
    if isinstance(value, tuple):
        if len(value) < metadata.get("min_length", 0):
            least = metadata["min_length"]
            return f"must hold at least {'one' if least == 1 else least} {_noun(_item_hint(spec.hint, 0), bare=True)}"
        if metadata.get("ordered") and value[0] > value[-1]:
            return "must be in increasing order"
    return ""


_BOUNDS: dict[str, Callable[[float, float], bool]] = {
    "gt": lambda number, bound: number > bound,
    "ge": lambda number, bound: number >= bound,
    "lt": lambda number, bound: number < bound,
    "le": lambda number, bound: number <= bound,
}


def _bounds_noun(bounds: Mapping[str, float]) -> str:
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    if set(bounds) in ({"ge", "le"}, {"gt", "lt"}):
        low, high = (f"{bounds[key]:g}" for key in bounds)
        return f"must lie between {low} and {high}{' (exclusive)' if 'gt' in bounds else ''}"
    return "must be " + " and ".join(f"{words[key]} {bound:g}" for key, bound in bounds.items())


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the annotated type; annotations that `_noun` does not know accept anything."""
    origin, items = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in items)
    if origin is Literal:
        return value in items
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if items[-1] is Ellipsis:
            return all(_fits(item, items[0]) for item in value)
        return len(value) == len(items) and all(_fits(item, one) for item, one in zip(value, items))
    if hint is None or hint is type(None):
        return value is None
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) and origin is None and hint is not Any else True


def _noun(hint: Any, *, bare: bool = False) -> str:
    """A type in words: "a whole number", "a list of pairs"; without the article if `bare`."""
    origin, items = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_noun(one) for one in items)
    if origin is Literal:
        return f"one of {', '.join(map(str, items))}"
    if origin is tuple:
        if items[-1] is Ellipsis:
            return f"a list with every item {_noun(items[0])}"
        return f"a {'pair' if len(items) == 2 else 'tuple'} ({', '.join(_noun(one) for one in items)})"
    words = {int: "whole number", float: "finite number", str: "string"}
    if hint is bool:
        return "true or false"
    if hint is type(None):
        return "null"
    name = str(words.get(hint) or getattr(hint, "__name__", hint))
    return name if bare else f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number beyond the range of floats
        return False


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def readable(value: Any, *, alternatives: bool = False, signed: bool = False) -> str:
    """A parameter as text; `alternatives` says that a tuple lists options.

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
