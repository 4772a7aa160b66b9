"""Pytest plugin: start no test behind a moment, and name those that were not run.

``--no-start-after SECONDS`` (since the epoch) lets a run of CI end in time.  A run in which a unit test or a
test of the gate was not started is not green.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

import pytest

#: begins the reason of the skips, by which the controller of the workers finds them
_NOT_RUN: Final = "not run: the time was over"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--no-start-after``."""
    parser.addoption(
        "--no-start-after",
        type=float,
        metavar="SECONDS",
        help="skip, and name, tests that have not begun at this time (seconds since the epoch)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Look at the time only where it was asked for."""
    if config.getoption("--no-start-after") is not None:
        config.pluginmanager.register(TimeBudget(config.getoption("--no-start-after")))


class TimeBudget:
    """Skips what begins too late; the controller of the workers counts what all of them skipped.

    Parameters
    ----------
    end_s : float
        Seconds since the epoch.
    """

    def __init__(self, end_s: float) -> None:
        self._end_s = end_s
        self._not_run: Counter[str] = Counter()
        self._is_gate_whole = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip the test before any fixture of it is made."""
        if time.time() > self._end_s:
            is_gate = item.get_closest_marker("gate") or not item.get_closest_marker("integration")
            pytest.skip(f"{_NOT_RUN} ({'gate' if is_gate else 'not of the gate'})")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the skipped tests by file."""
        if report.skipped and isinstance(report.longrepr, tuple) and _NOT_RUN in report.longrepr[2]:
            self._not_run[report.nodeid.partition("::")[0]] += 1
            self._is_gate_whole &= "not of the gate" in report.longrepr[2]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run where a part of the gate was not run."""
        if not self._is_gate_whole and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the files and how many of their tests were not run."""
        if self._not_run:
            terminalreporter.section("not run, as the time was over")
            for file, count in sorted(self._not_run.items()):
                terminalreporter.write_line(f"{file}: {count}")
            if not self._is_gate_whole:
                terminalreporter.write_line("A part of the gate was not run: this run is red.")
