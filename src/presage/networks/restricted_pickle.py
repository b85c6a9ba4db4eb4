"""Parse the arrays of a pickle without executing it.

Python's unpickler imports modules and calls the functions that a file names. This parser does neither: it interprets
the opcodes with a small stack machine in which a global name is only a string. It can construct numbers, strings,
bytes, tuples, lists, dicts, NumPy arrays of plain numbers, and `Record`s, which store the arguments passed to a class
of a known package. Every other opcode or name raises `ModelFileError`.

Memory is bounded by the file size: arrays are views of bytes in the file, and the number of steps is limited.
"""

from __future__ import annotations

import io
import math
import pickletools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from presage.errors import ModelFileError

__all__ = ["Record", "read_pickle"]

# Classes of these packages become records and are never imported.
_INERT_PACKAGES = ("amortibs", "avici", "chex", "haiku", "jax", "jaxlib", "optax")
_ARRAY_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
_PLAIN_DTYPE = re.compile(r"[<>=|]?([fiu][1248]|b1)")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_LITERALS = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
_LITERALS |= {"BINBYTES", "SHORT_BINBYTES", "BINBYTES8"}
_EMPTY: dict[str, type] = {"EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()
_MAX_STEPS = 1_000_000  # a full-size training state takes some 40 000


@dataclass(frozen=True)
class Record:
    """A class name and the arguments that the file passes to it."""

    name: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class _Name:
    """A global name in the file. It is never resolved."""

    module: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.module}.{self.attribute}"


class _DType:
    """A dtype under construction: its code from REDUCE, its byte order from BUILD."""

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "<"

    def dtype(self) -> np.dtype:
        return np.dtype(self.code if len(self.code) == 3 else self.order + self.code)


class _Array:
    """An array under construction: empty from REDUCE, its contents from BUILD."""

    value: np.ndarray | None = None


def read_pickle(data: bytes) -> Any:
    """Parse a pickle of protocol 2 or later into plain values, arrays and records.

    >>> import pickle
    >>> read_pickle(pickle.dumps({"w": (1, 2.5, None)}))
    {'w': (1, 2.5, None)}
    """
    try:
        return _Machine().run(data)
    except ModelFileError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, RecursionError, UnicodeError) as error:
        raise ModelFileError(f"the pickle is damaged or of an unsupported kind: {error}") from error


class _Machine:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, data: bytes) -> Any:
        for step_number, (opcode, argument, position) in enumerate(pickletools.genops(io.BytesIO(data))):
            name = opcode.name
            if step_number >= _MAX_STEPS:
                raise ModelFileError("the pickle takes more steps than any checkpoint does; refused")
            if name == "STOP":
                if len(self.stack) != 1:
                    raise ModelFileError("the pickle is damaged: values are left over at its end")
                return _finished(self.stack.pop())
            if name in _LITERALS:
                self.stack.append(argument)
            elif name in _CONSTANTS:
                self.stack.append(_CONSTANTS[name])
            elif name in _EMPTY:
                self.stack.append(_EMPTY[name]())
            elif name in _TUPLES:
                self.stack.append(tuple([self._pop() for _ in range(_TUPLES[name])][::-1]))
            elif name in ("PROTO", "FRAME"):
                continue
            elif (step := getattr(self, f"_do_{name.lower()}", None)) is not None:
                step(argument)
            else:
                raise ModelFileError(f"the pickle uses {name} at byte {position}, which no checkpoint needs; refused")
        raise ModelFileError("the pickle ends too early")

    # Stack and memo

    def _do_mark(self, _: Any) -> None:
        self.stack.append(_MARK)

    def _do_memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self._top()

    def _do_binput(self, index: int) -> None:
        self.memo[index] = self._top()

    _do_long_binput = _do_binput

    def _do_binget(self, index: int) -> None:
        self.stack.append(self.memo[index])

    _do_long_binget = _do_binget

    # Containers

    def _do_tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._since_mark()))

    def _do_append(self, _: Any) -> None:
        item = self._pop()
        self._into(list).append(item)

    def _do_appends(self, _: Any) -> None:
        items = self._since_mark()
        self._into(list).extend(items)

    def _do_setitem(self, _: Any) -> None:
        value, key = self._pop(), self._pop()
        self._store([key, value])

    def _do_setitems(self, _: Any) -> None:
        self._store(self._since_mark())

    # Names and construction

    def _do_global(self, argument: str) -> None:
        module, _, attribute = argument.partition(" ")
        self.stack.append(_checked_name(module, attribute))

    def _do_stack_global(self, _: Any) -> None:
        attribute, module = self._pop(), self._pop()
        self.stack.append(_checked_name(module, attribute))

    def _do_reduce(self, _: Any) -> None:
        arguments, name = self._pop(), self._pop()
        self.stack.append(_construct(name, arguments))

    _do_newobj = _do_reduce

    def _do_build(self, _: Any) -> None:
        state, target = self._pop(), self._top()
        if isinstance(target, _DType):
            _set_byte_order(target, state)
        elif isinstance(target, _Array) and target.value is None:
            _fill(target, state)
        else:
            raise ModelFileError("the pickle sets the state of something that is not a new array; refused")

    # Helpers

    def _top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise ModelFileError("the pickle is damaged: it takes a value that is not there")
        return self.stack[-1]

    def _pop(self) -> Any:
        self._top()
        return self.stack.pop()

    def _since_mark(self) -> list[Any]:
        items: list[Any] = []
        while self.stack and self.stack[-1] is not _MARK:
            items.append(self.stack.pop())
        if not self.stack:
            raise ModelFileError("the pickle is damaged: a mark is missing")
        self.stack.pop()
        return items[::-1]

    def _into(self, kind: type) -> Any:
        target = self._top()
        if type(target) is not kind:
            raise ModelFileError(f"the pickle adds items to a {type(target).__name__} as if it were a {kind.__name__}")
        return target

    def _store(self, items: list[Any]) -> None:
        target = self._into(dict)
        if len(items) % 2 or not all(type(key) in (str, int) for key in items[::2]):
            raise ModelFileError("the pickle holds a dict whose keys are not plain strings or numbers; refused")
        target.update(zip(items[::2], items[1::2]))


