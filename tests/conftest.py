"""Shared by all tests: calm property tests, and one way to run the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

# Examples are the same on every run, and no wall-clock limit: the machine may be busy.
settings.register_profile(
    "presage", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("presage")


@pytest.fixture
def presage_cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run `presage ARGUMENTS` in this process: (exit code, standard output, standard error)."""
    from presage.cli import run

    def call(*arguments: object) -> tuple[int, str, str]:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
