"""Fuzz the public functions and files: seeded, bounded, and every case can be repeated by its number.

    python benchmarks/fuzz.py --cases 10000
    python benchmarks/fuzz.py --family csv --first 1234 --cases 1      # repeat one case, with its traceback

A case passes if the call succeeds or raises a `PresageError`. Any other exception, a message of several lines, an
argument that was modified, a probability outside [0, 1] or a case of more than `--seconds` of processor time is a
failure, printed with its family and number. The exit code is 1 if there were failures.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import presage
from presage.errors import InternalError, PresageError

ROOT = Path(__file__).parents[1]
CHECKPOINT = ROOT / "tests" / "fixtures" / "avici-checkpoint-small"

Rng = np.random.Generator


class CaseFailed(Exception):
    """A call returned, but broke a promise."""


class CaseTooSlow(Exception):
    """A case took longer than its limit."""


@dataclass
class Workspace:
    """Files and models that the cases start from."""

    folder: Path
    model_file: Path = field(init=False)
    model: presage.Model = field(init=False)
    result: presage.Result = field(init=False)

    def __post_init__(self) -> None:
        import torch

        from presage.networks.network import build_network
        from presage.networks.pair import PairConfig
        from presage.networks.weights import save_model

        config = PairConfig(width=8, cell_width=8, rounds=2, blocks=1, outer=4, triangle=8, heads=2, expand=1)
        network = build_network(config)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(0.4 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
        self.model_file = self.folder / "tiny.safetensors"
        save_model(self.model_file, network, {"name": "tiny", "kind": "real", "train": {"steps": 0}})
        self.model = presage.load_model(self.model_file)
        x = np.random.default_rng(0).standard_normal((20, 4))
        known = presage.Knowledge(forbidden=[("x0", "x1")])
        self.result = presage.discover(x, model=self.model, known=known)

    def path(self, name: str) -> Path:
        """A file of the current case."""
        return self.folder / name


# Odd values

SCALARS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 30, 10**6, 10**9, 2**63, -(2**63), 10**400, 0.0, -0.0, 0.5, 1.5, -2.5, 1e300,
    5e-324, float("inf"), float("-inf"), float("nan"), 1 + 2j, "", "a", "x0", "nan", "1", "\x00", "\ud800", "a" * 5000,
    "é🧬", b"bytes", (), [], {}, [None], [[]], ["a", "b"], {"a": 1}, object(), np.float32(1), np.int8(-3), np.nan,
    np.datetime64("2020-01-01"), np.array(3.0), np.array([]), np.zeros((2, 2)), range(3), lambda: None,
)  # fmt: skip
NAMES = (
    "a",
    "b",
    "x0",
    "",
    " ",
    "a",
    "\x00",
    "\n",
    "\ud800",
    "é",
    "🧬" * 30,
    "$x_{",
    "<b>",
    '"',
    "=1+1",
    "a" * 3000,
    "1",
)
DTYPES = ("f2", "f4", "f8", "i1", "i8", "u1", "u8", "?", "c8", "U5", "S3", "O", "M8[s]", "m8[s]", "V4")


def pick(rng: Rng, options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def odd_array(rng: Rng, ndim: int | None = None) -> np.ndarray:
    """An array of any type and a small shape; numbers may be extreme, missing or constant."""
    ndim = pick(rng, (2, 2, 2, 2, 2, 2, 0, 1, 3)) if ndim is None else ndim
    shape = tuple(int(pick(rng, (0, 1, 2, 3, 5, 5, 20, 20, 40))) for _ in range(ndim))
    values = rng.standard_normal(shape) * 10.0 ** pick(rng, (-300, -10, 0, 0, 0, 3, 30, 300))
    kind = pick(rng, ("plain", "plain", "constant", "rounded", "missing", "infinite", "duplicate", "dtype", "order"))
    if kind == "constant" and ndim == 2 and shape[1]:
        values[:, int(rng.integers(shape[1]))] = pick(rng, (0.0, 1.0, 1e300, np.nan))
    elif kind == "rounded":
        values = np.round(values)
    elif kind in ("missing", "infinite"):
        values = np.where(
            rng.random(shape) < pick(rng, (0.01, 0.3, 1.0)), np.nan if kind == "missing" else np.inf, values
        )
    elif kind == "duplicate" and ndim == 2 and shape[1]:
        values[:, -1] = values[:, 0]
    elif kind == "dtype":
        values = np.nan_to_num(values, posinf=0, neginf=0)
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return np.asarray(np.clip(values, -1e4, 1e4)).astype(pick(rng, DTYPES))
    elif kind == "order":
        values = np.asfortranarray(values)[..., ::-1]
    return np.asarray(values)


def odd_interventions(rng: Rng, n: int, d: int) -> Any:
    """Targets of n rows and d variables in one of the documented forms, or something else."""
    form = int(rng.integers(8))
    if form < 2:
        return None
    if form == 2:
        mask = (rng.random((n, d)) < 0.2).astype(pick(rng, ("?", "i1", "f8", "U1", "O")))
        return mask if rng.random() < 0.7 else mask[: pick(rng, (0, 1, 2))]
    if form == 3:
        return [pick(rng, (None, "x0", ["x0", "x1"], [], "no such", 3, ["x0", None])) for _ in range(n)]
    if form == 4:
        return odd_array(rng)
    return pick(rng, SCALARS)


def odd_column(rng: Rng, n: int) -> Any:
    """n values of one of many kinds, as a Series."""
    import pandas as pd

    numbers = rng.standard_normal(n)
    makers: tuple[Callable[[], Any], ...] = (
        lambda: numbers,
        lambda: numbers,
        lambda: np.round(numbers),
        lambda: [pick(rng, ("x", "y", "z")) for _ in range(n)],
        lambda: [pick(rng, (1, "a", None, 2.5)) for _ in range(n)],
        lambda: pd.Series(
            [pick(rng, SCALARS) for _ in range(n)], dtype=object
        ),  # pandas cannot guess a type for 10**400
        lambda: pd.Categorical([pick(rng, ("low", "high")) for _ in range(n)]),
        lambda: pd.array([pick(rng, (1, 2, None)) for _ in range(n)], dtype="Int64"),
        lambda: pd.array([pick(rng, (True, False, None)) for _ in range(n)], dtype="boolean"),
        lambda: pd.date_range("2020-01-01", periods=n),
        lambda: pd.arrays.SparseArray(np.round(numbers)),
        lambda: numbers + 1j,
    )
    values = pick(rng, makers)()
    try:
        return pd.Series(values)
    except OverflowError:  # pandas cannot hold 10**400 among floats
        return pd.Series(values, dtype=object)


def odd_frame(rng: Rng) -> Any:
    """A table of columns of many kinds."""
    import pandas as pd

    n, d = int(pick(rng, (0, 1, 2, 5, 30))), int(pick(rng, (0, 1, 2, 4, 6)))
    columns = [odd_column(rng, n) for _ in range(d)]
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(n))
    if rng.random() < 0.5:
        frame.columns = [pick(rng, NAMES) for _ in range(d)]
    elif rng.random() < 0.3:
        frame.columns = [pick(rng, (1, 2.5, None, ("a", "b"), np.nan, "a")) for _ in range(d)]
    if rng.random() < 0.1:
        frame.index = pd.Index([pick(rng, (1, "a", None)) for _ in range(n)])
    return frame


def mutated(rng: Rng, content: bytes) -> bytes:
    """Bytes with a few flips, cuts, repeats or insertions."""
    data = bytearray(content)
    for _ in range(int(pick(rng, (1, 1, 2, 5, 20)))):
        if not data:
            break
        at = int(rng.integers(len(data)))
        change = int(rng.integers(6))
        if change < 3:
            data[at] ^= 1 << int(rng.integers(8))
        elif change == 3:
            del data[at : at + int(rng.integers(1, 30))]
        elif change == 4:
            data[at:at] = data[max(0, at - 20) : at] if rng.random() < 0.5 else rng.bytes(int(rng.integers(1, 9)))
        else:
            del data[at:]
    return bytes(data)


def mutated_json(rng: Rng, value: Any) -> Any:
    """JSON data with one value, at any depth, replaced, removed or wrapped."""
    plain = [item for item in SCALARS if isinstance(item, (type(None), bool, int, float, str, list, dict, tuple))]
    if isinstance(value, (dict, list)) and value and rng.random() < 0.8:
        copy: Any = dict(value) if isinstance(value, dict) else list(value)
        key = pick(rng, list(copy)) if isinstance(copy, dict) else int(rng.integers(len(copy)))
        if rng.random() < 0.1:
            del copy[key]
        elif isinstance(copy, dict) and rng.random() < 0.05:
            copy[pick(rng, NAMES)] = pick(rng, plain)
        else:
            copy[key] = mutated_json(rng, copy[key])
        return copy
    if rng.random() < 0.03:
        for _ in range(int(pick(rng, (5, 150, 5000)))):
            value = [value]
        return value
    return pick(rng, plain)


def json_text(value: Any) -> str:
    """JSON text of data of any depth; `json.dumps` cannot write deep lists."""
    depth = 0
    while isinstance(value, list) and len(value) == 1:
        value, depth = value[0], depth + 1
    try:
        return "[" * depth + json.dumps(value) + "]" * depth
    except (RecursionError, ValueError):
        return "[" * 5000 + "]" * 5000


# Families of cases


def digest(value: Any) -> str:
    """Detects modification of an argument."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return hashlib.sha256(np.ascontiguousarray(value).tobytes() + str(value.dtype).encode()).hexdigest()
    return repr(type(value))


