"""From what a user has (arrays, data frames, AnnData, files) to a checked `Dataset`; every check of user input."""

from presage.inference.inputs.checks import CONTROL_LABELS_HELP, describe_oddities, looks_like_counts
from presage.inference.inputs.reader import Inputs, read_inputs
from presage.inference.inputs.tables import Table, read_table

__all__ = [
    "CONTROL_LABELS_HELP",
    "Inputs",
    "Table",
    "describe_oddities",
    "looks_like_counts",
    "read_inputs",
    "read_table",
]
