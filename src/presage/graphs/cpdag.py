"""The Markov equivalence class of an acyclic graph as a completed partially directed graph (CPDAG).

Two acyclic graphs imply the same conditional independences if and only if they have the same skeleton and the same
v-structures (Verma and Pearl, 1990). An edge of the CPDAG is directed if it points the same way in every graph of the
class. Starting from the v-structures, the first three orientation rules of Meek (1995) find all such edges.
"""

from __future__ import annotations

import numpy as np

from presage.errors import DataError
from presage.graphs.ops import is_acyclic

__all__ = ["cpdag"]


def cpdag(graph: np.ndarray) -> np.ndarray:
    """The CPDAG of an acyclic graph: int8 [d, d]; both [i, j] and [j, i] are 1 where an edge is undirected.

    >>> chain, collider = np.zeros((2, 3, 3), dtype=int)
    >>> chain[0, 1] = chain[1, 2] = collider[0, 1] = collider[2, 1] = 1
    >>> cpdag(chain).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> cpdag(collider).tolist()
    [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    """
    edges = np.asarray(graph) != 0
    if not is_acyclic(edges):
        raise DataError("the graph has a cycle; equivalence classes are defined for acyclic graphs")
    adjacent = edges | edges.T
    apart = ~adjacent
    np.fill_diagonal(apart, False)
    # i -> j belongs to a v-structure if j has another cause that is not adjacent to i.
    directed = edges & _product(apart, edges)
    while True:
        found = _meek(directed, adjacent, apart)
        if not found.any():
            possible: np.ndarray = directed | (adjacent & ~directed.T)
            return possible.astype(np.int8)
        directed |= found


def _meek(directed: np.ndarray, adjacent: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """Undirected edges that one of Meek's rules 1 to 3 directs: bool [d, d]."""
    undirected = adjacent & ~directed & ~directed.T
    # Rule 1: k -> i, i - j, k and j not adjacent. The other direction would be a new v-structure.
    forced = _product(directed.T, apart)
    # Rule 2: i -> k -> j and i - j. The other direction would close a cycle.
    forced |= _product(directed, directed)
    found: np.ndarray = undirected & forced
    # Rule 3: i - k -> j, i - l -> j, k and l not adjacent, i - j.
    for i, j in np.argwhere(undirected & ~found):
        between = np.flatnonzero(undirected[i] & directed[:, j])
        found[i, j] = apart[np.ix_(between, between)].any()
    return found


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Whether some k has left[i, k] and right[k, j]: bool [d, d]."""
    product: np.ndarray = left.astype(np.float32) @ right.astype(np.float32) > 0
    return product
