"""Peak memory and time of discovery on large tables, each case in its own process.

    python benchmarks/scale.py [--model scm] [--cases rows,variables,file] [--json]

rows: one million rows x 50 variables in memory (limit: 2 GiB in total). variables: 1000 rows x 1000 variables (16 GiB).
file: one million rows x 50 variables from a parquet file. The cost does not depend on the values, which are random.
Without --model the bundled scm model is used, or, if there is none, an untrained network of the default size.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

CASES = {"rows": (1_000_000, 50, 2.0), "file": (1_000_000, 50, 2.0), "variables": (1000, 1000, 16.0)}


def default_model() -> str:
    import presage
    from presage.inference.hub import BUNDLED

    if (BUNDLED / "scm.safetensors").exists():
        return "scm"
    from presage.networks.network import build_network
    from presage.networks.pair import PairConfig
    from presage.networks.weights import save_model

    path = Path(tempfile.mkdtemp()) / "untrained.safetensors"
    save_model(path, build_network(PairConfig()), {"name": "untrained", "presage": presage.__version__})
    return str(path)


def write_table(path: str, n: int, d: int) -> None:
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(n, d)), columns=[f"v{j}" for j in range(d)])
    frame.to_parquet(path)


def measure(case: str, model: str, path: str | None, queue: multiprocessing.Queue) -> None:
    import numpy as np

    import presage

    n, d, _ = CASES[case]
    loaded = presage.load_model(model)
    rng = np.random.default_rng(0)
    data = path if path is not None else rng.normal(size=(n, d))
    targets = None
    if path is None:
        targets = np.zeros((n, d), dtype=bool)
        targets[np.arange(n // 2), rng.integers(d, size=n // 2)] = True
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.perf_counter()
    try:
        result = presage.discover(data, targets, model=loaded)
        outcome = f"{len(result.names)} x {len(result.names)} probabilities"
    except presage.PresageError as error:
        outcome = str(error)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    queue.put(
        {"seconds": round(seconds, 1), "before_gib": round(before, 2), "peak_gib": round(peak, 2), "outcome": outcome}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--cases", default="rows,file,variables")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    folder = tempfile.TemporaryDirectory()
    model = options.model or default_model()
    for case in options.cases.split(","):
        n, d, limit = CASES[case]
        path = None
        if case == "file":
            path = str(Path(folder.name) / "table.parquet")
            writer = context.Process(target=write_table, args=(path, n, d))
            writer.start()
            writer.join()
        queue = context.Queue()
        process = context.Process(target=measure, args=(case, model, path, queue))
        process.start()
        found = queue.get()
        process.join()
        if options.json:
            print(json.dumps({"case": case, "rows": n, "variables": d, "limit_gib": limit, **found}), flush=True)
        else:
            verdict = "within" if found["peak_gib"] <= limit else "ABOVE"
            print(
                f"{case}: {n:,} rows x {d:,} variables: {found['seconds']} s, peak {found['peak_gib']} GiB "
                f"({verdict} {limit:g} GiB; {found['before_gib']} GiB before the call); {found['outcome']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
