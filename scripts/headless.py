"""Command-line flags of the headless Chromium for tests and screenshots."""

from __future__ import annotations

__all__ = ["FLAGS"]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
