"""Whose a checkpoint location of a script's own is; without Spark."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.checkpoints.local_files import LocalFiles
from yarnflow.core.checkpoint.manifest import CLAIMED, FREE, HELD, SavepointMetadata, to_bytes
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.ids import JobId
from yarnflow.errors import LeaseLost, StateInUse
from yarnflow.spark.checkpoints import locations
from yarnflow.spark.checkpoints.job import Fence, no_fence
from yarnflow.spark.checkpoints.saved_queries import SavedState
from yarnflow.spark.script.places import place_of


class RacingFiles(LocalFiles):
    """Something happens once, before a file is moved or written."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], None] = lambda: None

    def rename(self, source: str, target: str) -> None:
        self._happen()
        super().rename(source, target)

    def write(self, path: str, content: bytes) -> None:
        self._happen()
        super().write(path, content)

    def _happen(self) -> None:
        before, self.before = self.before, lambda: None
        before()


class Jobs:
    """Jobs of one checkpoint directory whose scripts have one location."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.location = root / "own"
        self.files = RacingFiles()
        #: what the system says of a driver's process
        self.began = "first"

    def lose(self) -> None:
        """All drivers so far are dead; the number of their process is that of the next ones."""
        self.began += "+"

    def directory(self, job: str) -> Path:
        return self.root / "jobs" / job

    def begin(self, job: str) -> None:
        self.directory(job).mkdir(parents=True)
        (self.directory(job) / HELD).touch()

    def end(self, job: str) -> None:
        (self.directory(job) / HELD).rename(self.directory(job) / FREE)

    def start(
        self, job: str, fence: Fence = no_fence, location: Path | None = None, key: str = ""
    ) -> SavedState:
        """A query that a driver of the job starts first."""
        if key:
            shape = ProgramShape("SCRIPT")
            manifest = SavepointMetadata(
                1, CheckpointKind.CHECKPOINT, JobId("0" * 32), job, key, 5, "0", shape
            )
            (self.directory(job) / HELD).write_bytes(to_bytes(manifest))
        state = SavedState(lambda: self.files, str(self.directory(job)), place_of, fence, key)
        state.bring("copy", str(location or self.location))
        return state

    def markers(self) -> list[str]:
        return [path.name for path in self.location.iterdir()] if self.location.exists() else []


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    made = Jobs(tmp_path)
    monkeypatch.setattr(locations, "_began", lambda _: made.began)
    for job in ("first", "second", "third"):
        made.begin(job)
    return made


def test_a_location_is_of_one_job_at_a_time(jobs: Jobs) -> None:
    """Whatever the other was started from: each would write its batches over those of the other."""
    jobs.start("first")
    before = jobs.markers()
    for _ in range(2):
        with pytest.raises(StateInUse, match=r"own is in use: .*jobs/first may still run") as raised:
            jobs.start("second")
    assert "jobs/first/owner.held if its cluster was lost" in str(raised.value)
    assert jobs.markers() == before
    jobs.start("first")  # its next driver


@pytest.mark.parametrize("ended", ["in order", "deleted", "by hand"])
def test_the_next_job_has_the_location_of_one_that_has_ended(jobs: Jobs, ended: str) -> None:
    jobs.start("first")
    if ended == "in order":
        jobs.end("first")
    elif ended == "deleted":
        jobs.files.delete(str(jobs.directory("first")))
    else:
        (jobs.directory("first") / HELD).unlink()
    jobs.start("second")
    assert len(jobs.markers()) == 1
    with pytest.raises(StateInUse, match="jobs/second may still run"):
        jobs.start("third")
    if ended == "in order":
        jobs.directory("first").joinpath(FREE).rename(jobs.directory("first") / HELD)
    with pytest.raises(StateInUse, match="jobs/second may still run"):
        jobs.start("first")


def test_a_location_is_of_the_job_that_claimed_the_state_of_its_last_one(jobs: Jobs) -> None:
    jobs.start("first")
    (jobs.directory("first") / HELD).rename(jobs.directory("first") / f"{CLAIMED}second")
    with pytest.raises(StateInUse, match="jobs/second may still run"):
        jobs.start("third")
    jobs.start("second")


def test_a_job_of_the_same_key_goes_on_where_a_lost_one_was(jobs: Jobs) -> None:
    """Its cluster vanished with its marker held; a key has at most one live job."""
    jobs.start("first", key="daily")
    with pytest.raises(StateInUse, match="jobs/first may still run"):
        jobs.start("second", key="daily")
    jobs.lose()
    for other in ("", "weekly"):
        with pytest.raises(StateInUse, match="jobs/first may still run"):
            jobs.start("second", key=other)
    jobs.start("second", key="daily")
    assert [path.name for path in jobs.directory("first").iterdir()] == [f"{CLAIMED}second"]
    assert len(jobs.markers()) == 1
    # its next driver; and the next job, if it is lost as well
    jobs.start("second", key="daily")
    jobs.lose()
    jobs.start("third", key="daily")
    with pytest.raises(StateInUse, match="jobs/third may still run"):
        jobs.start("second")


def test_a_job_that_claimed_a_lost_one_and_was_lost_itself_is_followed(jobs: Jobs) -> None:
    jobs.start("first", key="daily")

    def die() -> None:
        jobs.files.before = dead

    def dead() -> None:
        raise KeyboardInterrupt

    # claimed, and the location not marked yet
    jobs.lose()
    jobs.files.before = die
    with pytest.raises(KeyboardInterrupt):
        jobs.start("second", key="daily")
    assert (jobs.directory("first") / f"{CLAIMED}second").exists()
    jobs.start("third", key="daily")
    assert (jobs.directory("second") / f"{CLAIMED}third").exists()


def test_a_job_without_a_key_goes_on_where_one_of_the_same_machine_was_lost(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.start("first")
    jobs.lose()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(socket, "gethostname", lambda: "another")
        with pytest.raises(StateInUse, match="jobs/first may still run"):
            jobs.start("second")
    with pytest.raises(StateInUse, match="jobs/first may still run"):
        jobs.start("second", key="daily")
    jobs.start("second")
    with pytest.raises(StateInUse, match="jobs/second may still run"):
        jobs.start("first")


def test_a_process_is_told_by_when_it_began() -> None:
    child = subprocess.Popen(["sleep", "60"])
    began = locations._began(child.pid)
    assert began and began == locations._began(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert locations._began(child.pid) == "", "it is dead, and nobody has looked"
    child.wait()
    assert locations._began(child.pid) == ""


def test_a_key_is_of_one_checkpoint_directory(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.start("first", key="daily")
    monkeypatch.setattr(socket, "gethostname", lambda: "another")
    other = Jobs(tmp_path / "other")
    other.begin("second")
    with pytest.raises(StateInUse, match="jobs/first may still run"):
        other.start("second", location=jobs.location, key="daily")


def test_what_is_below_the_directory_of_a_job_is_that_jobs(jobs: Jobs) -> None:
    own = jobs.directory("first") / "copy"
    jobs.start("first", location=own)
    assert not own.exists(), "its directory is marked already"
    with pytest.raises(StateInUse, match="jobs/first may still run"):
        jobs.start("second", location=own)
    jobs.end("first")
    jobs.start("second", location=own)


@pytest.mark.parametrize("used_before", [True, False])
def test_one_of_two_that_start_at_the_same_time_has_the_location(jobs: Jobs, used_before: bool) -> None:
    if used_before:
        jobs.start("first")
        jobs.end("first")

    def third() -> None:
        jobs.start("third")

    jobs.files.before = third
    with pytest.raises(StateInUse):
        jobs.start("second")
    assert len(jobs.markers()) == 1
    jobs.start("third")
    with pytest.raises(StateInUse, match="jobs/third may still run"):
        jobs.start("second")


def test_a_driver_that_died_while_it_took_the_location_is_made_good(jobs: Jobs) -> None:
    jobs.start("first")
    jobs.end("first")

    def die() -> None:
        jobs.files.before = dead

    def dead() -> None:
        raise KeyboardInterrupt

    # renamed, and not written yet
    jobs.files.before = die
    with pytest.raises(KeyboardInterrupt):
        jobs.start("second")
    with pytest.raises(StateInUse, match="cannot be told"):
        jobs.start("third")
    jobs.start("second")
    with pytest.raises(StateInUse, match="jobs/second may still run"):
        jobs.start("third")


def test_a_driver_that_lost_the_job_marks_nothing(jobs: Jobs) -> None:
    def lost() -> None:
        raise LeaseLost("another driver has it")

    with pytest.raises(LeaseLost):
        jobs.start("first", fence=lost)
    assert jobs.markers() == []


def test_a_directory_of_another_machine_says_nothing_of_its_job(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a local cluster whose scripts have locations in HDFS."""
    monkeypatch.setattr(locations, "_LOCAL", f"{jobs.root}/jobs")
    monkeypatch.setattr(socket, "gethostname", lambda: "here")
    state = jobs.start("first")
    monkeypatch.setattr(socket, "gethostname", lambda: "there")
    jobs.end("first")
    with pytest.raises(StateInUse, match="jobs/first on here may still run"):
        jobs.start("second")
    monkeypatch.setattr(socket, "gethostname", lambda: "here")
    state.leave()
    assert jobs.markers() == []


def test_a_location_is_not_left_where_all_see_whether_the_job_has_ended(jobs: Jobs) -> None:
    """Between two attempts of a job nobody else has it."""
    jobs.start("first").leave()
    with pytest.raises(StateInUse):
        jobs.start("second")
