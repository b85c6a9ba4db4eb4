"""Simulated datasets per second per core, for linear and rff, compared with the public avici package.

    python benchmarks/simulate.py --avici-python /path/to/python/that/has/avici

Without --avici-python (or the environment variable AVICI_PYTHON) only our rates are printed. Both packages sample
observational data from the paper's training distributions in one process with one thread. The measure is CPU time,
which depends little on other load. Rounds of the two packages alternate, and medians are printed.

avici is timed twice: its public function `simulate_data`, which reads its configuration on every call and
standardizes, and its bare sampler, with the configuration read beforehand. `ratio` is against the former, `bare`
against the latter.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from presage.domain.catalog import get_domain  # noqa: E402 - threads are fixed before NumPy starts

DOMAINS = ("linear", "rff")
SIZES = tuple((d, n) for d in (10, 30, 100) for n in (200, 1000))

# Reads one request per line and returns CPU seconds per dataset of the public function and of the bare sampler. The
# configurations are those that avici ships for the paper's domains.
AVICI = """
import json, sys, time
from pathlib import Path
import numpy as np
import avici
from avici import simulate_data
from avici.buffer import Sampler
from avici.utils.parse import load_data_config
rng = np.random.default_rng(0)
for line in sys.stdin:
    domain, d, n, count = json.loads(line)
    path = Path(avici.__file__).parent / "config" / "train" / f"neurips-{domain}.yaml"
    force = dict(n_observations_obs=n, n_observations_int=0)
    tree = load_data_config(path, force_kwargs=force, abspath=True, load_modules=True)["data"]
    specs = tree[next(iter(tree))]
    start = time.process_time()
    for _ in range(count):
        Sampler.generate_data(rng, n_vars=d, spec_list=specs)
    bare = (time.process_time() - start) / count
    start = time.process_time()
    for seed in range(count):
        simulate_data(d, n, seed=seed, path=str(path))
    print(json.dumps([(time.process_time() - start) / count, bare]), flush=True)
"""


class Avici:
    """The public package in a process of its own interpreter."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen(
            [python, "-W", "ignore", "-c", AVICI], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, domain: str, d: int, n: int, count: int) -> tuple[float, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([domain, d, n, count]) + "\n")
        self.process.stdin.flush()
        public, bare = json.loads(self.process.stdout.readline())
        return public, bare

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def ours(domain: str, d: int, n: int, batches: int, batch: int, start: int) -> float:
    source = get_domain(domain)
    begin = time.process_time()
    for k in range(batches):
        source.sample(d=d, n=n, size=batch, start=start + k * batch)
    return (time.process_time() - begin) / (batches * batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--avici-python", default=os.environ.get("AVICI_PYTHON"), help="interpreter that has avici")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    args = parser.parse_args()

    avici = Avici(args.avici_python) if args.avici_python else None
    if not args.json:
        print(f"datasets per second per core, batches of {args.batch}, median of {args.rounds} rounds")
        print(
            f"{'domain':<8}{'d':>5}{'n':>6}{'presage':>10}" + (f"{'avici':>10}{'ratio':>8}{'bare':>8}" if avici else "")
        )
    for domain in DOMAINS:
        for d, n in SIZES:
            ours(domain, d, n, 1, 4, 0)  # warm up
            rounds: list[tuple[float, float, float]] = []
            for r in range(args.rounds):
                mine = ours(domain, d, n, 1, args.batch, (r + 1) * args.batch)
                theirs = avici.seconds(domain, d, n, max(2, 300 // d)) if avici else (float("nan"),) * 2
                rounds.append((mine, *theirs))
            mine, public, bare = (statistics.median(column) for column in zip(*rounds, strict=True))
            row = {"domain": domain, "d": d, "n": n, "presage": 1 / mine}
            if avici:
                row |= {"avici": 1 / public, "ratio": public / mine, "avici_bare": 1 / bare, "ratio_bare": bare / mine}
            if args.json:
                print(json.dumps(row), flush=True)
            else:
                tail = f"{row['avici']:>10.1f}{row['ratio']:>8.1f}{row['ratio_bare']:>8.1f}" if avici else ""
                print(f"{domain:<8}{d:>5}{n:>6}{row['presage']:>10.1f}{tail}", flush=True)
    if avici:
        avici.close()


if __name__ == "__main__":
    main()
