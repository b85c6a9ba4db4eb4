"""The page without a server: a runner and a reader without processes, and callbacks called as a browser calls them."""

from __future__ import annotations

from typing import Any

from presage.web.jobs import Job, Runner
from presage.web.reading import Reader


class Nobody(Runner):
    """Runs nothing."""

    def __init__(self) -> None:
        super().__init__(slots=0)


class Here(Reader):
    """Reads in this process: quick, for tests of everything else."""

    def call(self, name: str, function: Any, *args: Any) -> Any:
        return function(*args)


class Recorder(Nobody):
    """Keeps the tasks it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[dict[str, Any]] = []

    def submit(self, task: dict[str, Any]) -> Job:
        """Keep a task; its job waits forever."""
        self.tasks.append(task)
        return Job(task)


def key(number: int) -> str:
    """A key that a session accepts."""
    return f"session-of-a-page-{number:010d}"


def callback(client: Any, output: str, inputs: list[Any], state: list[Any], changed: str) -> Any:
    """Call a callback as the browser does."""
    found = next(
        c for c in client.get("/_dash-dependencies", base_url="http://localhost").json if output in c["output"]
    )
    body = {"output": found["output"], "inputs": inputs, "state": state, "changedPropIds": [changed]}
    outputs = [
        {"id": part.rpartition(".")[0], "property": part.rpartition(".")[2].partition("@")[0]}
        for part in found["output"].strip(".").split("...")
    ]
    body["outputs"] = outputs if found["output"].startswith("..") else outputs[0]
    return client.post("/_dash-update-component", base_url="http://localhost", json=body)


def post_file(client: Any, name: str, content: bytes, session: str) -> Any:
    """Upload a file as the page does; returns the answer."""
    return client.post(
        "/upload",
        base_url="http://localhost",
        query_string={"session": session, "name": name, "role": "data"},
        data=content,
        headers={"X-Presage": "upload"},
    ).json


def start_run(
    client: Any, session: str, interventions: Any, model: Any, roles: Any, *, layer: Any = None, counts: Any = "look"
) -> str | None:
    """Click "Run"; returns the message beside the button, if any."""
    clicks = [{"id": name, "property": "n_clicks", "value": 1} for name in ("run", "run-again")]
    values = {"interventions": interventions, "layer": layer, "model": model, "counts": counts}
    state = [{"id": "session", "property": "data", "value": session}]
    state += [{"id": name, "property": "value", "value": value} for name, value in values.items()]
    state.append({"id": "roles", "property": "data", "value": roles})
    state += [{"id": name, "property": "value", "value": []} for name in ("stability", "soft")]
    response = callback(client, "run-error.children...run.disabled", clicks, state, "run.n_clicks")
    assert response.status_code == 200
    found: str | None = response.json["response"]["run-error"]["children"]
    return found
