"""Training: one run, from config to weights."""
