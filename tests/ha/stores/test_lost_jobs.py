"""Jobs that were lost before their first checkpoint."""

from __future__ import annotations

import pytest

from tests.ha.stores.test_latest_states import FIRST, ROOT, SECOND, checkpoint, master, put, read, state
from yarnflow.core.checkpoint.manifest import SavepointMetadata, from_bytes, to_bytes
from yarnflow.core.checkpoint.messages import CheckpointKind, QueryPosition, RestoredState
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.files import FileSystems
from yarnflow.core.ha.ports import LostJob
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import to_json
from yarnflow.core.states import JobStatus
from yarnflow.ha.stores.checkpoint_files import CheckpointFiles
from yarnflow.ha.stores.state_owner import FileStateOwner
from yarnflow.testing.file_system import MemoryFileSystem


@pytest.fixture
def fs() -> MemoryFileSystem:
    return MemoryFileSystem()


def fs_of(fs: MemoryFileSystem) -> FileSystems:
    return lambda uri: (fs, uri.removeprefix("hdfs://memory:8020"))


def query(fs: MemoryFileSystem, where: str, offsets: int, commits: int, name: str = "counts") -> None:
    """A query that has begun and committed batches."""
    for log, count in (("offsets", offsets), ("commits", commits)):
        fs.make_directory(f"/state/{where}/query-{name}/{log}")
        for number in range(count):
            fs.write(f"/state/{where}/query-{name}/{log}/{number}", b"v1")
            fs.write(f"/state/{where}/query-{name}/{log}/.{number}.crc", b"")


def begun(
    fs: MemoryFileSystem, job_id: JobId = FIRST, marker: str = "owner.held", content: bytes = b"{}"
) -> None:
    """A job whose program has started."""
    master(fs, 1).begin("key", job_id)
    put(fs, f"/state/{job_id}/{marker}", content)


def manifest(job_id: JobId = FIRST, kind: str = "GRAPH") -> bytes:
    shape = ProgramShape(kind)
    return to_bytes(SavepointMetadata(1, CheckpointKind.CHECKPOINT, job_id, "job", "key", 5, "0", shape))


def restored(fs: MemoryFileSystem, path: str, job_id: JobId = FIRST) -> None:
    state = RestoredState(path, CheckpointKind.CHECKPOINT, 4, 1, "NO_CLAIM")
    put(fs, f"/state/{job_id}/restored.json", to_json(state).encode())


def lost(fs: MemoryFileSystem, job_id: JobId = SECOND) -> LostJob | None:
    latest = master(fs, 1)
    latest.begin("key", job_id)
    return latest.lost("key", job_id)


def test_a_job_that_was_lost_before_its_first_checkpoint_and_has_begun_a_batch(fs: MemoryFileSystem) -> None:
    begun(fs)
    query(fs, FIRST, offsets=3, commits=2)
    query(fs, FIRST, offsets=0, commits=0, name="idle")
    assert lost(fs) == LostJob(FIRST, f"{ROOT}/{FIRST}", (("counts", 2),))
    assert master(fs, 1).read("key") is None


def test_a_job_that_was_lost_when_its_only_batch_was_written(fs: MemoryFileSystem) -> None:
    begun(fs)
    put(fs, f"/state/{FIRST}/query-counts/done", b"")
    assert lost(fs) == LostJob(FIRST, f"{ROOT}/{FIRST}", (("counts", 0),))


def test_a_job_that_wrote_nothing_leaves_what_the_one_before_it_left(fs: MemoryFileSystem) -> None:
    third = JobId("3" * 32)
    begun(fs)
    query(fs, FIRST, 1, 0)
    begun(fs, third)
    found = lost(fs)
    assert found is not None and found.job_id == FIRST
    # the later one has, and has a checkpoint
    query(fs, third, 4, 4)
    checkpoint(fs, 1, third)
    assert lost(fs) is None and read(fs) == (third, "LOST", 1)


