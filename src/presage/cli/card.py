"""`presage card`: training domain, held-out scores and limits of a model."""

from __future__ import annotations

import json
from typing import Annotated

import typer

__all__ = ["card"]


def card(
    model: Annotated[str, typer.Argument(help="A name of `presage models`, a file or a folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the card of a model: training domain, scores on held-out data, limits.

    Example: presage card scm
    """
    from presage.inference.hub import load_model

    found = load_model(model).card
    print(json.dumps(found.to_json()) if as_json else str(found), end="\n" if as_json else "")
