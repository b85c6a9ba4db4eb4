"""Time and peak memory of one prediction: our two networks and the public avici package, all with random weights.

    python benchmarks/predict.py --quick
    python benchmarks/predict.py --avici-python path/to/its/environment/bin/python --json predict.json

Every case runs in a fresh process on `--threads` cores, so that peak memory is measured separately. A prediction
includes standardization. Our times are the best of up to three after a warm-up on a few rows. avici is timed after
compilation unless its first call took half of the time limit. Seconds are wall-clock time with CPU time in brackets;
ratios use CPU time, which depends less on other load. A case is skipped if extrapolation from smaller cases exceeds a
limit; the table gives the reason.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

NETS = ("avici", "axial", "pair")
SIZES = (200, 1_000, 10_000, 100_000, 1_000_000)
VARIABLES = (30, 100)
STARTUP_SECONDS = 120  # importing and compiling on a busy machine, on top of the limit for the prediction


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="n up to 1000 only")
    parser.add_argument("--nets", default=",".join(NETS), help="which of avici, axial, pair")
    parser.add_argument("--sizes", help="row counts, separated by commas")
    parser.add_argument("--variables", help="variable counts, separated by commas")
    parser.add_argument(
        "--avici-python", help="interpreter of an environment with avici; without it that column is empty"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0, help="time limit of one prediction")
    parser.add_argument("--memory-gib", type=float, default=10.0, help="memory limit of one prediction")
    parser.add_argument("--json", help="also write the measurements to this file")
    parser.add_argument("--worker", nargs=3, metavar=("NET", "N", "D"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        net, n, d = options.worker
        print(json.dumps(work(net, int(n), int(d), options.threads, options.seconds)))
        return
    sizes = _numbers(options.sizes) or (SIZES[:2] if options.quick else SIZES)
    variables = _numbers(options.variables) or VARIABLES
    nets = [net for net in NETS if net in options.nets.split(",")]
    results = []
    for d in variables:
        earlier: dict[str, list[dict]] = {net: [] for net in nets}
        for n in sorted(sizes):
            for net in nets:
                case = {"net": net, "n": n, "d": d, **measure(net, n, d, earlier[net], options)}
                earlier[net].append(case)
                results.append(case)
                print(f"{net} n={n} d={d}: {_cell(case)}", file=sys.stderr, flush=True)
    print(table(results, nets))
    if options.json:
        target = Path(options.json)
        partial = target.with_name(f".{target.name}.part")
        partial.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        os.replace(partial, target)


def _numbers(text: str | None) -> tuple[int, ...]:
    return tuple(int(item) for item in text.split(",")) if text else ()


# Parent process


def measure(net: str, n: int, d: int, earlier: list[dict], options: argparse.Namespace) -> dict:
    """Run a case in its own process, or return the reason for skipping it."""
    if net == "avici" and not options.avici_python:
        return {"skipped": "no --avici-python"}
    reason = forecast(n, earlier, options.seconds, options.memory_gib)
    if reason:
        return {"skipped": reason}
    python = options.avici_python if net == "avici" else sys.executable
    settings = ["--threads", str(options.threads), "--seconds", str(options.seconds)]
    command = [python, __file__, "--worker", net, str(n), str(d), *settings]
    threads = {f"{name}_NUM_THREADS": str(options.threads) for name in ("OMP", "MKL", "OPENBLAS")}
    environment = {**os.environ, **threads, "JAX_PLATFORMS": "cpu"}
    limit = options.seconds + STARTUP_SECONDS
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"skipped": f"stopped after {limit:.0f} s, start-up included"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"skipped": f"failed ({done.returncode}): {lines[-1][:80] if lines else 'killed'}"}
    result = json.loads(done.stdout.strip().splitlines()[-1])
    if result["seconds"] > options.seconds:
        result["note"] = "over the time limit"
    return result


def forecast(n: int, earlier: list[dict], seconds: float, memory_gib: float) -> str:
    """Why a case would exceed a limit, extrapolated from smaller cases (at least linearly); empty if it would not."""
    if not earlier:
        return ""
    measured = [case for case in earlier if "seconds" in case]
    if len(measured) < len(earlier):
        return "a smaller case did not fit"
    last = measured[-1]

    def extrapolate(key: str, minimum: float) -> float:
        power = 1.0
        if len(measured) > 1:
            before = measured[-2]
            rise = math.log(max(last[key], minimum) / max(before[key], minimum)) / math.log(last["n"] / before["n"])
            power = min(max(rise, 1.0), 2.0)
        return max(last[key], minimum) * (n / last["n"]) ** power

    time_needed = extrapolate("seconds", 1e-3) if last["seconds"] > 1.0 else 0.0  # start-up dominates below that
    if time_needed > 1.5 * seconds:
        return f"would take about {time_needed:,.0f} s"
    memory_needed = (last["base_mib"] + (extrapolate("grown_mib", 1.0) if last["grown_mib"] > 64 else 0.0)) / 1024
    if memory_needed > memory_gib:
        return f"would need about {memory_needed:,.0f} GiB"
    return ""


# Worker process


def work(net: str, n: int, d: int, threads: int, limit: float) -> dict:
    """Predict once on random data; returns seconds, peak and base memory in MiB."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d), dtype=np.float32)
    u = np.zeros((n, d), dtype=np.float32)
    intervened = rng.random(n) < 0.25
    u[intervened, rng.integers(d, size=int(intervened.sum()))] = 1.0
    predict = avici_predictor(d) if net == "avici" else our_predictor(net, d, threads)
    base = _peak_mib()
    times, busy = [], []
    for _ in range(3):
        start, start_busy = time.perf_counter(), time.process_time()
        probabilities = predict(x, u)
        times.append(time.perf_counter() - start)
        busy.append(time.process_time() - start_busy)
        if probabilities.shape != (d, d) or not np.isfinite(probabilities).all():
            raise SystemExit("the prediction is not a finite d x d matrix")
        if sum(times) > (limit / 2 if net == "avici" else 5.0):
            break
    peak = _peak_mib()
    seconds = {"seconds": min(times), "cpu_seconds": min(busy), "first_seconds": times[0]}
    return {**seconds, "peak_mib": peak, "base_mib": base, "grown_mib": peak - base}


