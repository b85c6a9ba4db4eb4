"""Every table and figure of the paper: declared once, run with resumption, shown next to the paper's numbers."""
