"""How masters of one cluster start another, and that there are never too many."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.entrypoint.yarn.test_container import deployment
from tests.patience import PATIENCE
from yarnflow.core.yarn import Application, ApplicationSpec, ApplicationState, ContainerSpec, FinalStatus
from yarnflow.entrypoint.yarn.other_masters import Masters
from yarnflow.errors import YarnUnavailable
from yarnflow.staging.deployment import ApplicationDirectory
from yarnflow.staging.layout import prepare
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.yarn_cluster import FakeYarnCluster
from yarnflow.testing.yarn_submitter import FakeYarnSubmitter

S = ApplicationState
TAG = "yarnflow-0123456789abcdef"
SPEC = ApplicationSpec(
    "flights", "default", ("yarnflow", TAG), ContainerSpec(1, 1, "a"), ContainerSpec(1, 1, "b"), masters=2
)


def _application(
    application_id: str, state: ApplicationState = S.RUNNING, *, tag: str = TAG, user: str = "ann"
) -> Application:
    return Application(application_id, "n", user, "default", state, FinalStatus.UNDEFINED, (tag,))


class World:
    def __init__(self) -> None:
        self.yarn = FakeYarnCluster(
            _application("application_8", tag="yarnflow-fedcba9876543210"),
            _application("application_9", user="bob"),
        )
        self.submitter = FakeYarnSubmitter(self.yarn)
        self.submitter.state = S.ACCEPTED
        self.deployment = replace(deployment(), masters=2)
        self.fs = MemoryFileSystem()
        prepare(self.fs, self.deployment.layout, self.fs.user)
        directory = ApplicationDirectory(self.fs, self.deployment.layout, self.deployment.deployment_id)
        directory.create()
        directory.write_application(SPEC)
        self.add("application_1")
        self.services: Any = SimpleNamespace(fs=self.fs, cluster=self.yarn)
        self.masters = Masters(
            self.deployment, "application_1", lambda: self.services, lambda services: self.submitter
        )

    def add(self, application_id: str, state: ApplicationState = S.RUNNING) -> None:
        """A master of the cluster."""
        self.yarn.add(_application(application_id, state))

    def start_master(self) -> None:
        """Have one started, and wait until that is done."""
        self.masters.start_master()
        for thread in threading.enumerate():
            if thread.name == "start-master":
                thread.join(PATIENCE.thread_s)
                assert not thread.is_alive()


@pytest.fixture
def world() -> World:
    return World()


def test_a_master_is_started_as_the_client_specified_it(world: World) -> None:
    world.start_master()
    (spec,) = world.submitter.specs
    assert replace(spec, tags=SPEC.tags) == SPEC
    assert spec.tags[:2] == SPEC.tags and spec.tags[2].startswith("yarnflow-standby-")
    assert world.submitter.calls.count("close") == 1


def test_a_master_that_waits_for_room_counts(world: World) -> None:
    world.start_master()
    world.start_master()
    assert len(world.submitter.specs) == 1
    world.yarn.change("application_1_0001", state=S.KILLED)
    world.start_master()
    tags = {spec.tags[-1] for spec in world.submitter.specs}
    assert len(tags) == 2, "each submit has a tag of its own, or undoing one would end the others"


def test_one_at_a_time(world: World) -> None:
    world.submitter.on_submit = world.masters.start_master
    world.start_master()
    assert len(world.submitter.specs) == 1


def test_what_fails_may_be_asked_for_again(world: World) -> None:
    world.submitter.error = YarnUnavailable("down")
    world.start_master()
    assert world.submitter.specs == [] and world.submitter.calls.count("close") == 1
    world.submitter.error = None
    world.start_master()
    assert len(world.submitter.specs) == 1


def test_the_end_of_the_cluster(world: World) -> None:
    """Masters that run see it by themselves; one that has not begun would wait for nothing."""
    world.add("application_2")
    world.add("application_3", S.ACCEPTED)
    world.add("application_4", S.KILLED)
    for number in (2, 3):
        world.fs.make_directory(f"{world.fs.home()}/.skein/application_{number}")
    world.masters.end_those_that_wait()
    assert world.yarn.killed == ["application_3"]
    left = [entry.path.rpartition("/")[2] for entry in world.fs.list(f"{world.fs.home()}/.skein")]
    assert left == ["application_2"], "what has not begun clears nothing up"
    for number in (2, 3, 4):
        del world.yarn.known[f"application_{number}"]
    world.start_master()
    assert world.submitter.specs == []


def test_a_master_that_was_on_its_way_when_the_cluster_ended(world: World) -> None:
    """It is given up before the others are looked for, and what it has left is deleted."""
    submitter, under_way = world.submitter, threading.Event()
    skein = f"{world.fs.home()}/.skein/application_2"

    def wait() -> None:
        world.fs.make_directory(skein)
        under_way.set()
        assert submitter.aborted.wait(PATIENCE.thread_s), "nobody gave it up"
        submitter.undone("application_2")
        submitter.error = YarnUnavailable("given up")

    submitter.on_submit = wait
    world.masters.start_master()
    assert under_way.wait(PATIENCE.thread_s)
    world.masters.end_those_that_wait()
    assert submitter.calls.count("close") == 1 and submitter.specs == [], "it was waited for"
    assert world.fs.status(skein) is None


def test_a_master_that_was_submitted_while_the_cluster_ended(world: World) -> None:
    """YARN had it before it could be given up."""
    under_way = threading.Event()

    def wait() -> None:
        under_way.set()
        assert world.submitter.aborted.wait(PATIENCE.thread_s)

    world.submitter.on_submit = wait
    world.masters.start_master()
    assert under_way.wait(PATIENCE.thread_s)
    world.masters.end_those_that_wait()
    assert world.yarn.killed == ["application_1_0001"]
