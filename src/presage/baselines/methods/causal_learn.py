"""PC, FCI, GES, GRaSP, BOSS and DirectLiNGAM through the package causal-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from presage.baselines.api import Estimate, Problem
from presage.baselines.orientation import from_endpoints, from_pag, weights_child_by_parent
from presage.errors import require_extra

__all__ = ["boss", "direct_lingam", "fci", "ges", "grasp", "pc"]


def _package(module: str) -> Any:
    return require_extra(f"causallearn.{module}", "baselines", "this baseline")


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _seeded(problem: Problem) -> Iterator[None]:
    """The package draws from Python's and NumPy's global generators: seed them, then put them back."""
    import random

    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - to restore it
    random.seed(problem.seed)
    np.random.seed(problem.seed % 2**32)  # noqa: NPY002 - the package offers nothing else
    try:
        with _quiet():
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


def _register_hsic() -> None:
    """Register HSIC-gamma with the package, through its interface for custom tests."""
    from presage.baselines.methods.hsic import HsicTests

    package = _package("utils.cit")

    class Hsic(package.CIT_Base):  # type: ignore[misc, name-defined]  # the package has no types
        def __init__(self, data: np.ndarray, **options: Any) -> None:
            super().__init__(data, **options)
            self.method = "hsic"
            self.tests = HsicTests(data)

        def __call__(self, x: Any, y: Any, given: Any = None) -> float:
            i, j = sorted((int(x), int(y)))
            return self.tests.p_value(i, j, frozenset(int(k) for k in ([] if given is None else given)))

    package.register_ci_test("hsic", Hsic)


def pc(problem: Problem, *, alpha: float, test: str) -> Estimate:
    """PC with Fisher's z test ("fisherz"), the kernel test ("kci") or HSIC-gamma ("hsic")."""
    search = _package("search.ConstraintBased.PC").pc
    if test == "hsic":
        _register_hsic()
    with _quiet():
        found = search(problem.regular(), alpha, test, show_progress=False)
    return from_endpoints(found.G.graph)


def fci(problem: Problem, *, alpha: float, depth: int) -> Estimate:
    """FCI, which allows for hidden common causes: Fisher's z test, or the G test if all columns are discrete."""
    search = _package("search.ConstraintBased.FCI").fci
    discrete = bool(problem.discrete.all())
    values = problem.raw if discrete else problem.regular()
    with _quiet():
        found, _ = search(values, "gsq" if discrete else "fisherz", alpha, depth=depth, show_progress=False)
    return from_pag(found.graph)


def ges(problem: Problem) -> Estimate:
    """Greedy equivalence search with the Gaussian BIC."""
    search = _package("search.ScoreBased.GES").ges
    with _quiet():
        found = search(problem.regular(), "local_score_BIC_from_cov")
    return from_endpoints(found["G"].graph)


def grasp(problem: Problem, *, depth: int) -> Estimate:
    """Greedy relaxations of the sparsest permutation with the Gaussian BIC."""
    search = _package("search.PermutationBased.GRaSP").grasp
    with _seeded(problem):
        found = search(problem.regular(), "local_score_BIC_from_cov", depth=depth, verbose=False)
    return from_endpoints(found.graph)


def boss(problem: Problem) -> Estimate:
    """Best order score search with the Gaussian BIC."""
    search = _package("search.PermutationBased.BOSS").boss
    with _seeded(problem):
        found = search(problem.regular(), "local_score_BIC_from_cov", verbose=False)
    return from_endpoints(found.graph)


def direct_lingam(problem: Problem, *, threshold: float) -> Estimate:
    """LiNGAM by repeated search for an exogenous variable."""
    model = _package("search.FCMBased.lingam").DirectLiNGAM(random_state=problem.seed % 2**32)
    with _seeded(problem):
        model.fit(problem.regular())
    return weights_child_by_parent(model.adjacency_matrix_, threshold)
