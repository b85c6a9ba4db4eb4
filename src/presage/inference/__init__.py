"""Causal discovery for a user's data: inputs, models, background knowledge, `discover` and its `Result`."""