def checked_discover(space: Workspace, data: Any, interventions: Any, **options: Any) -> None:
    before = digest(data), digest(interventions)
    result = presage.discover(data, interventions, model=space.model, **options)
    matrix = result.matrix
    if not (np.isfinite(matrix).all() and (matrix >= 0).all() and (matrix <= 1).all()):
        raise CaseFailed("probabilities outside [0, 1]")
    if (digest(data), digest(interventions)) != before:
        raise CaseFailed("an argument was modified")
    json.dumps(result.to_json())


def case_arrays(rng: Rng, space: Workspace) -> None:
    data = odd_array(rng)
    n, d = data.shape if data.ndim == 2 else (3, 3)
    checked_discover(space, data, odd_interventions(rng, n, d))


def case_frames(rng: Rng, space: Workspace) -> None:
    frame = odd_frame(rng)
    targets = pick(rng, list(frame.columns)) if len(frame.columns) and rng.random() < 0.3 else None
    checked_discover(space, frame, targets if rng.random() < 0.6 else odd_interventions(rng, *frame.shape))


def case_containers(rng: Rng, space: Workspace) -> None:
    """Sparse matrices, polars columns of odd types, and masks in the containers of other packages."""
    import pandas as pd
    import polars
    from scipy import sparse

    n = int(pick(rng, (2, 5, 20)))
    values = np.round(rng.standard_normal((n, 3)), int(pick(rng, (0, 2))))
    types = ("Int128", "UInt64", "Float32", "Boolean", "Date", "Datetime", "Duration", "Time", "String", "Categorical")
    enum = polars.Enum([str(value) for value in np.unique(values.astype(str))])
    forms: tuple[Callable[[], Any], ...] = (
        lambda: sparse.coo_array(values).asformat(pick(rng, ("csr", "csc", "coo", "dok", "lil", "dia", "bsr"))),
        lambda: polars.DataFrame(values).cast(getattr(polars, pick(rng, types)), strict=False),
        lambda: polars.DataFrame(values.astype(str)).with_columns(polars.all().cast(enum)),
        lambda: polars.DataFrame({"a": values.tolist(), "b": [{"u": value} for value in values[:, 0].tolist()]}),
        lambda: polars.DataFrame(values).lazy().select(pick(rng, ("column_0", "absent"))),
        lambda: pd.DataFrame(values).astype(pick(rng, ("category", "string", "Float64", "float32[pyarrow]", object))),
    )
    try:
        data = pick(rng, forms)()
    except (polars.exceptions.PolarsError, TypeError):  # a conversion that polars does not offer
        return
    mask = (rng.random((n, 3)) < 0.3).astype(pick(rng, (float, int, bool)))
    masks: tuple[Callable[[], Any], ...] = (
        lambda: None,
        lambda: sparse.coo_array(mask).asformat(pick(rng, ("csr", "dok", "lil"))),
        lambda: memoryview(mask),
        lambda: polars.DataFrame(mask),
        lambda: pd.Index(["0"] * n),
        lambda: pd.Categorical(["column_0", None] * n)[:n],
        lambda: [np.array(pick(rng, ("column_1", 1, None)))] * n,
        lambda: np.ma.masked_array(mask, rng.random(mask.shape) < 0.1),
    )
    checked_discover(space, data, pick(rng, masks)())


