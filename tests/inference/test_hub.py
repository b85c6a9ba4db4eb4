"""Models by name, file and folder; exact streaming; cards; public checkpoints; damaged files."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch

import presage
import presage.inference.hub
import presage.inference.model
from models_for_tests import save_tiny, tiny_network
from presage.data.standardize import standardize
from presage.errors import ConfigError, DataError, MissingExtraError, ModelFileError
from presage.inference.hub import load_model
from presage.inference.model import Model

FIXTURES = Path(os.environ.get("PRESAGE_FIXTURES", Path(__file__).parents[3] / "shared" / "fixtures"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return save_tiny(tmp_path / "tiny.safetensors")


def data(n: int = 80, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)), rng.random((n, d)) < 0.1


def test_probabilities_are_the_networks_on_standardized_values(file: Path) -> None:
    x, u = data()
    found = load_model(file).probabilities(x, u)
    network = tiny_network().eval()
    with torch.no_grad():
        logits = network(torch.from_numpy(standardize(x, "real"))[None], torch.from_numpy(u)[None])[0]
    expected = torch.sigmoid(logits.double()).fill_diagonal_(0.0).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found.dtype == np.float64
    assert (np.diag(found) == 0).all()


def test_working_on_few_rows_at_once_changes_nothing(file: Path) -> None:
    x, u = data(n=101)
    model = load_model(file)
    whole = model.probabilities(x, u)
    for rows in (13, 50, 1000):
        np.testing.assert_allclose(model.probabilities(x, u, rows=rows), whole, atol=1e-5)


def test_many_columns_are_standardized_in_pieces_without_a_difference(file: Path) -> None:
    x, _ = data(d=19)
    x[3, 4] = np.nan
    prepared = load_model(file).prepare(x)
    np.testing.assert_array_equal(prepared.x.numpy(), standardize(x, "real"))
    assert prepared.missing is not None
    assert int(prepared.missing.sum()) == 1


def test_temperature_divides_logits(tmp_path: Path) -> None:
    x, u = data()
    plain = load_model(save_tiny(tmp_path / "a.safetensors"))
    cool = load_model(save_tiny(tmp_path / "b.safetensors", temperature=2.5))
    off = ~np.eye(5, dtype=bool)
    odds = plain.probabilities(x, u)[off]
    odds /= 1 - odds
    expected = 1 / (1 + odds ** (-1 / 2.5))
    np.testing.assert_allclose(cool.probabilities(x, u)[off], expected, atol=1e-12)
    assert "2.5" in str(cool.card)
    with pytest.raises(ModelFileError, match="temperature"):
        load_model(save_tiny(tmp_path / "c.safetensors", temperature=-1.0))


@pytest.mark.parametrize(
    ("x", "u", "sentence"),
    [
        (np.zeros(3), None, "table"),
        (np.zeros((0, 3)), None, "at least one row"),
        (np.array([["a"]]), None, "numbers"),
        (np.zeros((3, 2)), np.zeros((2, 3)), "shape"),
        (np.zeros((3, 2)), np.full((3, 2), 2), "only 0 and 1"),
        (np.full((3, 2), np.inf), None, "infinities"),
    ],
)
def test_bad_arrays_get_a_sentence(file: Path, x: np.ndarray, u: np.ndarray | None, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        load_model(file).probabilities(x, u)


def test_names_files_and_folders(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = data()
    monkeypatch.setattr(presage.inference.hub, "BUNDLED", tmp_path)
    expected = load_model(file).probabilities(x)
    for address in ("tiny", str(file), file, str(tmp_path), tmp_path):
        np.testing.assert_array_equal(load_model(address).probabilities(x), expected)
    table = presage.models()
    assert table["name"].tolist() == ["tiny"]
    assert table.loc[0, "about"] == "Untrained; for tests."
    model = load_model("tiny")
    assert load_model(model) is model
    save_tiny(tmp_path / "second.safetensors")
    with pytest.raises(ConfigError, match=r"several models; name one: second\.safetensors, tiny\.safetensors"):
        load_model(tmp_path)
    with pytest.raises(ConfigError, match=r"no model 'other'.*\(second, tiny\)"):
        load_model("other")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(ConfigError, match="holds no model"):
        load_model(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="not None"):
        load_model(None)  # type: ignore[arg-type]


def test_damaged_files_are_refused(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-3] ^= 4
    file.write_bytes(bytes(content))
    with pytest.raises(ModelFileError, match="checksum"):
        load_model(file)
    file.write_bytes(bytes(content[:1000]))
    with pytest.raises(ModelFileError, match="not a whole"):
        load_model(file)


def test_bundled_models_load_and_describe_themselves() -> None:
    for name in presage.models()["name"]:
        model = load_model(name)
        x, u = data()
        found = model.probabilities(np.abs(np.round(x * 5)) if model.kind == "counts" else x, u)
        assert found.shape == (5, 5)
        assert str(model.card).startswith(f"# {model.name}")
        assert model.card.train


def test_cards_come_from_the_records(file: Path) -> None:
    card = load_model(file).card
    text = str(card)
    for part in ("# tiny", "real values", "Untrained; for tests.", "| linear | 0.1 |", "## Limits", "ErdosRenyi"):
        assert part in text
    assert card.to_json()["train"] == {"steps": 0, "datasets": 0}
    assert card.parameters == sum(p.numel() for p in tiny_network().parameters())
    assert "no summaries" in text


def test_what_cannot_fit_is_refused_with_what_would(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(file)
    monkeypatch.setattr("psutil.virtual_memory", lambda: types.SimpleNamespace(available=2 * 2**30))
    monkeypatch.setattr(type(model.network), "bytes_per_pair", lambda network: 2.0**28)
    with pytest.raises(DataError, match=r"^5 variables need about 6 GiB of memory, but 2 GiB .* about 2 variables"):
        model.probabilities(data()[0])
    monkeypatch.setattr("psutil.virtual_memory", lambda: types.SimpleNamespace(available=8 * 2**30))
    assert model.probabilities(data()[0]).shape == (5, 5)


def test_unusable_kinds_are_refused() -> None:
    with pytest.raises(ModelFileError, match="neither 'real' nor 'counts'"):
        Model(tiny_network(), {"kind": "words"})


def test_networks_that_answer_with_nonsense_are_refused(tmp_path: Path) -> None:
    network = tiny_network()
    model = Model(network, {"name": "bad"})
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(float("inf"))
    with pytest.raises(ModelFileError, match="not finite"):
        model.probabilities(data()[0])


def test_published_models(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def hf_hub_download(repo_id: str, filename: str) -> str:
        asked.append((repo_id, filename))
        if repo_id == "owner/absent":
            raise OSError("404: no such repository\nand more")
        return str(file)

    monkeypatch.setitem(sys.modules, "huggingface_hub", types.SimpleNamespace(hf_hub_download=hf_hub_download))
    assert load_model("hf://owner/repo").name == "tiny"
    assert load_model("hf://owner/repo/sub/big.safetensors").name == "tiny"
    assert asked == [("owner/repo", "model.safetensors"), ("owner/repo", "sub/big.safetensors")]
    with pytest.raises(ModelFileError, match=r"could not be downloaded: 404: no such repository$"):
        load_model("hf://owner/absent")
    with pytest.raises(ConfigError, match="should look like"):
        load_model("hf://owner")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"presage\[hub\]"):
        load_model("hf://owner/repo")


@pytest.mark.parametrize(("name", "counts"), [("avici-checkpoint-small", False), ("avici-checkpoint-counts", True)])
def test_public_checkpoints_give_the_reference_answers(name: str, counts: bool) -> None:
    folder = FIXTURES / name
    if not folder.is_dir():
        pytest.skip(f"the fixtures {folder.name} are not on this machine (PRESAGE_FIXTURES)")
    model = presage.load_avici_checkpoint(folder, counts=counts)
    assert model.kind == ("counts" if counts else "real")
    with np.load(folder / "expected.npz") as expected:
        x, u = expected["x"], expected["interv"]
        np.testing.assert_allclose(model.probabilities(x), expected["probs_observational"], atol=1e-5)
        np.testing.assert_allclose(model.probabilities(x, u), expected["probs_interventional"], atol=1e-5)
    if not counts:
        np.testing.assert_array_equal(load_model(folder).probabilities(x), model.probabilities(x))
        assert presage.discover(x, u, model=folder).matrix.shape == (x.shape[1], x.shape[1])
