"""Write the lock files of the baseline environments: every package with its version and hashes, from PyPI.

    pip install uv
    python scripts/lock_environments.py

Run it after changing `presage.baselines.environments.ENVIRONMENTS`.
"""

from __future__ import annotations

import subprocess

from presage.baselines.environments import ENVIRONMENTS, LOCKS, Environment

UV = ["uv", "pip", "compile", "-", "--universal", "--python-version", "3.11"]
OPTIONS = ["--generate-hashes", "--no-header", "--no-annotate", "--only-binary", ":all:", "--no-emit-index-url"]


def compiled(packages: tuple[str, ...], *options: str) -> str:
    """The packages with their dependencies, one block of text."""
    command = [*UV, *OPTIONS, *options]
    text = "\n".join(packages)
    return subprocess.run(command, input=text, check=True, stdout=subprocess.PIPE, text=True).stdout


def lock(environment: Environment) -> str:
    """The contents of the lock file of an environment."""
    bare = compiled(environment.bare, "--no-deps") if environment.bare else ""
    return compiled(environment.packages) + bare


def main() -> None:
    """Write all lock files."""
    LOCKS.mkdir(exist_ok=True)
    for environment in ENVIRONMENTS.values():
        if environment.lock is not None:
            (LOCKS / environment.lock).write_text(lock(environment), encoding="utf-8")
            print(f"wrote {LOCKS / environment.lock}")


if __name__ == "__main__":
    main()
