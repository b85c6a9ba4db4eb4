"""Separate environments for methods whose packages conflict: pinned lists, built on demand."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from presage.errors import ConfigError, PresageError

__all__ = ["ENVIRONMENTS", "Environment", "environment_python", "home", "install"]


LOCKS = Path(__file__).parents[1] / "assets" / "environments"
"""Files with the versions and hashes of all packages of an environment, written by scripts/lock_environments.py."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """packages: installed with their dependencies; bare: installed without, because their requirements conflict.

    lock: a file of `LOCKS` with the hashes of the packages and their dependencies; pip then refuses any other file.
    unlocked: those of the packages that are not in the lock; they are installed last, from pip's usual sources.
    """

    packages: tuple[str, ...]
    bare: tuple[str, ...] = ()
    lock: str | None = None
    unlocked: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Changes with the pins."""
        locked = None if self.lock is None else (LOCKS / self.lock).read_text(encoding="utf-8")
        pins = [self.packages, self.bare, locked, *([self.unlocked] if self.unlocked else [])]
        return hashlib.sha256(json.dumps(pins).encode()).hexdigest()[:16]

    def pip_arguments(self) -> list[list[str]]:
        """The arguments of `pip install`, one list per call."""
        if self.lock is not None:
            locked = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(LOCKS / self.lock)]
            return [locked, list(self.unlocked)] if self.unlocked else [locked]
        bare = [["--no-deps", *self.bare]] if self.bare else []
        return [list(self.packages), *bare]


ENVIRONMENTS = {
    "classical": Environment(
        packages=("causal-learn==0.1.4.8", "pgmpy==1.1.2", "numpy==2.4.6", "pandas==3.1.1", "scipy==1.17.1"),
        lock="classical.txt",
    ),
    "gcastle": Environment(
        packages=("gcastle==1.0.4", "dagma==1.1.1", "torch==2.13.0", "igraph==1.0.0", "numpy==2.4.6"),
        lock="gcastle.txt",
        unlocked=("torch==2.13.0",),
    ),
    "dibs": Environment(
        packages=("jax==0.10.2", "jaxlib==0.10.2", "igraph==1.0.0", "tqdm", "scikit-learn", "matplotlib", "imageio"),
        bare=("dibs-lib==1.3.3",),  # requires jupyter
        lock="dibs.txt",
    ),
    "sdcd": Environment(
        packages=(
            "numpy==1.26.4",
            "pandas==1.5.3",
            "scipy==1.13.1",
            "networkx==3.2.1",
            "numba==0.59.1",
            "torch==2.13.0",
            "tqdm",
            "wandb==0.15.12",
            "setuptools<81",  # wandb imports pkg_resources
        ),
        bare=("sdcd==0.1.4",),
        lock="sdcd.txt",
        unlocked=("torch==2.13.0", "pathtools==0.1.2"),
    ),
}
"""Versions that were tested together on Python 3.11.

Two packages have a version but no hash. Machines with and without a GPU need different builds of one version of torch,
from different indexes, and the builds for GPUs bring libraries of CUDA; pip can neither choose between two locks nor
leave a part of one out. pathtools, which wandb needs, exists as source only, so building it takes tools without hashes.
"""


def home() -> Path:
    """Where environments are kept: the variable PRESAGE_HOME, or the user's cache folder."""
    if set_ := os.environ.get("PRESAGE_HOME"):
        return Path(set_).expanduser()
    import pooch

    return Path(pooch.os_cache("presage"))


def _folder(name: str) -> Path:
    if name not in ENVIRONMENTS:
        raise ConfigError(f"there is no environment {name!r}; choose one of: {', '.join(ENVIRONMENTS)}")
    return home() / "environments" / name


def environment_python(name: str) -> Path | None:
    """The Python of an environment ("ours" is the one running), or None if it is not installed with these pins."""
    if name == "ours":
        return Path(sys.executable)
    folder = _folder(name)
    marker = folder / "presage-pins"
    if not marker.is_file() or marker.read_text() != ENVIRONMENTS[name].digest:
        return None
    return _python(folder)


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(name: str) -> Path:
    """Build an environment from its pins; the marker is written last, so that an incomplete one is never used."""
    folder, environment = _folder(name), ENVIRONMENTS[name]
    if (python := environment_python(name)) is not None:
        return python
    if folder.exists():
        shutil.rmtree(folder)
    venv.create(folder, with_pip=True)
    python = _python(folder)
    for options in environment.pip_arguments():
        command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", *options]
        if subprocess.run(command, check=False).returncode:
            raise PresageError(f"the environment {name!r} could not be built: see the output above")
    (folder / "presage-pins").write_text(environment.digest)
    return python
