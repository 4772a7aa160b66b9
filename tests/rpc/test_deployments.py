"""How often a job's bytes travel to its driver, over a real loopback connection."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rpc.conftest import Cluster
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import DriverAssignment, DriverDeployment, Fence, JobSubmission, ProgramKind
from yarnflow.errors import RpcTimeout
from yarnflow.rpc import framing
from yarnflow.runtime.driver.run_context import HeldJob, RunContext
from yarnflow.runtime.jobmaster.deploying import SubmissionSender

JOB = JobId("a" * 32)
FILES_BYTES = 20 * 1024 * 1024
LARGE = JobSubmission(
    JOB,
    "large",
    ProgramKind.SCRIPT,
    "{}",
    {"a": "1"},
    files={"job.py": b"0" * FILES_BYTES},
    script_argv=("job.py",),
)
ASSIGNMENT = DriverAssignment(JOB, DriverId("d1"), "host:1", Fence("l", 1), "/checkpoints", "/work")


class DriverProcess:
    """Holds what it is sent, as a driver does, and never runs anything."""

    def __init__(self, cluster: Cluster) -> None:
        self.held = HeldJob(ASSIGNMENT)
        self.contexts: list[RunContext] = []
        cluster.recorders["Driver"].answers["deploy"] = self._deploy
        self.gateway = cluster.factory().driver(cluster.address)

    def _deploy(self, deployment: DriverDeployment) -> None:
        self.contexts.append(self.held.context(deployment, 1))

    @property
    def attempts(self) -> list[int]:
        return [context.attempt for context in self.contexts]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lengths of the large messages, and of all, that were sent."""
    encode = framing.encode
    lengths: list[int] = []

    def measured(struct: Any) -> bytes:
        lengths.append(len(body := encode(struct)))
        return body

    monkeypatch.setattr(framing, "encode", measured)
    return lengths


def large(sent: list[int]) -> int:
    return sum(length > FILES_BYTES for length in sent)


def deployment(attempt: int) -> DriverDeployment:
    return DriverDeployment(attempt, LARGE)


def test_a_large_job_is_sent_to_a_driver_process_once(cluster: Cluster, sent: list[int]) -> None:
    driver, sender = DriverProcess(cluster), SubmissionSender(LARGE)
    for attempt in (1, 2, 3):
        sender.deploy(driver.gateway, deployment(attempt), again=attempt > 1)
    assert driver.attempts == [1, 2, 3]
    assert [context.job.submission == LARGE for context in driver.contexts] == [True] * 3
    assert large(sent) == 1
    assert sum(sent) < FILES_BYTES + 10_000


def test_the_next_leader_names_what_the_one_before_has_sent(cluster: Cluster, sent: list[int]) -> None:
    driver = DriverProcess(cluster)
    SubmissionSender(LARGE).deploy(driver.gateway, deployment(1), again=False)
    SubmissionSender(LARGE).deploy(driver.gateway, deployment(2), again=True)
    assert driver.attempts == [1, 2] and large(sent) == 1


def test_a_driver_that_lacks_the_job_asks_and_gets_it(cluster: Cluster, sent: list[int]) -> None:
    driver, sender = DriverProcess(cluster), SubmissionSender(LARGE)
    sender.deploy(driver.gateway, deployment(4), again=True)
    assert driver.attempts == [4] and large(sent) == 1
    assert driver.contexts[0].job.submission == LARGE
    sender.deploy(driver.gateway, deployment(5), again=True)
    assert driver.attempts == [4, 5] and large(sent) == 1


def test_an_answer_that_was_late_costs_no_second_time(cluster: Cluster, sent: list[int]) -> None:
    driver, sender = DriverProcess(cluster), SubmissionSender(LARGE)
    take = cluster.recorders["Driver"].answers["deploy"]

    def too_late(deployment: DriverDeployment) -> None:
        take(deployment)
        raise RpcTimeout("no answer in time")

    cluster.recorders["Driver"].answers["deploy"] = too_late
    with pytest.raises(RpcTimeout):
        sender.deploy(driver.gateway, deployment(1), again=False)
    cluster.recorders["Driver"].answers["deploy"] = take
    sender.deploy(driver.gateway, deployment(1), again=True)
    assert driver.attempts == [1, 1] and large(sent) == 1


def test_other_failures_are_the_callers(cluster: Cluster, sent: list[int]) -> None:
    driver, sender = DriverProcess(cluster), SubmissionSender(LARGE)
    cluster.recorders["Driver"].answers["deploy"] = RpcTimeout("no answer in time")
    with pytest.raises(RpcTimeout):
        sender.deploy(driver.gateway, deployment(2), again=True)
    assert large(sent) == 0
