"""One module per library or algorithm; each function takes a `Problem` and settings, and returns an `Estimate`.

A module imports its library inside its functions: it is imported in environments that have only that library and NumPy.
"""
