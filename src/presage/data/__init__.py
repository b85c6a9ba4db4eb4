"""Preparation of data for networks: standardization, encoding, row statistics and the training buffer."""
