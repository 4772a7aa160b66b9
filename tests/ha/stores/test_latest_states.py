"""Where the newest state of a job key is: files that are never written again, and the checkpoints."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from tests.patience import PATIENCE
from yarnflow.core.checkpoint.manifest import SavepointMetadata, to_bytes
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.files import FileSystem
from yarnflow.core.ha.ports import LatestState
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import to_json
from yarnflow.errors import ConfigError, StorageDenied, StorageUnavailable
from yarnflow.ha.stores.latest_states import FileLatestStates
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.runtime import ManualClock

ROOT = "hdfs://memory:8020/state"
FIRST, SECOND = JobId("f" * 32), JobId("0" * 32)


@pytest.fixture
def fs() -> MemoryFileSystem:
    return MemoryFileSystem()


def master(fs: MemoryFileSystem, epoch: int) -> FileLatestStates:
    def fs_of(uri: str) -> tuple[FileSystem, str]:
        if uri.startswith("s3a:"):  # where Spark alone can read
            raise ConfigError("only hdfs://…")
        return fs, uri.removeprefix("hdfs://memory:8020")

    return FileLatestStates(fs_of, f"{ROOT}/", lambda: epoch)


def put(fs: MemoryFileSystem, path: str, content: bytes) -> None:
    fs.make_directory(path.rpartition("/")[0])
    fs.write(path, content)


def files_of_key(fs: MemoryFileSystem) -> list[str]:
    return [path for path in fs.paths("/state/job-keys") if path.endswith((".json", ".job", ".tmp"))]


def checkpoint(
    fs: MemoryFileSystem, number: int, job_id: JobId = FIRST, key: str = "key", created_ms: int = 1
) -> str:
    metadata = SavepointMetadata(
        number, CheckpointKind.CHECKPOINT, job_id, "job", key, created_ms, "0", ProgramShape("GRAPH")
    )
    put(fs, f"/state/{job_id}/chk-{number}/_metadata", to_bytes(metadata))
    return f"{ROOT}/{job_id}/chk-{number}"


def state(number: int, job_id: JobId = FIRST, status: str = "RUNNING", key: str = "key") -> LatestState:
    return LatestState(key, job_id, "job", status, f"{ROOT}/{job_id}/chk-{number}", number, 2)


def read(fs: MemoryFileSystem, key: str = "key") -> tuple[JobId, str, int]:
    found = master(fs, 0).read(key)
    assert found is not None
    assert not found.path or found.path.endswith(f"/{found.job_id}/chk-{found.checkpoint_id}")
    return found.job_id, found.status, found.checkpoint_id


def test_a_deposed_master_does_not_hide_what_the_next_one_wrote(fs: MemoryFileSystem) -> None:
    """It was frozen between the record of the checkpoint and that of the newest state, and wakes."""
    deposed, leader = master(fs, 1), master(fs, 2)
    deposed.write(state(6))
    leader.write(state(8))
    deposed.write(state(7))
    assert read(fs) == (FIRST, "RUNNING", 8)


def test_a_job_that_was_canceled_does_not_run_again(fs: MemoryFileSystem) -> None:
    deposed, leader = master(fs, 1), master(fs, 2)
    deposed.write(state(6))
    leader.write(state(8, status="CANCELED"))
    leader.write(state(9))
    deposed.write(state(10))
    assert read(fs) == (FIRST, "CANCELED", 8)


def test_a_job_does_not_replace_the_next_one_of_its_key(fs: MemoryFileSystem) -> None:
    """Whatever the epochs are: another cluster, without high availability, begins with 1."""
    first, second = master(fs, 7), master(fs, 1)
    first.begin("key", FIRST)
    second.begin("key", SECOND)
    first.write(state(20))
    second.write(state(1, SECOND))
    first.write(state(21, status="CANCELED"))
    assert read(fs) == (SECOND, "RUNNING", 1)


def test_the_first_key_that_asks_gets_what_an_earlier_version_left(fs: MemoryFileSystem) -> None:
    states = master(fs, 1)
    assert not states.adopt("main", "main@1"), "there is nothing"
    # a job of an earlier version, which a master of this one runs, says nothing of its program
    states.begin("main", FIRST)
    states.write(state(1, key="main"))
    assert states.adopt("main", "main@1") and master(fs, 2).adopt("main", "main@1")
    assert not states.adopt("main", "main@2")
    states.begin("main", SECOND, "digest")
    assert states.adopt("main", "main@1") and not states.adopt("main", "main@2")


def test_a_key_that_somebody_chose_is_not_taken_over(fs: MemoryFileSystem) -> None:
    master(fs, 1).begin("main", FIRST, "digest")
    assert not master(fs, 1).adopt("main", "main@1")


def test_a_program_with_a_key_of_its_own_takes_over_no_other(fs: MemoryFileSystem) -> None:
    """An earlier client may come later, and its job is another one."""
    states = master(fs, 1)
    states.begin("main@1", FIRST, "digest")
    states.begin("main", SECOND)
    assert not states.adopt("main", "main@1")


def test_what_a_job_ran_is_deleted_with_its_place() -> None:
    clock = ManualClock()
    fs = MemoryFileSystem(clock)
    states = master(fs, 1)
    states.begin("key", FIRST, "digest")
    states.begin("key", SECOND, "digest")
    clock.advance(91 * 86_400_000)
    states.write(replace(state(1, SECOND), written_ms=clock.now_ms()))
    names = {path.rpartition("/")[2] for path in fs.paths("/state/job-keys")}
    assert {name for name in names if name.endswith((".job", ".program"))} == {
        "0000000002.job", "0000000002.program",
    }  # fmt: skip
    assert "owner" in names


def test_what_a_job_ran_is_known_from_its_begin_on(fs: MemoryFileSystem) -> None:
    states = master(fs, 1)
    states.begin("key", FIRST, "digest")
    checkpoint(fs, 3)
    found = states.read("key")
    assert found is not None and found.program == "digest"
    checkpoint(fs, 4)
    states.write(replace(state(4), program="digest"))
    found = states.read("key")
    assert found is not None and (found.checkpoint_id, found.program) == (4, "digest")


def test_a_job_that_is_taken_over_late_keeps_its_place(fs: MemoryFileSystem) -> None:
    """It hung while the next one of its key began, and its new master knows nothing of that."""
    master(fs, 1).begin("key", FIRST)
    second = master(fs, 1)
    second.begin("key", SECOND)
    second.write(state(1, SECOND))
    late = master(fs, 2)
    late.begin("key", FIRST)
    late.write(state(20))
    assert read(fs) == (SECOND, "RUNNING", 1)


def test_nothing_is_written_twice_and_nothing_piles_up(fs: MemoryFileSystem) -> None:
    written: list[str] = []
    fs.before = lambda operation, path: written.append(path) if operation in ("write", "create") else None
    for epoch, job_id in ((1, FIRST), (2, FIRST), (1, SECOND)):
        latest = master(fs, epoch)
        latest.begin("key", job_id)
        for number in (1, 2, 2 + epoch):
            latest.write(state(number, job_id))
    assert len(written) == len(set(written))
    assert len(files_of_key(fs)) == 3, "the jobs, and the newest state of the last one"
    latest.write(replace(state(9, SECOND), written_ms=91 * 86_400_000))
    master(fs, 2).write(replace(state(10, SECOND), written_ms=10**15))
    assert len(files_of_key(fs)) == 2, "the last job, and its newest state"


def test_each_key_has_its_own(fs: MemoryFileSystem) -> None:
    # alike in what people see of them
    for number, key in enumerate(("a/b", "a_b", "\u00c4" * 300), 1):
        master(fs, 1).write(state(number, key=key))
    assert [read(fs, key)[2] for key in ("a/b", "a_b", "\u00c4" * 300)] == [1, 2, 3]
    assert all(len(part.encode()) < 255 for path in fs.paths("/state") for part in path.split("/"))


def test_a_checkpoint_counts_although_nothing_was_put_down_about_it(fs: MemoryFileSystem) -> None:
    """The master was killed in between, or the directory could not be written."""
    master(fs, 1).write(state(7))
    checkpoint(fs, 7)
    checkpoint(fs, 8)
    fs.make_directory(f"/state/{FIRST}/chk-9")
    put(fs, f"/state/{FIRST}/chk-10/_metadata", b"")
    assert read(fs) == (FIRST, "RUNNING", 8)


def test_a_checkpoint_that_is_gone_is_not_named_while_there_is_another(fs: MemoryFileSystem) -> None:
    master(fs, 1).write(state(7))
    checkpoint(fs, 6)
    assert read(fs) == (FIRST, "RUNNING", 6)


def test_a_job_that_put_down_nothing_is_lost_all_the_same(fs: MemoryFileSystem) -> None:
    """The job before it ended well, which says nothing about this one."""
    master(fs, 1).write(state(7, status="CANCELED"))
    master(fs, 1).begin("key", SECOND)
    assert read(fs) == (FIRST, "CANCELED", 7)
    checkpoint(fs, 3, SECOND)
    assert read(fs) == (SECOND, "LOST", 3)


@pytest.mark.parametrize("damage", [b"", b"\xff", b"{}"])
def test_files_that_cannot_be_understood(fs: MemoryFileSystem, damage: bytes) -> None:
    latest = master(fs, 1)
    latest.write(state(7))
    for path in files_of_key(fs):
        if path.endswith(".json"):
            fs.write(path, damage)
    assert latest.read("key") is None
    checkpoint(fs, 7)
    assert read(fs) == (FIRST, "LOST", 7)
    for path in files_of_key(fs):
        fs.write(path, damage)
    assert latest.read("key") is None
    assert [left.job_id for left in latest.left("key")] == [FIRST]


def test_what_there_is_of_a_key_by_the_checkpoints_alone(fs: MemoryFileSystem) -> None:
    checkpoint(fs, 3, created_ms=5)
    newest = checkpoint(fs, 4, created_ms=6)
    other = checkpoint(fs, 9, SECOND, created_ms=7)
    checkpoint(fs, 1, JobId("a" * 32), "another key")
    put(fs, "/state/savepoint-ffffff-0/_metadata", b"a savepoint, which is the user's")
    latest = master(fs, 1)
    assert [left.path for left in latest.left("key")] == [other, newest]
    assert latest.has(newest) and latest.has(f"{newest}/_metadata")
    assert not latest.has(f"{ROOT}/{FIRST}/chk-5")


def statuses(fs: MemoryFileSystem) -> dict[JobId, str]:
    return {left.job_id: left.status for left in master(fs, 1).left("key")}


def test_how_a_job_ended_is_told_by_its_marker(fs: MemoryFileSystem) -> None:
    jobs = [JobId(digit * 32) for digit in "12345678"]
    names = ["owner.held", "owner.free", "owner.free", "owner.free", f"owner.claimed-{FIRST}", "sources"]
    contents = [b"CANCELED", b"CANCELED", b"FAILED", b"", b"FINISHED", b""]
    for job_id, name, content in zip(jobs, names, contents):
        checkpoint(fs, 1, job_id)
        put(fs, f"/state/{job_id}/{name}", content)
    expected = ["LOST", "CANCELED", "FAILED", "LOST", "LOST", "UNMARKED"]
    assert statuses(fs) == dict(zip(jobs, expected))


def test_how_a_job_ended_counts_also_when_nothing_was_put_down_about_its_state(fs: MemoryFileSystem) -> None:
    master(fs, 1).begin("key", FIRST)
    checkpoint(fs, 3)
    put(fs, f"/state/{FIRST}/owner.free", b"CANCELED")
    assert read(fs) == (FIRST, "CANCELED", 3)


def test_an_end_that_was_not_put_down_is_told_by_the_marker(fs: MemoryFileSystem) -> None:
    master(fs, 1).write(state(3))
    checkpoint(fs, 3)
    put(fs, f"/state/{FIRST}/owner.free", b"CANCELED")
    assert read(fs) == (FIRST, "CANCELED", 3)
    # it began again
    fs.rename(f"/state/{FIRST}/owner.free", f"/state/{FIRST}/owner.held")
    assert read(fs) == (FIRST, "RUNNING", 3)


def test_a_job_without_a_marker_is_of_an_earlier_version_unless_something_else_is_lost(
    fs: MemoryFileSystem,
) -> None:
    checkpoint(fs, 3)
    master(fs, 1).begin("key", SECOND)
    assert statuses(fs) == {FIRST: "UNMARKED"}
    # the driver of this one was started by an earlier version
    master(fs, 1).begin("key", FIRST)
    assert statuses(fs) == {FIRST: "LOST"}


@pytest.mark.parametrize("file", ["{}.json", "{}/0000000007-0000000000000000001-0-0000000000000000003.json"])
def test_a_job_without_a_marker_is_lost_if_the_records_of_its_key_are_damaged(
    file: str, fs: MemoryFileSystem
) -> None:
    checkpoint(fs, 3)
    master(fs, 1).begin("key", SECOND)
    directory = files_of_key(fs)[0].rpartition("/")[0]
    fs.write(file.format(directory), b"")
    assert master(fs, 1).read("key") is None and statuses(fs) == {FIRST: "LOST"}


def test_a_job_without_a_marker_is_lost_if_it_is_not_known_which_jobs_began(fs: MemoryFileSystem) -> None:
    checkpoint(fs, 3)
    master(fs, 1).begin("key", SECOND)
    fs.write(files_of_key(fs)[0], b"")
    assert statuses(fs) == {FIRST: "LOST"}


def test_directories_are_read_several_at_a_time(fs: MemoryFileSystem) -> None:
    jobs = [JobId(digit * 32) for digit in "1234"]
    for job_id in jobs:
        checkpoint(fs, 1, job_id)
    together = threading.Barrier(len(jobs), timeout=PATIENCE.thread_s)

    def before(operation: str, path: str) -> None:
        if operation == "read":
            together.wait()

    fs.before = before
    assert len(master(fs, 1).left("key")) == len(jobs)


def test_a_failure_to_read_one_directory_is_told(fs: MemoryFileSystem) -> None:
    """What cannot be read is not nothing."""
    checkpoint(fs, 1, FIRST)
    checkpoint(fs, 1, SECOND)

    def before(operation: str, path: str) -> None:
        if operation == "read" and SECOND in path:
            raise StorageUnavailable("safe mode")

    fs.before = before
    with pytest.raises(StorageUnavailable):
        master(fs, 1).left("key")


def test_markers_of_which_nobody_needs_to_know_any_more_go() -> None:
    clock = ManualClock()
    fs = MemoryFileSystem(clock)
    kept, free, claimed = (JobId(digit * 32) for digit in "123")
    put(fs, f"/state/{claimed}/owner.claimed-{FIRST}", b"")
    put(fs, f"/state/{free}/owner.free", b"FAILED")
    put(fs, f"/state/{kept}/owner.free", b"FAILED")
    put(fs, f"/state/{kept}/query-q/offsets/0", b"")
    put(fs, f"/state/{FIRST}/owner.held", b"")

    def left() -> set[str]:
        master(fs, 1).begin(f"key {clock.now_ms()}", SECOND)
        assert master(fs, 1).left("key") == []
        return {path.split("/")[2] for path in fs.paths("/state")} - {"job-keys"}

    clock.advance(90 * 86_400_000)
    assert left() == {kept, free, claimed, FIRST}
    clock.advance(1)

    def refuse(operation: str, path: str) -> None:
        if operation == "delete":
            raise StorageDenied("permission denied")

    fs.before = refuse
    assert left() == {kept, free, claimed, FIRST}
    fs.before = lambda operation, path: None
    assert left() == {kept, FIRST}


def test_a_file_of_an_earlier_version_is_read_until_there_is_a_newer_one(fs: MemoryFileSystem) -> None:
    latest = master(fs, 1)
    latest.write(state(7))
    directory = files_of_key(fs)[0].rpartition("/")[0]
    fs.delete(directory)
    fs.write(f"{directory}.json", to_json(state(5, SECOND, "FAILED")).encode())
    assert read(fs) == (SECOND, "FAILED", 5)
    master(fs, 1).write(state(8))
    assert read(fs) == (FIRST, "RUNNING", 8)
    assert not any(path == f"{directory}.json" for path in fs.paths("/state"))


def test_a_state_may_be_replaced_while_it_is_read(fs: MemoryFileSystem) -> None:
    latest = master(fs, 1)
    latest.write(state(7))

    def before(operation: str, path: str) -> None:
        if operation == "read" and path.endswith("7.json"):
            fs.before = lambda operation, path: None
            latest.write(state(8))

    fs.before = before
    assert read(fs) == (FIRST, "RUNNING", 8)


def test_what_half_written_files_leave_goes(fs: MemoryFileSystem) -> None:
    latest = master(fs, 1)
    latest.begin("key", FIRST)
    directory = files_of_key(fs)[0].rpartition("/")[0]
    fs.write(f"{directory}/.7.json.1d7c.tmp", b"{")
    latest.write(replace(state(7), written_ms=10**9))
    assert not any(path.endswith(".tmp") for path in fs.paths("/state"))
