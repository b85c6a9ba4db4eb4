"""Start-up of the command line: processor time of `presage discover` on a small table over that of bare imports.

    python benchmarks/startup.py

The reference imports torch, pandas and matplotlib and does nothing. Cases alternate, each in a fresh process, and the
best of `--repeats` counts. Processor time (user and system) depends less on other load than wall-clock time.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

REFERENCE = ("import torch, pandas, matplotlib", ["-c", "import torch, pandas, matplotlib"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--model", default="general")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "small.csv"
        write_table(table)
        discover = ["-m", "presage", "discover", str(table), "--model", options.model]
        cases = dict(
            [
                REFERENCE,
                ("import presage", ["-c", "import presage"]),
                ("presage --version", ["-m", "presage", "--version"]),
                ("presage discover small.csv", discover),
                ("presage discover small.csv --out result/", [*discover, "--out", str(Path(folder) / "result")]),
            ]
        )
        best = dict.fromkeys(cases, float("inf"))
        for _ in range(options.repeats):
            for name, arguments in cases.items():
                best[name] = min(best[name], seconds(arguments))
    print("| case | processor seconds | over the imports |\n| --- | --- | --- |")
    for name, found in best.items():
        print(f"| {name} | {found:.2f} | {found / best[REFERENCE[0]]:.2f} |")


def write_table(path: Path) -> None:
    """A table of 200 rows and 8 variables."""
    import numpy as np

    values = np.random.default_rng(0).standard_normal((200, 8)).cumsum(axis=1)
    header = ",".join(f"v{k}" for k in range(8))
    np.savetxt(path, values, delimiter=",", header=header, comments="")


def seconds(arguments: list[str]) -> float:
    """Processor time of a fresh interpreter, in one thread."""
    environment = {**os.environ, **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
