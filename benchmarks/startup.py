"""Start-up: processor time of `presage discover` and of the page's first answer over that of bare imports.

    python benchmarks/startup.py

The reference imports torch, pandas and matplotlib and does nothing. Cases alternate, each in a fresh process, and the
best of `--repeats` counts. Processor time (user and system) depends less on other load than wall-clock time. The first
repeat also writes byte code. The page is measured from the start of `presage serve` to its first response, and to the
answer to an uploaded table; its processes work at the same time, so wall-clock time is given beside the processor time
of all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

PAGE = ("presage serve: first response", "presage serve: answer to small.csv")
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
        best = dict.fromkeys([*cases, *PAGE], (float("inf"), float("inf")))
        for _ in range(options.repeats):
            found = {name: seconds(arguments) for name, arguments in cases.items()} | page_seconds(table, options.model)
            best = {name: (min(best[name][0], found[name][0]), min(best[name][1], found[name][1])) for name in best}
    print("| case | processor s | over the imports | wall-clock s | over the imports |")
    print("| --- | --- | --- | --- | --- |")
    cpu, wall = best[REFERENCE[0]]
    for name, (own_cpu, own_wall) in best.items():
        print(f"| {name} | {own_cpu:.2f} | {own_cpu / cpu:.2f} | {own_wall:.2f} | {own_wall / wall:.2f} |")


def write_table(path: Path) -> None:
    """A table of 200 rows and 8 variables."""
    import numpy as np

    values = np.random.default_rng(0).standard_normal((200, 8)).cumsum(axis=1)
    header = ",".join(f"v{k}" for k in range(8))
    np.savetxt(path, values, delimiter=",", header=header, comments="")


def environment() -> dict[str, str]:
    """One thread, and byte code on disk as for installed packages."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}}


def seconds(arguments: list[str]) -> tuple[float, float]:
    """Processor and wall-clock time of a fresh interpreter."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, env=environment(), stdout=subprocess.DEVNULL)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def page_seconds(table: Path, model: str) -> dict[str, tuple[float, float]]:
    """Times from the start of the page to its first response and to the answer to a table."""
    import psutil

    def used() -> tuple[float, float]:
        wall = time.perf_counter() - start
        top = psutil.Process(page.pid)
        times = [process.cpu_times() for process in (top, *top.children(recursive=True))]
        return sum(spent.user + spent.system for spent in times), wall

    start = time.perf_counter()
    command = [sys.executable, "-u", "-m", "presage", "serve", "--port", "0"]
    page = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert page.stdout is not None
        address = next(word for word in page.stdout.readline().split() if word.startswith("http"))
        request(address)
        first = used()
        key = "session-of-the-start-up-benchmark"
        sent = request(f"{address}upload?session={key}&name=small.csv&role=data", table.read_bytes())
        assert sent == {"ok": True}, sent
        callbacks = request(f"{address}_dash-dependencies")
        state = {"session": key, "interventions": "none", "model": model}
        clicks = [("run", "n_clicks", 1), ("run-again", "n_clicks", None)]
        call(address, callbacks, clicks, state)
        answered = None
        while not answered:
            time.sleep(0.02)
            ticks = [("tick", "n_intervals", 1), ("cancel", "n_clicks", None)]
            answered = call(address, callbacks, ticks, state).get("answer")
        return dict(zip(PAGE, (first, used()), strict=True))
    finally:
        page.send_signal(signal.SIGINT)
        page.wait()


def request(address: str, body: bytes | None = None, kind: str = "application/octet-stream") -> Any:
    """The answer of the page, as JSON where it is."""
    headers = {"X-Presage": "upload", "Content-Type": kind}
    with urllib.request.urlopen(urllib.request.Request(address, body, headers)) as response:
        content = response.read()
        return json.loads(content) if response.headers.get_content_type() == "application/json" else content


def call(address: str, callbacks: Any, inputs: list[Any], state: dict[str, Any]) -> dict[str, Any]:
    """Call the callback with these inputs as a browser does; returns the changed properties by component.

    state: values of components by id; others are null, as on a page where nothing was chosen.
    """
    wanted = [name for name, _, _ in inputs]
    found = next(each for each in callbacks if [given["id"] for given in each["inputs"]] == wanted)
    parts = [part.rpartition(".") for part in found["output"].strip(".").split("...")]
    body = {
        "output": found["output"],
        "outputs": [{"id": name, "property": prop.partition("@")[0]} for name, _, prop in parts],
        "inputs": [{"id": name, "property": prop, "value": value} for name, prop, value in inputs],
        "state": [{**given, "value": state.get(given["id"])} for given in found["state"]],
        "changedPropIds": [f"{inputs[0][0]}.{inputs[0][1]}"],
    }
    answer = request(f"{address}_dash-update-component", json.dumps(body).encode(), "application/json")
    return dict(answer["response"])


if __name__ == "__main__":
    main()
