"""Peak memory and time of discovery on large tables, each case in its own process.

    python benchmarks/scale.py [--model general] [--cases rows,variables,file] [--threads 2] [--json]
    python benchmarks/scale.py --against ../older/src          # the same with an older checkout, side by side

rows: one million rows x 50 variables in memory (limit: 2 GiB in total). variables: 1000 rows x 1000 variables (4 GiB).
file: one million rows x 50 variables from a parquet file. The cost does not depend on the values, which are random.
Processor time counts all threads; unlike wall-clock time it depends little on other load. --rows makes the first two
tables shorter.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CASES = {"rows": (1_000_000, 50, 2.0), "file": (1_000_000, 50, 2.0), "variables": (1000, 1000, 4.0)}


def write_table(path: str, n: int, d: int) -> None:
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(n, d)), columns=[f"v{j}" for j in range(d)])
    frame.to_parquet(path)


def measure(case: str, model: str, n: int, path: str) -> dict[str, Any]:
    """One call of `discover` in this process."""
    import numpy as np

    import presage

    d = CASES[case][1]
    loaded = presage.load_model(model)
    rng = np.random.default_rng(0)
    data = path or rng.normal(size=(n, d))
    targets = None
    if not path:
        targets = np.zeros((n, d), dtype=bool)
        targets[np.arange(n // 2), rng.integers(d, size=n // 2)] = True
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    wall, cpu = time.perf_counter(), time.process_time()
    result = presage.discover(data, targets, model=loaded)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "seconds": round(wall, 1),
        "processor_seconds": round(cpu, 1),
        "before_gib": round(before, 2),
        "peak_gib": round(peak, 2),
        "largest": round(float(result.matrix.max()), 6),
    }


def run(case: str, options: argparse.Namespace, source: str | None) -> dict[str, Any]:
    """`measure` in a fresh process, perhaps with another checkout's sources."""
    n, d, limit = CASES[case]
    n = options.rows or n
    environment = {**os.environ, **{f"{name}_NUM_THREADS": str(options.threads) for name in ("OMP", "MKL")}}
    if source is not None:
        environment["PYTHONPATH"] = source
    with tempfile.TemporaryDirectory() as folder:
        path = ""
        if case == "file":
            path = str(Path(folder) / "table.parquet")
            write_table(path, n, d)
        command = [sys.executable, __file__, "--worker", case, options.model, str(n), path]
        done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    return {"case": case, "rows": n, "variables": d, "threads": options.threads, "limit_gib": limit, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="general")
    parser.add_argument("--cases", default="rows,file,variables")
    parser.add_argument("--rows", type=int, help="number of rows instead of those of the cases")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--against", help="src folder of another checkout, which is measured first")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        case, model, n, path = options.worker
        print(json.dumps(measure(case, model, int(n), path)))
        return
    if not options.json:
        print("| case | code | wall-clock s | processor s | peak GiB (limit) | largest probability |")
        print("| --- | --- | --- | --- | --- | --- |")
    sources = [("before", options.against)] if options.against else []
    for case in options.cases.split(","):
        for name, source in [*sources, ("now", None)]:
            found = run(case, options, source)
            if options.json:
                print(json.dumps({"code": name, **found}), flush=True)
                continue
            print(
                f"| {found['rows']:,} x {found['variables']:,} ({case}, {options.model}, {options.threads} threads) "
                f"| {name} | {found['seconds']} | {found['processor_seconds']} "
                f"| {found['peak_gib']} ({found['limit_gib']:g}) | {found['largest']} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
