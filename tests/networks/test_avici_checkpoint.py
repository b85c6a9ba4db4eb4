"""Public checkpoints: agreement with the original implementation; hostile pickles are refused without execution."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
import sys
import types
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


def os_system(marker):
    return pickle.dumps(Call(os.system, f"touch {marker}"))


def os_system_next_to_parameters(marker):
    return pickle.dumps(({"BaseModel/linear": {"w": np.zeros((2, 4), np.float32)}}, Call(os.system, f"touch {marker}")))


def os_system_in_text_protocol(marker):
    return f"cos\nsystem\n(S'touch {marker}'\ntR.".encode()


def os_system_by_inst(marker):
    return f"(S'touch {marker}'\nios\nsystem\n.".encode()


def os_system_by_obj(marker):
    return b"\x80\x02(cos\nsystem\n" + text(f"touch {marker}") + b"o."


def builtins_exec(marker):
    return pickle.dumps(Call(exec, f"open({str(marker)!r}, 'w').close()"))


def builtins_eval(marker):
    return pickle.dumps(Call(eval, f"open({str(marker)!r}, 'w').close()"))


def builtins_open(marker):
    return pickle.dumps(Call(open, str(marker), "w"))


def getattr_chain(marker):

    # A callable that is itself the result of calls: written by hand, since pickle wants a plain function to reduce to.
    body = named("builtins", "getattr") + named("builtins", "__import__") + text("os") + b"\x85R" + text("system")
    return START + body + b"\x86R" + text(f"touch {marker}") + b"\x85R" + STOP


def numpy_savetxt(marker):
    return pickle.dumps(Call(np.savetxt, str(marker), (1.0,)))


def numpy_load_of_a_second_pickle(marker):
    second = Path(f"{marker}.npy")
    np.save(second, np.array([Call(os.system, f"touch {marker}")], dtype=object), allow_pickle=True)
    return START + named("numpy", "load") + text(str(second)) + b"N\x88\x87R" + STOP


def numpy_fromfile_of_the_numeric_module(marker):
    Path(f"{marker}.bin").write_bytes(b"1234")
    return START + named("numpy.core.numeric", "fromfile") + text(f"{marker}.bin") + b"\x85R" + STOP


def numpy_frombuffer(_):
    return pickle.dumps(np.arange(4.0), protocol=5)


def numpy_object_array(marker):
    return pickle.dumps(np.array([Call(os.system, f"touch {marker}"), None], dtype=object))


def numpy_object_dtype(_):
    return START + named("numpy", "dtype") + text("O") + b"\x89\x88\x87R" + STOP


def numpy_structured_dtype(_):
    return pickle.dumps(np.zeros(2, dtype=[("a", "f4")]))


def numpy_string_array(_):
    return pickle.dumps(np.array(["a", "b"]))


def numpy_subclass(_):
    return START + ARRAY.replace(named("numpy", "ndarray"), named("numpy", "memmap")) + STOP


def numpy_ndarray_called(_):
    return START + named("numpy", "ndarray") + b"J\xff\xff\xff\x7f\x85\x85R" + STOP


def dots_in_the_attribute(marker):
    return START + named("avici", "backbone.os.system") + text(f"touch {marker}") + b"\x85R" + STOP


def dots_through_an_allowed_name(marker):
    return START + named("numpy", "ndarray.tofile") + ARRAY + text(str(marker)) + b"\x86R" + STOP


def dots_through_numpy(marker):
    return START + named("numpy", "f2py.os.system") + text(f"touch {marker}") + b"\x85R" + STOP


def importing_runs_code(_):
    return START + named("presage_trap", "anything") + STOP


def copyreg_reconstructor(_):
    return START + named("copyreg", "_reconstructor") + named("avici.backbone", "ModelState") * 2 + b"N\x87R" + STOP


def copyreg_newobj(_):
    return START + named("copyreg", "__newobj__") + named("avici.backbone", "ModelState") + b"\x85R" + STOP


def newobj_with_keywords(_):
    return START + named("avici.backbone", "ModelState") + b")}\x92" + STOP


def state_set_on_a_class(marker):
    state = b"N}" + text("__new__") + text(f"touch {marker}") + b"s\x86"
    return START + named("avici.backbone", "ModelState") + state + b"b" + STOP


def state_set_on_a_record(_):
    return START + named("avici.backbone", "ModelState") + b")\x81}" + text("args") + b"Nsb" + STOP


def state_set_on_a_dict(_):
    return START + b"}}" + text("update") + b"Nsb" + STOP


def array_filled_twice(_):
    fill = b"(K\x01)" + FLOAT + b"\x89C\x04\x00\x00\x00\x00tb"
    return START + ARRAY + fill + fill + STOP


def result_of_a_call_called(marker):
    return START + named("optax", "chain") + b")R" + text(f"touch {marker}") + b"\x85R" + STOP


def text_called(marker):
    return START + text("os.system") + text(f"touch {marker}") + b"\x85R" + STOP


def name_from_a_number(_):
    return START + b"K\x01" + text("system") + b"\x93" + STOP


def extension_registry(_):
    return START + b"\x82\x01" + STOP


def persistent_id(_):
    return START + text("x") + b"Q" + STOP


def array_larger_than_its_bytes(_):
    return START + ARRAY + b"(K\x01\x8a\x06\x00\x00\x00\x00\x00\x10\x85" + FLOAT + b"\x89C\x04\x00\x00\x00\x00tb" + STOP


def array_of_a_given_size(_):
    return START + ARRAY.replace(b"K\x00\x85", b"\x8a\x06\x00\x00\x00\x00\x00\x10\x85") + STOP


def bytes_larger_than_the_file(_):
    return START + b"\x8e" + struct.pack("<Q", 1 << 40) + b"abc" + STOP


def tuples_that_double(_):
    return START + b")" + b"2\x86" * 60 + STOP


def tuples_that_double_through_the_memo(_):
    return START + b")\x94" + b"".join(b"h" + bytes([k]) + b"\x86\x94" for k in range(100)) + STOP


def doubling_tuple() -> bytes:
    """A tuple of 2**60 leaves in 180 bytes; its text would not fit into any memory."""
    return b")\x94" + b"".join(b"h" + bytes([k]) + b"h" + bytes([k]) + b"\x86\x94" for k in range(60))


def type_of_an_array_that_doubles(_):
    return START + named("numpy", "dtype") + doubling_tuple() + b"\x85R" + STOP


def alignment_that_doubles(_):
    return START + named("numpy", "dtype") + text("f4") + doubling_tuple() + b"\x86R" + STOP


def shape_that_doubles(_):
    return START + ARRAY + b"(K\x01" + doubling_tuple() + FLOAT + b"\x89C\x04\x00\x00\x00\x00tb" + STOP


def size_that_doubles(_):
    return START + ARRAY.replace(b"K\x00\x85", doubling_tuple()) + STOP


def byte_order_that_doubles(_):
    return START + FLOAT + b"(K\x03" + doubling_tuple() + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb" + STOP


def name_that_doubles(_):
    return START + doubling_tuple() + text("x") + b"\x93" + STOP


def argument_of_a_record_that_doubles(_):
    return START + named("avici.model", "State") + doubling_tuple() + b"\x85R" + STOP


def key_that_doubles(_):
    return START + b"}" + doubling_tuple() + b"Ns" + STOP


def nested_too_deep(_):
    return START + b")" + b"\x85" * 100_000 + STOP


def list_within_itself(_):
    return START + b"]\x94h\x00a" + STOP


def too_many_steps(_):
    return START + b"]" * 1_000_001 + STOP


def too_many_memo_entries(_):
    return START + b"]" + b"\x94" * 1_000_001 + STOP


def unhashable_key(_):
    return START + b"}]Ns" + STOP


def empty(_):
    return b""


def not_a_pickle(_):
    return b"PK\x03\x04 a zip file, for example"


def mark_missing(_):
    return START + b"t" + STOP


def stack_empty(_):
    return START + b"\x85" + STOP


def memo_missing(_):
    return START + b"h\x07" + STOP


HOSTILE = [
    value
    for name, value in list(globals().items())
    if isinstance(value, types.FunctionType)
    and value.__code__.co_varnames[: value.__code__.co_argcount] in (("marker",), ("_",))
]
# Payloads that Python's unpickler executes: the control for the marker.
LIVE = [
    os_system,
    os_system_next_to_parameters,
    os_system_in_text_protocol,
    os_system_by_inst,
    os_system_by_obj,
    builtins_exec,
    builtins_eval,
    builtins_open,
    getattr_chain,
    numpy_savetxt,
    numpy_load_of_a_second_pickle,
    numpy_object_array,
    dots_through_numpy,
]


@pytest.fixture
def marker(tmp_path, monkeypatch):
    path = tmp_path / "marker"
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "presage_trap.py").write_text(f"open({str(path)!r}, 'w').close()\nanything = None\n")
    monkeypatch.syspath_prepend(str(trap))
    monkeypatch.delitem(sys.modules, "presage_trap", raising=False)
    return path


@pytest.mark.parametrize("payload", HOSTILE, ids=lambda payload: payload.__name__)
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
@pytest.mark.parametrize("payload", LIVE, ids=lambda payload: payload.__name__)
def test_pythons_unpickler_executes_the_control_payloads(payload, marker):
    pickle.loads(payload(marker))
    assert marker.exists()


def test_there_are_enough_hostile_pickles():
    assert len(HOSTILE) >= 45
    assert set(LIVE) <= set(HOSTILE)


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
