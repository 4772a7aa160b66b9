"""What the next leader makes of a job whose master was lost after it had put down the result."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.runtime.jobmaster.job_bench import JOB, Bench
from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
)
from yarnflow.core.ha.ports import LatestState
from yarnflow.core.ids import JobId
from yarnflow.core.messages import DriverPhase, JobDetails
from yarnflow.core.states import JobStatus
from yarnflow.runtime.jobmaster.services import Retention
from yarnflow.runtime.jobmaster.state_files import JobStateFiles
from yarnflow.testing.stores import FakeCheckpoints

OWN = f"file:/checkpoints/{JOB}"


def _checkpoint(
    kind: CheckpointKind, trigger: CheckpointTrigger, number: int, path: str = ""
) -> CheckpointInfo:
    status = CheckpointStatus.COMPLETED
    return CheckpointInfo(number, kind, status, trigger, 1, end_ms=2, external_path=path)


class Lost:
    """A job with one checkpoint, whose result was put down and nothing else."""

    def __init__(
        self, retention: Retention = Retention.RETAIN_ON_CANCELLATION, key: str = "flights", epoch: int = 1
    ) -> None:
        self.bench = Bench(job_key=key, retention=retention)
        self.checkpoints = FakeCheckpoints(OWN)
        self.bench.stores.by_job[JOB] = self.checkpoints
        self.latest = self.bench.stores.latest
        self.files = JobStateFiles(
            self.bench.submission, self.bench.graph, self.bench.settings, self.bench.services
        )
        self.files.record(_checkpoint(CheckpointKind.CHECKPOINT, CheckpointTrigger.INTERVAL, 1))

    def settle(self, status: JobStatus) -> LatestState | None:
        """Twice, as the next leader may be lost as well; returns what the next job of the key finds."""
        details = self.details(status)
        self.files.settle(details)
        log, state = list(self.checkpoints.log), self.latest.states.get("flights")
        self.files.settle(details)
        assert self.checkpoints.log[len(log) :] in ([], log[-1:])
        assert self.latest.states.get("flights") == state
        assert not self.bench.stores.ended.stored, "it is there already"
        return state

    def details(self, status: JobStatus) -> JobDetails:
        bench = Bench(job_key="flights").running()
        if status is JobStatus.CANCELED:
            bench.master.cancel()
        bench.report(DriverPhase.CANCELED if status is JobStatus.CANCELED else DriverPhase.FINISHED)
        details = bench.board.get(JOB)
        return replace(details, overview=replace(details.overview, status=status))


@pytest.mark.parametrize(
    ("status", "retention", "kept"),
    [
        (JobStatus.CANCELED, Retention.RETAIN_ON_CANCELLATION, True),
        (JobStatus.FAILED, Retention.RETAIN_ON_CANCELLATION, True),
        (JobStatus.CANCELED, Retention.DELETE_ON_CANCELLATION, False),
        (JobStatus.FAILED, Retention.NO_EXTERNALIZED_CHECKPOINTS, False),
        # it may have been stopped with a savepoint that did not succeed
        (JobStatus.FINISHED, Retention.RETAIN_ON_CANCELLATION, True),
    ],
)
def test_it_is_as_its_own_master_would_have_left_it(
    status: JobStatus, retention: Retention, kept: bool
) -> None:
    lost = Lost(retention)
    state = lost.settle(status)
    assert state is not None and state.job_id == JOB
    assert (state.status, state.path) == (status.value, f"{OWN}/chk-1" if kept else "")
    assert lost.checkpoints.log[1] == (f"close_job {status.value}" if kept else "discard_all")


def test_one_that_was_stopped_with_a_savepoint_leaves_that() -> None:
    lost = Lost()
    lost.files.record(_checkpoint(CheckpointKind.SAVEPOINT, CheckpointTrigger.STOP, 2, "hdfs:///s"))
    state = lost.settle(JobStatus.FINISHED)
    assert state is not None and (state.status, state.path) == ("FINISHED", "hdfs:///s")
    assert lost.checkpoints.log[2] == "discard_all"


def test_what_was_put_down_in_time_stays() -> None:
    lost = Lost()
    lost.latest.write(LatestState("flights", JOB, "flights", "FINISHED", "hdfs:///s", 2, 1))
    state = lost.settle(JobStatus.FINISHED)
    assert state is not None and state.path == "hdfs:///s" and lost.checkpoints.log[1] == "discard_all"


def test_a_later_job_of_the_key_keeps_its_record() -> None:
    lost = Lost()
    later = LatestState("flights", JobId("c" * 32), "flights", "RUNNING", "hdfs:///c", 7, 1)
    lost.latest.write(later)
    assert lost.settle(JobStatus.CANCELED) == later


def test_a_job_without_a_key() -> None:
    lost = Lost(key="")
    assert lost.settle(JobStatus.CANCELED) is None
    assert lost.checkpoints.log[1] == "close_job CANCELED"
