"""How a headless Chromium is started for tests and pictures."""

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
