"""`presage serve`: the web page."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["serve"]


def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 opens the page to the network.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes any free one.", min=0, max=65535)] = 8050,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model file or folder to offer in addition to the bundled models; may be repeated."),
    ] = None,
    limit: Annotated[int, typer.Option(help="Largest upload in megabytes.", min=1)] = 50,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve the web page: upload a table, explore the graph, add background knowledge, download the report.

    Data stays on this machine, and nothing is downloaded. Needs: pip install 'presage[web]'

    Example: presage serve --open
    """
    from presage.errors import require_extra

    for module in ("dash", "dash_cytoscape"):
        require_extra(module, "web", "the web page")
    from presage.web.app import serve as run

    run(host=host, port=port, extra_models=tuple(model or ()), limit=limit << 20, open_browser=open_browser)
