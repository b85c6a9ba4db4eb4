"""Metrics of a predicted graph: structural distances, ranking, calibration, and summaries over instances.

All d^2 ordered pairs count, as in the paper. The diagonal has probability 0 and no edges. It does not affect SHD, SID,
precision, recall and F1, and it multiplies 1 - AUROC and ECE by about 1 - 1/d.
"""

from presage.metrics.calibration import CalibrationCurve, calibration_curve, ece
from presage.metrics.ranking import auprc, auprc_trapezoid, auroc
from presage.metrics.structure import (
    acyclic_projection,
    f1,
    orient_favourably,
    precision_recall_f1,
    shd,
    sid,
)
from presage.metrics.summary import Mean, evaluate, highlight, mean_and_error, welch_p_value

__all__ = [
    "CalibrationCurve",
    "Mean",
    "acyclic_projection",
    "auprc",
    "auprc_trapezoid",
    "auroc",
    "calibration_curve",
    "ece",
    "evaluate",
    "f1",
    "highlight",
    "mean_and_error",
    "orient_favourably",
    "precision_recall_f1",
    "shd",
    "sid",
    "welch_p_value",
]