@pytest.mark.parametrize("marker", ["owner.free", f"owner.claimed-{'5' * 32}"])
def test_a_job_that_has_ended_or_whose_state_is_anothers_is_not_lost(
    marker: str, fs: MemoryFileSystem
) -> None:
    begun(fs, marker=marker)
    query(fs, FIRST, 3, 3)
    assert lost(fs) is None
    fs.write(f"/state/{FIRST}/{marker}", b"CANCELED\n" + manifest())
    assert lost(fs) is None


def test_only_jobs_that_began_before_a_job_and_after_the_newest_record_are_lost(fs: MemoryFileSystem) -> None:
    latest = master(fs, 1)
    latest.begin("key", SECOND)
    begun(fs)
    query(fs, FIRST, 3, 3)
    assert latest.lost("key", SECOND) is None
    third, fourth = JobId("3" * 32), JobId("4" * 32)
    found = lost(fs, third)
    assert found is not None and found.job_id == FIRST
    latest.write(state(1, third, "FINISHED"))
    assert lost(fs, fourth) is None


def test_a_job_that_goes_on_has_decided_before(fs: MemoryFileSystem) -> None:
    begun(fs)
    query(fs, FIRST, 3, 3)
    put(fs, f"/state/{SECOND}/owner.held", b"")
    assert lost(fs) is None


def test_a_lost_job_that_did_not_get_further_than_the_state_it_had(fs: MemoryFileSystem) -> None:
    third = JobId("3" * 32)
    path = checkpoint(fs, 4, third)
    query(fs, third, offsets=6, commits=5)
    begun(fs)
    query(fs, FIRST, offsets=6, commits=5)
    restored(fs, path)
    found = lost(fs)
    assert found is not None and found.path == path
    # the batch that was begun is committed
    query(fs, FIRST, offsets=6, commits=6)
    assert lost(fs) == LostJob(FIRST, f"{ROOT}/{FIRST}", (("counts", 5),))


@pytest.mark.parametrize("path", [f"{ROOT}/{'3' * 32}/chk-4", "s3a://bucket/chk-4", ""])
def test_a_lost_job_whose_state_is_nowhere_else(path: str, fs: MemoryFileSystem) -> None:
    begun(fs)
    query(fs, FIRST, 6, 6)
    restored(fs, path)
    assert lost(fs) == LostJob(FIRST, f"{ROOT}/{FIRST}", (("counts", 5),))
    fs.write(f"/state/{FIRST}/restored.json", b"{")
    assert lost(fs) == LostJob(FIRST, f"{ROOT}/{FIRST}", (("counts", 5),))


def test_a_job_whose_program_has_not_started_has_lost_nothing(fs: MemoryFileSystem) -> None:
    """Part of its state is in its place; all of it is where it was."""
    begun(fs, content=b"")
    query(fs, FIRST, 6, 5)
    assert lost(fs) is None
    path = checkpoint(fs, 4, JobId("3" * 32))
    query(fs, "3" * 32, 6, 5)
    restored(fs, path)
    found = lost(fs)
    assert found is not None and found.path == path


def test_a_job_whose_state_was_claimed_and_whose_program_has_not_started(fs: MemoryFileSystem) -> None:
    begun(fs, content=b"")
    query(fs, FIRST, 6, 5)
    restored(fs, f"{ROOT}/{'3' * 32}/chk-4")
    assert lost(fs) == LostJob(FIRST, f"{ROOT}/{FIRST}", (("counts", 5),))