def case_scalars(rng: Rng, space: Workspace) -> None:
    options = {name: pick(rng, SCALARS) for name in ("counts", "known", "layer") if rng.random() < 0.3}
    checked_discover(space, pick(rng, SCALARS) if rng.random() < 0.7 else np.eye(4), pick(rng, SCALARS), **options)


def case_options(rng: Rng, space: Workspace) -> None:
    frame = odd_frame(rng)
    names = [*map(str, frame.columns), "no such", ""]
    forms: dict[str, Callable[[], Any]] = {
        "environment": lambda: pick(rng, (pick(rng, names), [pick(rng, ("a", "b", None, 1)) for _ in frame.index])),
        "roles": lambda: {pick(rng, names): pick(rng, ("nominal", "ordinal", "continuous", "no", 3)) for _ in range(2)},
        "exclude": lambda: [pick(rng, names) for _ in range(int(rng.integers(3)))],
        "bootstrap": lambda: pick(rng, (0, 1, 2, -1, 1.5, "2")),
    }
    chosen = [name for name in forms if rng.random() < 0.5]
    odd = rng.random() < 0.3
    options = {name: pick(rng, SCALARS) if odd and name != "bootstrap" else forms[name]() for name in chosen}
    checked_discover(space, frame, None, **options)


def case_csv(rng: Rng, space: Workspace) -> None:
    rows = rng.standard_normal((int(pick(rng, (1, 5, 12))), 3)).tolist()
    cut = pick(rng, (",", ";", "\t", " "))
    lines = [cut.join(pick(rng, NAMES) if rng.random() < 0.2 else f"v{k}" for k in range(3))]
    lines += [cut.join(str(value) for value in row) for row in rows]
    text = pick(rng, ("\n", "\n", "\r\n", "\r")).join(lines)
    content = text.encode(pick(rng, ("utf-8", "utf-8", "utf-16", "latin-1")), "replace")
    suffix = pick(rng, (".csv", ".tsv", ".txt", ".csv.gz"))
    if suffix.endswith("gz"):
        import gzip

        content = gzip.compress(content)
    path = space.path(f"table{suffix}")
    path.write_bytes(content if rng.random() < 0.3 else mutated(rng, content))
    checked_discover(space, path, None)


