"""Model cards: training domain, held-out scores and limits of a model, from the metadata of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from presage.errors import ConfigError

__all__ = ["CalibrationBin", "ModelCard", "make_card"]


class CalibrationBin(NamedTuple):
    """Pairs of held-out datasets with similar probabilities: their mean, the share that are edges, their number."""

    probability: float
    share: float
    pairs: int


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """Description of a model. `str(card)` is Markdown, `card.to_json()` plain data."""

    name: str
    kind: str
    acyclic: bool
    network: Mapping[str, Any]
    parameters: int
    domain: Mapping[str, Any] | None = None
    train: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Sections written at release: measured scores, intended use and others."""
    temperature: float | None = None
    ood_check: bool = False
    limits: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "limits": list(self.limits)}

    @property
    def calibration(self) -> tuple[CalibrationBin, ...]:
        """The calibration on held-out datasets, pooled, as the release measured it; empty if the card states none."""
        for title, rows in self.notes.items():
            if title.startswith("calibration"):
                try:
                    return tuple(
                        CalibrationBin(float(row["mean prediction"]), float(row["share of edges"]), int(row["pairs"]))
                        for row in rows
                    )
                except (TypeError, KeyError, ValueError):  # a card of a user's own
                    return ()
        return ()

    def __str__(self) -> str:
        takes = "counts (non-negative whole numbers)" if self.kind == "counts" else "real values"
        graphs = _training_graphs(self.acyclic, self.domain)
        lines = [f"# {self.name}", "", f"Takes {takes}; {graphs}; {self.parameters:,} parameters."]
        if self.temperature is not None:
            lines.append(f"Logits are divided by a temperature of {self.temperature:.3g}, fitted on held-out data.")
        if not self.ood_check:
            lines.append(
                "The file has no summaries of the training domain, so out-of-distribution data is not detected."
            )
        for title, value in self.notes.items():
            lines += ["", f"## {_title(title)}", "", *_block(value)]
        lines += ["", "## Limits", "", *(f"- {limit}" for limit in self.limits)]
        if self.train:
            # The configuration is in the metadata of the file and in records/; it is too long for the card.
            shown = {key: value for key, value in self.train.items() if key != "config"}
            lines += ["", "## Training", "", *_block({**_sizes(self.train.get("config")), **shown})]
        lines += ["", "## Network", "", *_block(self.network)]
        if self.domain is not None:
            lines += ["", "## Training domain", "", *_domain_lines(self.domain)]
        return "\n".join(lines) + "\n"


def make_card(metadata: Mapping[str, Any], network: Mapping[str, Any], parameters: int) -> ModelCard:
    """Make a card from the metadata of a model file, the network's configuration and its number of parameters."""
    return ModelCard(
        name=str(metadata.get("name", "unnamed")),
        kind=str(metadata.get("kind", "real")),
        acyclic=bool(metadata.get("acyclic", True)),
        network=dict(network),
        parameters=parameters,
        domain=metadata.get("domain"),
        train=metadata.get("train") or {},
        notes=metadata.get("card") or {},
        temperature=metadata.get("temperature"),
        ood_check=bool(metadata.get("summaries")),
        limits=_limits(hidden_causes=bool(network.get("hidden_causes")), effects=bool(network.get("effects"))),
    )


def _training_graphs(acyclic: bool, domain: Any) -> str:
    if not acyclic:
        return "trained on graphs that may have cycles"
    feedback = domain.get("feedback") if isinstance(domain, Mapping) else None
    if isinstance(feedback, float) and 0.0 < feedback < 1.0:
        return f"trained on acyclic graphs but for {feedback:.0%} with cycles"
    return "trained on acyclic graphs"


def _limits(*, hidden_causes: bool, effects: bool) -> tuple[str, ...]:
    """What the model assumes and does not tell, by what its network predicts."""
    hidden = "Assumes that no unmeasured variable causes two measured ones and that rows are independent of each other."
    if hidden_causes:
        hidden = "Assumes that rows are independent of each other. Unmeasured variables may cause measured ones."
    match = "A probability is only as good as the match between your data and the training domain; see the warnings."
    direct = "Edges are direct causes among the measured variables" + (
        "; the effect of an edge is that of its cause while the other causes stay." if effects else ", without effects."
    )
    return hidden, match, direct


def _sizes(config: Any) -> dict[str, str]:
    """Numbers of variables and rows of the training datasets, if the configuration is known."""
    try:
        variables = ", ".join(str(d) for d, _ in config["variable_counts"])
        low, high = config["rows"]["n"]
    except (TypeError, KeyError, ValueError):
        return {}
    return {"variables": variables, "rows": f"{low} to {high}"}


def _title(key: str) -> str:
    words = str(key).replace("_", " ")
    if words in ("auprc", "auroc", "ece", "shd", "sid"):
        return words.upper()
    return words[:1].upper() + words[1:]


def _block(value: Any) -> list[str]:
    """JSON data as Markdown: tables for mappings and lists of mappings, bullets for lists, text otherwise."""
    if isinstance(value, Mapping):
        rows = [(_title(key), _inline(item)) for key, item in value.items()]
        return ["| | |", "| --- | --- |", *(f"| {key} | {item} |" for key, item in rows)]
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        columns = list(dict.fromkeys(key for item in value for key in item))
        head = ["| " + " | ".join(_title(key) for key in columns) + " |", "|" + " --- |" * len(columns)]
        return head + ["| " + " | ".join(_inline(item.get(key, "")) for key in columns) + " |" for item in value]
    if isinstance(value, list):
        return [f"- {_inline(item)}" for item in value]
    return [_inline(value)]


def _inline(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {_inline(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_inline(item) for item in value)
    return str(value).replace("|", "\\|").replace("\n", " ")


def _domain_lines(data: Mapping[str, Any]) -> list[str]:
    from presage.domain.domain import Domain

    try:
        domain = Domain.from_json(data)
    except ConfigError:  # a user's own component that is not importable here
        return _block(data)
    return ["```", *str(domain).splitlines(), "```"]
