"""From the user's data (arrays, data frames, AnnData, files) to a checked `Dataset`; all checks of user input."""

from presage.inference.inputs.checks import constant_columns, data_warnings, looks_like_counts
from presage.inference.inputs.reader import Inputs, read_inputs
from presage.inference.inputs.tables import Table, read_table

__all__ = [
    "Inputs",
    "Table",
    "constant_columns",
    "data_warnings",
    "looks_like_counts",
    "read_inputs",
    "read_table",
]
