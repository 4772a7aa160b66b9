"""Whose a job's checkpoint directory is."""

from __future__ import annotations

import pytest

from tests.ha.stores.test_latest_states import FIRST, ROOT, SECOND, checkpoint, master, put, state
from yarnflow.core.files import FileSystem
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.states import JobStatus
from yarnflow.errors import FileMissing, StateInUse
from yarnflow.ha.stores.checkpoint_files import CheckpointFiles
from yarnflow.ha.stores.state_owner import FileStateOwner
from yarnflow.testing.file_system import MemoryFileSystem

THIRD = JobId("3" * 32)


class World:
    """A file system, and the leases of a cluster."""

    def __init__(self) -> None:
        self.fs = MemoryFileSystem()
        self.holders: dict[JobId, DriverLeaseInfo] = {}

    def fs_of(self, uri: str) -> tuple[FileSystem, str]:
        return self.fs, uri.removeprefix("hdfs://memory:8020")

    def owner(self, job_id: JobId) -> FileStateOwner:
        """As one driver of a job has it."""
        return FileStateOwner(self.fs_of, f"{ROOT}/{job_id}/", job_id, self.holders.get)

    def run(self, job_id: JobId = FIRST, number: int = 4) -> str:
        """A job begins and takes a checkpoint."""
        self.owner(job_id).hold()
        return checkpoint(self.fs, number, job_id)

    def end(self, job_id: JobId = FIRST) -> None:
        CheckpointFiles(self.fs_of, f"{ROOT}/{job_id}").release(JobStatus.CANCELED)

    def markers(self, job_id: JobId = FIRST) -> list[str]:
        paths = self.fs.paths(f"/state/{job_id}")
        return [path.rpartition("/")[2] for path in paths if "/owner." in path]


@pytest.fixture
def world() -> World:
    return World()


def test_the_state_of_a_job_that_runs_cannot_be_claimed(world: World) -> None:
    """Its directories would be moved away under its driver."""
    path = world.run()
    before = world.fs.paths("/state")
    for _ in range(2):
        with pytest.raises(StateInUse, match="may still run.*NO_CLAIM"):
            world.owner(SECOND).claim(path, "")
    assert world.fs.paths("/state") == before
    world.owner(FIRST).hold()


def test_the_state_of_a_job_that_has_ended_goes_to_one_claimer(world: World) -> None:
    path = world.run()
    world.end()
    world.end()
    world.owner(SECOND).claim(f"{path}/_metadata", "")
    world.owner(SECOND).claim(path, "")  # its next driver, before all is in place
    with pytest.raises(StateInUse, match=f"job {SECOND} has claimed it"):
        world.owner(THIRD).claim(path, "")
    assert world.markers() == [f"owner.claimed-{SECOND}"]


def test_a_driver_that_comes_back_to_a_claimed_directory_writes_nothing(world: World) -> None:
    path = world.run()
    world.end()
    world.owner(SECOND).claim(path, "")
    with pytest.raises(StateInUse, match="cannot go on"):
        world.owner(FIRST).hold()
    assert world.markers() == [f"owner.claimed-{SECOND}"]


def test_the_marker_of_a_job_that_has_ended_says_how(world: World) -> None:
    world.run()
    world.end()
    assert world.fs.read(f"/state/{FIRST}/owner.free") == b"CANCELED\n"


def test_a_job_that_begins_again_takes_its_marker_back(world: World) -> None:
    path = world.run()
    world.end()
    world.owner(FIRST).hold()
    with pytest.raises(StateInUse):
        world.owner(SECOND).claim(path, "")


def test_one_of_two_that_claim_at_the_same_time_gets_it(world: World) -> None:
    path = world.run()
    world.end()

    def other_first(operation: str, _path: str) -> None:
        if operation == "rename":
            world.fs.before = lambda operation, path: None
            world.owner(THIRD).claim(path, "")

    world.fs.before = other_first
    with pytest.raises(StateInUse, match="is claiming it"):
        world.owner(SECOND).claim(path, "")
    assert world.markers() == [f"owner.claimed-{THIRD}"]


def test_a_driver_and_a_claimer_at_the_same_time(world: World) -> None:
    path = world.run()
    world.end()

    def claimed(operation: str, _path: str) -> None:
        if operation == "rename":
            world.fs.before = lambda operation, path: None
            world.owner(SECOND).claim(path, "")

    world.fs.before = claimed
    with pytest.raises(FileMissing):
        world.owner(FIRST).hold()
    with pytest.raises(StateInUse):
        world.owner(FIRST).hold()
    assert world.markers() == [f"owner.claimed-{SECOND}"]


