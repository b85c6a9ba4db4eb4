"""Data on its way to a network: standardization and the training buffer."""
