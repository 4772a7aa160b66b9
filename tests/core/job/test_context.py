"""For which job a thread works."""

from __future__ import annotations

import threading

from yarnflow.core.job.context import current_job, enter_job, in_present_job, job_context, process_of_job

JOB, OTHER = "ab" * 16, "cd" * 16


def test_a_block_works_for_a_job() -> None:
    with job_context(JOB):
        assert current_job() == JOB
        with job_context(OTHER):
            assert current_job() == OTHER
        with job_context(""):
            assert current_job() == JOB
        assert current_job() == JOB
    assert current_job() == ""


def test_an_action_takes_its_job_along() -> None:
    with job_context(JOB):
        action = in_present_job(current_job)
    assert action() == JOB and current_job() == ""
    assert in_present_job(current_job)() == ""


def test_a_thread_of_a_job() -> None:
    found: list[str] = []

    def run() -> None:
        enter_job(JOB)
        found.append(current_job())

    with job_context(OTHER):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert found == [JOB]


def test_a_process_of_a_job() -> None:
    process_of_job(JOB)
    try:
        assert current_job() == JOB
        with job_context(OTHER):
            assert current_job() == OTHER
    finally:
        process_of_job("")
    assert current_job() == ""
