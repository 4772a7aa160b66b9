"""Submits under a job key: one job at a time has it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.client.yarn.submits import Client, applications, keys, running, submission, submit_world
from tests.client.yarn.yarn_fakes import World, job_id
from tests.patience import PATIENCE
from yarnflow.client.programs.job_key import JobKey
from yarnflow.client.yarn.job_owners import JobOwners
from yarnflow.core.messages import JobOverview, JobSubmitted
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import ApplicationState, DeploymentMode, FinalStatus
from yarnflow.errors import DuplicateJob, LeadershipLost, RpcTimeout, RpcUnavailable, YarnflowError
from yarnflow.process.clock import SystemClock
from yarnflow.staging.job_keys import JobKeys, KeyTaken
from yarnflow.staging.layout import StagingLayout
from yarnflow.testing.gateways.dispatcher import FakeDispatcher, details
from yarnflow.testing.runtime import ManualClock

M, S, F = DeploymentMode, ApplicationState, FinalStatus


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return submit_world(tmp_path, monkeypatch)


def test_a_live_key_is_attached_to(world: World) -> None:
    dispatcher = running(world)
    before = applications(world)
    client = Client(world)
    assert client.submit(submission("k", 2)) == JobSubmitted(job_id(1), attached_to_existing=True)
    assert client.deployer.cluster_of(job_id(1)).gateway() is dispatcher
    client.stop()
    assert len(world.submitter.specs) == 1 and applications(world) == before


@pytest.mark.parametrize(
    ("first", "second", "told"), [("d1", "d1", False), ("d1", "d2", True), ("", "d2", False)]
)
def test_that_the_live_job_runs_another_program_is_told(
    world: World, first: str, second: str, told: bool
) -> None:
    running(world, program=first)
    answer = Client(world).submit(replace(submission("k", 2), program_digest=second))
    assert answer == JobSubmitted(job_id(1), attached_to_existing=True, other_program=told)


def test_a_program_has_the_key_that_an_earlier_version_gave_it(world: World) -> None:
    running(world)
    layout = StagingLayout(f"{world.fs.home()}/.yarnflow")
    world.fs.delete(f"{layout.job_key('k')}/owner")  # as an earlier version leaves it
    asked = replace(submission("k@1", 2), earlier_job_key="k")
    assert Client(world).submit(asked) == JobSubmitted(job_id(1), attached_to_existing=True)
    other = replace(submission("k@2", 3), earlier_job_key="k")
    assert Client(world).submit(other) == JobSubmitted(job_id(3)), "the first that asked has it"


def test_another_key_is_another_job(world: World) -> None:
    running(world)
    assert Client(world).submit(submission("other", 2)) == JobSubmitted(job_id(2))


def test_the_key_of_an_ended_application_is_free(world: World) -> None:
    running(world)
    world.yarn.change("application_1_0001", state=S.FINISHED)
    assert Client(world).submit(submission("k", 2)) == JobSubmitted(job_id(2))


def test_the_key_of_an_ended_job_is_free_though_its_application_lingers(world: World) -> None:
    dispatcher = running(world)
    dispatcher.states = [JobStatus.FINISHED]
    assert Client(world).submit(submission("k", 2)) == JobSubmitted(job_id(2))


def test_a_holder_that_ends_while_it_is_attached_to_is_waited_for(world: World) -> None:
    """Its JobManager is gone, its application is about to be."""
    running(world)
    (folder,) = applications(world)
    (deployment_id,) = [folder.rpartition("/")[2]]
    done = details(job_id(1), 9, JobStatus.CANCELED)
    client = Client(world)
    world.end("application_1_0001", deployment_id, F.KILLED, done)
    world.yarn.change("application_1_0001", state=S.RUNNING)
    looks = world.yarn.looks

    def end(count: int) -> None:
        if count > looks + 5:
            world.yarn.change("application_1_0001", state=S.FINISHED)

    world.yarn.on_look = end
    assert client.submit(submission("k", 2)) == JobSubmitted(job_id(2))


def test_of_two_submits_at_once_one_runs(world: World) -> None:
    """The second one comes while the first is on its way to YARN."""
    first = Client(world)
    world.submitter.may_end.clear()
    answers: dict[str, JobSubmitted] = {}
    one = threading.Thread(target=lambda: answers.update(one=first.submit(submission("k", 1))))
    one.start()
    assert world.submitter.under_way.wait(PATIENCE.thread_s)
    second = Client(world)
    two = threading.Thread(target=lambda: answers.update(two=second.submit(submission("k", 2))))
    two.start()
    while not any("under way" in note for note in second.notes):
        two.join(0.01)
    world.submitter.may_end.set()
    one.join(PATIENCE.thread_s)
    two.join(PATIENCE.thread_s)
    assert answers == {
        "one": JobSubmitted(job_id(1)),
        "two": JobSubmitted(job_id(1), attached_to_existing=True),
    }


def test_the_key_of_a_job_on_another_yarn(world: World) -> None:
    """This YARN does not know whether that job lives, so it is asked of nobody and not replaced."""
    elsewhere = JobKeys(
        world.fs, StagingLayout(f"{world.fs.home()}/.yarnflow"), SystemClock(), "http://other:8088"
    )
    client = Client(world)
    taken = elsewhere.take("k", "9" * 16, job_id(9), lambda holder: False)
    assert isinstance(taken, KeyTaken)
    elsewhere.set_application("k", taken.generation, "application_9_0001")
    with pytest.raises(DuplicateJob, match="application_9_0001 of another YARN .*hdfs dfs -rm -r"):
        client.submit(submission("k", 1))
    assert world.submitter.specs == []


def test_a_key_lost_on_the_way_takes_its_application_back(world: World) -> None:
    """Another client thought that this one had died, and took the key over."""
    client = Client(world)

    def lose(application_id: str, deployment_id: str) -> None:
        world.master = world.serve
        world.add("application_1_9999", "9" * 16, mode=M.PER_JOB)
        world.serve("application_1_9999", "9" * 16).submissions.append(submission("k", 9))
        taken = keys(world).take("k", "9" * 16, job_id(9), lambda holder: False)
        keys(world).set_application("k", taken.generation, "application_1_9999")

    world.master = lose
    assert client.submit(submission("k", 1)) == JobSubmitted(job_id(9), attached_to_existing=True)
    assert world.yarn.killed == ["application_1_0001"]


def jobless(world: World) -> FakeDispatcher:
    """An application that has key k and lives on, with a program that has no job now."""
    world.add("application_1_7777", "7" * 16, mode=M.APPLICATION)
    taken = keys(world).take("k", "7" * 16, "", lambda holder: False)
    assert isinstance(taken, KeyTaken)
    keys(world).set_application("k", taken.generation, "application_1_7777")
    return world.serve("application_1_7777", "7" * 16)


def claims(
    world: World, at_s: float, then: Callable[[], object], **values: str
) -> tuple[JobOwners, list[str], list[float]]:
    """Whoever claims keys; something happens when he has waited for so long.  With notes and pauses."""
    clock = ManualClock(1_000)
    notes: list[str] = []
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        clock.advance(round(seconds * 1000))
        if sum(pauses) >= at_s:
            then()

    return JobOwners(world.services(**values), notes.append, clock, sleep), notes, pauses


def test_an_application_without_a_live_job_is_waited_for_with_a_word(world: World) -> None:
    dispatcher = jobless(world)
    owners, notes, pauses = claims(world, 20, lambda: dispatcher.submissions.append(submission("k", 5)))
    answer = owners.claim(JobKey("k"), "1" * 16, job_id(1))
    assert not isinstance(answer, KeyTaken) and answer[0].job_id == job_id(5)
    (note,) = notes
    assert note.startswith("Job key k belongs to application_1_7777, which lives and has no live job")
    assert max(pauses) == 1.0 and len(pauses) < 30


def test_a_submit_that_is_to_fail_does_not_wait_for_ever(world: World) -> None:
    jobless(world)
    owners, notes, _pauses = claims(world, 60, lambda: None, client_on__existing="fail")
    with pytest.raises(DuplicateJob, match="application_1_7777.*yarn application -kill application_1_7777"):
        owners.claim(JobKey("k"), "1" * 16, job_id(1))
    assert not notes


@pytest.mark.parametrize("error", [RpcTimeout("late"), RpcUnavailable("nobody"), LeadershipLost("standby")])
def test_a_holder_that_does_not_answer_is_asked_again(error: YarnflowError, world: World) -> None:
    dispatcher = jobless(world)
    dispatcher.submissions.append(submission("k", 5))
    answers = iter([error])

    def list_jobs() -> Sequence[JobOverview]:
        for refusal in answers:
            raise refusal
        return FakeDispatcher.list_jobs(dispatcher)

    dispatcher.list_jobs = list_jobs  # type: ignore[method-assign]
    owners, _, pauses = claims(world, 60, lambda: None)
    answer = owners.claim(JobKey("k"), "1" * 16, job_id(1))
    assert not isinstance(answer, KeyTaken) and len(pauses) == 1
