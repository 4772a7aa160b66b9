"""For all unit tests: a clean environment and repeatable random data.

Nothing here starts a JVM or a cluster; that is what ``integration/`` is for.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from yarnflow.api import executor

# a busy machine must not fail a test, and a failure must be found again
settings.register_profile("yarnflow", deadline=None, derandomize=True)
settings.load_profile("yarnflow")

# a shell without job control has it ignored in what it starts in the background
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options in the developer's environment must not decide a test."""
    for name in os.environ:
        if name.startswith("YARNFLOW_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_executor_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that nobody runs must not start a cluster."""
    monkeypatch.setattr(executor, "_executor_entry_point", lambda: None)
    monkeypatch.setattr(executor, "_installed", executor._Installed())


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Let the runs of pytest in other folders find this project's plugins."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    return pytester
