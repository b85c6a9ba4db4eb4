"""The application: the page, the route for uploads, and the server."""

from __future__ import annotations

import logging
import socket
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from dash import Dash, set_props
from flask import Response, jsonify, request
from werkzeug.exceptions import HTTPException

from presage.data.examples import examples
from presage.domain.catalog import domains, summary
from presage.errors import ConfigError, PresageError
from presage.inference.hub import DEFAULT_MODEL, bundled_metadata, load_model
from presage.report.text import sentence
from presage.web import data_callbacks, result_callbacks
from presage.web.context import Context
from presage.web.jobs import Runner
from presage.web.layout import Offer, page
from presage.web.reading import Reader
from presage.web.sessions import Sessions

__all__ = ["create_app", "serve"]

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def create_app(
    *,
    extra_models: Sequence[str] = (),
    limit: int = 50 << 20,
    runner: Runner | None = None,
    reader: Reader | None = None,
    local: bool = False,
) -> Dash:
    """The page as a WSGI application (`.server`).

    extra_models: files or folders of models besides the bundled ones; the first is preselected. limit: largest upload
    in bytes. local: answer only requests for a local host name, which protects against DNS rebinding.
    """
    offers = _offers(extra_models)
    context = Context(
        sessions=Sessions(), runner=runner or Runner(warm=True), reader=reader or Reader(), models=offers, limit=limit
    )
    app = Dash(
        "presage",
        assets_folder=str(Path(__file__).parent / "assets"),
        title="Presage",
        update_title="",
        serve_locally=True,
        suppress_callback_exceptions=True,
        add_log_handler=True,
        on_error=_show_error,
    )
    app.server.config["MAX_CONTENT_LENGTH"] = limit + (1 << 20)
    app.layout = page(
        models=offers,
        examples=examples(),
        domains=[(name, f"{name}: {summary(name)}") for name in domains()],
        limit=limit,
    )
    data_callbacks.register(app, context)
    result_callbacks.register(app, context)
    _add_upload(app, context)
    _harden(app)
    if local:
        _only_local(app)
    return app


def _offers(extra: Sequence[str]) -> list[Offer]:
    """The models of the page; raises if an extra one cannot be loaded."""
    loaded = [(name, load_model(name)) for name in extra]
    found = [Offer(name=name, kind=model.kind, about=str(model.card.notes.get("about", ""))) for name, model in loaded]
    bundled = sorted(bundled_metadata().items(), key=lambda item: (item[0] != DEFAULT_MODEL, item[0]))
    return found + [Offer(name=name, kind=data["kind"], about=data["card"]["about"]) for name, data in bundled]


def _show_error(error: Exception) -> None:
    """Errors that a callback did not expect become a sentence at the top of the page."""
    if isinstance(error, PresageError):
        text = sentence(str(error))
    else:
        logging.getLogger("presage.web").error("a callback failed", exc_info=error)
        text = f"The page could not do this ({type(error).__name__}); reload it and try again."
    set_props("page-error", {"children": text})


def _harden(app: Dash) -> None:
    """Headers that keep other sites out, and a sentence for requests that the page never sends."""
    scripts = " ".join(("'self'", *app.csp_hashes()))
    policy = (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }

    def add_headers(response: Response) -> Response:
        for name, value in headers.items():
            response.headers.setdefault(name, value)
        return response

    def explain(error: Exception) -> Response | HTTPException:
        if isinstance(error, HTTPException):
            return error
        logging.getLogger("presage.web").error("a request failed", exc_info=error)
        return Response("This request cannot be understood.", status=400, mimetype="text/plain")

    app.server.after_request(add_headers)
    app.server.register_error_handler(Exception, explain)


def _add_upload(app: Dash, context: Context) -> None:
    """Add the route for uploads: files as the plain body of a POST, whose size is known in advance."""

    def upload() -> Response:
        if request.headers.get("X-Presage") != "upload":  # forms on other sites cannot set this header
            return jsonify(error="Uploads are accepted from the page only.")
        name = request.args.get("name", "data.csv")
        try:
            session = context.sessions.open(request.args.get("session"))
            if (request.content_length or 0) > context.limit:
                session.replace_source(None)
                raise ConfigError(f"the file {name!r} is larger than the limit of {context.limit >> 20} MB")
            data_callbacks.store_upload(session, request.args.get("role", "data"), name, request.get_data(), context)
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
) -> None:
    """Serve the page until interrupted."""
    from werkzeug.serving import make_server

    if not host.strip():
        raise ConfigError("--host needs an address: 127.0.0.1 for this machine, 0.0.0.0 to open the page to others")
    listener = _listen(host, port)
    runner, reader = Runner(warm=True), Reader(warm=True)
    app = create_app(extra_models=extra_models, limit=limit, runner=runner, reader=reader, local=host in LOOPBACK)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server(host, port, app.server, threaded=True, fd=listener.fileno())
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}/"
    print(f"Presage is at {address} (Ctrl-C stops it)")
    if open_browser:
        threading.Timer(0.5, webbrowser.open, args=(address,)).start()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        runner.close()
        reader.close()


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
