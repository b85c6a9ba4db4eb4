"""Answering a question about data: inputs, models, knowledge, `discover` and its `Result`."""
