"""`Model`: a trained network together with its metadata, from raw values to probabilities and effects."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psutil

from presage.columns import guess_kinds
from presage.data.standardize import standardize
from presage.errors import ConfigError, DataError, ModelFileError
from presage.types import Kind

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from presage.data.row_statistics import Columns
    from presage.domain.domain import Domain
    from presage.networks.network import Network, Prediction
    from presage.report.card import ModelCard

__all__ = ["Estimate", "Model", "Prepared"]


class Prepared(NamedTuple):
    """Input of a network: standardized values [n, d] float32, intervention mask and missing mask [n, d] or None."""

    x: Tensor
    interventions: Tensor
    missing: Tensor | None
    columns: Columns | None = None

    def to(self, device: torch.device) -> Prepared:
        """The same input on a device."""
        x, interventions, missing, columns = self
        return Prepared(
            x.to(device),
            interventions.to(device),
            None if missing is None else missing.to(device),
            None if columns is None else type(columns)(*(part.to(device) for part in columns)),
        )


class Estimate(NamedTuple):
    """What a model estimates for every pair [d, d]; None where it has no such output."""

    probabilities: np.ndarray
    """Edge probabilities; row causes column."""
    confounded: np.ndarray | None
    """Probabilities of a hidden common cause, symmetric."""
    effect: np.ndarray | None
    """Signed standardized effect of the row on the column if the edge exists: the median of a Laplace distribution."""
    effect_scale: np.ndarray | None
    """Scale of that distribution."""


class Model:
    """A trained network with its metadata: name, kind of values, temperature, card."""

    def __init__(self, network: Network, metadata: Mapping[str, Any], *, keep_diagonal: bool = False) -> None:
        from presage.report.card import make_card

        self.network = network
        self.metadata: dict[str, Any] = dict(metadata)
        self.name = str(metadata.get("name", "unnamed"))
        kind = metadata.get("kind", "real")
        if kind not in ("real", "counts"):
            raise ModelFileError(
                f"the model {self.name!r} takes values of kind {kind!r}, which is neither 'real' nor 'counts'"
            )
        self.kind: Kind = kind
        self.acyclic = bool(metadata.get("acyclic", True))
        self.temperature = _temperature(metadata.get("temperature"), self.name)
        self._keep_diagonal = keep_diagonal
        parameters = sum(parameter.numel() for parameter in network.parameters())
        self.card: ModelCard = make_card(metadata, network.config.to_json(), parameters)

    @property
    def reads_kinds(self) -> bool:
        """Whether the network distinguishes kinds of columns."""
        return bool(getattr(self.network.config, "column_kinds", False))

    @property
    def soft_interventions(self) -> bool:
        """Whether the training data had soft interventions; False if the training domain is not known."""
        domain = self._domain()
        return domain is not None and domain.soft_interventions

    @property
    def several_targets(self) -> bool:
        """Whether rows of the training data had several targets; False if the training domain is not known."""
        domain = self._domain()
        return domain is not None and domain.several_targets

    def _domain(self) -> Domain | None:
        """The training domain; None if it is not known."""
        from presage.domain.domain import Domain

        try:
            return Domain.from_json(self.metadata.get("domain"))
        except ConfigError:
            return None

    @property
    def device(self) -> torch.device:
        """The device of the network's weights."""
        return next(self.network.parameters()).device

    def on_device(self, device: torch.device) -> Model:
        """The model with its network on a device; this model stays where it is."""
        if device == self.device:
            return self
        other = copy.copy(self)
        other.network = copy.deepcopy(self.network).to(device)
        return other

    def probabilities(
        self,
        x: np.ndarray,
        interventions: np.ndarray | None = None,
        missing: np.ndarray | None = None,
        *,
        column_kinds: np.ndarray | None = None,
        rows: int | None = None,
    ) -> np.ndarray:
        """Edge probabilities [d, d] (row causes column) of raw values x [n, d]; exact for any n.

        interventions, missing: masks [n, d] or None. NaN cells of x count as missing. column_kinds: [d] of
        `presage.columns.ColumnKind`, guessed if None; ignored by networks without kinds. `rows` bounds how many rows
        are processed at once and does not change the result. The diagonal is 0.
        """
        return self.predict(self.prepare(x, interventions, missing, column_kinds), rows=rows).probabilities

    def prepare(
        self,
        x: np.ndarray,
        interventions: np.ndarray | None = None,
        missing: np.ndarray | None = None,
        column_kinds: np.ndarray | None = None,
    ) -> Prepared:
        """Check and standardize raw values for the network; the result takes half their memory."""
        import torch

        x, interventions, missing = _checked(x, interventions, missing)
        u = torch.zeros(1, dtype=torch.bool).expand(x.shape) if interventions is None else torch.tensor(interventions)
        hidden = None if missing is None else torch.tensor(missing)
        if not self.reads_kinds:
            return Prepared(torch.from_numpy(standardize(x, self.kind, missing)), u, hidden)
        from presage.data.encode import encode
        from presage.data.row_statistics import Columns

        kinds = guess_kinds(x, missing) if column_kinds is None else np.asarray(column_kinds, dtype=np.int8)
        if kinds.shape != (x.shape[1],):
            raise DataError(f"column_kinds must have one entry for each of the {x.shape[1]} columns")
        encoded = encode(x, kinds, missing)
        columns = Columns(*(torch.tensor(part) for part in (kinds, encoded.second, encoded.association)))
        return Prepared(torch.from_numpy(encoded.x), u, hidden, columns)

    def predict(self, prepared: Prepared, *, rows: int | None = None) -> Estimate:
        """Probabilities and effects of all pairs of prepared values."""
        found = self._predict(prepared, rows)
        effect, scale = found.effect, found.effect_log_scale
        return Estimate(
            probabilities=self._sigmoid(found.edge.double().numpy()),
            confounded=None if found.confounded is None else self._sigmoid(found.confounded.double().numpy()),
            effect=None if effect is None else effect.double().numpy(),
            effect_scale=None if scale is None else scale.double().exp().numpy(),
        )

    def _predict(self, prepared: Prepared, rows: int | None) -> Prediction:
        from presage.networks.network import Prediction

        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1):
            raise ConfigError(f"rows must be None or a whole number of at least 1, not {rows!r}")
        self.check_memory(prepared.x.shape[1])
        try:
            found = self.network.predict_outputs(*prepared.to(self.device), rows=rows)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "alloc" not in str(error).lower():
                raise
            n, d = prepared.x.shape
            raise DataError(f"{n:,} rows x {d:,} variables do not fit into memory; use fewer variables") from error
        return Prediction(*(None if part is None else part.cpu() for part in found))  # type: ignore[arg-type]

    def check_memory(self, d: int) -> None:
        """Raise `DataError` if a prediction of d variables does not fit into the free memory."""
        _check_memory(d, max(self.network.bytes_per_pair(), _RESULT_BYTES), _available_memory())

    def _sigmoid(self, logits: np.ndarray) -> np.ndarray:
        if self.temperature is not None:
            logits = logits / self.temperature
        if not np.isfinite(logits).all():
            raise ModelFileError(f"the model {self.name!r} predicts values that are not finite; it cannot be used")
        small = np.exp(-np.abs(logits))  # at most 1: neither side overflows
        probabilities: np.ndarray = np.where(logits >= 0.0, 1.0, small) / (1.0 + small)
        if not self._keep_diagonal:
            np.fill_diagonal(probabilities, 0.0)
        return probabilities

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {self.kind}, {self.card.parameters:,} parameters)"


