"""Shared by all tests: reproducible property tests, the command line in this process, a list of skipped tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

# The examples are the same on every run. There is no time limit, because the machine may be busy.
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count and name the skipped tests at the end of a run, each with its reason."""
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    terminalreporter.section(f"{len(skipped)} skipped")
    for report in sorted(skipped, key=lambda report: report.nodeid):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.line(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}")
