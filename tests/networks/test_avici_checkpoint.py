"""Public checkpoints: agreement with the original implementation; hostile pickles are refused without execution."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from presage.data.standardize import standardize
from presage.errors import ModelFileError
from presage.networks.avici_checkpoint import read_avici_checkpoint
from presage.networks.restricted_pickle import Record, read_pickle

DATA = Path(__file__).parents[1] / "fixtures"
FOLDERS = {"avici-checkpoint-small": False, "avici-checkpoint-counts": True}


# Valid checkpoints


def predict(network, info, x, interventions):
    values = torch.from_numpy(standardize(x, info["kind"]))
    mask = torch.zeros_like(values) if interventions is None else torch.from_numpy(interventions)
    probabilities = torch.sigmoid(network.predict(values, mask)).numpy()
    if info["mask_diag"]:
        np.fill_diagonal(probabilities, 0.0)
    return probabilities


@pytest.mark.parametrize(("name", "counts"), FOLDERS.items())
def test_agrees_with_the_original_implementation(name, counts):
    network, info = read_avici_checkpoint(DATA / name, counts=counts)
    expected = np.load(DATA / name / "expected.npz")
    assert bool(expected["expects_counts"]) == counts
    for key, mask in (("observational", None), ("interventional", expected["interv"])):
        ours = predict(network, info, expected["x"], mask)
        np.testing.assert_allclose(ours, expected[f"probs_{key}"], rtol=0, atol=1e-5)
    assert not np.allclose(expected["probs_observational"], expected["probs_interventional"], atol=1e-3)


def test_metadata_of_a_checkpoint():
    network, info = read_avici_checkpoint(DATA / "avici-checkpoint-counts", counts=True)
    assert info == {
        "source": "avici",
        "file": "checkpoint_0300000.pkl",
        "kind": "counts",
        "mask_diag": False,
        "step": 300_000,
        "parameters": 14_402,
    }
    assert network.config.dropout == 0.3
    assert not network.training
    assert all(weight.requires_grad and weight.dtype == torch.float32 for weight in network.parameters())
    assert read_avici_checkpoint(DATA / "avici-checkpoint-small")[1]["mask_diag"] is True


def state_of(name="avici-checkpoint-small"):
    return read_pickle((DATA / name / "checkpoint_0300000.pkl").read_bytes())


def folder_with(tmp_path, data, kwargs=None, name="avici-checkpoint-small"):
    folder = tmp_path / "model"
    folder.mkdir(exist_ok=True)
    (folder / "checkpoint_0000001.pkl").write_bytes(data)
    kwargs = json.loads((DATA / name / "kwargs.json").read_text()) if kwargs is None else kwargs
    (folder / "kwargs.json").write_text(kwargs if isinstance(kwargs, str) else json.dumps(kwargs))
    return folder


def fake_package(monkeypatch, module, **members):
    """Temporary modules, so that objects of their classes can be pickled."""
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
    for name, member in members.items():
        member.__module__, member.__qualname__ = module, name
        setattr(sys.modules[module], name, member)


class OldState(NamedTuple):
    step: Any
    rng: Any
    opt_state: Any
    params: Any


class OldMapping:
    def __init__(self, mapping):
        self.mapping = mapping

    def __reduce__(self):
        return type(self), (self.mapping,)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_older_files_with_another_package_name_and_haiku_mappings(tmp_path, monkeypatch, protocol):
    params = state_of().args[3]
    order = np.asfortranarray if protocol == 3 else np.ascontiguousarray
    params = {key: {k: order(v.astype(">f4")) for k, v in module.items()} for key, module in params.items()}
    with monkeypatch.context() as patch:
        fake_package(patch, "amortibs.modules.backbone", ModelState=OldState)
        fake_package(patch, "haiku._src.data_structures", FlatMapping=OldMapping)
        inner = {key: OldMapping(module) for key, module in params.items()}
        state = OldState(np.int64(7), np.zeros(2, np.uint32), [(), ({},)], OldMapping(inner))
        data = pickle.dumps(state, protocol=protocol)
    if protocol == 2:  # protocol 2 has no bytes; Python encodes them as a function call, which we refuse
        with pytest.raises(ModelFileError, match=r"_codecs\.encode"):
            read_avici_checkpoint(folder_with(tmp_path, data))
        return
    assert b"amortibs" in data
    kwargs = json.loads((DATA / "avici-checkpoint-small" / "kwargs.json").read_text())
    kwargs["neural_net_kwargs"] = {"model_kwargs": {**kwargs["neural_net_kwargs"], "no_longer_used": 3}}
    network, info = read_avici_checkpoint(folder_with(tmp_path, data, kwargs))
    assert info["step"] == 7
    expected = np.load(DATA / "avici-checkpoint-small" / "expected.npz")
    ours = predict(network, info, expected["x"], expected["interv"])
    np.testing.assert_allclose(ours, expected["probs_interventional"], rtol=0, atol=1e-5)


def test_the_newest_of_several_files_is_read(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(DATA / "avici-checkpoint-small", folder)
    (folder / "checkpoint_0000001.pkl").write_bytes(b"not a pickle")
    assert read_avici_checkpoint(folder)[1]["file"] == "checkpoint_0300000.pkl"


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(plain, st.integers(3, 5))
def test_plain_values_round_trip(value, protocol):
    assert read_pickle(pickle.dumps(value, protocol=protocol)) == value


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "i1", "<i4", ">i8", "u4", "?"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4)])
def test_arrays_round_trip(dtype, shape):
    array = (np.arange(np.prod(shape, dtype=int)) % 5).reshape(shape).astype(dtype)
    for value in (array, np.asfortranarray(array), array[()]):
        back = read_pickle(pickle.dumps({"a": value}, protocol=4))["a"]
        assert back.dtype == value.dtype
        np.testing.assert_array_equal(back, array)


# Hostile pickles. Each payload would create a marker file if it were executed.


class Call:
    """Pickles to a call of `function` with `arguments`."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def text(value):
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def named(module, attribute):
    return text(module) + text(attribute) + b"\x93"


