"""Write the lock files of the baseline environments: every package with its version and hashes, from PyPI.

    pip install uv
    python scripts/lock_environments.py

Run it after changing `presage.baselines.environments.ENVIRONMENTS`.
"""

from __future__ import annotations

import re
import subprocess

from presage.baselines.environments import ENVIRONMENTS, LOCKS, Environment

UV = ["uv", "pip", "compile", "-", "--universal", "--python-version", "3.11"]
SOURCE_ONLY = ("pathtools",)
CUDA = ("cuda-", "nvidia-", "triton")
"""How the names of the libraries begin that builds of torch for GPUs need; they come with torch."""
OPTIONS = ["--generate-hashes", "--no-header", "--no-annotate", "--only-binary", ":all:", "--no-emit-index-url"]


def compiled(packages: tuple[str, ...], *options: str) -> str:
    """The packages with their dependencies, one block of text."""
    command = [*UV, *OPTIONS, *options]
    text = "\n".join(packages)
    return subprocess.run(command, input=text, check=True, stdout=subprocess.PIPE, text=True).stdout


def lock(environment: Environment) -> str:
    """The contents of the lock file of an environment."""
    bare = compiled(environment.bare, "--no-deps") if environment.bare else ""
    names = [pin.partition("==")[0] for pin in environment.unlocked]
    sources = [word for name in names for word in ("--no-binary", name) if name in SOURCE_ONLY]
    text = compiled(environment.packages, *sources) + bare
    if not names:
        return text
    left_out = re.compile("|".join([*map(re.escape, names), *CUDA]))
    blocks = re.split(r"\n(?=\S)", text.strip("\n"))
    return "\n".join(block for block in blocks if not left_out.match(block)) + "\n"


def main() -> None:
    """Write all lock files."""
    LOCKS.mkdir(exist_ok=True)
    for environment in ENVIRONMENTS.values():
        if environment.lock is not None:
            (LOCKS / environment.lock).write_text(lock(environment), encoding="utf-8")
            print(f"wrote {LOCKS / environment.lock}")


if __name__ == "__main__":
    main()
