"""The kind of interventions: hard ones set their target, soft ones change how it depends on its causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from presage.errors import ConfigError, DataError
from presage.inference.inputs.names import clean_name, listed, suggestion
from presage.inference.inputs.targets import Targets

__all__ = ["INTERVENTION_KINDS", "read_kind", "soft_targets"]

INTERVENTION_KINDS = ("hard", "soft")


def read_kind(interventions: Any) -> tuple[Any, str | dict[str, str] | None]:
    """Targets and kind of `interventions`; the kind is None unless they are a mapping {"targets": ..., "kind": ...}.

    >>> read_kind({"targets": "target", "kind": {"drug": "soft"}})
    ('target', {'drug': 'soft'})
    >>> read_kind("target")
    ('target', None)
    """
    if not isinstance(interventions, Mapping) or hasattr(interventions, "toarray"):  # a sparse matrix of keys
        return interventions, None
    unknown = [str(key) for key in interventions if key not in ("targets", "kind")]
    if unknown or "kind" not in interventions:
        raise ConfigError(
            'interventions with a kind are {"targets": ..., "kind": "soft"} or {"targets": ..., "kind": {NAME: "soft"}}'
            + (f"; there is no entry {unknown[0]!r}" if unknown else "; the kind is missing")
        )
    kind = interventions["kind"]
    if isinstance(kind, Mapping):
        return interventions.get("targets"), {clean_name(name): _checked(value) for name, value in kind.items()}
    return interventions.get("targets"), _checked(kind)


def soft_targets(
    kind: str | Mapping[str, str] | None, targets: Targets, variables: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Names of the variables with soft interventions, and sentences about kinds that have no effect."""
    if kind is None:
        return (), []
    if targets.mask is None and targets.unmeasured is None:
        raise DataError("the kind of the interventions is given, but the interventions are not")
    positions = [] if targets.mask is None else np.flatnonzero(targets.mask.any(axis=0)).tolist()
    found = [variables[j] for j in positions]
    if isinstance(kind, str):
        return tuple(found) if kind == "soft" else (), []
    unknown = [name for name in kind if name not in set(variables)]
    if unknown:
        raise DataError(
            f"the kind of interventions is given for {listed(unknown)}, which "
            f"{'is not a variable' if len(unknown) == 1 else 'are not variables'} of the table"
            + suggestion(unknown[0], variables)
        )
    untouched = [name for name in kind if name not in set(found)]
    notes = [f"{listed(untouched)}: the kind of interventions is given, but no row has any"] if untouched else []
    return tuple(name for name in found if kind.get(name) == "soft"), notes


def _checked(kind: Any) -> str:
    if not isinstance(kind, str) or kind not in INTERVENTION_KINDS:
        raise ConfigError(f"the kind of an intervention is 'hard' or 'soft', not {kind!r}")
    return kind
