"""Seconds per gene expression dataset, compared with the public avici package, and a profile of our time.

    python benchmarks/simulate_grn.py --avici-python /path/to/python/that/has/avici

Both packages simulate the same random graphs of the paper's training domain with parameters from its ranges: 800
observational cells and 200 knockouts, including measurement noise, in one process with one thread. The measure is CPU
time, which depends little on other load. Without --avici-python (or the variable
AVICI_PYTHON) only our times are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402 - threads are fixed before NumPy starts

from presage.domain.genes import grn_domain  # noqa: E402
from presage.graphs.regulatory import Subgraph  # noqa: E402
from presage.simulators import grn, langevin, vectors  # noqa: E402

PLAIN, KNOCKOUTS = 800, 200
ROUNDS = {10: 6, 30: 4, 100: 2}

AVICI = """
import json, sys, time
import numpy as np
from avici.synthetic.gene import GRNSergio
from avici.synthetic.distributions import Beta, RandInt, Uniform
steps = dict.fromkeys(("add_outlier_effect", "add_lib_size_effect", "add_dropout_effect", "return_count_data"), True)
model = GRNSergio(b=Uniform(1.0, 3.0), k_param=Uniform(1.0, 5.0), k_sign_p=Beta(1.0, 1.0), hill=2.0, decays=0.8,
    noise_params=1.0, cell_types=RandInt(5, 5), n_ko_genes=-1, tech_noise_config="10x-chromium", **steps)
for line in sys.stdin:
    graph, plain, knockouts, seed = json.loads(line)
    start = time.process_time()
    model(np.random.default_rng(seed), np.array(graph), plain, knockouts)
    print(json.dumps(time.process_time() - start), flush=True)
