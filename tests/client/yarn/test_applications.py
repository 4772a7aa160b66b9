"""Finding applications, and reaching their JobManagers wherever these are now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.client.yarn.yarn_fakes import World, job_id
from yarnflow.client.yarn.applications import (
    ApplicationCluster,
    connect_application,
    deployment_id_of,
    find_application,
    kill_masters,
    live_applications,
    mode_of,
)
from yarnflow.core.checkpoint.messages import JobStop
from yarnflow.core.cluster_result import job_diagnostics
from yarnflow.core.ids import JobId
from yarnflow.core.messages import Fence, JobSubmission, LeaderInfo, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import ApplicationState, DeploymentMode, FinalStatus
from yarnflow.errors import ApplicationFailed, ApplicationNotFound, RpcUnavailable, YarnError, YarnUnavailable
from yarnflow.staging.deployment import Connection
from yarnflow.testing.gateways.dispatcher import FakeDispatcher, details

M, S, F = DeploymentMode, ApplicationState, FinalStatus
ONE, TWO = "1" * 16, "2" * 16
JOB = job_id(7)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def cluster(world: World, mode: DeploymentMode = M.PER_JOB) -> ApplicationCluster:
    world.add("application_1_1", ONE, mode=mode)
    world.serve("application_1_1", ONE)
    return connect_application(world.services(), world.yarn.application("application_1_1"))


# --- finding ------------------------------------------------------------------


def test_tags(world: World) -> None:
    found = world.add("application_1_1", ONE, mode=M.APPLICATION)
    assert deployment_id_of(found) == ONE and mode_of(found) is M.APPLICATION
    other = world.add("application_1_2", TWO, tags=("spark",), name="pi")
    assert mode_of(other) is None
    with pytest.raises(ApplicationNotFound, match="pi.*not one of yarnflow"):
        deployment_id_of(other)


def test_the_only_session_is_meant(world: World) -> None:
    services = world.services()
    with pytest.raises(ApplicationNotFound, match="yarnflow session start"):
        find_application(services, M.SESSION)
    world.add("application_1_1", ONE, mode=M.SESSION)
    world.add("application_1_2", TWO, mode=M.PER_JOB)
    world.add("application_1_3", "3" * 16, S.FINISHED, mode=M.SESSION)
    world.add("application_1_4", "4" * 16, mode=M.SESSION, user="bob")
    assert find_application(services, M.SESSION).application_id == "application_1_1"
    world.add("application_1_5", "5" * 16, S.ACCEPTED, mode=M.SESSION, name="second")
    with pytest.raises(ApplicationNotFound, match="application_1_1.*application_1_5 .second."):
        find_application(services, M.SESSION)


def test_an_id_names_any_of_them(world: World) -> None:
    services = world.services()
    world.add("application_1_1", ONE, mode=M.PER_JOB)
    assert find_application(services, M.SESSION, "application_1_1").application_id == "application_1_1"
    world.add(
        "application_1_2", TWO, S.FINISHED, final_status=F.FAILED, diagnostics="ValueError: x"
    )
    with pytest.raises(ApplicationNotFound, match="has ended .FAILED.: ValueError: x"):
        find_application(services, None, "application_1_2")
    with pytest.raises(ApplicationNotFound, match="application_1_9"):
        find_application(services, None, "application_1_9")


def test_a_job_is_found_by_its_tag(world: World) -> None:
    world.add("application_1_1", ONE, mode=M.PER_JOB)
    world.add("application_1_2", TWO, mode=M.PER_JOB, tags=(f"yarnflow-job-{JOB}", "yarnflow"))
    found = find_application(world.services(), M.PER_JOB, job_id=JOB)
    assert found.application_id == "application_1_2"


def test_applications_of_others_are_left_alone(world: World) -> None:
    other = world.add("application_1_1", ONE, user="bob")
    with pytest.raises(YarnError, match="belongs to user bob"):
        connect_application(world.services(), other)


# --- reaching -----------------------------------------------------------------


def test_gateway_follows_a_job_manager_that_moves(world: World) -> None:
    reached = cluster(world)
    assert reached.gateway() is world.dispatchers["application_1_1:1"]
    moved = world.serve("application_1_1", ONE, "elsewhere:2")
    assert reached.final_details(JOB) is None
    assert reached.gateway() is moved
    assert reached.failure() is None


def test_no_address_is_a_job_manager_that_does_not_answer(world: World) -> None:
    world.add("application_1_1", ONE)
    reached = connect_application(world.services(), world.yarn.application("application_1_1"))
    with pytest.raises(RpcUnavailable, match="application_1_1"):
        reached.gateway()
    assert not reached.ready and reached.web_address() == ""


def test_hdfs_that_does_not_answer_is_a_job_manager_that_does_not_answer(world: World) -> None:
    from yarnflow.errors import StorageUnavailable

    reached = cluster(world)

    def fail(operation: str, path: str) -> None:
        raise StorageUnavailable("no NameNode answers")

    world.fs.before = fail
    with pytest.raises(RpcUnavailable, match="no NameNode"):
        reached.gateway()
    assert reached.final_details(JOB) is None and reached.failure() is None


@pytest.mark.parametrize("status", [JobStatus.FINISHED, JobStatus.FAILED, JobStatus.CANCELED])
def test_result_of_the_master_comes_first_and_is_kept(world: World, status: JobStatus) -> None:
    reached = cluster(world)
    world.end("application_1_1", ONE, F.UNDEFINED, details(JOB, 5, status))
    found = reached.final_details(JOB)
    assert found is not None and found.overview.status is status
    world.folder(ONE).delete()
    assert reached.final_details(JOB) == found and reached.said_its_end
    assert reached.final_details(job_id(8)) is None


@pytest.mark.parametrize(
    ("final", "expected"),
    [
        (F.SUCCEEDED, JobStatus.FINISHED),
        (F.KILLED, JobStatus.CANCELED),
        (F.FAILED, None),
        (F.UNDEFINED, None),
    ],
)
def test_final_status_of_yarn_comes_second(
    world: World, final: FinalStatus, expected: JobStatus | None
) -> None:
    reached = cluster(world)
    world.end("application_1_1", ONE, final, diagnostics="ValueError: x", written=False)
    world.folder(ONE).delete()
    found = reached.final_details(JOB)
    assert (None if found is None else found.overview.status) is expected
    if expected is None:
        error = reached.failure()
        assert isinstance(error, ApplicationFailed) and "ValueError: x" in str(error)


def test_yarn_remembers_who_has_stopped_a_job(world: World) -> None:
    """What the master wrote is gone with the application's directory."""
    reached = cluster(world)
    ended = replace(details(JOB, 5, JobStatus.FINISHED), stop=JobStop("hdfs:///sp/1", "r1"))
    said = job_diagnostics(ended)
    world.end("application_1_1", ONE, F.SUCCEEDED, diagnostics=said, written=False)
    world.folder(ONE).delete()
    found = reached.final_details(JOB)
    assert found is not None and found.stop == ended.stop


