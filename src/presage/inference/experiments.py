"""Which variable to intervene on next: the one whose set of descendants is most uncertain.

A perfect intervention on v changes the descendants of v and nothing else. With enough rows it shows which variables
these are, so its value is the entropy of the descendant set of v under the distribution over graphs, which is
represented by samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from presage.graphs.ops import descendants

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SETTLED_SHARE", "descendant_entropy", "experiment_frame", "settled_pairs"]

SETTLED_SHARE = 0.5
"""An intervention settles a pair of variables if it removes at least this share of the pair's entropy."""
_UNCERTAIN = 0.2
"""Pairs with less entropy than this (bits) count as settled already."""
_SHOWN = 3


def descendant_entropy(reach: np.ndarray) -> np.ndarray:
    """Entropy in bits of each variable's set of descendants: [d] from reach, bool [k, d, d] of k sampled graphs.

    >>> one, two = np.zeros((2, 2, 2), dtype=bool)
    >>> one[0, 1] = two[1, 0] = True
    >>> descendant_entropy(np.stack([one, two, two, one])).tolist()
    [1.0, 1.0]
    """
    packed = np.packbits(reach, axis=-1)  # [k, d, bytes]: rows compare faster
    return np.array([_entropy(np.unique(packed[:, v], axis=0, return_counts=True)[1]) for v in range(reach.shape[1])])


def settled_pairs(graphs: np.ndarray, reach: np.ndarray, v: int) -> list[tuple[int, float]]:
    """Variables w whose edge with v an intervention on v settles, with the information about it in bits; best first.

    A pair is in one of three states: no edge, v -> w, w -> v. Observed is whether w is a descendant of v.
    """
    states = graphs[:, v] + 2 * graphs[:, :, v]  # [k, d]
    found = []
    for w in range(graphs.shape[1]):
        before = _entropy(np.bincount(states[:, w], minlength=4))
        if w == v or before < _UNCERTAIN:
            continue
        changed = reach[:, v, w]
        after = sum(
            part.mean() * _entropy(np.bincount(states[part, w], minlength=4))
            for part in (changed, ~changed)
            if part.any()
        )
        if before - after >= SETTLED_SHARE * before:
            found.append((w, before - after))
    return sorted(found, key=lambda pair: -pair[1])


def experiment_frame(graphs: np.ndarray, names: Sequence[str], k: int, exclude: Sequence[int] = ()) -> pd.DataFrame:
    """The k most informative single-variable interventions under sampled acyclic graphs [samples, d, d].

    Columns: variable; information (bits: the entropy of the set of descendants); settles (list of pairs of names whose
    edge the intervention would settle); reason (one sentence). Variables of equal information are ordered by the sum
    of the entropies of the single events "w is a descendant".
    """
    import pandas as pd

    reach = descendants(graphs)
    joint = descendant_entropy(reach)
    probability = reach.mean(axis=0)  # [d, d]
    single = _binary_entropy(probability).sum(axis=1)
    order = [v for v in np.lexsort((-single, -joint.round(9))).tolist() if v not in set(exclude)]
    rows = []
    for v in order[:k]:
        partners = [w for w, _ in settled_pairs(graphs, reach, v)]
        rows.append(
            {
                "variable": names[v],
                "information": float(joint[v]),
                "settles": [(names[v], names[w]) for w in partners],
                "reason": _reason(names, v, probability[v], partners, float(joint[v])),
            }
        )
    return pd.DataFrame(rows, columns=["variable", "information", "settles", "reason"])


def _reason(names: Sequence[str], v: int, probability: np.ndarray, partners: Sequence[int], information: float) -> str:
    """One sentence: which effects are uncertain, and which edges the intervention settles."""
    if information < 0.05:
        return f"The effects of {names[v]} are known already; an intervention would add little information."
    order = np.argsort(-_binary_entropy(probability), kind="stable").tolist()
    doubtful = [w for w in order[:_SHOWN] if 0.05 < probability[w] < 0.95]
    effects = ", ".join(f"{names[w]} ({probability[w]:.2f})" for w in doubtful)
    subject = (
        f"It is uncertain whether {names[v]} influences {effects}" if effects else "Many edges are slightly uncertain"
    )
    if not partners:
        return f"{subject}."
    edges = ", ".join(f"{names[v]} - {names[w]}" for w in partners[:_SHOWN])
    more = f" and {len(partners) - _SHOWN} more" if len(partners) > _SHOWN else ""
    return f"{subject}; the intervention settles {edges}{more}."


def _entropy(counts: np.ndarray) -> float:
    """Entropy in bits of a distribution given by counts."""
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log2(share)).sum()) + 0.0  # no negative zero


def _binary_entropy(probability: np.ndarray) -> np.ndarray:
    """Entropy in bits of events of these probabilities."""
    inner = np.clip(probability, 1e-12, 1 - 1e-12)
    entropy: np.ndarray = -inner * np.log2(inner) - (1 - inner) * np.log2(1 - inner)
    return np.where((probability <= 0) | (probability >= 1), 0.0, entropy)
