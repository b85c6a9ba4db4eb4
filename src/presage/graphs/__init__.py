"""Random graph models, regulatory networks and operations on directed graphs."""
