"""How a cluster ended, from its jobs and its program."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from yarnflow.core.checkpoint.messages import JobStop
from yarnflow.core.cluster_result import ClusterResult, ProgramEnd, cluster_result, refused_job, stop_in
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import ErrorInfo, JobDetails, JobOverview
from yarnflow.core.states import JobStatus
from yarnflow.errors import DuplicateJob

USER = ErrorInfo("USER_CODE", "ValueError: bad row in parse (flights.py:12)\nand more", "Traceback …")


def job(letter: str, status: JobStatus) -> JobDetails:
    error = USER if status is JobStatus.FAILED else None
    return JobDetails(JobOverview(JobId(letter * 32), f"job-{letter}", status, 1, 2), 3, error=error)


FINISHED, FAILED, CANCELED = (
    job("a", JobStatus.FINISHED), job("b", JobStatus.FAILED), job("c", JobStatus.CANCELED)
)  # fmt: skip
GOOD, BAD = ProgramEnd(0, "done"), ProgramEnd(24, "Traceback\nerror: ValueError: no input (main.py:3)")


@pytest.mark.parametrize(
    "jobs, program, status, diagnostics",
    [
        ([FINISHED], None, JobStatus.FINISHED, ""),
        ([FAILED], None, JobStatus.FAILED, "ValueError: bad row in parse (flights.py:12)"),
        ([CANCELED], None, JobStatus.CANCELED, f"job job-c ({'c' * 32}) was canceled"),
        ([], GOOD, JobStatus.FINISHED, ""),
        ([], BAD, JobStatus.FAILED, "ValueError: no input (main.py:3)"),
        ([], ProgramEnd(-9, ""), JobStatus.FAILED, "the program ended by signal 9"),
        ([], ProgramEnd(3, "oh\nno\n"), JobStatus.FAILED, "the program ended with status 3: no"),
        ([FINISHED], GOOD, JobStatus.FINISHED, ""),
        ([FINISHED], BAD, JobStatus.FAILED, "ValueError: no input (main.py:3)"),
        ([CANCELED], ProgramEnd(44, "error: job was canceled"), JobStatus.CANCELED, None),
        ([FAILED, FINISHED], ProgramEnd(45, "error: ValueError"), JobStatus.FAILED, None),
        ([CANCELED, FINISHED, FAILED], GOOD, JobStatus.FAILED, None),
    ],
)
def test_what_decides(
    jobs: list[JobDetails], program: ProgramEnd | None, status: JobStatus, diagnostics: str | None
) -> None:
    result = cluster_result(jobs, program)
    assert result.status is status
    if diagnostics is not None:
        assert result.diagnostics == diagnostics
    assert (result.details is None) == (not result.job_id)


@pytest.mark.parametrize(
    "stop",
    [
        JobStop("hdfs:///sp/savepoint 1 (old)", "r1"),
        JobStop("hdfs:///sp/savepoint-1", "a" * 32, drained=True),
        JobStop("", "r1"),
    ],
)
def test_who_has_stopped_a_job_is_told_to_those_who_hear_no_more_than_a_line(stop: JobStop) -> None:
    stopped = replace(FINISHED, stop=stop)
    text = cluster_result([stopped]).diagnostics
    job_id = stopped.overview.job_id
    assert stop_in(f"before\n{text}\nafter", job_id) == stop
    assert stop_in(text, JobId("b" * 32)) is None
    assert stop_in("", job_id) is None


def test_the_error_that_refused_a_job_has_its_code() -> None:
    error = DuplicateJob("submit with --restore latest")
    refused = refused_job(error, "b" * 32)
    assert (refused.error_code, refused.diagnostics) == ("DUPLICATE_JOB", error.message)
    program = ProgramEnd(error.exit_code, f"some line\nerror: {error.message}")
    assert cluster_result([], program).error_code == "DUPLICATE_JOB"
    assert not cluster_result([], ProgramEnd(1, "Traceback")).error_code


def test_the_file_is_plain_json() -> None:
    text = to_json(cluster_result([FAILED]))
    assert from_json(ClusterResult, text) == cluster_result([FAILED])
    raw = json.loads(text)
    assert (raw["status"], raw["job_id"]) == ("FAILED", "b" * 32)
    assert raw["details"]["overview"]["name"] == "job-b"
