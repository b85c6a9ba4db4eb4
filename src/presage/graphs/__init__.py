"""Graphs: random models, regulatory networks, and operations on directed graphs."""
