"""The out-of-distribution (OOD) check: summaries of a table, compared with those of the training domain."""
