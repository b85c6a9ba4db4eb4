"""Simulation: mechanisms, noise and interventions make data from a graph."""
