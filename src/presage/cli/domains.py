"""`presage domains`: the domains of the simulator and their parameters."""

from __future__ import annotations

import json
from typing import Annotated

import typer

__all__ = ["domains"]


def domains(
    name: Annotated[str | None, typer.Argument(help="A domain, or a JSON file of one.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, which `presage simulate` reads from a file.")
    ] = False,
) -> None:
    """List the domains, or print every parameter of one of them.

    Example: presage domains rff-ood
    """
    from presage.config import to_json
    from presage.domain.catalog import domains, open_domain, summary

    if name is not None:
        domain = open_domain(name)
        print(json.dumps(to_json(domain), indent=2, allow_nan=False) if as_json else f"{name}\n\n{domain}")
    elif as_json:
        print(json.dumps({known: summary(known) for known in domains()}, indent=2))
    else:
        width = max(map(len, domains()))
        for known in domains():
            print(f"{known:<{width}}  {summary(known)}")
