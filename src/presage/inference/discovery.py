"""`discover`: from a user's table to edge probabilities. Library, command line and web page all call it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from presage.columns import ColumnKind
from presage.data.encode import is_nominal
from presage.errors import ConfigError, DataError
from presage.inference.hub import DEFAULT_MODEL, load_model, models
from presage.inference.inputs import Inputs, constant_columns, data_warnings, read_inputs
from presage.inference.inputs.names import listed
from presage.inference.knowledge import Knowledge
from presage.inference.model import Estimate, Model, Prepared
from presage.inference.moments import Moments
from presage.inference.result import Result
from presage.inference.stability import check_bootstrap, row_groups, spread
from presage.ood.check import compare
from presage.ood.summaries import summarize
from presage.types import Dataset

__all__ = ["discover"]

_EXCERPT = 1000
"""Rows kept for the scatter plots of the report."""


def discover(
    data: Any,
    interventions: Any = None,
    *,
    environment: Any = None,
    roles: Mapping[str, Any] | None = None,
    exclude: Sequence[str] | str | None = None,
    model: str | os.PathLike[str] | Model = DEFAULT_MODEL,
    counts: bool | None = None,
    known: Knowledge | None = None,
    layer: str | None = None,
    bootstrap: int = 0,
    device: str | None = None,
    unmeasured_targets: Literal["environment", "drop"] = "environment",
) -> Result:
    """Estimate which variable causes which: a probability for every ordered pair of variables.

    data: ndarray [n, d], pandas or polars DataFrame, AnnData, `Dataset`, or a path (csv, tsv, xlsx, ods, parquet, npz,
    h5ad); also what `read_inputs` returned, with its interventions, environment and roles.
    interventions: None; 0/1 mask [n, d]; one entry per row (None, a name or a list of names); a column's name; a file.
    They are hard unless a kind is given: {"targets": any of these, "kind": "soft"}, or a kind for some of the
    variables, {"targets": ..., "kind": {"drug": "soft"}}. Models trained with hard interventions only refuse soft ones.
    environment: None; one label per row; a column's name: rows measured under conditions whose targets are unknown.
    roles: {"sex": "nominal", ...}: how columns are read where the guess is wrong. A role is one of continuous,
    count, binary, ordinal (or a list of its levels from low to high), nominal, environment, intervention or ignored.
    exclude: names of columns to leave out.
    model: a name of `presage.models()`, a file, a folder or a loaded `Model`.
    counts: whether the values are counts; None: decide by the values and the model.
    known: background knowledge, a `presage.Knowledge`. layer: the layer of AnnData that holds the values.
    bootstrap: predict again for this many resamples of the rows, for the column stability of `Result.edges`; 0: none.
    device: where the network runs, for example "cuda"; None: where the model is, which is the CPU after loading.
    unmeasured_targets: rows with interventions on variables that are not in the table become environments or are
    left out.

    Nothing passed in is modified. Raises `presage.InputError` with one sentence when the data cannot be used.
    """
    if known is not None and not isinstance(known, Knowledge):
        raise ConfigError(f"known must be a presage.Knowledge, not {type(known).__name__}")
    if counts is not None and not isinstance(counts, (bool, np.bool_)):
        raise ConfigError(f"counts must be True, False or None, not {counts!r}")
    check_bootstrap(bootstrap)
    engine = load_model(model, device=device)
    if not isinstance(data, Inputs):
        inputs = read_inputs(
            data,
            interventions,
            environment=environment,
            roles=roles,
            exclude=exclude,
            unmeasured_targets=unmeasured_targets,
            layer=layer,
        )
    elif all(option is None for option in (interventions, environment, roles, exclude, layer)):
        inputs = data
    else:
        raise ConfigError(
            "the data was read by read_inputs; pass interventions, environment, roles, exclude and layer to it"
        )
    _check_intervention_kind(engine, inputs.soft_targets)
    inputs = inputs.for_model(engine.reads_kinds, counts=engine.kind == "counts")
    kind_warnings = _check_kind(engine, inputs.countlike, counts)
    dataset = inputs.dataset.with_kind(engine.kind)
    engine.check_memory(dataset.d)
    warnings = [*inputs.notes, *data_warnings(dataset, several_targets=engine.several_targets), *kind_warnings]
    names, facts = dataset.names, _facts(dataset, inputs.soft_targets)
    if isinstance(data, (str, os.PathLike)):
        facts["name"] = os.path.basename(os.fspath(data))
    reference = engine.metadata.get("summaries")
    summary = summarize(dataset, int(reference["rows"][1])) if reference else None
    if known:
        known.masks(names, engine.acyclic)  # contradictions surface before the network runs
    varying, kinds = np.flatnonzero(~constant_columns(dataset)), dataset.column_kinds
    prepared = _prepare(engine, dataset, varying)
    moments = Moments.of(dataset)
    stability = _stability(engine, dataset, varying, bootstrap) if bootstrap else None
    excerpt = dataset.take(np.unique(np.linspace(0, dataset.n - 1, min(dataset.n, _EXCERPT)).astype(int)))
    del data, inputs, dataset  # frees large tables before the network, which reads the prepared copy, runs
    estimate = _expanded(None if prepared is None else engine.predict(prepared), varying, kinds)
    ood = None
    if reference and summary is not None:
        ood = compare(reference, summary.with_prediction(estimate.probabilities))
        warnings += [ood.sentence(engine.name)] if ood.is_ood else []
    return Result(
        unconstrained=estimate.probabilities,
        hidden_causes=estimate.confounded,
        effect=estimate.effect,
        effect_scale=estimate.effect_scale,
        names=names,
        data_warnings=tuple(warnings),
        model=engine.name,
        card=engine.card,
        acyclic_model=engine.acyclic,
        ood=ood,
        known=known,
        data=facts,
        moments=moments,
        stability=stability,
        excerpt=excerpt,
    )


def _check_intervention_kind(engine: Model, soft: Sequence[str]) -> None:
    """Refuse soft interventions for models that would read them as hard ones."""
    if soft and not engine.soft_interventions:
        raise ConfigError(
            f"the model {engine.name!r} was not trained with soft interventions ({listed(soft)}); use a model that "
            "was, such as model='general' (--model general), or let these rows be an environment"
        )


def _check_kind(engine: Model, countlike: bool, counts: bool | None) -> list[str]:
    """Warnings if values and model may disagree on counts; raises if they certainly do."""
    if counts and not countlike:
        raise DataError("the values are not counts (whole numbers of at least 0, some above 1)")
    if engine.kind == "counts":
        if counts is False:
            raise ConfigError(
                f"the model {engine.name!r} takes counts, but the values should be read as real values; "
                "choose a model for real values"
            )
        if not countlike:
            raise DataError(
                f"the model {engine.name!r} takes counts, but the values are not counts "
                "(whole numbers of at least 0, some above 1); choose a model for real values"
            )
        return []
    if counts:
        table = models()
        able = ", ".join(table.loc[table["kind"] == "counts", "name"]) or "none is bundled"
        raise ConfigError(
            f"the model {engine.name!r} takes real values, not counts; models for counts: {able}. To read counts as "
            "real values, pass counts=False (--no-counts on the command line)"
        )
    if countlike and counts is None:
        return [
            "the values look like counts but were read as real values; choose a model for counts, or confirm with "
            "counts=False (--no-counts on the command line)"
        ]
    return []


def _prepare(engine: Model, dataset: Dataset, varying: np.ndarray) -> Prepared | None:
    """Input of the network: the columns that vary, or None if there are fewer than two."""
    if len(varying) < 2:
        return None
    everything = len(varying) == dataset.d
    x, interventions, missing = (
        part if everything else part[:, varying] for part in (dataset.x, dataset.interventions, dataset.missing)
    )
    return engine.prepare(x, interventions, missing, dataset.column_kinds[varying])


def _expanded(found: Estimate | None, varying: np.ndarray, kinds: np.ndarray) -> Estimate:
    """Estimates for all columns: constant ones have no edges, no hidden causes and no effects.

    An effect per standard deviation means nothing where levels have no order, so nominal columns have none.
    """
    d = len(kinds)
    if found is None:
        return Estimate(np.zeros((d, d)), None, None, None)
    inside = np.ix_(varying, varying)

    def expand(values: np.ndarray | None, fill: float) -> np.ndarray | None:
        if values is None:
            return None
        out = np.full((d, d), fill)
        out[inside] = values
        np.fill_diagonal(out, fill)
        return out

    effect, scale = expand(found.effect, np.nan), expand(found.effect_scale, np.nan)
    unordered = is_nominal(kinds)
    for values in (effect, scale):
        if values is not None:
            values[unordered] = values[:, unordered] = np.nan
    probabilities = expand(found.probabilities, 0.0)
    assert probabilities is not None
    return Estimate(probabilities, expand(found.confounded, 0.0), effect, scale)


def _stability(engine: Model, dataset: Dataset, varying: np.ndarray, bootstrap: int) -> np.ndarray:
    """Standard deviation [d, d] of the probabilities over resampled rows."""
    stability = np.zeros((dataset.d, dataset.d))
    if len(varying) >= 2:

        def predict(rows: np.ndarray) -> np.ndarray:
            prepared = _prepare(engine, dataset.take(rows), varying)
            assert prepared is not None
            return engine.predict(prepared).probabilities

        environments = dataset.x[:, dataset.column_kinds == ColumnKind.ENVIRONMENT]
        groups = row_groups(dataset.interventions, environments)
        stability[np.ix_(varying, varying)] = spread(predict, groups, bootstrap)
        np.fill_diagonal(stability, 0.0)
    return stability


def _facts(dataset: Dataset, soft_targets: Sequence[str]) -> dict[str, Any]:
    return {
        "rows": dataset.n,
        "variables": dataset.d,
        "interventional_rows": int(dataset.interventions.any(axis=1).sum()),
        "targets": int(dataset.interventions.any(axis=0).sum()),
        "soft_targets": list(soft_targets),
        "missing_share": float(dataset.missing.mean()),
        "missing_shares": dataset.missing.mean(axis=0).tolist(),
        "kind": dataset.kind,
        "column_kinds": [ColumnKind(kind).name.lower() for kind in dataset.column_kinds],
    }
