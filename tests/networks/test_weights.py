"""Model files: what is saved comes back, and every kind of damage is refused with a sentence."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from models_for_tests import save_tiny
from presage.errors import ModelFileError
from presage.networks.axial import AxialConfig
from presage.networks.model_header import read_metadata
from presage.networks.network import NetConfig, Network, build_network, register_network
from presage.networks.pair import PairConfig, PairNetwork
from presage.networks.weights import _digest, load_model_file, save_model


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToyConfig(NetConfig):
    net: ClassVar[str] = "toy-of-test-weights"
    width: int = 4


class ToyNetwork(Network):
    def __init__(self, config: ToyConfig) -> None:
        super().__init__()
        self.config = config
        self.up = nn.Linear(1, config.width)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def io_layers(self) -> Iterator[nn.Module]:
        yield self.up

    def forward(self, x: Tensor, u: Tensor, missing: Tensor | None = None) -> Tensor:
        h = self.up(x[..., None]).mean(dim=1)  # [B, d, width]
        return h @ h.transpose(1, 2)  # [B, d, d]


register_network(ToyConfig, ToyNetwork)
METADATA = {"name": "toy", "kind": "real", "acyclic": True, "train": {"steps": 3}}


@pytest.fixture
def network() -> ToyNetwork:
    torch.manual_seed(0)
    return ToyNetwork(ToyConfig(width=6))


@pytest.fixture
def path(tmp_path: Path, network: ToyNetwork) -> Path:
    save_model(tmp_path / "deep" / "toy.safetensors", network, METADATA)
    return tmp_path / "deep" / "toy.safetensors"


def header_of(path: Path) -> dict[str, str]:
    with safe_open(str(path), framework="pt") as file:
        return dict(file.metadata())


def rewrite(path: Path, tensors: dict[str, Tensor], header: dict[str, str]) -> None:
    """Write a file whose checksum is right, so that only the content is wrong."""
    save_file(tensors, str(path), metadata={**header, "sha256": _digest(tensors, header)})


def test_round_trip_keeps_weights_config_and_metadata(path: Path, network: ToyNetwork) -> None:
    loaded, metadata = load_model_file(path)
    assert metadata == METADATA
    assert loaded.config == network.config
    assert not loaded.training
    for name, tensor in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor)
    assert read_metadata(path) == {**METADATA, "network": {"type": "ToyConfig", "width": 6}}


def test_nothing_but_the_file_is_left_behind(path: Path) -> None:
    assert [child.name for child in path.parent.iterdir()] == ["toy.safetensors"]


def test_weights_of_half_precision_become_single(tmp_path: Path) -> None:
    network = ToyNetwork(ToyConfig(width=40))
    rounded = network.up.weight.half().float()
    save_model(tmp_path / "half", network.half(), METADATA)
    loaded, _ = load_model_file(tmp_path / "half")
    assert torch.equal(loaded.up.weight, rounded)


def test_infinite_weights_are_not_saved(tmp_path: Path, network: ToyNetwork) -> None:
    with torch.no_grad():
        network.up.weight[0, 0] = float("nan")
    with pytest.raises(ModelFileError, match=r"up\.weight"):
        save_model(tmp_path / "bad", network, METADATA)
    assert not (tmp_path / "bad").exists()


def test_truncation_is_refused_wherever_it_happens(path: Path) -> None:
    content = path.read_bytes()
    for size in range(0, len(content), 37):
        path.write_bytes(content[:size])
        with pytest.raises(ModelFileError):
            load_model_file(path)


def test_every_bit_flip_is_refused(path: Path) -> None:
    content = path.read_bytes()
    for place in range(0, len(content), 11):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(bytes(damaged))
        with pytest.raises(ModelFileError):
            load_model_file(path)


def test_wrong_tensors_are_named_with_both_shapes(path: Path) -> None:
    tensors, header = load_file(str(path)), header_of(path)
    rewrite(path, {**tensors, "up.bias": torch.zeros(5)}, header)
    with pytest.raises(ModelFileError, match=r"'up\.bias' has shape \(5,\), but its network needs \(6,\)"):
        load_model_file(path)
    rewrite(path, {k: v for k, v in tensors.items() if k != "up.bias"}, header)
    with pytest.raises(ModelFileError, match=r"'up\.bias' of shape \(6,\) is missing"):
        load_model_file(path)
    rewrite(path, {**tensors, "down": torch.zeros(2, 3)}, header)
    with pytest.raises(ModelFileError, match=r"'down' of shape \(2, 3\) is not part"):
        load_model_file(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": "other"}, "not a Presage model"),
        ({"version": "99"}, "version 99; this Presage reads version 1"),
        ({"network": json.dumps({"type": "NoSuch"})}, "no NetConfig of type 'NoSuch'"),
        ({"network": json.dumps({"type": "ToyConfig", "depth": 3})}, "no field 'depth'"),
        ({"network": "{"}, "network entry is missing or damaged"),
        ({"metadata": "[]"}, "metadata entry is damaged"),
    ],
)
def test_unusable_headers_are_explained(path: Path, change: dict[str, str], sentence: str) -> None:
    tensors, header = load_file(str(path)), header_of(path)
    rewrite(path, tensors, {**header, **change})
    with pytest.raises(ModelFileError, match=sentence):
        load_model_file(path)


def declare(path: Path, **fields: object) -> None:
    """Change the declared configuration of the network; the checksum is right."""
    header = header_of(path)
    network = json.dumps({**json.loads(header["network"]), **fields})
    rewrite(path, load_file(str(path)), {**header, "network": network})


@pytest.mark.parametrize(
    "fields",
    [
        {"rounds": 10**9},
        {"blocks": 10**9},
        {"rounds": 400, "blocks": 400},
        {"rounds": 10**30},
        {"width": 10**12},
        {"width": 10**30},
        {"outer": 10**8},
        {"outer": 2**62},
        {"cell_width": 2**40, "heads": 1},
        {"expand": 10**18},
    ],
    ids=str,
)
def test_a_small_file_that_declares_an_enormous_network_is_refused_before_it_is_built(
    tmp_path: Path, fields: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_tiny(tmp_path / "tiny.safetensors")
    declare(path, **fields)
    built = []
    original = PairNetwork.__init__

    def watched(self: PairNetwork, config: PairConfig) -> None:
        built.append(torch.empty(0).device.type)
        original(self, config)

    monkeypatch.setattr(PairNetwork, "__init__", watched)
    with pytest.raises(ModelFileError, match=r"tiny\.safetensors") as caught:
        load_model_file(path)
    assert len(str(caught.value).removeprefix(str(path))) < 400
    assert "cpu" not in built  # only shapes were computed


def test_axial_networks_are_checked_too(tmp_path: Path) -> None:
    network = build_network(AxialConfig(layers=1, width=8, heads=2, key_size=4, hidden=8))
    save_model(tmp_path / "axial", network, METADATA)
    load_model_file(tmp_path / "axial")
    declare(tmp_path / "axial", layers=10**9)
    with pytest.raises(ModelFileError, match=r"2e\+09 repeated layers, but the file holds only \d+ tensors"):
        load_model_file(tmp_path / "axial")


def test_unusual_number_types_are_refused(path: Path) -> None:
    tensors, header = load_file(str(path)), header_of(path)
    save_file({**tensors, "up.bias": tensors["up.bias"].bfloat16()}, str(path), metadata=header)
    with pytest.raises(ModelFileError, match=r"'up\.bias' is stored as torch\.bfloat16"):
        load_model_file(path)


@pytest.mark.parametrize("key", ["network", "metadata"])
@pytest.mark.parametrize("depth", [200, 100_000])
def test_deep_headers_are_refused(path: Path, key: str, depth: int) -> None:
    deep = '{"name":' + "[" * depth + "]" * depth + "}"
    rewrite(path, load_file(str(path)), {**header_of(path), key: deep})
    with pytest.raises(ModelFileError, match=f"its {key} entry is missing or damaged"):
        load_model_file(path)


def test_files_that_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello, this is no model at all " * 50)
    (tmp_path / "empty").touch()
    save_file({"a": torch.zeros(2)}, str(tmp_path / "plain"))
    for name, sentence in (("text", "not a whole"), ("empty", "not a whole"), ("plain", "not a Presage model")):
        with pytest.raises(ModelFileError, match=sentence):
            load_model_file(tmp_path / name)
    for name in ("absent", ""):
        with pytest.raises(ModelFileError, match="no such model file"):
            load_model_file(tmp_path / name)