"""


def dataset(rng: np.random.Generator, graph: np.ndarray) -> np.ndarray:
    """Sample one dataset of the domain on a given graph."""
    domain, d = grn_domain(frozenset()), len(graph)
    subgraph = Subgraph(graph, ())
    kinetics = domain.dynamics.kinetics(rng, subgraph)
    types = kinetics.basal.shape[1]
    design = grn.design_cells(rng, d=d, cell_types=types, n=PLAIN + KNOCKOUTS, n_perturbed=KNOCKOUTS)
    return domain.platforms[0].measure(rng, grn.simulate_expression(rng, graph, kinetics, design))


def cpu(function: Callable[[], Any], repeat: int = 1) -> float:
    start = time.process_time()
    for _ in range(repeat):
        function()
    return (time.process_time() - start) / repeat


def compare(python: str | None, sizes: list[int]) -> None:
    public = None
    if python:
        public = subprocess.Popen(
            [python, "-c", AVICI], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
    rng = np.random.default_rng(0)
    dataset(rng, np.zeros((3, 3), dtype=np.int8))  # compiles, or loads the compiled code
    print(f"{PLAIN} cells + {KNOCKOUTS} knockouts, CPU seconds per dataset, median over graphs")
    print(f"{'d':>4s} {'ours':>9s} {'public':>9s} {'ratio':>7s}")
    for d in sizes:
        graphs = [grn_domain(frozenset()).graphs[k % 2].sample(rng, d) for k in range(ROUNDS.get(d, 2))]
        mine, theirs = [], []
        for number, graph in enumerate(graphs):
            mine.append(cpu(lambda graph=graph: dataset(rng, graph), 10))
            if public is not None and public.stdin is not None and public.stdout is not None:
                public.stdin.write(json.dumps([graph.tolist(), PLAIN, KNOCKOUTS, number]) + "\n")
                theirs.append(float(json.loads(public.stdout.readline())))
        ours = statistics.median(mine)
        if theirs:
            other = statistics.median(theirs)
            print(f"{d:4d} {ours:9.4f} {other:9.2f} {other / ours:7.0f}", flush=True)
        else:
            print(f"{d:4d} {ours:9.4f} {'-':>9s} {'-':>7s}", flush=True)
    if public is not None and public.stdin is not None:
        public.stdin.close()
        public.wait()


def profile(sizes: list[int], repeat: int = 30) -> None:
    """Milliseconds of each step of simulating a dataset, including its graph."""
    spent: dict[str, float] = defaultdict(float)

    def timed(owner: Any, name: str, label: str) -> Callable[[], None]:
        function = getattr(owner, name)

        def wrapped(*args: Any, **named: Any) -> Any:
            start = time.process_time()
            try:
                return function(*args, **named)
            finally:
                spent[label] += time.process_time() - start

        setattr(owner, name, wrapped)
        return lambda: setattr(owner, name, function)

    from presage.domain import genes
    from presage.graphs.random import ErdosRenyi, ScaleFreeOut
    from presage.graphs.regulatory import RegulatorySubgraph
    from presage.simulators.sequencing import Platform

    undo = [
        timed(langevin, "run", "stepping"),
        timed(genes, "simulate_expression", "expression"),
        timed(Platform, "measure", "measurement"),
        timed(ErdosRenyi, "sample", "graph"),
        timed(ScaleFreeOut, "sample", "graph"),
        timed(RegulatorySubgraph, "extract", "graph"),
    ]
    print("\nmilliseconds per dataset, by step")
    heads = ("total", "graph", "stepping", "overhead", "measure", "rest")
    print(f"{'domain':9s} {'d':>4s}" + "".join(f"{head:>10s}" for head in heads))
    for name, shifts in (("grn", frozenset[str]()), ("grn-ood", frozenset({"graph", "mechanism", "noise"}))):
        for d in sizes:
            domain, rng = grn_domain(shifts), np.random.default_rng(1)
            size = {"d": d, "n": PLAIN + KNOCKOUTS, "n_interventional": KNOCKOUTS}
            domain.draw(rng, **size)
            spent.clear()
            total = cpu(lambda domain=domain, rng=rng, size=size: domain.draw(rng, **size), repeat) * 1e3
            step = {key: value / repeat * 1e3 for key, value in spent.items()}
            overhead = step["expression"] - step["stepping"]
            rest = total - step["expression"] - step["measurement"] - step["graph"]
            shown = (total, step["graph"], step["stepping"], overhead, step["measurement"], rest)
            print(f"{name:9s} {d:4d}" + "".join(f"{value:10.2f}" for value in shown), flush=True)
    for restore in undo:
        restore()


def profile_step() -> None:
    """Nanoseconds per gene, step and lane of the compiled functions, for few lanes (wild type) and many (knockouts)."""
    print("\nnanoseconds per gene, step and lane")
    print(f"{'lanes':>5s} {'normals':>8s} {'recursion':>9s} {'response':>9s} {'one regulator':>13s}")
    rng, f32 = np.random.default_rng(0), np.float32
    state = rng.integers(0, 2**64, size=(2, vectors.STREAMS), dtype=np.uint64)
    for lanes in (5, 160):
        size = 16_000
        x, production, out, half = (
            np.full(lanes, 2.0, f32),
            np.full(size, 2.0, f32),
            np.empty(size, f32),
            np.full(size, 2, f32),
        )
        normals, states = np.empty(size, f32), np.empty(size, f32)
        step = (x, production, normals, lanes, f32(0.8), f32(0.1), f32(0.01), states)
        times = []
        for function, inputs in (
            (vectors.standard_normals, (state, normals)),
            (langevin._step, step),
            (langevin._activate, (states, half, f32(2.0), out)),
            (langevin._add, (out, f32(1e-9), states)),
        ):
            function(*inputs)
            times.append(cpu(lambda function=function, inputs=inputs: function(*inputs), 300) / size * 1e9)
        print(f"{lanes:5d} {times[0]:8.2f} {times[1]:9.2f} {times[2]:9.2f} {times[3]:13.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--avici-python", default=os.environ.get("AVICI_PYTHON"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 30, 100], metavar="D")
    options = parser.parse_args()
    compare(options.avici_python, options.sizes)
    profile(options.sizes)
    profile_step()


if __name__ == "__main__":
    main()
