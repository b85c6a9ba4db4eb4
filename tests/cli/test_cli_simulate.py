from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import presage
from presage.config import from_json, to_json
from presage.domain.catalog import domains, get_domain
from presage.errors import InputError
from presage.files import atomic_write, check_writable


def test_a_dataset_is_written(presage_cli, tmp_path) -> None:
    out = tmp_path / "folder" / "ds.npz"
    code, text, error = presage_cli("simulate", "rff", "-d", 6, "-n", 15, "--interventional", 5, "--seed", 3, "-o", out)
    assert (code, error) == (0, "")
    assert "15 rows x 6 variables" in text
    expected = presage.simulate("rff", d=6, n=15, n_interventional=5, seed=3)
    with np.load(out, allow_pickle=False) as file:
        assert (file["x"] == expected.x).all()
        assert (file["interventions"] == expected.interventions).all()
        assert (file["graph"] == expected.graph).all()
        assert tuple(file["names"]) == expected.names
        assert str(file["kind"]) == "real"
    assert os.listdir(out.parent) == ["ds.npz"]  # no temporary file is left


def test_several_datasets_have_a_leading_axis(presage_cli, tmp_path) -> None:
    out = tmp_path / "many.npz"
    code, text, _ = presage_cli("simulate", "linear", "-d", 4, "-n", 5, "--size", 37, "-o", out, "--json")
    assert code == 0
    assert json.loads(text)["datasets"] == 37
    expected = presage.simulate("linear", d=4, n=5, size=37)
    with np.load(out) as file:
        assert (file["x"] == expected.x).all()
        assert file["graph"].shape == (37, 4, 4)
        assert file["names"].tolist() == ["x0", "x1", "x2", "x3"]


def test_domains_are_listed(presage_cli) -> None:
    code, text, _ = presage_cli("domains")
    assert code == 0
    assert [line.split()[0] for line in text.splitlines()] == domains()
    assert list(json.loads(presage_cli("domains", "--json")[1])) == domains()


def test_a_domain_prints_as_a_table(presage_cli) -> None:
    code, text, _ = presage_cli("domains", "rff-ood")
    assert code == 0
    rows = {" ".join(line.split()) for line in text.splitlines()}
    assert {"rff-ood", "WattsStrogatz", "dimension 2 or 3", "rewire 0.3", "length scale U(5, 8) or U(8, 12)"} <= rows
    assert {"family laplace or cauchy", "share 0.5", "values U±(1, 5)", "damping 0.1", "radius 0.1"} <= rows


def test_json_of_a_domain_goes_in_and_out(presage_cli, tmp_path) -> None:
    code, text, _ = presage_cli("domains", "scm", "--json")
    assert code == 0
    assert from_json(json.loads(text)) == get_domain("scm")
    path = tmp_path / "mine.json"
    path.write_text(text)
    assert presage_cli("simulate", path, "-d", 3, "-n", 4, "-o", tmp_path / "a.npz")[0] == 0
    with np.load(tmp_path / "a.npz") as file:
        assert (file["x"] == presage.simulate("scm", d=3, n=4).x).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "rff", "-d", "0"], "d must be a whole number of at least 1"),
        (["simulate", "rff", "-d", "two"], "'-d'"),
        (["simulate", "rff", "-n", "-5"], "n must be a whole number of at least 1"),
        (["simulate", "rff", "-n", "nan"], "'-n'"),
        (["simulate", "rff", "-n", "5", "--interventional", "6"], "cannot exceed n"),
        (["simulate", "rff", "--interventional", "-1"], "n_interventional must be"),
        (["simulate", "rff", "--size", "0"], "size must be"),
        (["simulate", "rff", "--seed", "-1"], "seed must be"),
        (["simulate", "unheard"], "there is no domain 'unheard'"),
        (["simulate", "unheard.json"], "cannot read the domain file"),
        (["simulate"], "Missing argument"),
        (["simulate", "rff", "--unheard"], "--unheard"),
        (["simulate", "rff", "-o", "/dev/null/x.npz"], "cannot write /dev/null/x.npz"),
        (["simulate", "rff", "-o", "/"], "it is a folder"),
        (["domains", "unheard"], "there is no domain 'unheard'"),
        (["unheard"], "No such command 'unheard'"),
    ],
)
def test_bad_input_gives_one_sentence_and_code_2(presage_cli, tmp_path, monkeypatch, arguments, words) -> None:
    monkeypatch.chdir(tmp_path)
    code, text, error = presage_cli(*arguments)
    assert code == 2
    assert text == ""
    assert words in error
    assert len(error.splitlines()) == 1
    assert error.startswith("presage: ")
    assert os.listdir(tmp_path) == []


def test_a_nan_parameter_gives_one_sentence_and_code_2(presage_cli, tmp_path) -> None:
    path = tmp_path / "bad.json"
    data = to_json(get_domain("rff"))
    data["graphs"][0]["edges_per_node"][0] = float("nan")
    path.write_text(json.dumps(data))
    code, _, error = presage_cli("simulate", path, "-o", tmp_path / "a.npz")
    assert code == 2
    assert "graphs.edges_per_node must hold finite numbers only" in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "a.npz").exists()


def test_help_shows_examples(presage_cli) -> None:
    code, text, _ = presage_cli()
    assert code == 0
    assert "simulate" in text
    for command in ("simulate", "domains"):
        code, text, _ = presage_cli(command, "--help")
        assert code == 0
        assert f"Example: presage {command}" in text
    assert presage_cli("--version")[1] == f"presage {presage.__version__}\n"


def test_our_own_mistakes_are_not_hidden(presage_cli, monkeypatch, tmp_path) -> None:
    def broken(*args: object, **options: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("presage.domain.domain.ScmDomain.draw", broken)
    with pytest.raises(ZeroDivisionError, match="ours"):
        presage_cli("simulate", "rff", "-o", tmp_path / "a.npz")


def test_the_installed_command_and_the_module_agree(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "presage", "simulate", "unheard"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_files_appear_whole_or_not_at_all(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail_half_way() -> None:
        with atomic_write(path) as file:
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        fail_half_way()
    assert path.read_text() == "old"
    with atomic_write(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
    check_writable(tmp_path / "b.txt")
    assert not (tmp_path / "b.txt").exists()
    with pytest.raises(InputError, match="it is a folder"):
        check_writable(tmp_path)
