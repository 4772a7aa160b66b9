"""Asking for checkpoints, over failovers too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.client.fakes import FakeConnection, Listener, checkpoint
from tests.patience import PATIENCE
from yarnflow.client.job_client import ClusterJobClient
from yarnflow.client.savepoints import new_request, take
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    JobCheckpoints,
)
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    CheckpointError,
    CheckpointFailed,
    JobCanceled,
    JobFailed,
    JobNotFound,
    RpcUnavailable,
    YarnflowError,
)
from yarnflow.testing.gateways.dispatcher import FakeDispatcher, details

JOB = JobId("ab" * 16)
RUNNING = checkpoint(3, CheckpointStatus.IN_PROGRESS)
DONE = checkpoint(3)


class Asking:
    """A user who asks, and the time."""

    def __init__(self, *outcomes: CheckpointInfo | YarnflowError) -> None:
        self.dispatcher = FakeDispatcher()
        self.dispatcher.outcomes = list(outcomes)
        self.connection = FakeConnection(self.dispatcher, owned=False)
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def take(self) -> CheckpointInfo:
        request = new_request(CheckpointKind.SAVEPOINT, "hdfs://n/sp", AfterSavepoint.STOP)
        return take(
            self.connection, JOB, request, timeout_ms=1_000, sleep=self.sleep, now=lambda: self.now_s
        )


def test_it_is_waited_for() -> None:
    asking = Asking(RUNNING, RUNNING, DONE)
    assert asking.take() == DONE
    ((job_id, request),) = asking.dispatcher.requests
    assert (job_id, request.target_dir, request.after) == (JOB, "hdfs://n/sp", AfterSavepoint.STOP)


def test_a_failure_is_an_error() -> None:
    asking = Asking(RUNNING, checkpoint(3, CheckpointStatus.FAILED, failure="disk full"))
    with pytest.raises(CheckpointFailed, match=f"savepoint 3 of job {JOB} failed: disk full"):
        asking.take()


def test_a_master_that_knows_nothing_of_the_request_is_asked_again() -> None:
    asking = Asking(RUNNING, CheckpointError("nobody asked"), RUNNING, DONE)
    assert asking.take() == DONE
    first, second = asking.dispatcher.requests
    assert first == second


def test_a_master_that_has_just_taken_over_is_asked_again() -> None:
    asking = Asking(DONE)
    asking.dispatcher.refusals = [CheckpointFailed("has just taken over; try again"), RpcUnavailable("x")]
    assert asking.take() == DONE
    assert len(asking.dispatcher.requests) == 1


@pytest.mark.parametrize("error", [CheckpointError("no directory"), JobNotFound("no job")])
def test_a_refusal_is_an_error(error: YarnflowError) -> None:
    asking = Asking()
    asking.dispatcher.refusals = [error]
    with pytest.raises(type(error)):
        asking.take()
    assert asking.now_s == 0


def test_patience_has_an_end() -> None:
    asking = Asking(RUNNING, *[RpcUnavailable("gone")] * 100)
    with pytest.raises(RpcUnavailable):
        asking.take()
    assert 1.0 <= asking.now_s < 2.0


def test_nobody_waits_for_a_cluster_that_is_gone() -> None:
    asking = Asking(RUNNING, RpcUnavailable("gone"))
    asking.connection.left = details(JOB, 1, JobStatus.FINISHED)
    with pytest.raises(RpcUnavailable):
        asking.take()
    assert asking.now_s == 0


KEPT = JobCheckpoints(JOB, 3, 0, (replace(checkpoint(4), discarded=True), checkpoint(3), checkpoint(2)))
GONE = replace(KEPT, history=(replace(checkpoint(3), discarded=True),))
LOCAL = replace(
    KEPT, history=(checkpoint(3, path="file:///tmp/yarnflow-1000/local-0a1b2c3d/checkpoints/ab/chk-3"),)
)


@pytest.mark.parametrize(
    ("status", "checkpoints", "owned", "told"),
    [
        (JobStatus.CANCELED, KEPT, False, "chk-3"),
        (JobStatus.FAILED, KEPT, False, "chk-3"),
        (JobStatus.FAILED, KEPT, True, "chk-3"),
        (JobStatus.CANCELED, KEPT, True, "chk-3"),
        # the cluster takes its files with it, whoever waits
        (JobStatus.CANCELED, LOCAL, True, ""),
        (JobStatus.CANCELED, LOCAL, False, ""),
        (JobStatus.FINISHED, KEPT, False, ""),
        (JobStatus.CANCELED, GONE, False, ""),
        (JobStatus.CANCELED, replace(KEPT, retention="DELETE_ON_CANCELLATION"), False, ""),
        (JobStatus.FAILED, replace(KEPT, retention="DELETE_ON_CANCELLATION"), False, "chk-3"),
        (JobStatus.FAILED, replace(KEPT, retention="NO_EXTERNALIZED_CHECKPOINTS"), False, ""),
    ],
)
def test_who_waits_for_a_job_hears_where_its_state_is(
    status: JobStatus, checkpoints: JobCheckpoints, owned: bool, told: str
) -> None:
    dispatcher = FakeDispatcher([JobStatus.RUNNING, status])
    dispatcher.submissions.append(JobSubmission(JOB, "flights", ProgramKind.GRAPH, "{}", {}))
    dispatcher.checkpoints = checkpoints
    listener = Listener()
    client = ClusterJobClient(FakeConnection(dispatcher, owned), JOB, "flights", listener)
    try:
        client.await_result(timeout_s=PATIENCE.thread_s)
    except (JobCanceled, JobFailed):
        pass
    expected = f"Start from it: yarnflow submit -s hdfs://n/checkpoints/{told} PROGRAM"
    assert [note.partition("  ")[2] for note in listener.notes] == ([expected] if told else [])