def case_npz(rng: Rng, space: Workspace) -> None:
    buffer = io.BytesIO()
    members = {name: odd_array(rng) for name in ("x", "interventions", "graph", "names") if rng.random() < 0.6}
    np.savez_compressed(buffer, **{name: array for name, array in members.items() if not array.dtype.hasobject})
    path = space.path("table.npz")
    path.write_bytes(buffer.getvalue() if rng.random() < 0.3 else mutated(rng, buffer.getvalue()))
    checked_discover(space, path, None)


def case_parquet(rng: Rng, space: Workspace) -> None:
    import pandas as pd

    buffer = io.BytesIO()
    pd.DataFrame(rng.standard_normal((8, 3)), columns=["a", "b", "c"]).to_parquet(buffer)
    path = space.path("table.parquet")
    path.write_bytes(mutated(rng, buffer.getvalue()))
    checked_discover(space, path, None)


def case_spreadsheets(rng: Rng, space: Workspace) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    cells: tuple[Any, ...] = (1, 2.5, -1e300, "a", "nan", "=1+1", "", None, True, "é🧬")
    for _ in range(int(pick(rng, (0, 1, 6)))):
        book.active.append([pick(rng, cells) if rng.random() < 0.3 else float(rng.normal()) for _ in range(3)])
    buffer = io.BytesIO()
    book.save(buffer)
    path = space.path("table.xlsx")
    path.write_bytes(buffer.getvalue() if rng.random() < 0.3 else mutated(rng, buffer.getvalue()))
    checked_discover(space, path, None)