def _peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def our_predictor(net: str, d: int, threads: int):
    import numpy as np
    import torch

    from presage.data.standardize import standardize_real
    from presage.networks.network import build_network, network_config

    torch.set_num_threads(threads)
    network = build_network(network_config(net)())

    def predict(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        logits = network.predict(torch.from_numpy(standardize_real(x)), torch.from_numpy(u))
        return torch.sigmoid(logits).numpy()

    predict(np.zeros((8, d), dtype=np.float32), np.zeros((8, d), dtype=np.float32))
    return predict


def avici_predictor(d: int):
    import warnings

    warnings.simplefilter("ignore")
    import jax
    import jax.numpy as jnp
    from avici import AVICIModel
    from avici.model import BaseModel, InferenceModel

    # The published sizes are the defaults of the package.
    model = InferenceModel(model_class=BaseModel, model_kwargs={"cosine_temp_init": 2.0})
    params = jax.jit(model.net.init, static_argnums=2)(jax.random.PRNGKey(0), jnp.zeros((2, d, 2)), False)
    wrapped = AVICIModel(params=params, model=model, expects_counts=False)
    return lambda x, u: wrapped(x=x, interv=u.copy())


# The table


def _cell(case: dict) -> str:
    if "skipped" in case:
        return case["skipped"]
    note = f" ({case['note']})" if "note" in case else ""
    return f"{case['seconds']:.3g} s ({case['cpu_seconds']:.3g}), {case['peak_mib'] / 1024:.2f} GiB{note}"


def table(results: list[dict], nets: list[str]) -> str:
    """Markdown: one row per n and d, seconds and peak memory per network, and ratios between networks."""
    by_key = {(case["n"], case["d"], case["net"]): case for case in results}
    ratios = [(a, b) for k, a in enumerate(nets) for b in nets[k + 1 :]]
    head = ["n", "d", *nets, *(f"{a} / {b}" for a, b in ratios)]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for n, d in sorted({(case["n"], case["d"]) for case in results}, key=lambda pair: (pair[1], pair[0])):
        cells = [f"{n:,}", str(d), *(_cell(by_key[n, d, net]) for net in nets)]
        for a, b in ratios:
            both = [by_key[n, d, net] for net in (a, b)]
            if any("seconds" not in case for case in both):
                cells.append("")
                continue
            speed = both[0]["cpu_seconds"] / both[1]["cpu_seconds"]
            memory = both[0]["peak_mib"] / both[1]["peak_mib"]
            cells.append(f"{speed:.3g}x time, {memory:.2g}x memory")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
