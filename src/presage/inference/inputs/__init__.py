"""From the user's data (arrays, data frames, AnnData, files) to a checked `Dataset`; all checks of user input."""

from presage.inference.inputs.checks import constant_columns, data_warnings
from presage.inference.inputs.inputs import Inputs
from presage.inference.inputs.kinds import looks_like_counts
from presage.inference.inputs.reader import read_inputs
from presage.inference.inputs.roles import ROLES, ColumnRole
from presage.inference.inputs.tables import Table, as_written, read_table

__all__ = [
    "ROLES",
    "ColumnRole",
    "Inputs",
    "Table",
    "as_written",
    "constant_columns",
    "data_warnings",
    "looks_like_counts",
    "read_inputs",
    "read_table",
]
