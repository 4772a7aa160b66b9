"""Archives are written beside everything else: again when that fails, and never in anybody's way."""

from __future__ import annotations

import json
import logging

import pytest

from tests.rest.history.bench import ARCHIVES, job_id
from yarnflow.core.files import FileSystem
from yarnflow.core.ids import JobId
from yarnflow.errors import ConfigError, JobNotFound, StorageDenied, StorageUnavailable
from yarnflow.rest.history.form import cluster_folder
from yarnflow.rest.history.writer import MAX_TRIES, ArchiveWriter, check_archive_dir
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.runtime import ManualClock

ONE, TWO = job_id(1), job_id(2)


class Maker:
    """Makes contents that say which job they are of, unless the job is forgotten."""

    def __init__(self) -> None:
        self.made: list[JobId] = []
        self.forgotten: set[JobId] = set()

    def job(self, job_id: JobId) -> bytes:
        self.made.append(job_id)
        if job_id in self.forgotten:
            raise JobNotFound(f"no job {job_id}")
        return json.dumps({"job": job_id}).encode()

    def application(self, job_id: JobId) -> bytes:
        return json.dumps({"application": job_id}).encode()


class WriterBench:
    """A writer whose steps the test makes."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.files = MemoryFileSystem(self.clock)
        self.maker = Maker()
        self.writer = ArchiveWriter(ARCHIVES, "/default", self._open, lambda: self.maker, self.clock)

    def _open(self, uri: str) -> tuple[FileSystem, str]:
        return self.files, uri

    def work(self) -> None:
        while self.writer.step():
            pass

    def written(self) -> list[str]:
        return [status.path for status in self.files.list(ARCHIVES) if not status.is_directory]


@pytest.fixture
def bench() -> WriterBench:
    return WriterBench()


def test_an_archive_has_the_jobs_name_and_is_the_owners_alone(bench: WriterBench) -> None:
    order: list[str] = []
    bench.files.before = lambda operation, path: order.append(path) if operation == "write" else None
    bench.writer.ended(ONE)
    bench.work()
    path = f"{ARCHIVES}/{ONE}"
    status = bench.files.status(path)
    assert status is not None and status.permission == 0o600
    assert json.loads(bench.files.read(path)) == {"job": ONE}
    folder = f"{ARCHIVES}/{cluster_folder('/default')}/applications/{ONE}"
    assert order == [f"{folder}/application-summary", path], "whoever finds the job's finds all"
    assert f"{folder}/jobs" in bench.files.paths(ARCHIVES)
    assert bench.writer.finish(0)


def test_it_is_tried_again_and_the_job_may_be_forgotten_meanwhile(
    bench: WriterBench, caplog: pytest.LogCaptureFixture
) -> None:
    def down(operation: str, path: str) -> None:
        raise StorageUnavailable("no answer")

    bench.files.before = down
    bench.writer.ended(ONE)
    for _ in range(3):
        bench.work()
        bench.clock.advance(60_000)
    assert not bench.writer.finish(0)
    bench.maker.forgotten.add(ONE)
    bench.files.before = lambda operation, path: None
    bench.work()
    assert bench.written() == [f"{ARCHIVES}/{ONE}"]
    assert bench.maker.made == [ONE]
    told = [record.getMessage() for record in caplog.records if "not written yet" in record.getMessage()]
    assert len(told) == 1 and ONE in told[0]


def test_one_that_waits_holds_up_no_other(bench: WriterBench) -> None:
    def down(operation: str, path: str) -> None:
        if ONE in path:
            raise StorageUnavailable("no answer")

    bench.files.before = down
    bench.writer.ended(ONE)
    bench.work()
    bench.writer.ended(TWO)
    bench.work()
    assert bench.written() == [f"{ARCHIVES}/{TWO}"]


@pytest.mark.parametrize("error, tries", [(StorageDenied("no"), 1), (StorageUnavailable("no"), MAX_TRIES)])
def test_it_is_given_up_with_a_warning(
    error: Exception, tries: int, bench: WriterBench, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[str] = []

    def fail(operation: str, path: str) -> None:
        tried.append(path)
        raise error

    bench.files.before = fail
    bench.writer.ended(ONE)
    for _ in range(2 * MAX_TRIES):
        bench.work()
        bench.clock.advance(60_000)
    assert len(tried) == tries
    assert bench.writer.finish(0), "nobody waits for it any more"
    assert caplog.records[-1].levelno == logging.WARNING and ONE in caplog.records[-1].getMessage()


def test_an_error_of_ours_ends_nothing(bench: WriterBench, caplog: pytest.LogCaptureFixture) -> None:
    def broken(operation: str, path: str) -> None:
        raise RuntimeError("a mistake")

    bench.files.before = broken
    bench.writer.ended(ONE)
    bench.work()
    bench.files.before = lambda operation, path: None
    bench.writer.ended(TWO)
    bench.work()
    assert bench.written() == [f"{ARCHIVES}/{TWO}"]
    assert "a mistake" in caplog.text


def test_a_new_leader_writes_what_is_missing_and_no_more(bench: WriterBench) -> None:
    bench.files.make_directory(ARCHIVES)
    bench.files.write(f"{ARCHIVES}/{ONE}", b"of the leader before")
    looked: list[str] = []
    bench.files.before = lambda operation, path: looked.append(operation)
    bench.writer.ended_before([ONE, TWO])
    bench.work()
    assert (looked.count("list"), looked.count("status")) == (1, 0), "there may be thousands of jobs"
    assert bench.files.read(f"{ARCHIVES}/{ONE}") == b"of the leader before"
    assert json.loads(bench.files.read(f"{ARCHIVES}/{TWO}")) == {"job": TWO}


def test_it_works_in_a_thread_of_its_own(bench: WriterBench) -> None:
    bench.writer.start()
    bench.writer.ended(ONE)
    assert bench.writer.finish(60_000)
    bench.writer.stop()
    assert bench.written() == [f"{ARCHIVES}/{ONE}"]


@pytest.mark.parametrize("uri", ["s3://bucket/x", "archives", "file:archives", "hdfs://nn"])
def test_a_directory_that_cannot_be_written_to_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match="jobmanager.archive.fs.dir"):
        check_archive_dir(uri)


@pytest.mark.parametrize(
    "uri", ["", "/var/archives", "file:///var/archives", "hdfs:///a", "hdfs://nn:8020/a"]
)
def test_others_are_taken(uri: str) -> None:
    check_archive_dir(uri)


def test_those_that_wait_take_a_bounded_place(
    bench: WriterBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def down(operation: str, path: str) -> None:
        raise StorageUnavailable("no answer")

    monkeypatch.setattr("yarnflow.rest.history.writer.MAX_WAITING_BYTES", 250)
    bench.files.before = down
    jobs = [job_id(number) for number in range(1, 6)]
    for each in jobs:
        bench.writer.ended(each)
        bench.work()
    bench.files.before = lambda operation, path: None
    bench.clock.advance(60_000)
    bench.work()
    written = [path.rpartition("/")[2] for path in bench.written()]
    assert written == jobs[-len(written):] and 0 < len(written) < 5, "the oldest give way"
    assert sum("too many wait" in record.getMessage() for record in caplog.records) == 5 - len(written)