def case_model_bytes(rng: Rng, space: Workspace) -> None:
    path = space.path("damaged.safetensors")
    path.write_bytes(mutated(rng, space.model_file.read_bytes()))
    presage.load_model(path)


def case_model_headers(rng: Rng, space: Workspace) -> None:
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    from presage.networks.weights import _digest

    with safe_open(str(space.model_file), framework="pt") as file:
        header = dict(file.metadata())
    tensors = load_file(str(space.model_file))
    key = pick(rng, ("network", "metadata"))
    header[key] = json_text(mutated_json(rng, json.loads(header[key])))
    if rng.random() < 0.2:
        name = pick(rng, list(tensors))
        tensors[name] = tensors[name].double() if rng.random() < 0.5 else tensors[name].reshape(-1)[:3].clone()
    header["sha256"] = _digest(tensors, header)
    path = space.path("header.safetensors")
    save_file(tensors, str(path), metadata=header)
    presage.load_model(path).probabilities(np.random.default_rng(0).standard_normal((10, 3)))


def case_model_names(rng: Rng, space: Workspace) -> None:
    presage.load_model(pick(rng, (*SCALARS, *NAMES, space.folder, "hf://", "hf://a")))


def case_avici(rng: Rng, space: Workspace) -> None:
    folder = space.path("avici")
    folder.mkdir(exist_ok=True)
    for source in CHECKPOINT.iterdir():
        content = source.read_bytes()
        (folder / source.name).write_bytes(mutated(rng, content) if source.suffix == ".pkl" else content)
    if rng.random() < 0.3:
        settings = json.loads((CHECKPOINT / "kwargs.json").read_text())
        (folder / "kwargs.json").write_text(json_text(mutated_json(rng, settings)))
    presage.load_avici_checkpoint(folder, counts=bool(rng.integers(2)))


def case_pickles(rng: Rng, space: Workspace) -> None:
    from presage.networks.restricted_pickle import read_pickle

    parts = (
        b")",
        b"]",
        b"}",
        b"\x94",
        b"h\x00",
        b"h\x01",
        b"a",
        b"\x86",
        b"\x87",
        b"\x85",
        b"(",
        b"t",
        b"R",
        b"b",
        b"N",
        b"s",
        b"K\x05",
        b"\x93",
    )
    values = [pickle.dumps(np.arange(3.0)), pickle.dumps({"a": [1, (2, 3)]}), pickle.dumps(np.float32(1))]
    data = pick(rng, values)
    if rng.random() < 0.5:
        data = b"\x80\x04" + b"".join(pick(rng, parts) for _ in range(int(rng.integers(1, 60)))) + b"."
    read_pickle(mutated(rng, data) if rng.random() < 0.7 else data)


def case_simulate(rng: Rng, space: Workspace) -> None:
    usual: dict[str, Any] = {"d": 4, "n": 10, "n_interventional": 2, "seed": 0}
    usual |= {name: pick(rng, SCALARS) for name in (*usual, "size") if rng.random() < 0.35}
    if any(isinstance(value, int) and value == 10**6 for value in (usual["n"], usual.get("size"))):
        return  # valid, and takes minutes
    domain = pick(rng, (*presage.domains(), *SCALARS)) if rng.random() < 0.5 else "linear"
    found = presage.simulate(domain, **usual)
    if not np.isfinite(np.asarray(found.x if hasattr(found, "x") else found[0].x)).all():
        raise CaseFailed("simulated values are not finite")


