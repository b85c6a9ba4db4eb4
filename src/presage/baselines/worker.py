"""Child side of a run, started as a script by the Python of the method's environment.

It loads Presage from its own folder without putting that folder on the path: in an installed Presage the folder also
holds the packages of our own environment, which must not be visible to methods with separate environments.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any


def _load_presage() -> None:
    sys.path.pop(0)  # the folder of this script, which Python put there
    root = Path(__file__).resolve().parent.parent
    spec = importlib.util.spec_from_file_location(
        "presage", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    if spec is None or spec.loader is None:
        raise SystemExit("Presage was not found in the folder of its worker script")
    module = importlib.util.module_from_spec(spec)
    sys.modules["presage"] = module
    spec.loader.exec_module(module)


def _fit(folder: Path) -> tuple[dict[str, Any], Any]:
    import numpy as np

    from presage.baselines.fitting import fit_and_time
    from presage.baselines.registry import get_baseline
    from presage.types import Dataset

    request = json.loads((folder / "request.json").read_text())
    with np.load(folder / "data.npz", allow_pickle=False) as file:
        data = Dataset(
            x=file["x"],
            interventions=file["interventions"],
            missing=file["missing"],
            column_kinds=file["column_kinds"],
            names=tuple(request["names"]),
            kind=request["kind"],
        )
    return fit_and_time(
        get_baseline(request["method"]),
        data,
        request["settings"],
        seed=request["seed"],
        bootstrap=request["bootstrap"],
    )


def main(folder: Path) -> None:
    """Run the request in `folder`; our own errors become an outcome, any other is a traceback in the log."""
    _load_presage()
    import numpy as np

    from presage.errors import PresageError
    from presage.processes import end_with_parent

    end_with_parent()
    parts: dict[str, Any] = {}
    try:
        meta, parts = _fit(folder)
    except PresageError as error:
        status = {"MissingExtraError": "not installed", "DataError": "not applicable"}.get(
            type(error).__name__, "crash"
        )
        meta = {"status": status, "kind": "graph", "scores": [], "note": "", "message": str(error)}
        meta |= {"seconds": 0.0, "cpu_seconds": 0.0}
    np.savez(folder / "partial.npz", meta=np.array(json.dumps(meta)), **parts)
    os.replace(folder / "partial.npz", folder / "outcome.npz")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
