"""`discover`: from a user's table to a graph they can trust."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from presage.errors import ConfigError, DataError
from presage.graphs.ops import is_acyclic
from presage.inference.hub import Model, Prepared, load_model, models
from presage.inference.inputs import Inputs, read_inputs
from presage.inference.inputs.checks import uninformative
from presage.inference.knowledge import Knowledge
from presage.inference.result import Result
from presage.ood.check import OODReport, compare
from presage.rng import check_seed
from presage.types import Dataset

__all__ = ["discover"]


def discover(
    data: Any,
    interventions: Any = None,
    *,
    model: str | os.PathLike[str] | Model = "scm",
    counts: bool | None = None,
    known: Knowledge | None = None,
    seed: int = 0,
    layer: str | None = None,
) -> Result:
    """Which variable causes which: a probability for every ordered pair of variables.

    data: ndarray [n, d], pandas or polars DataFrame, AnnData, `Dataset`, or a path (csv, tsv, parquet, npz, h5ad).
    interventions: None; 0/1 mask [n, d]; one entry per row (None, a name or a list of names); a column's name; a file.
    model: a name of `presage.models()`, a file, a folder or a loaded `Model`.
    counts: True or False if you know whether the values are counts; None: look at them and at the model.
    known: background knowledge, a `presage.Knowledge`. layer: which layer of AnnData holds the values.
    seed: for draws made while answering; with today's models the answer needs none and is the same for every seed.

    Nothing passed in is modified. Raises `presage.InputError` with one sentence when the data cannot be used.
    """
    check_seed(seed)
    if known is not None and not isinstance(known, Knowledge):
        raise ConfigError(f"known must be a presage.Knowledge, not {type(known).__name__}")
    engine = load_model(model)
    inputs = read_inputs(data, interventions, counts=counts, layer=layer, kind=engine.kind)
    dataset = inputs.dataset
    warnings = [*inputs.warnings, *_kind_warnings(engine, inputs, counts)]
    if known:
        known.masks(dataset.names, engine.acyclic)  # contradictions surface before the work
    names, facts, foreign = dataset.names, _facts(dataset), _foreign(engine, dataset)
    live, prepared = _prepare(engine, dataset)
    del inputs, dataset  # the network reads the prepared half-size copy; let large tables go before it works
    matrix = np.zeros((len(names), len(names)))
    if prepared is not None:
        found = engine.answer(prepared)
        np.fill_diagonal(found, 0.0)
        matrix[np.ix_(live, live)] = found
    if known:
        matrix = known.apply(matrix, names, engine.acyclic)
    if foreign is not None and foreign.is_ood:
        warnings.append(foreign.sentence(engine.name))
    if engine.acyclic and not is_acyclic(matrix > 0.5):
        warnings.append(
            "the edges above 0.5 form a cycle; result.graph(acyclic=True) gives the most probable graph without one"
        )
    return Result(
        matrix=matrix,
        names=names,
        warnings=warnings,
        model=engine.name,
        card=engine.card,
        acyclic_model=engine.acyclic,
        ood=foreign,
        known=known,
        data=facts,
    )


def _kind_warnings(engine: Model, inputs: Inputs, counts: bool | None) -> list[str]:
    """Whether values and model agree on counts; a disagreement that makes no sense is refused."""
    if engine.kind == "counts":
        if counts is False:
            raise ConfigError(
                f"the model {engine.name!r} takes counts, but counts=False; choose a model of real values"
            )
        if not inputs.countlike:
            raise DataError(
                f"the model {engine.name!r} takes counts (whole numbers of at least 0, some above 1), "
                "but these values are none; choose a model of real values"
            )
        return []
    if counts:
        table = models()
        able = ", ".join(table.loc[table["kind"] == "counts", "name"]) or "none is bundled"
        raise ConfigError(
            f"counts=True, but the model {engine.name!r} takes real values; models for counts: {able}. "
            "To treat counts as real values anyway, pass counts=False"
        )
    if inputs.countlike and counts is None:
        return [
            "the values look like counts, but were treated as real values; pass counts=False to confirm that, "
            "or choose a model for counts"
        ]
    return []


def _prepare(engine: Model, dataset: Dataset) -> tuple[np.ndarray, Prepared | None]:
    """Positions of the variables that the network is asked about, and their values; the others never change."""
    live = np.flatnonzero(~uninformative(dataset))
    if len(live) < 2:
        return live, None
    everything = len(live) == dataset.d
    x, u, hidden = (
        part if everything else part[:, live] for part in (dataset.x, dataset.interventions, dataset.missing)
    )
    return live, engine.prepare(x, u, hidden)


def _foreign(engine: Model, dataset: Dataset) -> OODReport | None:
    summaries = engine.metadata.get("summaries")
    return compare(summaries, dataset) if summaries else None


def _facts(dataset: Dataset) -> dict[str, Any]:
    return {
        "rows": dataset.n,
        "variables": dataset.d,
        "interventional_rows": int(dataset.interventions.any(axis=1).sum()),
        "targets": int(dataset.interventions.any(axis=0).sum()),
        "missing_share": float(dataset.missing.mean()),
        "kind": dataset.kind,
    }