START, STOP = b"\x80\x04", b"."
ARRAY = named("numpy.core.multiarray", "_reconstruct") + named("numpy", "ndarray") + b"K\x00\x85C\x01b\x87R"
FLOAT = named("numpy", "dtype") + text("f4") + b"\x89\x88\x87R"


def doubling_tuple() -> bytes:
    """A tuple of 2**60 leaves in 180 bytes; its text would not fit into any memory."""
    return b")\x94" + b"".join(b"h" + bytes([k]) + b"h" + bytes([k]) + b"\x86\x94" for k in range(60))


def getattr_chain(marker):
    # A callable that is itself the result of calls: written by hand, since pickle wants a plain function to reduce to.
    body = named("builtins", "getattr") + named("builtins", "__import__") + text("os") + b"\x85R" + text("system")
    return START + body + b"\x86R" + text(f"touch {marker}") + b"\x85R" + STOP


def numpy_load_of_a_second_pickle(marker):
    second = Path(f"{marker}.npy")
    np.save(second, np.array([Call(os.system, f"touch {marker}")], dtype=object), allow_pickle=True)
    return START + named("numpy", "load") + text(str(second)) + b"N\x88\x87R" + STOP


def numpy_fromfile_of_the_numeric_module(marker):
    Path(f"{marker}.bin").write_bytes(b"1234")
    return START + named("numpy.core.numeric", "fromfile") + text(f"{marker}.bin") + b"\x85R" + STOP


def state_set_on_a_class(marker):
    state = b"N}" + text("__new__") + text(f"touch {marker}") + b"s\x86"
    return START + named("avici.backbone", "ModelState") + state + b"b" + STOP


