"""Jobs for a session that runs already, and the way to the cluster of a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.yarn.submits import keys, options, running, submission, submit_world, unheard
from tests.client.yarn.yarn_fakes import World, job_id
from yarnflow.client.yarn.session_client import connect_running, connect_session
from yarnflow.core.messages import JobSubmitted
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import DeploymentMode
from yarnflow.errors import ApplicationNotFound, SlotUnavailable
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

M = DeploymentMode
JOB = job_id(7)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return submit_world(tmp_path, monkeypatch)


def session(world: World) -> FakeDispatcher:
    world.add("application_1_5000", "5" * 16, mode=M.SESSION)
    return world.serve("application_1_5000", "5" * 16)


def test_jobs_go_to_the_session_without_a_jvm(world: World) -> None:
    dispatcher = session(world)
    client = connect_session(options(), unheard)
    assert client.submit(submission("k"), 1) == JobSubmitted(JOB)
    assert [sent.job_id for sent in dispatcher.submissions] == [JOB]
    assert client.cluster_of(JOB).gateway() is dispatcher
    client.stop(forced=False, failed=False)
    assert "start" not in world.submitter.calls
    assert client.submit(submission(), 1) == JobSubmitted(JOB)


def test_a_key_holds_across_clusters(world: World) -> None:
    running(world)
    dispatcher = session(world)
    client = connect_session(options(), unheard)
    assert client.submit(submission("k", 2), 1) == JobSubmitted(job_id(1), attached_to_existing=True)
    assert client.cluster_of(job_id(1)).gateway() is world.dispatchers["application_1_0001:1"]
    assert dispatcher.submissions == []


def test_a_session_job_that_ended_gives_its_key_back(world: World) -> None:
    dispatcher = session(world)
    client = connect_session(options(), unheard)
    client.submit(submission("k", 1), 1)
    assert client.submit(submission("k", 2), 1) == JobSubmitted(job_id(1), attached_to_existing=True)
    dispatcher.states = [JobStatus.FAILED]
    assert client.submit(submission("k", 2), 1) == JobSubmitted(job_id(2))


def test_a_job_the_session_refuses_gives_its_key_back(world: World) -> None:
    dispatcher = session(world)
    dispatcher.raise_on_submit = SlotUnavailable("no free driver")
    client = connect_session(options(), unheard)
    with pytest.raises(SlotUnavailable):
        client.submit(submission("k", 1), 1)
    holder = keys(world).holder("k")
    assert holder is not None and holder.revoked
    dispatcher.raise_on_submit = None
    assert client.submit(submission("k", 2), 1) == JobSubmitted(job_id(2))


def test_verbs_find_a_jobs_own_cluster(world: World) -> None:
    running(world)
    found = connect_running(options(), M.PER_JOB, unheard, job_id(1))
    assert found.gateway() is world.dispatchers["application_1_0001:1"]
    by_id = connect_running(options(yarn_application_id="application_1_0001"), M.SESSION, unheard)
    assert by_id.gateway() is found.gateway()
    with pytest.raises(ApplicationNotFound):
        connect_running(options(), M.SESSION, unheard)
