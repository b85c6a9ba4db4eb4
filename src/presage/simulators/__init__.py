"""Simulators: mechanisms, noise, interventions and gene expression."""