# Payloads that Python's unpickler executes: the control for the marker.
LIVE: dict[str, Callable[[Path], bytes]] = {
    "os_system": lambda marker: pickle.dumps(Call(os.system, f"touch {marker}")),
    "os_system_next_to_parameters": lambda marker: pickle.dumps(
        ({"BaseModel/linear": {"w": np.zeros((2, 4), np.float32)}}, Call(os.system, f"touch {marker}"))
    ),
    "os_system_in_text_protocol": lambda marker: f"cos\nsystem\n(S'touch {marker}'\ntR.".encode(),
    "os_system_by_inst": lambda marker: f"(S'touch {marker}'\nios\nsystem\n.".encode(),
    "os_system_by_obj": lambda marker: b"\x80\x02(cos\nsystem\n" + text(f"touch {marker}") + b"o.",
    "builtins_exec": lambda marker: pickle.dumps(Call(exec, f"open({str(marker)!r}, 'w').close()")),
    "builtins_eval": lambda marker: pickle.dumps(Call(eval, f"open({str(marker)!r}, 'w').close()")),
    "builtins_open": lambda marker: pickle.dumps(Call(open, str(marker), "w")),
    "numpy_savetxt": lambda marker: pickle.dumps(Call(np.savetxt, str(marker), (1.0,))),
    "numpy_object_array": lambda marker: pickle.dumps(
        np.array([Call(os.system, f"touch {marker}"), None], dtype=object)
    ),
    "dots_through_numpy": lambda marker: (
        START + named("numpy", "f2py.os.system") + text(f"touch {marker}") + b"\x85R" + STOP
    ),
    "getattr_chain": getattr_chain,
    "numpy_load_of_a_second_pickle": numpy_load_of_a_second_pickle,
}
WITH_MARKER: dict[str, Callable[[Path], bytes]] = {
    "dots_in_the_attribute": lambda marker: (
        START + named("avici", "backbone.os.system") + text(f"touch {marker}") + b"\x85R" + STOP
    ),
    "dots_through_an_allowed_name": lambda marker: (
        START + named("numpy", "ndarray.tofile") + ARRAY + text(str(marker)) + b"\x86R" + STOP
    ),
    "result_of_a_call_called": lambda marker: (
        START + named("optax", "chain") + b")R" + text(f"touch {marker}") + b"\x85R" + STOP
    ),
    "text_called": lambda marker: START + text("os.system") + text(f"touch {marker}") + b"\x85R" + STOP,
    "numpy_fromfile_of_the_numeric_module": numpy_fromfile_of_the_numeric_module,
    "state_set_on_a_class": state_set_on_a_class,
}
FILL = b"(K\x01)" + FLOAT + b"\x89C\x04\x00\x00\x00\x00tb"
# Between the start and the end of a pickle.
BODIES: dict[str, bytes] = {
    "numpy_object_dtype": named("numpy", "dtype") + text("O") + b"\x89\x88\x87R",
    "numpy_subclass": ARRAY.replace(named("numpy", "ndarray"), named("numpy", "memmap")),
    "numpy_ndarray_called": named("numpy", "ndarray") + b"J\xff\xff\xff\x7f\x85\x85R",
    "importing_runs_code": named("presage_trap", "anything"),
    "copyreg_reconstructor": named("copyreg", "_reconstructor") + named("avici.backbone", "ModelState") * 2 + b"N\x87R",
    "copyreg_newobj": named("copyreg", "__newobj__") + named("avici.backbone", "ModelState") + b"\x85R",
    "newobj_with_keywords": named("avici.backbone", "ModelState") + b")}\x92",
    "state_set_on_a_record": named("avici.backbone", "ModelState") + b")\x81}" + text("args") + b"Nsb",
    "state_set_on_a_dict": b"}}" + text("update") + b"Nsb",
    "name_from_a_number": b"K\x01" + text("system") + b"\x93",
    "extension_registry": b"\x82\x01",
    "persistent_id": text("x") + b"Q",
    "array_larger_than_its_bytes": ARRAY
    + b"(K\x01\x8a\x06\x00\x00\x00\x00\x00\x10\x85"
    + FLOAT
    + b"\x89C\x04\x00\x00\x00\x00tb",
    "array_of_a_given_size": ARRAY.replace(b"K\x00\x85", b"\x8a\x06\x00\x00\x00\x00\x00\x10\x85"),
    "bytes_larger_than_the_file": b"\x8e" + struct.pack("<Q", 1 << 40) + b"abc",
    "tuples_that_double": b")" + b"2\x86" * 60,
    "tuples_that_double_through_the_memo": b")\x94" + b"".join(b"h" + bytes([k]) + b"\x86\x94" for k in range(100)),
    "type_of_an_array_that_doubles": named("numpy", "dtype") + doubling_tuple() + b"\x85R",
    "alignment_that_doubles": named("numpy", "dtype") + text("f4") + doubling_tuple() + b"\x86R",
    "shape_that_doubles": ARRAY + b"(K\x01" + doubling_tuple() + FLOAT + b"\x89C\x04\x00\x00\x00\x00tb",
    "size_that_doubles": ARRAY.replace(b"K\x00\x85", doubling_tuple()),
    "byte_order_that_doubles": FLOAT + b"(K\x03" + doubling_tuple() + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb",
    "name_that_doubles": doubling_tuple() + text("x") + b"\x93",
    "argument_of_a_record_that_doubles": named("avici.model", "State") + doubling_tuple() + b"\x85R",
    "key_that_doubles": b"}" + doubling_tuple() + b"Ns",
    "nested_too_deep": b")" + b"\x85" * 100_000,
    "list_within_itself": b"]\x94h\x00a",
    "too_many_steps": b"]" * 1_000_001,
    "too_many_memo_entries": b"]" + b"\x94" * 1_000_001,
    "unhashable_key": b"}]Ns",
    "mark_missing": b"t",
    "stack_empty": b"\x85",
    "memo_missing": b"h\x07",
    "array_filled_twice": ARRAY + FILL + FILL,
}
STATIC: dict[str, bytes] = {
    **{name: START + body + STOP for name, body in BODIES.items()},
    "numpy_frombuffer": pickle.dumps(np.arange(4.0), protocol=5),
    "numpy_structured_dtype": pickle.dumps(np.zeros(2, dtype=[("a", "f4")])),
    "numpy_string_array": pickle.dumps(np.array(["a", "b"])),
    "empty": b"",
    "not_a_pickle": b"PK\x03\x04 a zip file, for example",
}
HOSTILE = {**LIVE, **WITH_MARKER, **{name: lambda _, data=data: data for name, data in STATIC.items()}}


