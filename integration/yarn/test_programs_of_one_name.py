"""Programs whose files have one name, as applications of their own and in one session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.projects import NIGHTLY, main_of
from integration.yarn.jobs import Yarn, application_id
from yarnflow import errors


@pytest.fixture(params=["yarn-per-job", "yarn-application", "yarn-session"])
def target(request: pytest.FixtureRequest, yarn: Yarn) -> Iterator[tuple[str, ...]]:
    """Options that name where jobs run."""
    if request.param != "yarn-session":
        yield ("-t", request.param)
        return
    started = yarn.run("session", "start", "-d")
    assert started.process.returncode == 0
    session = application_id(started)
    yield ("-t", "yarn-session", f"-Dyarn.application.id={session}")
    assert yarn.run("session", "stop", session).process.returncode == 0


@pytest.mark.may_rerun("YARN starts and ends containers")
def test_a_program_is_not_attached_to_another_one(
    yarn: Yarn, endless: Path, tmp_path: Path, target: tuple[str, ...]
) -> None:
    first, nightly = main_of(tmp_path / "a", endless.read_text()), main_of(tmp_path / "b", NIGHTLY)
    submitted = yarn.run("submit", *target, "-d", first)
    assert submitted.process.returncode == 0
    job_id = submitted.job_id
    assert job_id, submitted.stderr
    live = yarn.live()

    output = f"/tests/nightly-{target[1]}"
    other = yarn.run("submit", *target, nightly, f"hdfs://{output}")
    assert other.process.returncode == 0, other.stderr
    assert job_id not in other.stderr + other.stdout
    assert "_SUCCESS" in yarn.hdfs.list(output)

    again = yarn.run("submit", *target, "-d", first)
    assert again.process.returncode == 0 and f"live job with JobID {job_id}" in again.stdout + again.stderr
    first.write_text(endless.read_text().replace("'rowsPerSecond', 10", "'rowsPerSecond', 20"))
    edited = yarn.run("submit", *target, "-d", first)
    assert edited.process.returncode == errors.DuplicateJob.exit_code, edited.stderr
    for named in (job_id, "--on-existing replace", "--restore latest", "--job-key"):
        assert named in edited.stderr
    assert yarn.live() == live
    assert yarn.run("cancel", job_id, *target).process.returncode == 0
    if target[1] != "yarn-session":
        (application,) = live
        yarn.ended(application)
