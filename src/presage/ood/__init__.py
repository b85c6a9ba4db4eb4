"""Is a table like the data a model was trained on? Summaries of tables and the out-of-distribution check."""
