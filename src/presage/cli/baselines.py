"""`presage baselines`: other algorithms and their environments."""

from __future__ import annotations

import json
from typing import Annotated

import typer

__all__ = ["baselines"]

baselines = typer.Typer(help="Other algorithms: list them and install their environments.", no_args_is_help=True)


@baselines.command("list")
def list_baselines(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List the methods, the environment of each, and whether it is installed.

    Example: presage baselines list
    """
    from importlib.util import find_spec

    from presage.baselines import BASELINES
    from presage.baselines.environments import environment_python

    rows = []
    for baseline in BASELINES.values():
        ready = environment_python(baseline.environment) is not None
        if baseline.extra:
            ready = find_spec("gies" if baseline.name == "gies" else "causallearn") is not None
        where = f"extra {baseline.extra}" if baseline.extra else baseline.environment
        rows.append(
            {
                "name": baseline.name,
                "title": baseline.title,
                "runs in": where,
                "ready": ready,
                "interventions": baseline.interventions,
                "settings": dict(baseline.defaults),
                "reference": baseline.reference,
            }
        )
    if as_json:
        print(json.dumps(rows))
        return
    for row in rows:
        state = "ready" if row["ready"] else "not installed"
        print(f"{row['name']:<14} {row['runs in']:<16} {state:<14} {row['reference']}")


@baselines.command("install")
def install(
    name: Annotated[str, typer.Argument(help="A method, an environment, or `all`.")],
) -> None:
    """Install the environment of a method from pinned versions, in PRESAGE_HOME or the cache folder of the user.

    Example: presage baselines install dibs
    """
    from presage.baselines import get_baseline
    from presage.baselines.environments import ENVIRONMENTS
    from presage.baselines.environments import install as build

    if name == "all":
        names = list(ENVIRONMENTS)
    else:
        names = [name if name in ENVIRONMENTS else get_baseline(name).environment]
    for environment in names:
        if environment == "ours":
            extra = get_baseline(name).extra
            hint = f"install the extra: pip install 'presage[{extra}]'" if extra else "nothing to install"
            print(f"{name} runs in Presage's own environment; {hint}")
        else:
            print(f"{environment} is ready: {build(environment)}")
