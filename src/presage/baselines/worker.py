"""The child's side of a run. Started as a script by whatever Python the method's environment has.

It finds Presage beside itself without putting that folder on the path: in an installed Presage the folder also holds
the packages of our own environment, which must not leak into the peers'.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any


def _follow_parent() -> None:
    """End with the process that asked: were it killed, nobody would wait for the answer or stop this."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _limit_cpu(seconds: float) -> None:
    """Let the system end this process once it has used that much processor time."""
    import resource

    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + max(1, round(seconds)), resource.RLIM_INFINITY))


def _load_presage() -> None:
    sys.path.pop(0)  # the folder of this script, which Python put there
    root = Path(__file__).resolve().parent.parent
    spec = importlib.util.spec_from_file_location(
        "presage", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    if spec is None or spec.loader is None:
        raise SystemExit("Presage was not found beside its worker")
    module = importlib.util.module_from_spec(spec)
    sys.modules["presage"] = module
    spec.loader.exec_module(module)


def _fit(folder: Path) -> tuple[dict[str, Any], Any]:
    import numpy as np

    from presage.baselines.fitting import fit_and_note
    from presage.baselines.registry import get_baseline
    from presage.types import Dataset

    request = json.loads((folder / "request.json").read_text())
    if request["cpu_limit"]:
        _limit_cpu(request["cpu_limit"])
    with np.load(folder / "data.npz", allow_pickle=False) as file:
        data = Dataset(
            x=file["x"],
            interventions=file["interventions"],
            missing=file["missing"],
            names=tuple(request["names"]),
            kind=request["kind"],
        )
    return fit_and_note(
        get_baseline(request["method"]),
        data,
        request["settings"],
        seed=request["seed"],
        bootstrap=request["bootstrap"],
    )


def main(folder: Path) -> None:
    """Answer the request in `folder`; an error on purpose of ours is one line, any other a traceback in the log."""
    _follow_parent()
    _load_presage()
    import numpy as np

    from presage.errors import PresageError

    parts: dict[str, Any] = {}
    try:
        meta, parts["matrices"] = _fit(folder)
    except PresageError as error:
        missing = type(error).__name__ == "MissingExtraError"
        status = "not installed" if missing else "crash"
        meta = {"status": status, "kind": "graph", "scores": [], "note": "", "message": str(error)}
        meta |= {"seconds": 0.0, "cpu_seconds": 0.0}
    np.savez(folder / "partial.npz", meta=np.array(json.dumps(meta)), **parts)
    os.replace(folder / "partial.npz", folder / "answer.npz")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
