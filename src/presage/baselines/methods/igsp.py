"""IGSP: greedy search over permutations with conditional independence and invariance tests.

Written from Wang, Solus, Yang, Uhler (2017) and Yang, Katcoff, Uhler (2018). A permutation of the variables implies
a DAG: earlier i causes later j unless they are independent given all others before j. The search reverses covered edges
i -> j (both have the same further parents) as long as that leads to fewer edges, or to as many edges of which fewer
contradict the interventional data. An edge i -> j contradicts it if intervening on i leaves the distribution of j
unchanged, or if intervening on j changes that of i.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from presage.baselines.api import Estimate, Problem
from presage.baselines.methods.hsic import HsicTests
from presage.baselines.orientation import graph_row_to_column
from presage.errors import ConfigError

__all__ = ["IndependenceTests", "igsp"]

_KINDS = ("gaussian", "hsic")


class IndependenceTests:
    """Tests of independence on observational rows, and for a changed mean or variance under each intervention.

    kind: "gaussian" (Fisher's z) or "hsic" (HSIC-gamma, for nonlinear relations; much slower).
    """

    def __init__(self, problem: Problem, alpha: float, alpha_invariance: float, kind: str) -> None:
        if kind not in _KINDS:
            raise ConfigError(f"the test must be one of {', '.join(_KINDS)}, not {kind!r}")
        x = problem.regular()
        observational = ~problem.mask.any(axis=1)
        # With few or no observational rows, the interventional ones are used as well.
        self.base = x[observational] if observational.sum() > problem.d + 5 else x
        self.hsic = HsicTests(self.base) if kind == "hsic" else None
        self.correlation = np.corrcoef(self.base, rowvar=False).reshape(problem.d, problem.d)
        self.alpha, self.alpha_invariance = alpha, alpha_invariance
        self.samples = {
            target: x[problem.mask[:, target]] for target in range(problem.d) if problem.mask[:, target].sum() > 2
        }
        self.independent = cache(self._independent)
        self.changed = cache(self._changed)

    def _independent(self, i: int, j: int, given: frozenset[int]) -> bool:
        if self.hsic is not None:
            return self.hsic.p_value(min(i, j), max(i, j), given) > self.alpha
        index = [i, j, *sorted(given)]
        freedom = len(self.base) - len(given) - 3
        if freedom < 1:
            return True
        precision = np.linalg.pinv(self.correlation[np.ix_(index, index)], hermitian=True)
        partial = -precision[0, 1] / math.sqrt(max(precision[0, 0] * precision[1, 1], 1e-300))
        partial = min(max(partial, -1.0 + 1e-12), 1.0 - 1e-12)
        z = math.sqrt(freedom) * abs(math.atanh(partial))
        return math.erfc(z / math.sqrt(2.0)) > self.alpha

    def _changed(self, target: int, j: int) -> bool:
        """Whether the distribution of j differs between the rows where `target` is set and the observational ones."""
        from scipy import special

        from presage.metrics import welch_p_value

        a, b = self.base[:, j], self.samples[target][:, j]
        mean = welch_p_value(a, b)
        ratio = float(b.var(ddof=1) / max(a.var(ddof=1), 1e-300))
        below = float(special.fdtr(len(b) - 1, len(a) - 1, ratio))
        variance = 2.0 * min(below, 1.0 - below)
        return min(mean, variance) < self.alpha_invariance / 2.0  # Bonferroni correction for two tests


def _implied(tests: IndependenceTests, order: np.ndarray) -> np.ndarray:
    """The DAG of a permutation: [d, d] bool."""
    d = len(order)
    graph = np.zeros((d, d), dtype=bool)
    for place, j in enumerate(order):
        before = [int(i) for i in order[:place]]
        for i in before:
            graph[i, j] = not tests.independent(i, int(j), frozenset(before) - {i})
    return graph


def _reversed(tests: IndependenceTests, graph: np.ndarray, i: int, j: int) -> np.ndarray:
    """The graph after reversing the covered edge i -> j; shared parents may become superfluous."""
    shared = np.flatnonzero(graph[:, i]).tolist()
    graph = graph.copy()
    graph[i, j], graph[j, i] = False, True
    for k in shared:
        rest = frozenset(shared) - {k}
        graph[k, j] = not tests.independent(k, j, rest)
        graph[k, i] = not tests.independent(k, i, rest | {j})
    return graph


def _contradicts(tests: IndependenceTests, i: int, j: int) -> bool:
    return (i in tests.samples and not tests.changed(i, j)) or (j in tests.samples and tests.changed(j, i))


def _cost(tests: IndependenceTests, graph: np.ndarray) -> tuple[int, int]:
    edges = np.argwhere(graph)
    return len(edges), sum(_contradicts(tests, int(i), int(j)) for i, j in edges)


def _covered(tests: IndependenceTests, graph: np.ndarray) -> list[tuple[int, int]]:
    """Covered edges worth reversing, those that contradict the interventions first.

    An edge whose cause was intervened on, and whose effect then changed, is settled.
    """
    found = []
    for i, j in np.argwhere(graph):
        parents = graph[:, j].copy()
        parents[i] = False
        settled = int(i) in tests.samples and tests.changed(int(i), int(j))
        if (parents == graph[:, i]).all() and not settled:
            found.append((int(i), int(j)))
    return sorted(found, key=lambda edge: not _contradicts(tests, *edge))


def _descend(tests: IndependenceTests, graph: np.ndarray, depth: int) -> np.ndarray:
    """Reverse covered edges while a graph of lower cost is within `depth` reversals."""
    cost = _cost(tests, graph)
    while True:
        seen = {graph.tobytes()}
        stack = [(graph, 0)]
        better = None
        while stack and better is None:
            here, reversals = stack.pop()
            for i, j in _covered(tests, here):
                there = _reversed(tests, here, i, j)
                if there.tobytes() in seen:
                    continue
                seen.add(there.tobytes())
                if _cost(tests, there) < cost:
                    better = there
                    break
                if reversals + 1 < depth and there.sum() <= here.sum():
                    stack.append((there, reversals + 1))
            if len(seen) > 50 * len(graph):  # plateaus grow exponentially; the search is greedy anyway
                break
        if better is None:
            return graph
        graph, cost = better, _cost(tests, better)


def igsp(problem: Problem, *, alpha: float, alpha_invariance: float, depth: int, starts: int, test: str) -> Estimate:
    """The best of several starts: one by minimum degree, the others random."""
    tests = IndependenceTests(problem, alpha, alpha_invariance, test)
    best: tuple[tuple[int, int], np.ndarray] | None = None
    for start in range(starts):
        order = problem.rng.permutation(problem.d) if start else _by_degree(tests, problem.d)
        graph = _descend(tests, _implied(tests, order), depth)
        cost = _cost(tests, graph)
        if best is None or cost < best[0]:
            best = cost, graph
    if best is None:
        return graph_row_to_column(np.zeros((problem.d, problem.d)))
    return graph_row_to_column(best[1], note=f"{best[0][1]} edges contradict the interventions")


def _by_degree(tests: IndependenceTests, d: int) -> np.ndarray:
    """Minimum-degree elimination order of the moral graph, last variable first: a good initial permutation."""
    variables = frozenset(range(d))
    adjacent = np.array(
        [
            [i != j and not tests.independent(min(i, j), max(i, j), variables - {i, j}) for j in range(d)]
            for i in range(d)
        ]
    )
    left, order = set(range(d)), []
    while left:
        last = min(left, key=lambda v: (int(adjacent[v, list(left)].sum()), v))
        neighbours = [u for u in left if adjacent[last, u]]
        adjacent[np.ix_(neighbours, neighbours)] = True
        adjacent[neighbours, neighbours] = False
        left.remove(last)
        order.append(last)
    return np.array(order[::-1])
