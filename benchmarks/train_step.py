"""Training throughput and peak memory of both networks, in datasets per second.

    python benchmarks/train_step.py [--quick] [--seconds 6]
    python benchmarks/train_step.py --config records/general/1/config.json      # the pair network of a training run
    python benchmarks/train_step.py --config ... --profile 30                   # its operations at d = 30 by their time

One forward pass, backward pass and optimiser step on batches of training size, n = 200 with 50 interventional rows.
Every case runs in its own process and reports CPU time and wall-clock time, because the machine may be shared. bf16
cases that crash on the processor are reported as such.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path


def worker(
    net: str, d: int, n: int, threads: int, precision: str, seconds: float, *, profile: bool = False
) -> dict[str, float]:
    import torch

    from presage.networks.network import NetConfig, build_network, network_config
    from presage.training.config import OptimConfig
    from presage.training.distributed import keep_freed_memory
    from presage.training.objective import negative_log_likelihood
    from presage.training.optimizer import Updater

    torch.set_num_threads(threads)
    keep_freed_memory()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    axial = net == "axial"
    config = network_config(net)() if net in ("pair", "axial") else NetConfig.from_json(json.loads(net))
    network = build_network(config, 0)
    updater = Updater(network, OptimConfig(name="lamb" if axial else "muon", lr=1e-4), network.io_layers())
    batch = 1 if axial else {10: 32, 30: 8, 50: 4}.get(d, 4)
    random = torch.Generator().manual_seed(0)
    x = torch.randn(batch, n, d, generator=random)
    u = torch.zeros(batch, n, d)
    u[:, n - n // 4 :, 0] = 1.0
    graph = (torch.rand(batch, d, d, generator=random) < 2.0 / d).float()

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            logits = network(x, u)
        negative_log_likelihood(logits, graph, mask_diagonal=True).mean().backward()
        updater.step(1.0)

    step()
    if profile:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as found:
            for _ in range(3):
                step()
        total = sum(entry.self_cpu_time_total for entry in found.key_averages())
        for entry in sorted(found.key_averages(), key=lambda entry: -entry.self_cpu_time_total)[:12]:
            print(f"| {entry.key} | {entry.count // 3} | {entry.self_cpu_time_total / total:.1%} |")
    done, wall, cpu = 0, time.monotonic(), time.process_time()
    while time.monotonic() - wall < seconds or done < 2:
        step()
        done += 1
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1024
    return {"wall": wall / done / batch, "cpu": cpu / done / batch, "peak_mb": peak / batch, "batch": batch}


def run(*case: object) -> dict[str, float] | None:
    env = {**os.environ, "OMP_NUM_THREADS": str(case[3])}
    command = [sys.executable, __file__, "--worker", *map(str, case)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", nargs=6)
    parser.add_argument("--quick", action="store_true", help="d = 30, one thread, fp32 only")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long to repeat each case")
    parser.add_argument("--config", type=Path, help="the pair network of this training configuration")
    parser.add_argument("--threads", type=int, action="append", help="numbers of threads; default: 1 and 2")
    parser.add_argument("--precision", action="append", help="fp32 or bf16; default: both")
    parser.add_argument("--profile", type=int, metavar="D", help="print the operations of a step by their time")
    options = parser.parse_args()
    if options.worker:
        net, d, n, threads, precision, seconds = options.worker
        print(json.dumps(worker(net, int(d), int(n), int(threads), precision, float(seconds))))
        return
    pair = json.dumps(json.loads(options.config.read_text())["net"]) if options.config else "pair"
    if options.profile:
        print("| operation | calls per step | share of processor time |\n| --- | --- | --- |")
        worker(pair, options.profile, 200, 1, "fp32", 0.0, profile=True)
        return
    print(
        "| d | threads | precision | pair: datasets per CPU second (CPU s each, MB each) | axial: the same "
        "| pair over axial, CPU |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for d in (30,) if options.quick else (10, 30, 50):
        for threads in (1,) if options.quick else options.threads or (1, 2):
            for precision in ("fp32",) if options.quick else options.precision or ("fp32", "bf16"):
                # One directly after the other, so that both see the same load.
                found = [run(net, d, 200, threads, precision, options.seconds) for net in (pair, "axial")]
                cells = [
                    "crashed" if case is None else f"{1 / case['cpu']:.2f} ({case['cpu']:.3f}, {case['peak_mb']:.0f})"
                    for case in found
                ]
                ratio = "" if None in found else f"{found[1]['cpu'] / found[0]['cpu']:.0f}"  # type: ignore[index]
                print(f"| {d} | {threads} | {precision} | {cells[0]} | {cells[1]} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
