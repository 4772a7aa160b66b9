"""Metrics of a job from its snapshot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
    JobCheckpoints,
)
from yarnflow.core.ids import JobId, VertexId
from yarnflow.core.messages import ExecutionInfo, JobDetails, JobOverview, VertexInfo
from yarnflow.core.metrics import ScopeKind
from yarnflow.core.monitoring.declarations import ALL_METRICS, METRICS_BY_NAME
from yarnflow.core.monitoring.job_metrics import job_metrics
from yarnflow.core.states import ExecutionState, JobStatus

JOB = JobId("a" * 32)
NOW = 100_000
NONE = JobCheckpoints(JOB)


def details(status: JobStatus, **timestamps_ms: int) -> JobDetails:
    return JobDetails(JobOverview(JOB, "flights", status, 1_000, -1), 1, timestamps_ms=timestamps_ms)


def metrics(of: JobDetails, checkpoints: JobCheckpoints = NONE, **reported: int) -> dict[str, Any]:
    return job_metrics(of, checkpoints, reported, NOW)


def checkpoint(number: int, status: CheckpointStatus, **changes: Any) -> CheckpointInfo:
    info = CheckpointInfo(
        number, CheckpointKind.CHECKPOINT, status, CheckpointTrigger.INTERVAL, 10_000 * number
    )
    return replace(info, **changes)


@pytest.mark.parametrize(
    "status, timestamps, uptime, downtime",
    [
        (JobStatus.RUNNING, {"RUNNING": 40_000}, 60_000, 0),
        (JobStatus.RUNNING, {"RESTARTING": 30_000, "RUNNING": 40_000}, 60_000, 0),
        (JobStatus.RESTARTING, {"RUNNING": 40_000, "RESTARTING": 90_000}, 0, 10_000),
        (JobStatus.CREATED, {"CREATED": 90_000}, 0, 0),
        (JobStatus.FINISHED, {"RUNNING": 1, "FINISHED": 2}, -1, -1),
    ],
)
def test_up_and_down(status: JobStatus, timestamps: dict[str, int], uptime: int, downtime: int) -> None:
    found = metrics(details(status, **timestamps))
    assert (found["uptime"], found["downtime"]) == (uptime, downtime)


def test_only_the_present_status_has_a_time() -> None:
    found = metrics(details(JobStatus.RESTARTING, RUNNING=1, RESTARTING=70_000))
    assert found["restartingTime"] == 30_000
    others = ("runningTime", "createdTime", "initializingTime", "failingTime", "cancellingTime")
    assert [found[name] for name in others] == [0] * 5


def test_a_job_without_checkpoints_says_so() -> None:
    found = metrics(details(JobStatus.RUNNING, RUNNING=1))
    assert found["lastCheckpointDuration"] == found["lastCompletedCheckpointId"] == -1
    assert found["lastCheckpointExternalPath"] == "n/a"
    assert found["checkpointAge"] == NOW - 1_000, "since it was submitted"


def test_checkpoints() -> None:
    history = (
        checkpoint(4, CheckpointStatus.IN_PROGRESS),
        checkpoint(3, CheckpointStatus.FAILED, end_ms=31_000),
        checkpoint(2, CheckpointStatus.COMPLETED, end_ms=20_500, external_path="/c/2", copied_bytes=7),
        checkpoint(1, CheckpointStatus.COMPLETED, end_ms=11_000),
    )
    found = metrics(details(JobStatus.RUNNING, RUNNING=1), JobCheckpoints(JOB, 2, 1, history))
    assert found["lastCheckpointDuration"] == 500
    assert found["lastCompletedCheckpointId"] == 2
    assert found["lastCheckpointExternalPath"] == "/c/2"
    assert found["lastCheckpointSize"] == 7
    assert found["checkpointAge"] == NOW - 20_500
    counts = [f"numberOf{kind}Checkpoints" for kind in ("Completed", "Failed", "InProgress")]
    assert [found[name] for name in counts] == [2, 1, 1]
    assert found["totalNumberOfCheckpoints"] == 4


def test_a_savepoint_does_not_make_the_checkpoint_young() -> None:
    savepoint = checkpoint(9, CheckpointStatus.COMPLETED, kind=CheckpointKind.SAVEPOINT, end_ms=99_000)
    old = checkpoint(1, CheckpointStatus.COMPLETED, end_ms=11_000)
    found = metrics(details(JobStatus.RUNNING, RUNNING=1), JobCheckpoints(JOB, 2, 0, (savepoint, old)))
    assert found["checkpointAge"] == NOW - 11_000


def test_a_job_that_has_nothing_to_do_has_a_young_checkpoint() -> None:
    old = checkpoint(1, CheckpointStatus.COMPLETED, end_ms=11_000)
    for up_to_date_ms, age_ms in ((90_000, 10_000), (5_000, NOW - 11_000)):
        known = JobCheckpoints(JOB, 1, 0, (old,), up_to_date_ms=up_to_date_ms)
        assert metrics(details(JobStatus.RUNNING, RUNNING=1), known)["checkpointAge"] == age_ms
    without = JobCheckpoints(JOB, up_to_date_ms=90_000)
    assert metrics(details(JobStatus.RUNNING, RUNNING=1), without)["checkpointAge"] == 10_000


def test_seconds_since_the_last_commit_are_never_negative() -> None:
    running = details(JobStatus.RUNNING, RUNNING=1)
    assert metrics(running, lastCommitTimestamp=NOW - 5_900)["secondsSinceLastCommit"] == 5
    assert metrics(running, lastCommitTimestamp=NOW + 900)["secondsSinceLastCommit"] == 0
    assert "secondsSinceLastCommit" not in metrics(running)


def test_all_subtasks_running() -> None:
    def vertex(*states: ExecutionState) -> VertexInfo:
        executions = tuple(
            ExecutionInfo(n, 1, state, timestamps_ms={state.name: 50_000 + n})
            for n, state in enumerate(states)
        )
        return VertexInfo(VertexId("v"), "v", len(states), 128, "default", executions)

    running = details(JobStatus.RUNNING, RUNNING=1)
    both = replace(running, vertices=(vertex(ExecutionState.RUNNING, ExecutionState.FINISHED),))
    assert metrics(both)["allSubTasksRunningOrFinishedTime"] == NOW - 50_001
    one = replace(running, vertices=(vertex(ExecutionState.RUNNING, ExecutionState.DEPLOYING),))
    assert metrics(one)["allSubTasksRunningOrFinishedTime"] == 0
    assert metrics(one)["deployingTime"] == NOW - 50_001


def test_every_value_is_declared_for_jobs() -> None:
    found = metrics(details(JobStatus.RUNNING, RUNNING=1), lastCommitTimestamp=1)
    assert [name for name in found if ScopeKind.JOB not in METRICS_BY_NAME[name].scopes] == []


def test_names_are_declared_once() -> None:
    assert len(METRICS_BY_NAME) == len(ALL_METRICS)
