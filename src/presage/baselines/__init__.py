"""Other algorithms behind one interface, each in a separate process and, where needed, a separate environment."""

from presage.baselines.api import Baseline, Estimate, Problem
from presage.baselines.registry import BASELINES, get_baseline
from presage.baselines.run import Outcome, run_isolated

__all__ = ["BASELINES", "Baseline", "Estimate", "Outcome", "Problem", "get_baseline", "run_isolated"]