def test_a_kill_from_outside_is_no_cancelled_job(world: World) -> None:
    reached = cluster(world)
    world.yarn.kill("application_1_1")
    assert reached.final_details(JOB) is None
    assert "KILLED" in str(reached.failure())


def test_the_end_of_a_session_is_not_that_of_its_jobs(world: World) -> None:
    reached = cluster(world, M.SESSION)
    world.end("application_1_1", ONE, F.SUCCEEDED, written=False)
    assert reached.final_details(JOB) is None
    assert isinstance(reached.failure(), ApplicationFailed)


def test_yarn_that_does_not_answer_tells_nothing(world: World) -> None:
    reached = cluster(world)
    world.yarn.error = YarnUnavailable("no ResourceManager")
    assert reached.final_details(JOB) is None and reached.failure() is None
    world.yarn.error = ApplicationNotFound("no such application")
    assert isinstance(reached.failure(), ApplicationNotFound)


def test_close_is_idempotent(world: World) -> None:
    reached = cluster(world)
    reached.gateway()
    reached.close()
    reached.close()
    assert world.gateways.closes == 1


# --- several masters of one cluster ---------------------------------------------


def standby(world: World, application_id: str, state: ApplicationState = S.RUNNING, **more: Any) -> None:
    world.add(application_id, ONE, state, mode=M.PER_JOB, **more)


