"""Runs an integration test a second time where chance may fail it, and keeps what happened on record.

A test bears ``@pytest.mark.may_rerun(reason)`` where it waits for what is not ours: a browser, Airflow, YARN.
pytest-rerunfailures runs it again.  A pass at the second try is told as FLAKY and becomes a line of a file,
with both logs; more than two of them fail the run.  Neither unit tests nor tests that count records may bear
the mark: a record that is lost once in a hundred runs is lost.

Loaded by the ``conftest.py`` in the root.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from tests.patience import PATIENCE

MARK: Final = "may_rerun"
#: more of them are no chance
MOST_OF_A_RUN: Final = 2
#: a record that is missing or there twice is never chance
COUNT_RECORDS: Final = (
    "integration/faults/", "integration/pyflink/", "integration/spark/",
    "integration/upgrade/", "integration/airflow/test_examples.py",
    "integration/test_batch_table.py", "integration/test_collecting.py",
    "integration/test_embedded.py", "integration/test_examples.py", "integration/test_kafka_transactions.py",
    "integration/test_nexmark.py", "integration/test_rabbitmq.py", "integration/test_standalone.py",
    "integration/yarn/test_accounts.py", "integration/yarn/test_driver_containers.py",
    "integration/yarn/test_faults.py", "integration/yarn/test_ha.py", "integration/yarn/test_kafka.py",
)  # fmt: skip
#: failures that a second try would hide: what a test leaves behind, and what hangs
_NEVER_CHANCE: Final = (
    r"left behind", r"for every (application|process of a container) to end", r"\bto be empty\b",
    r"^Failed: Timeout \(>",
)  # fmt: skip
_SEEDS: Final = ("PYTHONHASHSEED", "YARNFLOW_TEST_SEED")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what a run says about second tries."""
    group = parser.getgroup("chance", "second tries of integration tests")
    group.addoption(
        "--no-rerun-in",
        action="append",
        default=[],
        metavar="PATH",
        help="tests in this folder or file have no second try, as what they test changed; repeatable",
    )
    group.addoption(
        "--flaky-file",
        metavar="FILE",
        help="where each pass at the second try becomes a line of JSON (default: "
        "YARNFLOW_TEST_FLAKY_FILE, else flaky.jsonl in the user's state directory)",
    )
    group.addoption(
        "--flaky-count-file", metavar="FILE", help="where the number of these passes is written at the end"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse other ways to run tests again; the process that runs the workers keeps the record."""
    if config.getoption("reruns") or config.getoption("force_reruns"):
        raise pytest.UsageError(f"tests run again only where they bear @pytest.mark.{MARK}")
    _without_rerun(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FlakyTests(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give a second try to those that may have one.

    Raises
    ------
    pytest.UsageError
        A test bears the mark that must not.
    """
    without = _without_rerun(config)
    for item in items:
        mark = item.get_closest_marker(MARK)
        if item.get_closest_marker("flaky") is not None:
            raise pytest.UsageError(f"{item.nodeid}: the mark is {MARK}, not flaky")
        if mark is None:
            continue
        _check(item.nodeid, mark)
        # pytest-rerunfailures refuses to run with a debugger
        if not any(item.path.is_relative_to(path) for path in without) and not config.getoption("usepdb"):
            item.add_marker(pytest.mark.flaky(reruns=1, rerun_except=list(_NEVER_CHANCE)))


def _check(nodeid: str, mark: pytest.Mark) -> None:
    if not nodeid.startswith("integration/"):
        raise pytest.UsageError(f"{nodeid} is not an integration test: it may not bear {MARK}")
    if nodeid.startswith(COUNT_RECORDS):
        raise pytest.UsageError(f"{nodeid} counts records: it may not bear {MARK}")
    if len(mark.args) != 1 or not isinstance(mark.args[0], str) or mark.kwargs:
        raise pytest.UsageError(f"{nodeid}: {MARK} needs a reason")


def _without_rerun(config: pytest.Config) -> list[Path]:
    paths = [config.rootpath / given for given in config.getoption("--no-rerun-in")]
    if missing := [str(path) for path in paths if not path.exists()]:
        raise pytest.UsageError(f"--no-rerun-in: there is no {', '.join(missing)}")
    return [path.resolve() for path in paths]


def flaky_file(config: pytest.Config) -> Path:
    """Return where passes at the second try are kept."""
    if given := config.getoption("--flaky-file") or os.environ.get("YARNFLOW_TEST_FLAKY_FILE"):
        return Path(given).absolute()
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "yarnflow" / "flaky.jsonl"


@dataclass(frozen=True)
class Flaky:
    """One pass at the second try: a line of the file."""

    test: str
    #: when it had passed, UTC
    time: str
    #: what may have decided about it, by name
    seed: dict[str, str]
    #: of the last minute when it failed
    load: float
    waiting_factor: float
    #: traceback and captured output of each phase
    failed: str
    passed: str

    def __str__(self) -> str:
        seed = ",".join(f"{name}:{value}" for name, value in self.seed.items()) or "none"
        return f"FLAKY {self.test} seed={seed} load={self.load:.2f}"


class FlakyTests:
    """Those of a run; told at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self.found: list[Flaky] = []
        self._config = config
        self._file = flaky_file(config)
        self._reports: dict[str, list[pytest.TestReport]] = {}
        self._loads: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect both tries of a test that has two."""
        attempt: int | None = getattr(report, "rerun", None)
        if attempt is None:
            return
        if attempt == 0 and report.when == "setup":
            self._reports[report.nodeid] = []
        self._reports.setdefault(report.nodeid, []).append(report)
        # a word of pytest-rerunfailures
        outcome: str = report.outcome
        if outcome == "rerun":
            self._loads[report.nodeid] = os.getloadavg()[0]
        if attempt and report.when == "teardown":
            self._end(report.nodeid, self._reports.pop(report.nodeid))

    def _end(self, nodeid: str, reports: Sequence[pytest.TestReport]) -> None:
        tries: tuple[list[pytest.TestReport], ...] = ([], [])
        for report in reports:
            tries[bool(getattr(report, "rerun", 0))].append(report)
        if any(report.failed for report in tries[1]):
            return
        hypothesis = self._config.getoption("hypothesis_seed", None)
        seeds = {name: os.environ[name] for name in _SEEDS if name in os.environ}
        flaky = Flaky(
            nodeid,
            datetime.now(UTC).isoformat(timespec="seconds"),
            seeds | ({"hypothesis": str(hypothesis)} if hypothesis is not None else {}),
            self._loads.get(nodeid, 0.0),
            PATIENCE.factor,
            _log(tries[0]),
            _log(tries[1], without=len(tries[0][-1].sections) if tries[0] else 0),
        )
        self.found.append(flaky)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(flaky)) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run with too many of them."""
        if len(self.found) > MOST_OF_A_RUN and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if count_file := self._config.getoption("--flaky-count-file"):
            Path(count_file).write_text(f"{len(self.found)}\n", encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name them."""
        if not self.found:
            return
        terminalreporter.section("passed at the second try")
        for flaky in self.found:
            terminalreporter.write_line(str(flaky), yellow=True)
        terminalreporter.write_line(f"both logs of each: {self._file}")
        if len(self.found) > MOST_OF_A_RUN:
            said = f"{len(self.found)} passed at the second try, more than {MOST_OF_A_RUN}: the run fails"
            terminalreporter.write_line(said, red=True)


def _log(reports: Sequence[pytest.TestReport], without: int = 0) -> str:
    """Return what one try has told; ``without`` = how much of its output is that of the try before it."""
    phases = [f"=== {report.when}: {report.outcome}\n{report.longreprtext}" for report in reports]
    # the last report has the output of all phases
    captured = [f"--- {name}\n{text}" for name, text in reports[-1].sections[without:]] if reports else []
    return "\n".join([*phases, *captured])