def test_a_lost_job_is_given_the_checkpoint_that_it_did_not_come_to(fs: MemoryFileSystem) -> None:
    begun(fs)
    owner = FileStateOwner(fs_of(fs), f"{ROOT}/{FIRST}", FIRST, lambda job_id: None)
    owner.hold()
    owner.describe(manifest())
    assert lost(fs) is None and not fs.paths(f"/state/{FIRST}/chk-1"), "it has begun no batch"
    query(fs, FIRST, offsets=3, commits=2)
    query(fs, FIRST, offsets=0, commits=0, name="idle")
    path = f"{ROOT}/{FIRST}/chk-1"
    assert lost(fs) == LostJob(FIRST, f"{ROOT}/{FIRST}", (("counts", 2),), path)
    written = from_bytes(fs.read(f"/state/{FIRST}/chk-1/_metadata"), path)
    assert written.positions == (QueryPosition("counts", -1, f"{ROOT}/{FIRST}/query-counts"),)
    assert (written.checkpoint_id, written.job_id, written.job_key) == (1, FIRST, "key")
    # as any other from now on
    assert lost(fs) is None and read(fs) == (FIRST, "LOST", 1)


def test_a_checkpoint_that_the_job_takes_meanwhile_is_not_replaced(fs: MemoryFileSystem) -> None:
    begun(fs, content=manifest())
    query(fs, FIRST, 3, 2)

    def before(operation: str, path: str) -> None:
        if operation == "create" and path.endswith("_metadata"):
            fs.write(path, b"its own")

    fs.before = before
    assert lost(fs) is not None
    assert fs.read(f"/state/{FIRST}/chk-1/_metadata") == b"its own"


def test_what_nobody_can_go_on_from_gets_no_checkpoint(fs: MemoryFileSystem) -> None:
    begun(fs, content=manifest(kind="SCRIPT"))
    query(fs, FIRST, 3, 2)
    assert lost(fs) == LostJob(FIRST, f"{ROOT}/{FIRST}", (("counts", 2),))
    fs.write(f"/state/{FIRST}/owner.held", manifest())
    put(fs, f"/state/{FIRST}/query-table/done", b"")
    found = lost(fs)
    assert found is not None and found.path == ""


def test_queries_of_a_script_have_their_own_names(fs: MemoryFileSystem) -> None:
    begun(fs, content=manifest(kind="SCRIPT"))
    put(fs, f"/state/{FIRST}/start-1/offsets/4", b"v1")
    put(fs, f"/state/{FIRST}/sources/0/1", b"")
    assert lost(fs) == LostJob(FIRST, f"{ROOT}/{FIRST}", (("start-1", 4),))


def failed(fs: MemoryFileSystem) -> None:
    CheckpointFiles(fs_of(fs), f"{ROOT}/{FIRST}").release(JobStatus.FAILED)


def test_a_job_that_failed_before_anybody_knew_of_its_commits_is_gone_on_from(fs: MemoryFileSystem) -> None:
    """Else what it has committed would be read again."""
    begun(fs, content=manifest())
    query(fs, FIRST, offsets=2, commits=1)
    failed(fs)
    assert lost(fs) == LostJob(FIRST, f"{ROOT}/{FIRST}", (("counts", 0),), f"{ROOT}/{FIRST}/chk-1")
    assert read(fs) == (FIRST, "FAILED", 1)


def test_a_batch_that_failed_is_nothing_to_go_on_from(fs: MemoryFileSystem) -> None:
    """The next program may be a mended one."""
    begun(fs, content=manifest())
    query(fs, FIRST, offsets=1, commits=0)
    failed(fs)
    assert lost(fs) is None
    path = checkpoint(fs, 4, JobId("3" * 32))
    query(fs, "3" * 32, offsets=5, commits=5)
    query(fs, FIRST, offsets=6, commits=5)
    restored(fs, path)
    found = lost(fs)
    assert found is not None and found.path == path


def test_a_marker_keeps_its_manifest_and_says_how_the_last_run_ended(fs: MemoryFileSystem) -> None:
    begun(fs, content=manifest())
    query(fs, FIRST, 3, 2)
    failed(fs)
    FileStateOwner(fs_of(fs), f"{ROOT}/{FIRST}", FIRST, lambda job_id: None).hold()
    found = lost(fs)
    assert found is not None and found.path == f"{ROOT}/{FIRST}/chk-1"
    failed(fs)
    assert fs.read(f"/state/{FIRST}/owner.free") == b"FAILED\n" + manifest()
