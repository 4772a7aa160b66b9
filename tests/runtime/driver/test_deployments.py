"""Deployments that only name the job, and what each is run from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.runtime.driver.driver_harness import ASSIGNMENT, DIGEST, SUBMISSION, Harness
from yarnflow.core.messages import DriverDeployment, DriverPhase
from yarnflow.errors import GraphError, SubmissionMissing
from yarnflow.graph.codec import job_graph_from_json
from yarnflow.graph.job_graph import JobGraph
from yarnflow.runtime.driver import run_context
from yarnflow.runtime.driver.run_context import HeldJob


@pytest.fixture
def harness() -> Iterator[Harness]:
    made = Harness()
    yield made
    made.close()


def test_a_deployment_that_names_the_job_runs_what_the_driver_holds(harness: Harness) -> None:
    harness.run_program()
    harness.deploy(2, submission=None)
    harness.backend.await_program(2)
    harness.job_master.await_phase(2, DriverPhase.RUNNING)
    first, second = harness.backend.contexts
    assert (first.attempt, second.attempt) == (1, 2)
    assert second.assignment == ASSIGNMENT and second.executor_ids == ("0", "1")
    assert second.job is first.job and second.job.submission is SUBMISSION


def test_a_driver_without_the_job_says_so_and_is_deployed_when_it_comes(harness: Harness) -> None:
    harness.start()
    with pytest.raises(SubmissionMissing, match=f"d1 was not sent submission {DIGEST[:12]} of job 1111"):
        harness.deploy(1, submission=None)
    harness.job_master.wait(lambda: bool(harness.job_master.reports))
    assert harness.job_master.reports[-1].phase is DriverPhase.IDLE
    harness.deploy(1)
    harness.backend.await_program(1)
    harness.job_master.await_phase(1, DriverPhase.RUNNING)


def test_what_runs_goes_on_when_another_job_is_named(harness: Harness) -> None:
    program = harness.run_program()
    with pytest.raises(SubmissionMissing):
        harness.deploy(2, submission=None, digest="f" * 64)
    assert not program.stopped.is_set()
    # the number of that attempt is still free
    harness.deploy(2, submission=None)
    harness.backend.await_program(2)


def test_a_deployment_that_is_known_is_not_asked_for(harness: Harness) -> None:
    harness.run_program()
    harness.deploy(1, submission=None, digest="f" * 64)
    assert len(harness.backend.contexts) == 1


def test_the_graph_is_parsed_once_in_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def parse(text: str) -> JobGraph:
        parsed.append(text)
        return job_graph_from_json(text)

    monkeypatch.setattr(run_context, "job_graph_from_json", parse)
    held = HeldJob(ASSIGNMENT)
    first = held.context(DriverDeployment(1, SUBMISSION, submission_digest=DIGEST), 7)
    assert not parsed, "in the thread of the call"
    second = held.context(DriverDeployment(2, submission_digest=DIGEST), 7)
    assert first.job.graph is second.job.graph and first.job.graph is first.job.graph
    assert len(parsed) == 1


def test_a_graph_that_cannot_be_read_is_an_error_of_the_attempt_only() -> None:
    held = HeldJob(ASSIGNMENT)
    unreadable = replace(SUBMISSION, job_graph_json="no")
    context = held.context(DriverDeployment(1, unreadable, submission_digest="x"), 7)
    with pytest.raises(GraphError):
        context.job.graph


def test_a_master_that_names_no_digest_sends_the_job_each_time() -> None:
    held = HeldJob(ASSIGNMENT)
    other = replace(SUBMISSION, name="other")
    assert held.context(DriverDeployment(1, SUBMISSION), 7).job.submission is SUBMISSION
    assert held.context(DriverDeployment(2, other), 7).job.submission is other
