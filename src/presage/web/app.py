"""The application: the page, the route for uploads, and the server."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dash import Dash
from flask import Response, jsonify, request

from presage.data.examples import examples
from presage.domain.catalog import domains, summary
from presage.errors import ConfigError, PresageError
from presage.inference.hub import load_model, models
from presage.report.text import sentence
from presage.web import data_callbacks, result_callbacks
from presage.web.jobs import Runner
from presage.web.layout import page
from presage.web.sessions import Sessions

__all__ = ["create_app", "serve"]

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def create_app(
    *, extra_models: Sequence[str] = (), limit: int = 50 << 20, runner: Runner | None = None, local: bool = False
) -> Dash:
    """The page as a WSGI application (`.server`).

    extra_models: files or folders of models besides the bundled ones; the first is preselected. limit: largest upload
    in bytes. local: answer only requests for a local host name, which protects against DNS rebinding.
    """
    offered = _offered(extra_models)
    context = data_callbacks.Context(sessions=Sessions(), runner=runner or Runner(warm=True), limit=limit)
    app = Dash(
        "presage",
        assets_folder=str(Path(__file__).parent / "assets"),
        title="Presage",
        update_title="",
        serve_locally=True,
        suppress_callback_exceptions=True,
        add_log_handler=True,
    )
    app.server.config["MAX_CONTENT_LENGTH"] = limit + (1 << 20)

    def fresh_page() -> Any:
        return page(
            session=context.sessions.open().key,
            models=offered,
            model=offered[0][0] if offered else None,
            examples=examples(),
            domains=[(name, f"{name}: {summary(name)}") for name in domains()],
            limit=limit,
        )

    app.layout = fresh_page
    data_callbacks.register(app, context)
    result_callbacks.register(app, context)
    _add_upload(app, context)
    if local:
        _only_local(app)
    return app


def _offered(extra: Sequence[str]) -> list[tuple[str, str]]:
    """Names and descriptions of the models; raises if one cannot be loaded."""
    found = [(name, f"{load_model(name).name} ({Path(name).name})") for name in extra]
    table = models()
    names = sorted(table["name"], key=lambda name: (name != "scm", name))
    about = dict(zip(table["name"], table["about"], strict=True))
    return found + [(name, f"{name}: {about[name]}" if about[name] else name) for name in names]


def _add_upload(app: Dash, context: data_callbacks.Context) -> None:
    """Add the route for uploads: files as the plain body of a POST, whose size is known in advance."""

    def upload() -> Response:
        if request.headers.get("X-Presage") != "upload":  # forms on other sites cannot set this header
            return jsonify(error="Uploads are accepted from the page only.")
        name = request.args.get("name", "data.csv")
        try:
            session = context.sessions.get(request.args.get("session"))
            if (request.content_length or 0) > context.limit:
                raise ConfigError(f"the file {name!r} is larger than the limit of {context.limit >> 20} MB")
            data_callbacks.store_upload(
                session, request.args.get("role", "data"), name, request.get_data(), context.limit
            )
        except PresageError as error:
            return jsonify(error=sentence(str(error)))
        return jsonify(ok=True)

    app.server.add_url_rule("/upload", "upload", upload, methods=["POST"])


def _only_local(app: Dash) -> None:
    def check() -> Response | None:
        host = request.host.rsplit(":", 1)[0].strip("[]")
        if host in LOOPBACK:
            return None
        return Response("This page answers only to localhost; start it with --host to open it to others.", status=403)

    app.server.before_request(check)


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 8050,
    extra_models: Sequence[str] = (),
    limit: int = 50 << 20,
    open_browser: bool = False,
    say: Any = print,
) -> None:
    """Serve the page until interrupted."""
    import logging

    from werkzeug.serving import make_server

    listener = _listen(host, port)
    runner = Runner(warm=True)
    app = create_app(extra_models=extra_models, limit=limit, runner=runner, local=host in LOOPBACK)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server(host, port, app.server, threaded=True, fd=listener.fileno())
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}/"
    say(f"Presage is at {address} (Ctrl-C stops it)")
    if open_browser:
        threading.Timer(0.5, webbrowser.open, args=(address,)).start()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        runner.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(64)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigError(f"cannot serve at {host}:{port} ({error}); choose another --port or --host") from error
    return listener