@pytest.fixture
def marker(tmp_path, monkeypatch):
    path = tmp_path / "marker"
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "presage_trap.py").write_text(f"open({str(path)!r}, 'w').close()\nanything = None\n")
    monkeypatch.syspath_prepend(str(trap))
    monkeypatch.delitem(sys.modules, "presage_trap", raising=False)
    return path


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
def test_hostile_pickles_are_refused_and_run_nothing(payload, marker, tmp_path):
    folder = folder_with(tmp_path, payload(marker))
    modules = set(sys.modules)
    with pytest.raises(ModelFileError) as caught:
        read_avici_checkpoint(folder)
    assert not marker.exists()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert {name for name in set(sys.modules) - modules if not name.startswith(("presage", "torch"))} == set()
    assert "presage_trap" not in sys.modules


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("payload", LIVE.values(), ids=LIVE)
def test_pythons_unpickler_executes_the_control_payloads(payload, marker):
    pickle.loads(payload(marker))
    assert marker.exists()


def test_there_are_enough_hostile_pickles():
    assert len(HOSTILE) == len(LIVE) + len(WITH_MARKER) + len(STATIC) >= 58


def test_calls_of_known_packages_become_records(marker):
    data = START + named("jax.experimental", "system") + text(f"touch {marker}") + b"\x85R" + STOP
    assert read_pickle(data) == Record("system", (f"touch {marker}",))
    assert not marker.exists()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 255)), max_size=4), st.integers(0, 40_000))
def test_damaged_files_raise_one_sentence(tmp_path, changes, length):
    data = bytearray((DATA / "avici-checkpoint-small" / "checkpoint_0300000.pkl").read_bytes())
    for position, value in changes:
        data[position] = value
    cut = data[:length] if not changes else data
    message = ""
    try:
        read_avici_checkpoint(folder_with(tmp_path, bytes(cut)))
    except ModelFileError as error:
        message = str(error)
    assert "\n" not in message
    assert message or changes  # a shortened file never loads


# Invalid folders and settings