def test_a_cluster_is_found_by_a_master_that_has_ended(world: World) -> None:
    services = world.services()
    standby(world, "application_1_1", S.KILLED)
    standby(world, "application_1_2")
    assert find_application(services, None, "application_1_1").application_id == "application_1_2"
    assert [found.application_id for found in live_applications(services)] == ["application_1_2"]
    standby(world, "application_1_3")
    assert len(live_applications(services)) == 1, "a cluster is shown once"


def test_a_cluster_lives_as_long_as_one_of_its_masters(world: World) -> None:
    found = cluster(world)
    standby(world, "application_1_2")
    world.yarn.change("application_1_1", state=S.KILLED)
    assert found.application().application_id == "application_1_2" and found.failure() is None
    world.yarn.change("application_1_2", state=S.FINISHED, final_status=F.SUCCEEDED)
    assert found.application().final_status is F.SUCCEEDED
    details_ = found.final_details(JOB)
    assert details_ is not None and details_.overview.status is JobStatus.FINISHED


def test_the_end_of_a_cluster_is_told_by_whoever_saw_it(world: World) -> None:
    """A master may fail for reasons of its own before the others end well."""
    found = cluster(world)
    standby(world, "application_1_2", S.FINISHED, final_status=F.SUCCEEDED)
    world.yarn.change("application_1_1", state=S.FINISHED, final_status=F.FAILED)
    assert found.application().final_status is F.SUCCEEDED


def test_masters_that_are_started_meanwhile_are_killed_as_well(world: World) -> None:
    found = cluster(world)
    late = ["application_1_3"]

    def pause(seconds: float) -> None:
        if late:
            standby(world, late.pop())

    standby(world, "application_1_2")
    world.add("application_1_9", TWO)
    kill_masters(world.services(), found.directory.deployment_id, pause)
    assert world.yarn.killed == ["application_1_1", "application_1_2", "application_1_3"]
    assert world.fs.status(found.directory.path) is None, "no master may ever have begun"


def test_calls_go_to_whoever_leads_now(world: World) -> None:
    found = cluster(world)
    standby(world, "application_1_2")

    def lead(application_id: str, epoch: int, job: JobId) -> FakeDispatcher:
        address = f"{application_id}:1"
        master = world.dispatchers[address] = FakeDispatcher()
        master.leads = LeaderInfo(Fence(address, epoch), address, "0", "default")
        master.submissions.append(JobSubmission(job, "flights", ProgramKind.GRAPH, "{}", {}))
        found.directory.publish_connection(
            Connection(application_id, address, "", "l", epoch, 1, highly_available=True)
        )
        return master

    first = lead("application_1_1", 1, job_id(1))
    gateway = found.gateway()
    assert [job.job_id for job in gateway.list_jobs()] == [job_id(1)]
    world.yarn.change("application_1_1", state=S.KILLED)
    first.down = RpcUnavailable("nobody listens")
    found.forget_address()
    lead("application_1_2", 2, job_id(2))
    assert [job.job_id for job in gateway.list_jobs()] == [job_id(2)]
    assert found.gateway() is gateway, "who follows the leader remembers what was seen"


def test_nobody_is_waited_for_once_the_cluster_is_over(world: World) -> None:
    found = cluster(world)
    found.directory.publish_connection(
        Connection("application_1_1", "gone:1", "", "l", 1, 1, highly_available=True)
    )
    world.yarn.change("application_1_1", state=S.KILLED)
    with pytest.raises(RpcUnavailable):
        found.gateway().list_jobs()
