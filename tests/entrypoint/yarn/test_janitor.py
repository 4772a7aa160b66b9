"""What is deleted after a master that could not clean up, and when."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster
from yarnflow.core.yarn import Application, ApplicationState, DeploymentMode, FinalStatus
from yarnflow.entrypoint.yarn import janitor
from yarnflow.entrypoint.yarn.janitor import Leftovers, clean_up
from yarnflow.errors import StorageUnavailable, YarnflowError, YarnUnavailable, ZooKeeperUnavailable
from yarnflow.staging.deployment import ApplicationDirectory, Deployment
from yarnflow.staging.layout import prepare
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.yarn_cluster import FakeYarnCluster

APPLICATION = "application_1_0001"
DIRECTORY = "/user/ann/.yarnflow/applications/0123456789abcdef"
TAG = "yarnflow-0123456789abcdef"
SKEIN_DIRECTORY = f"/user/ann/.skein/{APPLICATION}"


def _application(
    application_id: str,
    state: ApplicationState = ApplicationState.RUNNING,
    *,
    tag: str = TAG,
    user: str = "ann",
) -> Application:
    return Application(application_id, "n", user, "default", state, FinalStatus.UNDEFINED, (tag,))


def yarn_that_says(*answers: ApplicationState | YarnflowError) -> FakeYarnCluster:
    """At the looks at the application, one after the other; the last one for ever.

    Applications of other clusters and users run beside it.
    """
    yarn = FakeYarnCluster(
        _application("application_1_0003", tag="yarnflow-fedcba9876543210"),
        _application("application_1_0004", user="bob"),
    )
    for answer in answers:
        yarn.upcoming.append(
            answer if isinstance(answer, YarnflowError) else _application(APPLICATION, answer)
        )
    return yarn


class Files:
    """A file system, and what was deleted from it; ``failures`` are raised by the first deletes."""

    def __init__(self, *failures: YarnflowError) -> None:
        self.failures = list(failures)
        self.deleted: list[str] = []
        self.fs = MemoryFileSystem(before=self._before)

    def _before(self, operation: str, path: str) -> None:
        if operation != "delete":
            return
        if self.failures:
            raise self.failures.pop(0)
        self.deleted.append(path)


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def monotonic(self) -> float:
        return self.now


def leftovers(yarn: FakeYarnCluster, fs: MemoryFileSystem) -> Leftovers:
    staging = "hdfs://n:1/user/ann/.yarnflow"
    deployment = Deployment(
        DIRECTORY.rpartition("/")[2], DeploymentMode.PER_JOB, staging, DIRECTORY, "ann"
    )
    return Leftovers(APPLICATION, deployment, fs, yarn)


def test_waits_for_the_end_of_the_application() -> None:
    files, clock = Files(), Time()
    yarn = yarn_that_says(ApplicationState.RUNNING, YarnUnavailable("down"), ApplicationState.KILLED)
    assert clean_up(leftovers(yarn, files.fs), clock.sleep, clock.monotonic)
    assert files.deleted == [DIRECTORY, SKEIN_DIRECTORY]
    assert clock.now == 2


def test_what_masters_have_in_common_stays_while_one_lives() -> None:
    files, clock = Files(), Time()
    yarn = yarn_that_says(ApplicationState.KILLED)
    yarn.add(_application("application_1_0002"))
    assert clean_up(leftovers(yarn, files.fs), clock.sleep, clock.monotonic)
    assert files.deleted == [SKEIN_DIRECTORY]


def test_the_last_master_takes_zookeeper_along() -> None:
    fs, clock, forgotten = MemoryFileSystem(), Time(), []
    options = {
        "high-availability.type": "zookeeper",
        "high-availability.cluster-id": "c",
        "high-availability.storageDir": "hdfs://n:1/ha",
    }
    found = leftovers(yarn_that_says(ApplicationState.KILLED), fs)
    deployment = replace(found.deployment, configuration=options)
    fs.make_directory("/ha/c/jobgraphs")
    prepare(fs, deployment.layout, "ann")
    directory = ApplicationDirectory(fs, deployment.layout, deployment.deployment_id)
    directory.create()
    directory.write_deployment(deployment)
    directory.write_secret("5e")
    down = [ZooKeeperUnavailable("down")]

    def forget(options: Configuration, secret: str) -> None:
        if down:
            raise down.pop()
        forgotten.append((options.get(cluster.CLUSTER_ID), secret))

    assert clean_up(replace(found, deployment=deployment, forget=forget), clock.sleep, clock.monotonic)
    assert clock.now == 1 and forgotten == [("c", "5e")]
    assert fs.status(DIRECTORY) is None and fs.status("/ha/c") is None and fs.status("/ha") is not None


def test_an_application_nobody_knows_has_ended() -> None:
    files, clock = Files(), Time()
    assert clean_up(leftovers(yarn_that_says(), files.fs), clock.sleep, clock.monotonic)
    assert files.deleted == [DIRECTORY, SKEIN_DIRECTORY]


def test_a_next_attempt_keeps_its_files() -> None:
    files, clock = Files(), Time()
    found = leftovers(yarn_that_says(ApplicationState.RUNNING), files.fs)
    assert not clean_up(found, clock.sleep, clock.monotonic)
    assert files.deleted == []
    assert clock.now == 60


def test_a_file_system_that_is_away_is_tried_again() -> None:
    files, clock = Files(StorageUnavailable("safe mode")), Time()
    found = leftovers(yarn_that_says(ApplicationState.FINISHED), files.fs)
    assert clean_up(found, clock.sleep, clock.monotonic)
    assert files.failures == [] and clock.now == 1
    assert files.deleted == [DIRECTORY, SKEIN_DIRECTORY]


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE.thread_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail("it did not happen")
        time.sleep(0.01)


def _process_ended(pid_file: Path) -> bool:
    try:
        text = Path(f"/proc/{pid_file.read_text()}/stat").read_text()
    except OSError:
        return True
    return text.rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("dismissed", [True, False])
def test_the_process_acts_on_the_end_of_its_owner_only(tmp_path: Path, dismissed: bool) -> None:
    mark, pid_file = tmp_path / "mark", tmp_path / "pid"

    def leave_mark(operation: str, path: str) -> None:
        """Another process can see it."""
        if operation == "delete":
            with mark.open("a") as file:
                file.write(f"{path} {os.getsid(0) == os.getpid()}\n")

    def find() -> Leftovers:
        (tmp_path / "new").write_text(str(os.getpid()))
        (tmp_path / "new").rename(pid_file)
        return leftovers(yarn_that_says(ApplicationState.KILLED), MemoryFileSystem(before=leave_mark))

    owner = os.fork()
    if owner == 0:
        # a process of its own, as the test's has threads; it ends whatever happens in it
        # in the test's process the signal means a test that hangs
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(2 * PATIENCE.thread_s))
        status = 1
        try:
            made = janitor.start(find)
            _wait_for(pid_file.exists)
            if dismissed:
                made.dismiss()
                made.dismiss()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(owner, 0)[1] == 0
    _wait_for(pid_file.exists)
    _wait_for(lambda: _process_ended(pid_file))
    expected = "" if dismissed else f"{DIRECTORY} True\n{SKEIN_DIRECTORY} True\n"
    assert (mark.read_text() if mark.exists() else "") == expected
