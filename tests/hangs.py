"""Ends a test that hangs, with the stacks of all threads in its report, and lets the others go on.

pytest-timeout ends it by a signal.  A test has one limit for itself, which ``@pytest.mark.timeout`` changes,
and others for its fixtures: what is made once for many tests may take minutes at first use.  Where the main
thread is in C code, which no signal ends, the process ends a little later, with the stacks on standard error;
with workers, another one is started for the tests behind it.

All limits are multiplied as all waiting times are.  Loaded by the ``conftest.py`` in the root.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from pytest_timeout import Settings

from tests.patience import PATIENCE

#: longer than its longest wait, which says what it waited for
_UNIT_TEST_S: Final = 300.0
_INTEGRATION_TEST_S: Final = 900.0
_DRILL_S: Final = 2400.0
#: Hadoop and Airflow come over the network at first use
_BEGIN_S: Final = 1800.0
_END_S: Final = 600.0
#: for a signal to be handled
_GRACE_S: Final = 60.0
_STDERR: Final = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep standard error as it is before pytest takes it from tests."""
    config.stash[_STDERR] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give it back."""
    faulthandler.cancel_dump_traceback_later()
    # another plugin may have ended the run before it was kept
    if _STDERR in config.stash:
        os.close(config.stash[_STDERR])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each test its limit, unless the command line has one for all."""
    if config.getoption("timeout") is None:
        for item in items:
            mark = pytest.mark.timeout(limit_s(item) * PATIENCE.factor, func_only=True)
            item.add_marker(mark, append=False)


def limit_s(item: pytest.Item) -> float:
    """Return how long a test may take on a quiet machine, without its fixtures."""
    own = item.get_closest_marker("timeout")
    if own is not None:
        return float(own.args[0])
    if item.get_closest_marker("drill") is not None:
        return _DRILL_S
    return _INTEGRATION_TEST_S if item.nodeid.startswith("integration/") else _UNIT_TEST_S


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Limit the begin of its fixtures."""
    with _limited(item, _BEGIN_S * PATIENCE.factor):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Watch what pytest-timeout limits."""
    mark = item.get_closest_marker("timeout")
    seconds = float(mark.args[0]) if mark is not None else item.config.getoption("timeout")
    with _watched(item, seconds):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Limit the end of its fixtures."""
    with _limited(item, _END_S * PATIENCE.factor):
        return (yield)


@contextmanager
def _limited(item: pytest.Item, seconds: float) -> Iterator[None]:
    settings = Settings(seconds, "signal", False, False)
    item.ihook.pytest_timeout_set_timer(item=item, settings=settings)
    try:
        with _watched(item, seconds):
            yield
    finally:
        item.ihook.pytest_timeout_cancel_timer(item=item)


@contextmanager
def _watched(item: pytest.Item, seconds: float) -> Iterator[None]:
    """End the process where a signal could not end the test."""
    if not seconds or item.config.getoption("usepdb"):
        yield
        return
    faulthandler.dump_traceback_later(seconds + _GRACE_S, exit=True, file=item.config.stash[_STDERR])
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_enter_pdb() -> None:
    """Let people look as long as they like."""
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_make_scheduler() -> Generator[None, Any, Any]:
    """Have the test in which a worker ended fail once.

    By itself, ``--dist loadscope`` of pytest-xdist 3.8 begins it again with each worker that replaces one.
    """
    scheduler = yield
    if hasattr(scheduler, "workqueue"):
        scheduler.remove_node = lambda node: _remove_node(scheduler, node)
    return scheduler


def _remove_node(scheduler: Any, node: Any) -> str | None:
    """Take a worker out; returns the test in which it ended."""
    groups: dict[str, dict[str, bool]] = scheduler.assigned_work.pop(node)
    left = [(group, test) for group, tests in groups.items() for test, over in tests.items() if not over]
    if not left:
        return None
    group, crashed = left[0]
    groups[group][crashed] = True
    scheduler.workqueue.update({group: groups[group] for group, _ in left[1:]})
    for other in scheduler.assigned_work:
        scheduler._reschedule(other)
    return crashed