def _checked_name(module: Any, attribute: Any) -> _Name:
    if type(module) is not str or type(attribute) is not str:
        raise ModelFileError("the pickle names something by values that are not strings; refused")
    name = _Name(module, attribute)
    allowed = name in _BUILDERS or (module, attribute) == ("numpy", "ndarray")
    # A dotted attribute could access anything reachable from an allowed class.
    inert = module.split(".")[0] in _INERT_PACKAGES and _IDENTIFIER.fullmatch(attribute)
    if not (allowed or inert):
        raise ModelFileError(f"the pickle names {str(name)[:100]!r}, which does not belong in a checkpoint; refused")
    return name


def _construct(name: Any, arguments: Any) -> Any:
    if not isinstance(name, _Name) or type(arguments) is not tuple:
        raise ModelFileError("the pickle calls something that is not a name with arguments; refused")
    if name in _BUILDERS:
        return _BUILDERS[name](*arguments)
    if name.module.split(".")[0] not in _INERT_PACKAGES:
        raise ModelFileError(f"the pickle calls {name}; refused")
    if name.module.startswith("haiku.") and len(arguments) == 1 and type(arguments[0]) is dict:
        return arguments[0]  # Haiku's read-only mappings wrap one dict
    return Record(name.attribute, arguments)


def _new_array(kind: Any, shape: Any, code: Any) -> _Array:
    if kind != _Name("numpy", "ndarray") or shape != (0,) or code != b"b":
        raise ModelFileError("the pickle makes an array in an unusual way; refused")
    return _Array()


def _new_dtype(code: Any, align: Any = False, copy: Any = True) -> _DType:
    # Only strings are quoted in a message: the text of nested values can be exponentially longer than the file.
    if type(code) is not str or type(align) is not bool or type(copy) is not bool:
        raise ModelFileError("the pickle holds an array whose type is not a name; only plain numbers are read")
    if not _PLAIN_DTYPE.fullmatch(code):
        raise ModelFileError(f"the pickle holds an array of type {code[:40]!r}; only plain numbers are read")
    np.dtype(code)  # refuses combinations that do not exist, such as f1
    return _DType(code)


def _new_scalar(dtype: Any, data: Any) -> np.ndarray:
    return _array(dtype, (), data, False)


def _set_byte_order(target: _DType, state: Any) -> None:
    # (version, byte order, subarray, names, fields, item size, alignment, flags): all unset for plain numbers.
    if type(state) is not tuple or len(state) != 8 or state[2:5] != (None, None, None) or state[7] != 0:
        raise ModelFileError("the pickle holds an array type with fields or flags; only plain numbers are read")
    if type(state[1]) is not str or state[1] not in ("<", ">", "=", "|"):
        raise ModelFileError("the pickle holds an array type without a byte order")
    target.order = state[1]


def _fill(target: _Array, state: Any) -> None:
    if type(state) is not tuple or len(state) != 5:
        raise ModelFileError("the pickle fills an array in an unusual way; refused")
    _, shape, dtype, fortran, data = state
    target.value = _array(dtype, shape, data, fortran)


def _array(dtype: Any, shape: Any, data: Any, fortran: Any) -> np.ndarray:
    if not isinstance(dtype, _DType) or type(data) is not bytes or type(fortran) is not bool:
        raise ModelFileError("the pickle holds an array that is not made of plain numbers; refused")
    if type(shape) is not tuple or len(shape) > 8 or not all(type(size) is int and size >= 0 for size in shape):
        raise ModelFileError("the pickle holds an array whose shape is invalid")
    kind = dtype.dtype()
    if math.prod(shape) * kind.itemsize != len(data):
        raise ModelFileError(f"the pickle holds {len(data)} bytes for an array of shape {shape}; damaged or hostile")
    return np.frombuffer(data, kind).reshape(shape, order="F" if fortran else "C")


_BUILDERS: dict[_Name, Any] = {_Name("numpy", "dtype"): _new_dtype}
for _module in _ARRAY_MODULES:
    _BUILDERS[_Name(_module, "_reconstruct")] = _new_array
    _BUILDERS[_Name(_module, "scalar")] = _new_scalar


def _finished(value: Any) -> Any:
    """Replace arrays under construction by arrays. Shared values are converted once and stay shared."""
    done: dict[int, Any] = {}

    def finish(value: Any, depth: int) -> Any:
        if depth > 64:
            raise ModelFileError("the pickle nests values deeper than any checkpoint does; refused")
        if id(value) in done:
            return done[id(value)]
        result = value
        if isinstance(value, _Array):
            if value.value is None:
                raise ModelFileError("the pickle holds an array without contents")
            result = value.value
        elif isinstance(value, (_Name, _DType)):
            result = None  # names carry no value
        elif isinstance(value, Record):
            result = Record(value.name, tuple(finish(item, depth + 1) for item in value.args))
        elif type(value) is tuple:
            result = tuple(finish(item, depth + 1) for item in value)
        elif type(value) is list:
            result = [finish(item, depth + 1) for item in value]
        elif type(value) is dict:
            result = {key: finish(item, depth + 1) for key, item in value.items()}
        done[id(value)] = result
        return result

    return finish(value, 0)
