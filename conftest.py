"""For unit and integration tests together: what shares a worker of ``scripts/test``, and how many JVMs start.

Tests that share something expensive (Hadoop, the JVM of a Spark session, a cluster) run in one worker, one
after the other; those that need minutes come first, so that the workers end at the same time.
"""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any, Final

import pytest

pytest_plugins = (
    *("pytester", "tests.fixed_start", "tests.hangs", "tests.time_budget", "integration.chance"),
)

#: what is made once for many tests → where the tests are that use it, those that need longest first
_SHARED: Final = {
    "hadoop": (
        "integration/yarn/",
        "integration/ha/",
        "integration/attack/test_zookeeper.py",
        "integration/upgrade/test_upgrade.py",
        "integration/airflow/test_bad_input.py",
        "integration/airflow/test_examples.py",
        "integration/airflow/test_faults.py",
        "integration/faults/test_high_availability.py",
        "integration/faults/test_hot_spare.py",
        "integration/faults/test_hdfs.py",
        "integration/faults/test_drill.py",
        "integration/faults/test_partitions.py",
        "integration/faults/test_shortages.py",
        "integration/faults/test_nemesis.py",
        "integration/faults/test_clocks.py",
        "integration/faults/test_soak.py",
    ),
    "spark": (
        *("integration/spark/", "integration/pyflink/test_results.py"),
        "integration/upgrade/test_state_in_session.py",
    ),
}
#: each of these tests starts commands and clusters of its own
_ALONE: Final = (
    "integration/faults/test_kills.py", "integration/test_bad_input.py", "integration/test_embedded.py",
    "integration/test_examples.py",
)  # fmt: skip
#: shorter than any JVM lives
_LOOK_EVERY_S: Final = 0.02


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--jvm-starts``."""
    parser.addoption("--jvm-starts", action="store_true", help="count the JVMs that this machine starts")


def pytest_configure(config: pytest.Config) -> None:
    """Count JVMs where it was asked; with workers, their master sees those of all."""
    if config.getoption("--jvm-starts") and not _is_worker(config):
        config.pluginmanager.register(JvmStarts())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One group of tests after the other, each in the worker that is free.

    Not by marks and ``--dist loadgroup``, which pytest-xdist 3.8 ignores without a word under pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    scheduler: Any = LoadScopeScheduling(config, log)
    scheduler._split_scope = _group
    return scheduler


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark integration tests, before tests are chosen by marks; begin with what takes longest in workers.

    Raises
    ------
    pytest.UsageError
        A test would make what others share a second time.
    """
    for item in items:
        # arguments of unit tests may have such names, too
        is_integration = item.nodeid.startswith("integration/")
        if is_integration:
            item.add_marker("integration")
        fixtures = getattr(item, "fixturenames", ()) if is_integration else ()
        for name in _SHARED:
            if name in fixtures and _group(item.nodeid) != name:
                raise pytest.UsageError(f"{item.nodeid} uses {name}: say so in {__file__}")
    if _is_worker(config):
        items.sort(key=lambda item: _rank(item.nodeid))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Drop what the tests of an integration file have left open, such as sockets.

    Their warnings are errors, and would fail whichever test runs when they happen to be collected.
    """
    if item.get_closest_marker("integration") is None:
        return
    if nextitem is None or nextitem.nodeid.partition("::")[0] != item.nodeid.partition("::")[0]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _group(nodeid: str) -> str:
    for name, places in _SHARED.items():
        if nodeid.startswith(places):
            return name
    return nodeid if nodeid.startswith(_ALONE) else nodeid.partition("::")[0]


def _rank(nodeid: str) -> int:
    for rank, places in enumerate(_SHARED.values()):
        if nodeid.startswith(places):
            return rank
    return len(_SHARED) + (not nodeid.startswith("integration/"))


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
