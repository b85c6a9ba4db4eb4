"""Every table and figure of the paper: declared once, run resumably, shown beside the paper's numbers."""