def case_evaluate(rng: Rng, space: Workspace) -> None:
    d = int(pick(rng, (0, 1, 2, 4, 7)))
    truth: Any = (rng.random((d, d)) < 0.3).astype(int)
    guess: Any = rng.random((d, d))
    if rng.random() < 0.6:
        truth = pick(rng, (odd_array(rng), pick(rng, SCALARS)))
    if rng.random() < 0.6:
        guess = pick(rng, (odd_array(rng), pick(rng, SCALARS)))
    presage.metrics.evaluate(truth, guess)


def case_knowledge(rng: Rng, space: Workspace) -> None:
    names = ("x0", "x1", "x2", "x3", "no", "")
    forms: tuple[Callable[[], Any], ...] = (
        lambda: [(pick(rng, names), pick(rng, names)) for _ in range(int(rng.integers(3)))],
        lambda: [[pick(rng, names)], [pick(rng, names), pick(rng, names)]],
        lambda: [pick(rng, names)],
        lambda: pick(rng, SCALARS),
    )
    fields = {name: pick(rng, forms)() for name in ("required", "forbidden", "tiers", "roots") if rng.random() < 0.5}
    known = presage.Knowledge(**fields)
    checked_discover(space, np.random.default_rng(0).standard_normal((12, 4)), None, known=known)


def case_results(rng: Rng, space: Workspace) -> None:
    content = json.loads(json.dumps(space.result.to_json()))
    path = space.path("result.json")
    if rng.random() < 0.3:
        path.write_bytes(mutated(rng, json.dumps(content).encode()))
    else:
        path.write_text(json_text(mutated_json(rng, content)), encoding="utf-8")
    result = presage.Result.load(path)
    repr(result)
    json.dumps(result.to_json())
    result.edges(0.5)


def case_answers(rng: Rng, space: Workspace) -> None:
    result, odd = space.result, pick(rng, SCALARS)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: result.edges(odd),
        lambda: result.top(odd) if not isinstance(odd, int) or odd < 100 else None,
        lambda: result.adjacency(odd),
        lambda: result.graph(odd),
        lambda: result.to_dot(odd),
        lambda: result.sample(odd) if not isinstance(odd, int) or odd < 100 else None,
        lambda: result.sample(2, seed=odd),
        lambda: space.model.probabilities(odd_array(rng), odd_array(rng) if rng.random() < 0.5 else None),
        lambda: space.model.probabilities(odd_array(rng), rows=odd),
    )
    pick(rng, calls)()


def case_decisions(rng: Rng, space: Workspace) -> None:
    result = space.result
    names: tuple[Any, ...] = (*result.names, *result.names, *SCALARS)
    one, other = pick(rng, names), pick(rng, names)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: result.total_effect(one, other),
        lambda: result.next_experiments(pick(rng, (0, 1, 3, one))),
        lambda: result.with_knowledge(one),
        lambda: result[one, other],
        lambda: result.parents(one),
        lambda: result.plot(one),
    )
    pick(rng, calls)()


def case_names(rng: Rng, space: Workspace) -> None:
    import pandas as pd

    names = [pick(rng, NAMES) + pick(rng, ("", "2", "\x07")) for _ in range(3)]
    result = presage.discover(pd.DataFrame(rng.standard_normal((12, 3)), columns=names), model=space.model)
    result.to_dot()
    result.to_dowhy()
    if rng.random() < 0.05:  # drawing takes a second
        result.save(space.path("saved"))


