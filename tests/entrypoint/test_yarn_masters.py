"""How masters of one cluster start another, and that there are never too many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.entrypoint.test_yarn_container import deployment
from yarnflow.core.yarn import Application, ApplicationSpec, ApplicationState, ContainerSpec, FinalStatus
from yarnflow.entrypoint import yarn_masters
from yarnflow.entrypoint.yarn_masters import Masters
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
        self.on_submit = lambda: None

    def submit(self, spec: ApplicationSpec) -> str:
        self.on_submit()
        if self.error is not None:
            raise self.error
        self.specs.append(spec)
        self._yarn.add(f"application_{len(self._yarn.found) + 1}", S.ACCEPTED)
        return self._yarn.found[-1].application_id

    def kill(self, application_id: str) -> None: ...

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


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Threads run at once, in the caller."""
    thread = lambda target, name, daemon: SimpleNamespace(start=target)  # noqa: E731
    monkeypatch.setattr(yarn_masters.threading, "Thread", thread)
    yield World()


def test_a_master_is_started_as_the_client_specified_it(world: World) -> None:
    world.masters.start_master()
    (spec,) = world.submitter.specs
    assert replace(spec, tags=SPEC.tags) == SPEC
    assert spec.tags[:2] == SPEC.tags and spec.tags[2].startswith("yarnflow-standby-")
    assert world.submitter.closed == 1


def test_a_master_that_waits_for_room_counts(world: World) -> None:
    world.masters.start_master()
    world.masters.start_master()
    assert len(world.submitter.specs) == 1
    world.yarn.found[-1] = replace(world.yarn.found[-1], state=S.KILLED)
    world.masters.start_master()
    tags = {spec.tags[-1] for spec in world.submitter.specs}
    assert len(tags) == 2, "each submit has a tag of its own, or undoing one would end the others"


def test_one_at_a_time(world: World) -> None:
    world.submitter.on_submit = world.masters.start_master  # type: ignore[method-assign]
    world.masters.start_master()
    assert len(world.submitter.specs) == 1


def test_what_fails_may_be_asked_for_again(world: World) -> None:
    world.submitter.error = YarnUnavailable("down")
    world.masters.start_master()
    assert world.submitter.specs == [] and world.submitter.closed == 1
    world.submitter.error = None
    world.masters.start_master()
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
    world.masters.start_master()
    assert world.submitter.specs == []


def test_a_master_that_was_on_its_way_when_the_cluster_ended(world: World) -> None:
    world.submitter.on_submit = world.masters.end_those_that_wait  # type: ignore[method-assign]
    world.masters.start_master()
    assert world.yarn.killed == ["application_2"]