def test_a_driver_that_has_the_lease_is_believed_whatever_the_markers_say(world: World) -> None:
    path = world.run()
    world.end()
    world.holders[FIRST] = DriverLeaseInfo(FIRST, DriverId("d"), "", "h", 1, 1)
    with pytest.raises(StateInUse, match="a driver runs job"):
        world.owner(SECOND).claim(path, "")


@pytest.mark.parametrize(("status", "free"), [("RUNNING", False), ("FAILED", True), ("CANCELED", True)])
def test_of_a_job_without_a_marker_its_key_says_whether_it_runs(
    status: str, free: bool, world: World
) -> None:
    """A job that an earlier version ran has none."""
    path = checkpoint(world.fs, 4)
    master(world.fs, 1).write(state(4, status=status))
    if free:
        world.owner(SECOND).claim(path, "")
    else:
        with pytest.raises(StateInUse, match="RUNNING when it last recorded"):
            world.owner(SECOND).claim(path, "")
    assert world.markers() == [f"owner.claimed-{SECOND}"] * free


def test_what_needs_no_claim(world: World) -> None:
    world.owner(FIRST).claim(f"{ROOT}/savepoint-ffffff-000000000000", "")
    world.owner(FIRST).claim(f"{ROOT}/{FIRST}/chk-4", "")
    world.owner(FIRST).claim(f"{ROOT}/{SECOND}/chk-4", "")  # nothing is there: whoever restores says so
    assert not world.fs.paths("/state")


def test_a_claimer_that_does_not_start_gives_the_state_back(world: World) -> None:
    path = world.run()
    world.end()
    world.owner(SECOND).claim(path, "")
    world.owner(SECOND).give_back(f"{path}/_metadata")
    assert world.markers() == ["owner.free"]
    world.owner(THIRD).claim(path, "")
    world.owner(SECOND).give_back(path)  # which is not its any more
    assert world.markers() == [f"owner.claimed-{THIRD}"]


def test_a_claimer_that_has_the_state_keeps_it(world: World) -> None:
    path = world.run()
    world.end()
    world.owner(SECOND).hold()
    world.owner(SECOND).claim(path, "")
    put(world.fs, f"/state/{SECOND}/restored.json", b"{}")
    world.owner(SECOND).give_back(path)
    world.end(SECOND)
    with pytest.raises(StateInUse, match=f"job {SECOND} has claimed it"):
        world.owner(THIRD).claim(path, "")


def test_the_claim_of_a_job_that_ended_and_took_nothing_is_void(world: World) -> None:
    """Its driver was lost before it could give the state back."""
    path = world.run()
    world.end()
    world.owner(SECOND).hold()
    world.owner(SECOND).claim(path, "")
    with pytest.raises(StateInUse, match=f"job {SECOND} has claimed it"):
        world.owner(THIRD).claim(path, "")
    world.end(SECOND)
    world.owner(THIRD).claim(path, "")
    assert world.markers() == [f"owner.claimed-{THIRD}"]


class Restarted(World):
    """The first job of a key was lost with its cluster; another cluster runs the second one."""

    def __init__(self) -> None:
        super().__init__()
        self.path = self.run()
        master(self.fs, 1).write(state(4, status="RUNNING"))
        master(self.fs, 1).begin("key", SECOND)

    def claim(self, job_id: JobId = SECOND, key: str = "key") -> None:
        self.owner(job_id).claim(self.path, key)


def test_the_next_job_of_a_key_claims_the_state_of_a_lost_one() -> None:
    world = Restarted()
    world.claim()
    world.claim()
    assert world.markers() == [f"owner.claimed-{SECOND}"]
    with pytest.raises(StateInUse, match="cannot go on"):
        world.owner(FIRST).hold()
    world.owner(SECOND).give_back(world.path)
    assert world.markers() == ["owner.free"]
    world.claim()


def test_but_no_other_job_does() -> None:
    world = Restarted()
    with pytest.raises(StateInUse, match="may still run"):
        world.claim(key="hourly")
    with pytest.raises(StateInUse, match="may still run"):
        world.claim(THIRD)  # its master does not know that it has the key
    world.holders[FIRST] = DriverLeaseInfo(FIRST, DriverId("d"), "", "h", 1, 1)
    with pytest.raises(StateInUse, match="a driver runs job"):
        world.claim()
    assert world.markers() == ["owner.held"]


def test_a_job_that_was_followed_by_another_does_not_take_its_state() -> None:
    world = Restarted()
    world.owner(SECOND).hold()
    path = checkpoint(world.fs, 1, SECOND)
    with pytest.raises(StateInUse, match="may still run"):
        world.owner(FIRST).claim(path, "key")
