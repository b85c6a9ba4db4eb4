"""`presage models`: the bundled models."""

from __future__ import annotations

import json
from typing import Annotated

import typer

__all__ = ["models"]


def models(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the bundled models.

    Example: presage models
    """
    from presage.inference.hub import models as table

    frame = table()
    if as_json:
        print(json.dumps(frame.to_dict(orient="records")))
    elif frame.empty:
        print("no model is bundled")
    else:
        width = max(len(name) for name in frame["name"])
        for row in frame.itertuples(index=False):
            print(f"{row.name:<{width}}  {row.kind:<6}  {row.network}  {row.megabytes:g} MB  {row.about}".rstrip())
