"""Domains: distributions over (graph, data) that networks are trained and evaluated on."""
