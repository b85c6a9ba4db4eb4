"""Judging a predicted graph: structure, ranking, calibration, and summaries over instances.

All d^2 ordered pairs count, as in the paper; a variable never causes itself, so the diagonal is certain (probability
0, no edge). It leaves SHD, SID, precision, recall and F1 as they are, and shifts AUROC and ECE by a factor of about
1 - 1/d towards the better.
"""

from presage.metrics.calibration import CalibrationCurve, calibration_curve, ece
from presage.metrics.ranking import auprc, auprc_trapezoid, auroc
from presage.metrics.structure import (
    acyclic_guess,
    f1,
    favour,
    precision_recall_f1,
    shd,
    sid,
)
from presage.metrics.summary import Mean, evaluate, highlight, mean_and_error, welch_p_value

__all__ = [
    "CalibrationCurve",
    "Mean",
    "acyclic_guess",
    "auprc",
    "auprc_trapezoid",
    "auroc",
    "calibration_curve",
    "ece",
    "evaluate",
    "f1",
    "favour",
    "highlight",
    "mean_and_error",
    "precision_recall_f1",
    "shd",
    "sid",
    "welch_p_value",
]
