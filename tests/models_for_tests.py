"""Small untrained models with the records of trained ones, for tests of everything around a network."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from presage.config import to_json
from presage.domain.catalog import get_domain
from presage.inference.hub import load_model
from presage.networks.network import Network, build_network
from presage.networks.pair import PairConfig
from presage.networks.weights import save_model
from presage.ood.check import fit_reference
from presage.training.predicting import predictor

TINY = PairConfig(width=8, cell_width=8, rounds=2, blocks=1, outer=4, triangle=8, heads=2, expand=1)


def tiny_network(seed: int = 0) -> Network:
    """Random weights that answer with probabilities on both sides of 0.5."""
    import torch

    network = build_network(TINY, seed=seed)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        for parameter in network.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    return network


@cache
def summaries(domain: str = "linear") -> dict[str, Any]:
    """A reference of few, small datasets."""
    return fit_reference(domain, predictor(_model(domain)), seed=0, datasets=160, variables=(3, 15), rows=(40, 200))


def _model(domain: str) -> Network:
    return load_model(domain).network


def save_tiny(path: Path, *, kind: str = "real", with_summaries: bool = False, **metadata: Any) -> Path:
    """A model file."""
    save_model(
        path,
        tiny_network(),
        {
            "name": path.stem,
            "kind": kind,
            "acyclic": kind == "real",
            "domain": to_json(get_domain("linear")),
            "train": {"steps": 0, "datasets": 0},
            "card": {"about": "Untrained; for tests.", "scores": [{"domain": "linear", "auprc": 0.1}]},
            **({"summaries": summaries()} if with_summaries else {}),
            **metadata,
        },
    )
    return path
