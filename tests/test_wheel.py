"""The distribution: both archives build, pass twine, and the wheel works in an empty environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).resolve().parents[1]

ANSWER = """
import presage, torch
dataset = presage.load_example("rff")
result = presage.discover(dataset)
scores = presage.metrics.evaluate(dataset.graph, result.probabilities)
print(presage.__file__, torch.__version__, scores["auprc"], sep="\\n")
"""


def run(*command: object, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source archive, built from this tree."""
    pytest.importorskip("build", reason="building the archives needs the extra dev")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, REPOSITORY, cwd=folder)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def test_the_archives_pass_twine(archives: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("twine", reason="checking the archives needs the extra dev")
    assert run(sys.executable, "-m", "twine", "check", "--strict", *archives, cwd=tmp_path).count("PASSED") == 2


def test_the_archives_hold_licences_and_nothing_superfluous(archives: tuple[Path, Path]) -> None:
    wheel, source = archives
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        metadata = file.read(next(name for name in names if name.endswith("dist-info/METADATA"))).decode()
    assert "presage/assets/networks/NOTICE.md" in names
    assert {Path(name).name for name in names if "dist-info/licenses/" in name} == {"LICENSE", "NOTICE.md"}
    assert {name.split("/")[0].removesuffix(".dist-info") for name in names} == {"presage", wheel.name.split("-py3")[0]}
    assert "@" not in metadata.split("\n\n")[0], "the author entry must not hold an address"
    with tarfile.open(source) as archive:
        folders = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"src", "tests", "NOTICE.md", "constraints.txt"} <= folders
    assert not folders & {".venv", ".git", "records", "runs", "results", "site", "demo", "dist"}
    assert source.stat().st_size < wheel.stat().st_size + 3_000_000


def test_the_wheel_answers_in_an_empty_environment(archives: tuple[Path, Path], tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "-c", REPOSITORY / "constraints.txt", archives[0], cwd=tmp_path)
    place, torch_version, auprc = run(python, "-c", ANSWER, cwd=tmp_path).splitlines()
    assert Path(place).is_relative_to(environment)
    assert torch_version.split("+")[0] == "2.13.0"
    assert float(auprc) > 0.8
    assert "rff" in run(environment / "bin" / "presage", "models", cwd=tmp_path)
