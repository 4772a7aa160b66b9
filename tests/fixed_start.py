"""Measures one fixed start of a program when the session begins, and makes all waiting times fit the machine.

It is the start of a JVM, or of a Python where only unit tests run or no Java is found.  The process that
begins the session measures; workers are told, as they would disturb each other.

Loaded by the ``conftest.py`` in the root.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.patience import PATIENCE
from yarnflow.errors import JavaUnavailable
from yarnflow.spark.launch.java import find_java

#: who needs to wait longer than that has another trouble than a busy machine
LARGEST_FACTOR: Final = 8.0
_TOLD: Final = "waiting_factor"
_SAID: Final = pytest.StashKey[str]()


@dataclass(frozen=True)
class FixedStart:
    """A start of a program that is always the same, so that its duration tells how busy the machine is."""

    name: str
    command: tuple[str, ...]
    #: what it takes on two cores that do nothing else
    on_a_quiet_machine_s: float

    def seconds(self) -> float:
        """Return how long it takes now, or the most that is of interest."""
        most = self.on_a_quiet_machine_s * LARGEST_FACTOR
        begin = time.monotonic()
        try:
            subprocess.run(
                self.command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=most
            )
        except subprocess.TimeoutExpired:
            return most
        return time.monotonic() - begin

    def factor(self, seconds: float) -> float:
        """Return what waiting times are multiplied by where it took ``seconds``."""
        return min(LARGEST_FACTOR, max(1.0, seconds / self.on_a_quiet_machine_s))


def jvm_start() -> FixedStart | None:
    """Return the start of a JVM that resolves all its modules; ``None`` without a Java."""
    try:
        java = find_java().program
    except JavaUnavailable:
        return None
    # without archives of classes, which one machine has and another one has not
    flags = ("-XX:TieredStopAtLevel=1", "-Xshare:off", "--show-module-resolution", "-version")
    return FixedStart("JVM", (str(java), *flags), 0.15)


def python_start() -> FixedStart:
    """Return the start of a Python that imports some of its library."""
    program = "import asyncio, http.server, logging.config, ssl, unittest.mock, xml.dom.minidom"
    return FixedStart("Python", (sys.executable, "-I", "-c", program), 0.2)


def only_unit_tests(config: pytest.Config) -> bool:
    """Tell whether all that is asked for lies in ``tests``."""
    unit_tests = config.rootpath / "tests"
    places = (config.invocation_params.dir / argument.partition("::")[0] for argument in config.args)
    return all(place.resolve().is_relative_to(unit_tests) for place in places)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set the factor before any test is collected."""
    told = getattr(config, "workerinput", None)
    if told is not None:
        PATIENCE.factor = told[_TOLD]
    elif not config.option.collectonly:
        start = (None if only_unit_tests(config) else jvm_start()) or python_start()
        # the first one reads from the disk what the second one finds in memory
        seconds = min(start.seconds(), start.seconds())
        PATIENCE.factor = start.factor(seconds)
        config.stash[_SAID] = f"waiting times × {PATIENCE.factor:.1f} ({start.name} start {seconds:.2f} s)"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker the factor."""
    node.workerinput[_TOLD] = PATIENCE.factor


def pytest_report_header(config: pytest.Config) -> str | None:
    """Name the factor and where it comes from."""
    return config.stash.get(_SAID, None)