_RESULT_BYTES = 100.0
"""Memory of a result for each ordered pair of variables: probabilities, effects, correlations and their copies."""


def _available_memory() -> float:
    """Bytes of memory that can be used without swapping."""
    return float(psutil.virtual_memory().available)


def _check_memory(d: int, per_pair: float, available: float) -> None:
    """Refuse tables that do not fit, before the system kills the process."""
    if per_pair * d * d <= max(available, 1e9):
        return
    fits = int((available / per_pair) ** 0.5)
    raise DataError(
        f"{d:,} variables need about {per_pair * d * d / 2**30:.0f} GiB of memory, but {available / 2**30:.0f} GiB are "
        f"available; about {fits:,} variables would fit"
    )


def _temperature(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < float("inf"):
        raise ModelFileError(f"the model {name!r} has the temperature {value!r}; it must be a number above 0")
    return float(value)


def _checked(x: Any, interventions: Any, missing: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Arrays of one shape: values, masks as bool (None if empty), NaN cells marked as missing."""
    x = np.asarray(x)
    if x.ndim != 2 or 0 in x.shape:
        raise DataError(f"the values must be a table [n, d] of at least one row and one column, not {x.shape}")
    if x.dtype.kind not in "fiub":
        raise DataError(f"the values must be numbers, not {x.dtype}; presage.discover reads tables of other kinds")
    masks: list[np.ndarray | None] = []
    for mask, what in ((interventions, "intervention mask"), (missing, "missing mask")):
        if mask is None:
            masks.append(None)
            continue
        mask = np.asarray(mask)
        if mask.shape != x.shape:
            raise DataError(f"the {what} has shape {mask.shape}, but the values have shape {x.shape}")
        if mask.dtype != bool and (mask.dtype.kind not in "fiu" or not np.isin(mask, (0, 1)).all()):
            raise DataError(f"the {what} must hold only 0 and 1")
        masks.append(mask.astype(bool) if mask.any() else None)
    if x.dtype.kind == "f":
        nan = np.isnan(x)
        if nan.any():
            masks[1] = nan if masks[1] is None else masks[1] | nan
        if np.isinf(x).any():
            raise DataError("the values contain infinities; replace them or mark them as missing (NaN)")
    return x, masks[0], masks[1]