def case_command_line(rng: Rng, space: Workspace) -> None:
    from presage.cli import run

    table = space.path("cli.csv")
    table.write_text("a,b\n1,2\n2,1\n3,5\n4,4\n")
    words = ("discover", str(table), "--model", str(space.model_file), "--threshold", "0.5", "nan", "--json", "--known")
    words += ("simulate", "linear", "-d", "3", "-n", "5", "-o", str(space.path("ds.npz")), "--size", "0", "-1", "1e9")
    words += ("models", "domains", "card", "--help", "-x", "", "\x00", str(space.folder), "--interventions", "a", "é")
    arguments = [pick(rng, words) for _ in range(int(rng.integers(1, 8)))]
    if rng.random() < 0.5:
        arguments = ["discover", str(table), "--model", str(space.model_file), *arguments]
    if "baselines" in arguments or any(word in arguments for word in ("serve", "train", "bench")):
        return
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        code = run(arguments)
    if code not in (0, 2) or (code == 2 and len(errors.getvalue().strip().splitlines()) < 1):
        raise CaseFailed(f"exit code {code}: {errors.getvalue()[:200]}")


FAMILIES: dict[str, Callable[[Rng, Workspace], None]] = {
    name.removeprefix("case_"): value for name, value in list(globals().items()) if name.startswith("case_")
}


# Running


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `CaseTooSlow` after this much processor time, or 20 times as much wall-clock time."""

    def stop(*_: Any) -> None:
        raise CaseTooSlow(f"more than {seconds:g} s of processor time, or {20 * seconds:g} s")

    if not hasattr(signal, "setitimer"):
        yield
        return
    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 20.0 * seconds))
    before = [signal.signal(number, stop) for number, _, _ in timers]
    for _, timer, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0.0)
            signal.signal(number, handler)


def run_case(family: str, number: int, seed: int, space: Workspace, seconds: float) -> tuple[str, str]:
    """("ok" | "refused" | "failed", text)."""
    rng = np.random.default_rng([seed, zlib.crc32(family.encode()), number])
    try:
        with warnings.catch_warnings(), time_limit(seconds):
            warnings.simplefilter("ignore")
            FAMILIES[family](rng, space)
    except InternalError:
        return "failed", traceback.format_exc()
    except PresageError as error:
        if "\n" in str(error) or not str(error):
            return "failed", f"the message is not one sentence: {str(error)[:200]!r}"
        return "refused", str(error)
    except Exception:
        return "failed", traceback.format_exc()
    return "ok", ""


def fuzz(
    cases: int,
    seed: int = 0,
    families: list[str] | None = None,
    first: int = 0,
    seconds: float = 60.0,
    quiet: bool = True,
) -> tuple[Counter[tuple[str, str]], list[tuple[str, int, str]]]:
    """Run cases of all families in turn; returns counts by (family, outcome), and the failures."""
    names = families or list(FAMILIES)
    counts: Counter[tuple[str, str]] = Counter()
    failures: list[tuple[str, int, str]] = []
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.callback(os.chdir, before)
        os.chdir(folder)  # cases write files of odd names
        space = Workspace(Path(folder))
        start = time.perf_counter()
        for k in range(cases):
            family, number = names[k % len(names)], first + k // len(names)
            outcome, text = run_case(family, number, seed, space, seconds)
            counts[family, outcome] += 1
            if outcome == "failed":
                failures.append((family, number, text))
                if not quiet:
                    print(f"FAILED --family {family} --first {number} --seed {seed}\n{text}", flush=True)
            if not quiet and (k + 1) % 5000 == 0:
                spent = time.perf_counter() - start
                print(f"{k + 1} cases, {len(failures)} failures, {spent:.0f} s", file=sys.stderr, flush=True)
            for leftover in ("avici", "saved"):
                shutil.rmtree(space.path(leftover), ignore_errors=True)
    return counts, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", action="append", choices=list(FAMILIES), help="only these; may be repeated")
    parser.add_argument("--first", type=int, default=0, help="number of the first case of each family")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of one case, in processor time")
    options = parser.parse_args()
    counts, failures = fuzz(options.cases, options.seed, options.family, options.first, options.seconds, quiet=False)
    print("| family | answered | refused | failed |\n| --- | --- | --- | --- |")
    for family in options.family or FAMILIES:
        print(f"| {family} | " + " | ".join(str(counts[family, kind]) for kind in ("ok", "refused", "failed")) + " |")
    print(f"{sum(counts.values())} cases, {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
