"""How masters of one cluster start another, and that there are never too many."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.entrypoint.yarn.test_container import deployment
from yarnflow.core.yarn import Application, ApplicationSpec, ApplicationState, ContainerSpec, FinalStatus
from yarnflow.entrypoint.yarn.other_masters import Masters
from yarnflow.errors import YarnUnavailable
from yarnflow.staging.deployment import ApplicationDirectory
from yarnflow.staging.layout import prepare
from yarnflow.testing.file_system import MemoryFileSystem

S = ApplicationState
SPEC = ApplicationSpec(
    "flights", "default", ("yarnflow", "mine"), ContainerSpec(1, 1, "a"), ContainerSpec(1, 1, "b"), masters=2
)


class Yarn:
    def __init__(self) -> None:
        self.found: list[Application] = []
        self.killed: list[str] = []

    def add(self, application_id: str, state: ApplicationState = S.RUNNING) -> None:
        self.found.append(Application(application_id, "n", "ann", "default", state, FinalStatus.UNDEFINED))

    def applications(self, *, tag: str, user: str, states: Any) -> list[Application]:
        assert tag == "yarnflow-0123456789abcdef" and user == "ann"
        return [application for application in self.found if application.state in states]

    def kill(self, application_id: str) -> None:
        self.killed.append(application_id)


class Submitter:
    def __init__(self, yarn: Yarn) -> None:
        self._yarn = yarn
        self.specs: list[ApplicationSpec] = []
        self.closed = 0
        self.error: YarnUnavailable | None = None
        self.on_submit: Callable[[], object] = lambda: None
        self.undone: Callable[[str], object] = lambda _: None
        self.aborted = threading.Event()

    def submit(self, spec: ApplicationSpec, undone: Callable[[str], object] = lambda _: None) -> str:
        self.undone = undone
        self.on_submit()
        if self.error is not None:
            raise self.error
        self.specs.append(spec)
        self._yarn.add(f"application_{len(self._yarn.found) + 1}", S.ACCEPTED)
        return self._yarn.found[-1].application_id

    def kill(self, application_id: str) -> None: ...

    def abort(self) -> None:
        self.aborted.set()

    def close(self) -> None:
        self.closed += 1


class World:
    def __init__(self) -> None:
        self.yarn = Yarn()
        self.submitter = Submitter(self.yarn)
        self.deployment = replace(deployment(), masters=2)
        self.fs = MemoryFileSystem()
        prepare(self.fs, self.deployment.layout, self.fs.user)
        directory = ApplicationDirectory(self.fs, self.deployment.layout, self.deployment.deployment_id)
        directory.create()
        directory.write_application(SPEC)
        self.yarn.add("application_1")
        self.services: Any = SimpleNamespace(fs=self.fs, cluster=self.yarn)
        self.masters = Masters(
            self.deployment, "application_1", lambda: self.services, lambda services: self.submitter
        )

    def start_master(self) -> None:
        """Have one started, and wait until that is done."""
        self.masters.start_master()
        if self.masters._starting is not None:
            self.masters._starting.join(20)


@pytest.fixture
def world() -> World:
    return World()


def test_a_master_is_started_as_the_client_specified_it(world: World) -> None:
    world.start_master()
    (spec,) = world.submitter.specs
    assert replace(spec, tags=SPEC.tags) == SPEC
    assert spec.tags[:2] == SPEC.tags and spec.tags[2].startswith("yarnflow-standby-")
    assert world.submitter.closed == 1


def test_a_master_that_waits_for_room_counts(world: World) -> None:
    world.start_master()
    world.start_master()
    assert len(world.submitter.specs) == 1
    world.yarn.found[-1] = replace(world.yarn.found[-1], state=S.KILLED)
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
    assert world.submitter.specs == [] and world.submitter.closed == 1
    world.submitter.error = None
    world.start_master()
    assert len(world.submitter.specs) == 1


def test_the_end_of_the_cluster(world: World) -> None:
    """Masters that run see it by themselves; one that has not begun would wait for nothing."""
    world.yarn.add("application_2")
    world.yarn.add("application_3", S.ACCEPTED)
    world.yarn.add("application_4", S.KILLED)
    for number in (2, 3):
        world.fs.make_directory(f"{world.fs.home()}/.skein/application_{number}")
    world.masters.end_those_that_wait()
    assert world.yarn.killed == ["application_3"]
    left = [entry.path.rpartition("/")[2] for entry in world.fs.list(f"{world.fs.home()}/.skein")]
    assert left == ["application_2"], "what has not begun clears nothing up"
    world.yarn.found = world.yarn.found[:1]
    world.start_master()
    assert world.submitter.specs == []


def test_a_master_that_was_on_its_way_when_the_cluster_ended(world: World) -> None:
    """It is given up before the others are looked for, and what it has left is deleted."""
    submitter, under_way = world.submitter, threading.Event()
    skein = f"{world.fs.home()}/.skein/application_2"

    def wait() -> None:
        world.fs.make_directory(skein)
        under_way.set()
        assert submitter.aborted.wait(20), "nobody gave it up"
        submitter.undone("application_2")
        submitter.error = YarnUnavailable("given up")

    submitter.on_submit = wait
    world.masters.start_master()
    assert under_way.wait(20)
    world.masters.end_those_that_wait()
    assert submitter.closed == 1 and submitter.specs == [], "it was waited for"
    assert world.fs.status(skein) is None


def test_a_master_that_was_submitted_while_the_cluster_ended(world: World) -> None:
    """YARN had it before it could be given up."""
    under_way = threading.Event()

    def wait() -> None:
        under_way.set()
        assert world.submitter.aborted.wait(20)

    world.submitter.on_submit = wait
    world.masters.start_master()
    assert under_way.wait(20)
    world.masters.end_those_that_wait()
    assert world.yarn.killed == ["application_2"]
