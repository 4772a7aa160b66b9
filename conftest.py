"""For unit and integration tests together: what shares a worker of ``scripts/test``, and how many JVMs start.

Tests that share something expensive (Hadoop, the JVM of a Spark session, a cluster) run in one worker, one
after the other; those that need minutes come first, so that the workers end at the same time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

#: fixtures that are made once for many tests, those with the longest tests first
_SHARED: Final = ("hadoop", "spark")
_INTEGRATION: Final = Path(__file__).parent / "integration"
#: shorter than any JVM lives
_LOOK_EVERY_S: Final = 0.02


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--jvm-starts``."""
    parser.addoption("--jvm-starts", action="store_true", help="count the JVMs that this machine starts")


def pytest_configure(config: pytest.Config) -> None:
    """Count JVMs where it was asked; with workers, their master sees those of all."""
    if config.getoption("--jvm-starts") and not _is_worker(config):
        config.pluginmanager.register(JvmStarts())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tell pytest-xdist what belongs together, and begin with what takes longest."""
    if not _is_worker(config):
        return
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=_rank)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _fixtures(item: pytest.Item) -> list[str]:
    return list(getattr(item, "fixturenames", ()))


def _group(item: pytest.Item) -> str:
    for name in _SHARED:
        if name in _fixtures(item):
            return name
    if "yarnflow" in _fixtures(item):
        # commands and clusters of the test's own
        return item.nodeid
    return str(item.path)


def _rank(item: pytest.Item) -> int:
    if not item.path.is_relative_to(_INTEGRATION):
        return len(_SHARED) + 1
    return next((rank for rank, name in enumerate(_SHARED) if name in _fixtures(item)), len(_SHARED))


class JvmStarts:
    """Counts processes that become a ``java``, of the whole machine; by test where there are no workers.

    Never says who started one: a machine that does nothing else is assumed.
    """

    def __init__(self) -> None:
        self._by_test: dict[str, int] = {}
        self._count = 0
        self._known = _jvms()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_EVERY_S):
            found = _jvms()
            self._count += len(found - self._known)
            self._known = found

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """What begins during a test, the fixtures it is the first to use included."""
        before = self._count
        try:
            return (yield)
        finally:
            self._by_test[item.nodeid] = self._count - before

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show them, most first."""
        self._over.set()
        self._thread.join()
        terminalreporter.section("JVM starts")
        for test, count in sorted(self._by_test.items(), key=lambda pair: -pair[1]):
            if count:
                terminalreporter.write_line(f"{count:4} {test}")
        terminalreporter.write_line(f"{self._count:4} in all")


def _jvms() -> set[str]:
    found = set()
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                    if file.read() == "java\n":
                        found.add(pid)
            except OSError:
                continue
    return found
