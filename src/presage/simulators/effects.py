"""Signed standardized direct effects by finite differences with fixed noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from presage.graphs.latent import hidden_reach
from presage.simulators.nodes import Node

__all__ = ["direct_effects"]


def direct_effects(
    graph: np.ndarray,
    hidden: np.ndarray,
    order: Sequence[int],
    parents: Sequence[np.ndarray],
    nodes: Sequence[Node | None],
    columns: np.ndarray,
    rows: np.ndarray,
    *,
    levels: Sequence[int],
    nominal: np.ndarray,
    sd: np.ndarray,
) -> np.ndarray:
    """Effects [m, m]: mean change of j, in standard deviations of j, if i increases by one standard deviation of i.

    Hidden mediators follow; all other observed variables and the noise are fixed. Numeric values increase by one
    standard deviation; codes increase by one level, and the change is multiplied by the standard deviation. The effect
    is NaN if the latent projection has no edge, or if i or j is nominal (bool [m]) or hidden. rows: observational rows
    to average over. nodes: None for root variables that were not simulated by a node.
    """
    m, k = len(graph), len(rows)
    reach = hidden_reach(graph, hidden)
    effects = np.full((m, m), np.nan)
    base = columns[:, rows]  # [m, k]
    source = ~hidden & ~nominal
    relevant = reach & source[:, None]
    relevant[:, nominal & ~hidden] = False
    # The two states of a source. Numeric sources start from the observed rows, so only one state is evaluated.
    high: dict[int, np.ndarray] = {}
    low: dict[int, np.ndarray] = {}
    for i in np.flatnonzero(relevant.any(axis=1)).tolist():
        if levels[i]:
            low[i] = np.minimum(base[i], levels[i] - 2.0)
            high[i] = low[i] + 1.0
        else:
            high[i] = base[i] + sd[i]
    moved: dict[tuple[int, int, bool], np.ndarray] = {}  # (hidden variable, source, state is high) -> values
    for j in order:
        node = nodes[j]
        sources = np.flatnonzero(relevant[:, j]).tolist()
        if node is None or not sources:
            continue
        worlds = [(i, True) for i in sources] + [(i, False) for i in sources if i in low]
        p = len(parents[j])
        inputs = np.empty((p, len(worlds), k))
        inputs[:] = base[parents[j]][:, None]
        for q, parent in enumerate(parents[j].tolist()):
            for w, (i, up) in enumerate(worlds):
                if parent == i:
                    inputs[q, w] = high[i] if up else low[i]
                elif hidden[parent] and (parent, i, up) in moved:
                    inputs[q, w] = moved[parent, i, up]
        values = node.evaluate(inputs.reshape(p, -1), np.tile(rows, len(worlds))).reshape(len(worlds), k)
        if hidden[j]:
            moved.update({(j, i, up): values[w] for w, (i, up) in enumerate(worlds)})
            continue
        means = values.mean(axis=1)
        start = {i: means[w] for w, (i, up) in enumerate(worlds) if not up}
        reference = base[j].mean()
        scale = sd[j] if sd[j] > 0 else 1.0
        for w, i in enumerate(sources):
            change = (means[w] - start[i]) * sd[i] if i in low else means[w] - reference
            effects[i, j] = change / scale
    return effects
