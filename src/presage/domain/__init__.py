"""Domains: distributions over (graph, data) that networks are trained on and judged by."""
