"""How long a JobManager on YARN lives."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from yarnflow.core.ids import JobId
from yarnflow.core.messages import (
    ErrorInfo,
    JobDetails,
    JobOverview,
    JobSubmission,
    JobSubmitted,
    ProgramKind,
)
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import DeploymentMode
from yarnflow.entrypoint.master import lifetime
from yarnflow.entrypoint.master.lifetime import (
    ARRIVAL_MS,
    LAST_LOOK_MS,
    LINGER_MS,
    Lifetime,
    UntilToldToEnd,
)
from yarnflow.errors import GraphError, LeadershipLost, YarnflowError
from yarnflow.testing.runtime import ManualClock

JOB = JobId("a" * 32)
SUBMISSION = JobSubmission(JOB, "flights", ProgramKind.GRAPH, "", {})


def ended(status: JobStatus) -> JobDetails:
    error = ErrorInfo("USER_CODE", "ValueError: bad row") if status is JobStatus.FAILED else None
    return JobDetails(JobOverview(JOB, "flights", status, 1, 2), 3, error=error)


class Cluster:
    """Dispatcher and JobBoard in one."""

    def __init__(self, jobs: Sequence[JobDetails] = (), refusal: YarnflowError | None = None) -> None:
        self.clock = ManualClock()
        self.jobs, self.refusal = jobs, refusal
        #: of the first submits
        self.failures: list[YarnflowError] = []
        self.submitted: list[JobSubmission] = []
        self.closed: list[str] = []
        self.waits: list[tuple[int, int]] = []
        self.of_ended: list[bool] = []
        #: until all have seen the ends of jobs
        self.seen_after_ms = 0

    def submit_job(self, submission: JobSubmission) -> JobSubmitted:
        if self.failures:
            raise self.failures.pop(0)
        if self.refusal is not None:
            raise self.refusal
        self.submitted.append(submission)
        return JobSubmitted(submission.job_id)

    def close(self, reason: str) -> None:
        self.closed.append(reason)

    def all(self) -> Sequence[JobDetails]:
        return self.jobs

    def await_followers(self, timeout_ms: int, newcomers_ms: int = 0, *, of_ended: bool = False) -> bool:
        self.waits.append((timeout_ms, newcomers_ms))
        self.of_ended.append(of_ended)
        return timeout_ms >= self.seen_after_ms

    def lifetime(self, mode: DeploymentMode) -> Lifetime:
        return Lifetime(mode, self.clock, self, self)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetime, "_ANSWER_S", 0.0)


def test_a_cluster_for_one_job() -> None:
    cluster = Cluster([ended(JobStatus.FAILED)])
    made = cluster.lifetime(DeploymentMode.PER_JOB)
    made.begin(SUBMISSION)
    assert cluster.submitted == [SUBMISSION]
    (reason,) = cluster.closed
    assert "flights" in reason and JOB in reason
    cluster.clock.advance(1_000)
    result = made.end()
    assert (result.status, result.job_id) == (JobStatus.FAILED, JOB)
    assert result.diagnostics == "ValueError: bad row"
    assert cluster.waits == [(LINGER_MS, ARRIVAL_MS - 1_000)], "the client may not have found it yet"


def test_a_client_that_has_not_come_by_now_does_not_come() -> None:
    cluster = Cluster([ended(JobStatus.FINISHED)])
    made = cluster.lifetime(DeploymentMode.PER_JOB)
    made.begin(SUBMISSION)
    cluster.clock.advance(60_000)
    assert made.end().status is JobStatus.FINISHED
    assert cluster.waits == [(LINGER_MS, 0)]


def test_a_job_that_is_refused_is_the_end() -> None:
    cluster = Cluster(refusal=GraphError("operator 3 has no input"))
    made = cluster.lifetime(DeploymentMode.PER_JOB)
    made.begin(SUBMISSION)
    assert cluster.closed
    result = made.end()
    assert (result.status, result.diagnostics) == (JobStatus.FAILED, "operator 3 has no input")


def test_a_cluster_for_a_program_ends_after_it() -> None:
    cluster = Cluster([ended(JobStatus.FINISHED)])
    made = cluster.lifetime(DeploymentMode.APPLICATION)
    made.begin(None)
    assert not cluster.submitted and not cluster.closed
    made.program_ended(0, "")
    assert cluster.closed
    assert made.end().status is JobStatus.FINISHED


def test_a_program_that_fails_before_it_submits() -> None:
    cluster = Cluster()
    made = cluster.lifetime(DeploymentMode.APPLICATION)
    made.begin(None)
    made.program_ended(24, "Traceback …\nerror: NameError: name 'x' is not defined (main.py:3)")
    result = made.end()
    assert result.status is JobStatus.FAILED
    assert result.diagnostics == "NameError: name 'x' is not defined (main.py:3)"


@pytest.mark.parametrize("jobs", [[], [ended(JobStatus.FINISHED)]])
def test_a_program_that_was_not_let_finish_has_not_succeeded(jobs: list[JobDetails]) -> None:
    made = Cluster(jobs).lifetime(DeploymentMode.APPLICATION)
    made.begin(None)
    assert made.end().status is JobStatus.CANCELED


def test_a_session_is_well_whatever_its_jobs_were() -> None:
    made = Cluster([ended(JobStatus.FAILED)]).lifetime(DeploymentMode.SESSION)
    made.begin(None)
    result = made.end()
    assert (result.status, result.diagnostics) == (JobStatus.FINISHED, "")


def test_a_job_is_not_refused_because_zookeeper_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetime, "_RETRY_S", 0.0)
    cluster = Cluster()
    cluster.failures = [LeadershipLost("suspended"), LeadershipLost("suspended")]
    cluster.lifetime(DeploymentMode.PER_JOB).begin(SUBMISSION)
    assert cluster.submitted == [SUBMISSION] and len(cluster.closed) == 1


@pytest.mark.parametrize(
    ("seen_after_ms", "waits"), [(0, [(0, 0)]), (LAST_LOOK_MS, [(0, 0), (LAST_LOOK_MS, 0)])]
)
def test_who_follows_a_job_of_a_local_cluster_sees_its_end(
    seen_after_ms: int, waits: list[tuple[int, int]]
) -> None:
    cluster = Cluster([ended(JobStatus.FINISHED)])
    cluster.seen_after_ms = seen_after_ms
    assert UntilToldToEnd(cluster).end().status is JobStatus.FINISHED
    assert cluster.waits == waits and all(cluster.of_ended)
