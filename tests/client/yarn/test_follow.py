"""Following applications whose jobs are not known beforehand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.client.fakes import Listener
from tests.client.yarn.yarn_fakes import World, job_id
from yarnflow.client.yarn.applications import connect_application
from yarnflow.client.yarn.follow import Follower
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ErrorInfo, JobOverview, JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import DeploymentMode, FinalStatus
from yarnflow.errors import ApplicationFailed, RpcUnavailable, UserCodeError, YarnUnavailable
from yarnflow.testing.gateways.dispatcher import details

F, M, J = FinalStatus, DeploymentMode, JobStatus
ONE = "1" * 16


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class Following:
    """A follower whose sleeps are the steps of a story."""

    def __init__(self, world: World, mode: DeploymentMode, *steps: Callable[[], object]) -> None:
        world.add("application_1_1", ONE, mode=mode)
        self.world = world
        self.dispatcher = world.serve("application_1_1", ONE)
        self.steps = list(steps)
        self.listener = Listener()
        self.now_s = 0.0
        cluster = connect_application(world.services(), world.yarn.application("application_1_1"))
        self.follower = Follower(cluster, self.listener, 20_000, sleep=self.sleep, now=lambda: self.now_s)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        assert self.now_s < 1000
        if self.steps:
            self.steps.pop(0)()

    def add(self, number: int) -> Callable[[], None]:
        added = JobSubmission(job_id(number), f"job{number}", ProgramKind.GRAPH, "{}", {})
        return lambda: self.dispatcher.submissions.append(added)

    def seen(self, *states: JobStatus) -> Callable[[], None]:
        """Wait for the watchers, which are threads of their own."""

        def wait() -> None:
            for _ in range(2000):
                if all(state in self.listener.states for state in states):
                    return
                threading.Event().wait(0.005)
            raise AssertionError(f"{states} not seen in {self.listener.states}")

        return wait

    def end(self, final: FinalStatus, diagnostics: str = "") -> Callable[[], None]:
        return lambda: self.world.end("application_1_1", ONE, final, diagnostics=diagnostics)


def test_all_jobs_of_a_program_are_shown_until_it_ends(world: World) -> None:
    following = Following(world, M.APPLICATION)
    following.dispatcher.states = [J.CREATED, J.RUNNING, J.FINISHED]
    nothing = [lambda: None]
    following.steps = [following.add(1), *nothing, following.add(2), *nothing, following.end(F.SUCCEEDED)]
    following.follower.follow()
    assert following.listener.names == ["job1", "job2"]
    assert following.listener.states.count(J.FINISHED) == 2


def test_first_failed_job_is_the_failure_of_the_program(world: World) -> None:
    following = Following(world, M.APPLICATION)
    following.dispatcher.states = [J.RUNNING, J.FAILED]
    following.dispatcher.error = ErrorInfo("USER_CODE", "ValueError: x", "trace")
    following.steps = [following.add(1), following.seen(J.FAILED), following.end(F.FAILED, "ValueError: x")]
    with pytest.raises(UserCodeError, match="ValueError: x"):
        following.follower.follow()


def test_program_that_failed_after_its_jobs(world: World) -> None:
    following = Following(world, M.APPLICATION)
    following.dispatcher.states = [J.FINISHED]
    end = following.end(F.FAILED, "prog.py failed: KeyError: 1")
    following.steps = [following.add(1), following.seen(J.FINISHED), end]
    with pytest.raises(ApplicationFailed, match="KeyError: 1"):
        following.follower.follow()


def test_session_shows_live_jobs_and_is_not_failed_by_theirs(world: World) -> None:
    following = Following(world, M.SESSION)
    following.dispatcher.states = [J.RUNNING, J.FAILED]
    over = details(job_id(9), 3, J.FINISHED, "old").overview
    live = details(job_id(1), 1, J.RUNNING, "job1").overview
    known: list[JobOverview] = [over, live]

    def list_jobs() -> list[JobOverview]:
        if world.yarn.application("application_1_1").state.ended:
            raise RpcUnavailable("gone")
        return known

    following.dispatcher.list_jobs = list_jobs  # type: ignore[method-assign]
    following.steps = [following.seen(J.FAILED), following.end(F.SUCCEEDED)]
    following.follower.follow()
    assert following.listener.names == ["job1"]
    assert any("ended FAILED" in note for note in following.listener.notes)


def test_job_manager_that_moves_is_followed(world: World) -> None:
    following = Following(world, M.SESSION)

    def move() -> None:
        world.leave("application_1_1:1")
        moved = world.serve("application_1_1", ONE, "application_1_1:2")
        moved.states = [J.FINISHED]
        moved.submissions.append(JobSubmission(JobId(job_id(4)), "later", ProgramKind.GRAPH, "{}", {}))

    following.steps = [move, lambda: None, lambda: None, following.end(F.SUCCEEDED)]
    following.follower.follow()
    assert following.listener.names == ["later"]


def test_silence_is_given_up_after_the_clients_timeout(world: World) -> None:
    following = Following(world, M.SESSION)
    following.steps = [lambda: world.leave("application_1_1:1")]
    with pytest.raises(RpcUnavailable):
        following.follower.follow()
    assert 20 <= following.now_s < 22
    world.yarn.error = YarnUnavailable("away")
    with pytest.raises(RpcUnavailable):
        following.follower.follow()
