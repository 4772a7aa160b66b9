"""For tests on real processes: run commands as a user does, wait for conditions, leave nothing behind.

A test gets a mark of its own in the environment, which all processes it starts inherit; when the
test is over, a process that still carries the mark is a failure of the test and is killed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import psutil
import pytest

from integration.hadoop import HadoopCluster, all_processes
from tests.patience import PATIENCE
from yarnflow.api import close_cluster

if TYPE_CHECKING:
    from integration.kafka import KafkaBroker
    from integration.shared_cluster import ClusterKeeper, SharedCluster

ROOT: Final = Path(__file__).resolve().parents[1]
MARK: Final = "YARNFLOW_INTEGRATION_TEST"
#: the next job of the same program, or of the same cluster, has the JVMs of the one that has finished
KEEP_DRIVER: Final = "-Ddriver.idle-timeout=5 min"
#: for tests of jars
POSTGRES: Final = "org.postgresql:postgresql:42.7.4"
#: of the shared Hadoop
_HADOOP_SETTINGS: Final = {
    # containers' ends are told with a NodeManager's heartbeats
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "250",
    # by default the scheduler looks every 5 ms whether there is anything to do, which takes 2 % of a core
    "yarn.scheduler.capacity.schedule-asynchronously.scheduling-interval-ms": "50",
}
T = TypeVar("T")

# a shell without job control has it ignored in what it starts in the background, and they in what they start
signal.signal(signal.SIGINT, signal.default_int_handler)


def wait_until(
    condition: Callable[[], T | None], what: str, timeout_s: float | None = None, pause_s: float = 0.1
) -> T:
    """The first true value of ``condition``; the only place where a test waits by polling.

    Parameters
    ----------
    timeout_s : float or None
        A limit of ``tests.patience``; ``None`` = that of whatever a cluster comes to.
    pause_s : float
        Between two looks; longer where a look costs what is being waited for its processor time.

    Raises
    ------
    AssertionError
        It did not become true in time; names ``what`` and the last value.
    """
    limit_s = PATIENCE.condition_s if timeout_s is None else timeout_s
    end = time.monotonic() + limit_s
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {limit_s:.0f} s for {what}; last seen: {value!r}"
        time.sleep(pause_s)
    return value


def marked_processes(mark: str) -> list[psutil.Process]:
    """Live processes that a test started, at whatever depth."""
    found = []
    for process in all_processes():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return [process for process in found if process.pid != os.getpid()]


@dataclass
class Started:
    """A command that runs in the background, its output in files."""

    process: subprocess.Popen[bytes]
    stdout_file: Path
    stderr_file: Path

    @property
    def stdout(self) -> str:
        """What it has written so far."""
        return self.stdout_file.read_text(errors="replace")

    @property
    def stderr(self) -> str:
        """What it has written to standard error so far."""
        return self.stderr_file.read_text(errors="replace")

    @property
    def job_id(self) -> str:
        """The job that a submit has named so far; empty = none."""
        found = re.search(r"JobID ([0-9a-f]{32})", self.stdout + self.stderr)
        return found[1] if found else ""

    def wait(self, timeout_s: float | None = None) -> int:
        """Exit status; negative = killed by that signal."""
        return self.process.wait(PATIENCE.command_s if timeout_s is None else timeout_s)


@dataclass
class Commands:
    """Runs ``yarnflow`` in a directory of the test's own."""

    directory: Path
    mark: str
    started: list[Started] = field(default_factory=list)

    def start(self, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> Started:
        """Start ``yarnflow …`` in the background."""
        return self.start_command(
            [Path(sys.executable).with_name("yarnflow"), *arguments], environment=environment or {}
        )

    def start_command(
        self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> Started:
        """Start any command in the background."""
        number = len(self.started)
        stdout = self.directory / f"command-{number}.out"
        stderr = self.directory / f"command-{number}.err"
        with stdout.open("wb") as out, stderr.open("wb") as err:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self.directory,
                env={**os.environ, **(environment or {}), MARK: self.mark},
            )
        started = Started(process, stdout, stderr)
        self.started.append(started)
        return started

    def run(
        self,
        *arguments: str | Path,
        timeout_s: float | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Started:
        """Run ``yarnflow …`` to its end."""
        started = self.start(*arguments, environment=environment)
        started.wait(timeout_s)
        return started


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopCluster]:
    """One HDFS, YARN and quorum of ZooKeeper for all tests.  Where it cannot be started, its tests fail.

    A test may stop and kill its daemons, if they run again at its end.
    """
    running = os.environ.get("YARNFLOW_TEST_HADOOP")
    if running:  # one that scripts/hadoop started there, to try a test again and again
        yield HadoopCluster(Path(running))
        return
    cluster = HadoopCluster.start(tmp_path_factory.mktemp("hadoop"), zookeepers=3, settings=_HADOOP_SETTINGS)
    yield cluster
    cluster.stop()
    left = [f"{process.pid}: {process.name()}" for process in cluster.processes()]
    assert not left and not cluster.folder.exists(), f"left behind by the cluster: {left or cluster.folder}"


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """One Kafka for all tests, each of which has topics of its own."""
    # its client is needed by these tests alone
    from integration.kafka import KafkaBroker

    running = os.environ.get("YARNFLOW_TEST_KAFKA")
    if running:  # the folder of one that scripts/kafka started there, to try a test again and again
        yield KafkaBroker.running(Path(running))
        return
    broker = KafkaBroker.start(tmp_path_factory.mktemp("kafka") / "broker")
    yield broker
    broker.stop()


@pytest.fixture
def yarnflow(tmp_path: Path) -> Iterator[Commands]:
    """Commands of this test; afterwards none of its processes is left, and a failure shows their output."""
    with commands_in(tmp_path) as commands:
        yield commands


@pytest.fixture
def own_cluster(yarnflow: Commands, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The mark of what this process starts; the test begins and ends without a cluster."""
    monkeypatch.setenv(MARK, yarnflow.mark)
    monkeypatch.setenv("YARNFLOW_CONF_IO_TMP_DIRS", str(tmp_path))
    yield yarnflow.mark
    close_cluster()
    wait_until(lambda: not marked_processes(yarnflow.mark), "the cluster to end", PATIENCE.process_s)


@pytest.fixture(scope="session")
def cluster_keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterKeeper]:
    """The keeper of the standalone cluster that tests share; lends it to fixtures of several tests."""
    # it needs this module
    from integration.shared_cluster import ClusterKeeper

    keeper = ClusterKeeper(lambda: tmp_path_factory.mktemp("cluster"))
    yield keeper
    keeper.end()


@pytest.fixture
def shared_cluster(cluster_keeper: ClusterKeeper) -> Iterator[SharedCluster]:
    """The cluster that tests share, for one of them, which must leave no job."""
    with cluster_keeper.lent() as cluster:
        yield cluster


@pytest.fixture
def as_it_was() -> Iterator[None]:
    """What running a program changes in this process."""
    path, arguments, main, directory = list(sys.path), list(sys.argv), sys.modules["__main__"], os.getcwd()
    yield
    sys.path[:], sys.argv[:] = path, arguments
    sys.modules["__main__"] = main
    os.chdir(directory)


@pytest.fixture(scope="session")
def postgres() -> str:
    """Address of the driver of PostgreSQL, a file; the first time it comes over the network."""
    from yarnflow.client.jars.bring import JarBringer
    from yarnflow.core.jars.request import jars_of

    jars = jars_of(JarBringer(print).bring({"spark.jars.packages": POSTGRES}))
    return next(jar for jar in jars if "postgresql" in jar)


@contextmanager
def commands_in(directory: Path) -> Iterator[Commands]:
    """Commands of a test or of several; afterwards none of their processes is left."""
    commands = Commands(directory, uuid.uuid4().hex)
    try:
        yield commands
    finally:
        # a fixture may fail behind the first of them
        _end(commands)


def _end(commands: Commands) -> None:
    for started in commands.started:
        if started.process.poll() is None:
            started.process.terminate()
    for started in commands.started:
        try:
            started.process.wait(PATIENCE.process_s)
        except subprocess.TimeoutExpired:
            started.process.kill()
            started.process.wait()
    left: list[psutil.Process] = []
    try:
        # the kernel kills orphans at once, but takes a moment to be done with a JVM
        wait_until(
            lambda: not marked_processes(commands.mark), "processes of the test to end", PATIENCE.process_s
        )
    except AssertionError:
        left = marked_processes(commands.mark)
    described = [f"{process.pid}: {' '.join(_command_line(process))[:200]}" for process in left]
    for process in left:
        process.kill()
    for started in commands.started:
        # shown by pytest for failed tests only
        arguments = " ".join(map(str, started.process.args)) if isinstance(started.process.args, list) else ""
        print(f"--- {arguments}: exit status {started.process.returncode}")
        print(*started.stdout.splitlines()[-50:], *started.stderr.splitlines()[-50:], sep="\n")
    assert not described, "processes left behind:\n" + "\n".join(described)


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return ["(gone)"]
