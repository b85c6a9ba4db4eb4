"""Domains: distributions over (graph, data)."""