def edited(change, name="avici-checkpoint-small"):
    """The fixture's state as plain values, with its parameters changed."""
    params = {key: dict(module) for key, module in state_of(name).args[3].items()}
    change(params)
    return pickle.dumps(params, protocol=4)


def test_one_array_cannot_be_used_for_many_parameters(tmp_path):
    """Arrays shared through the memo cost a few bytes in the file but full memory in the network."""
    shared = np.zeros((512, 512), np.float32)
    data = pickle.dumps({f"BaseModel/multi_head_attention_{k}/query": {"w": shared} for k in range(1000)}, protocol=4)
    assert len(data) < 2_000_000
    with pytest.raises(ModelFileError, match="more than once"):
        read_avici_checkpoint(folder_with(tmp_path, data))


def test_a_bare_dict_of_parameters_is_enough(tmp_path):
    network, info = read_avici_checkpoint(folder_with(tmp_path, edited(lambda params: None)))
    assert info["step"] is None
    assert network.config.layers == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.pop("BaseModel/linear_3"), r"lacks the parameter linear_3/w"),
        (lambda p: p["BaseModel/linear_3"].pop("b"), r"lacks the parameter linear_3/b"),
        (lambda p: p["BaseModel/linear_3"].update(w=np.zeros((3, 3), np.float32)), r"linear_3/w has shape \(3, 3\)"),
        (lambda p: p["BaseModel/linear_3"].update(extra=np.zeros(3, np.float32)), r"linear_3/extra.*does not have"),
        (lambda p: p.update({"BaseModel/more": {"w": np.zeros(1, np.float32)}}), r"more/w.*does not have"),
        (lambda p: p.update({"Other/more": {"w": np.zeros(1, np.float32)}}), "more than one network"),
        (lambda p: p["BaseModel/linear"].update(w=np.full((2, 16), np.nan, np.float32)), "not finite"),
        (lambda p: p["BaseModel/linear"].update(w=np.zeros((2, 16), np.int32)), "not finite real"),
        (lambda p: p.pop("BaseModel/multi_head_attention_3/query"), "3 attention modules"),
        (lambda p: p.clear(), "no network parameters"),
        (lambda p: p.update({"BaseModel/other": 3}), "no network parameters"),
    ],
)
def test_mismatched_parameters_are_named(tmp_path, change, message):
    with pytest.raises(ModelFileError, match=message):
        read_avici_checkpoint(folder_with(tmp_path, edited(change)))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ("{", "not readable JSON"),
        ("[]", "must hold objects"),
        ({"neural_net_kwargs": 3}, "must hold objects"),
        ({"neural_net_kwargs": {"model_kwargs": 3}}, "must hold objects"),
        ({"neural_net_kwargs": {"num_heads": 3}}, "num_heads is 3"),
        ({"neural_net_kwargs": {"num_heads": 0}}, "num_heads is 0"),
        ({"neural_net_kwargs": {"num_heads": 2, "layers": 10**9}}, "layers = 1000000000"),
        ({"neural_net_kwargs": {"num_heads": 2, "key_size": 16}}, "key_size = 16"),
        ({"neural_net_kwargs": {"num_heads": 2, "ln_axis": 0}}, "other than the last"),
        ({"neural_net_kwargs": {"num_heads": 2, "dropout": "much"}}, "does not describe"),
        ({"neural_net_kwargs": {"num_heads": 2}, "inference_model_kwargs": {"mask_diag": 1}}, "mask_diag"),
    ],
)
def test_mismatched_settings_are_named(tmp_path, kwargs, message):
    data = (DATA / "avici-checkpoint-small" / "checkpoint_0300000.pkl").read_bytes()
    with pytest.raises(ModelFileError, match=message):
        read_avici_checkpoint(folder_with(tmp_path, data, kwargs))


def test_incomplete_folders(tmp_path):
    with pytest.raises(ModelFileError, match="no checkpoint folder"):
        read_avici_checkpoint(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match=r"no checkpoint_\*\.pkl"):
        read_avici_checkpoint(tmp_path)
    folder = folder_with(tmp_path, b"")
    (folder / "kwargs.json").unlink()
    with pytest.raises(ModelFileError, match=r"no kwargs\.json"):
        read_avici_checkpoint(folder)
