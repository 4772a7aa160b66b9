"""The stores at every point where an answer can be lost, a master can die, or can have been deposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import pytest

from tests.ha.conftest import OpenSession, kazoo_of, raise_epoch
from tests.ha.fake_kazoo import Ensemble, Result, Watch
from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
)
from yarnflow.core.files import FileSystem
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import Fence, JobDetails, JobOverview, JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import LeadershipLost
from yarnflow.ha.client import ZooKeeper
from yarnflow.ha.services import ZooKeeperJobStores
from yarnflow.testing.file_system import MemoryFileSystem

JOB = JobId("a" * 32)
OTHER = JobId("b" * 32)
DIRECTORY = "hdfs://memory:8020/checkpoints/" + JOB


class Died(BaseException):
    """The master's process ends here."""


@dataclass
class Master:
    """A leader with a hand on what happens to what it asks for."""

    zookeeper: ZooKeeper
    fs: MemoryFileSystem
    fence: Fence

    def __post_init__(self) -> None:
        self.stores = ZooKeeperJobStores(
            self.zookeeper, self._fs_of, "hdfs://memory:8020/ha", lambda: self.fence
        )
        self.checkpoints = self.stores.checkpoints(JOB, DIRECTORY)

    def _fs_of(self, uri: str) -> tuple[FileSystem, str]:
        return self.fs, uri.removeprefix("hdfs://memory:8020")

    def at(self, number: int, do: Callable[[], str], files: bool = False) -> list[int]:
        """Call ``do`` before the request of that number; the answer counts them.

        Parameters
        ----------
        do : callable
            Says what becomes of the request's answer, as ``FakeKazooClient.before``.
        files : bool
            Count operations of the file system as well.
        """
        seen = [0]

        def before(*_operation: str) -> str:
            seen[0] += 1
            return do() if seen[0] == number + 1 else ""

        kazoo_of(self.zookeeper).before = before
        if files:
            def before_files(operation: str, path: str) -> None:
                before(operation, path)

            self.fs.before = before_files
        return seen

    def undisturbed(self) -> None:
        """Let everything go its way again."""
        kazoo_of(self.zookeeper).before = lambda: ""
        self.fs.before = lambda operation, path: None


def checkpoint(number: int) -> CheckpointInfo:
    return CheckpointInfo(
        number, CheckpointKind.CHECKPOINT, CheckpointStatus.COMPLETED, CheckpointTrigger.INTERVAL, 1
    )


def submission(job_id: JobId) -> JobSubmission:
    return JobSubmission(job_id, "job", ProgramKind.SCRIPT, "{}", {})


def ended(job_id: JobId) -> JobDetails:
    return JobDetails(JobOverview(job_id, "job", JobStatus.FINISHED, 1, 2), 3)


def prepared(session: OpenSession) -> Master:
    """The leader of a cluster of its own with a job that has two checkpoints, and what belongs to it."""
    zookeeper = session(Ensemble())
    master = Master(zookeeper, MemoryFileSystem(), Fence("leader", raise_epoch(zookeeper)))
    master.stores.job_graphs.put(submission(JOB))
    master.stores.job_keys.claim("key", JOB)
    for _ in range(2):
        master.checkpoints.add(checkpoint(master.checkpoints.next_id()), b"metadata")
    return master


def successor(master: Master, session: OpenSession) -> Master:
    """The master that leads next."""
    zookeeper = session(kazoo_of(master.zookeeper).ensemble)
    return Master(zookeeper, master.fs, Fence("next", raise_epoch(zookeeper)))


#: each change a leader makes
CHANGES: dict[str, Callable[[Master], object]] = {
    "put a graph": lambda m: m.stores.job_graphs.put(submission(OTHER)),
    "replace a graph": lambda m: m.stores.job_graphs.replace(submission(JOB)),
    "remove a graph": lambda m: m.stores.job_graphs.remove(JOB),
    "mark a job canceled": lambda m: m.stores.job_graphs.mark_canceled(JOB),
    "put a result": lambda m: m.stores.results.put(ended(JOB)),
    "claim a key": lambda m: m.stores.job_keys.claim("another", OTHER),
    "release a key": lambda m: m.stores.job_keys.release("key", JOB),
    "count": lambda m: m.checkpoints.next_id(),
    "add a checkpoint": lambda m: m.checkpoints.add(checkpoint(3), b"metadata"),
    "remove a checkpoint": lambda m: m.checkpoints.remove(1),
    "close a job": lambda m: m.checkpoints.close_job(JobStatus.FAILED),
    "discard a job": lambda m: m.checkpoints.discard_all(),
    "revoke a driver": lambda m: m.stores.leases.revoke(JOB, DriverId("driver")),
}


#: those that consist of several changes, each of which is sound
MANY_CHANGES = ("remove a graph", "count", "close a job", "discard a job")


def body_of(master: Master) -> str:
    """The file of the job's graph."""
    pointer = master.zookeeper.get(master.zookeeper.path("jobgraphs", JOB))
    assert pointer is not None
    return pointer[0].decode().removeprefix("hdfs://memory:8020")


def test_a_graph_that_others_have_changed_is_not_run(session: OpenSession) -> None:
    master = prepared(session)
    content = master.fs.read(body_of(master))
    # what else is of the right form, as the one who wrote it would take care of
    master.fs.write(body_of(master), to_json(submission(OTHER)).encode())
    assert master.stores.job_graphs.get(JOB) is None
    master.fs.write(body_of(master), content)
    assert master.stores.job_graphs.get(JOB) == submission(JOB)


def test_a_graph_of_an_earlier_version_has_no_digest(session: OpenSession) -> None:
    master = prepared(session)
    content = master.fs.read(body_of(master))
    node, old = master.zookeeper.path("jobgraphs", JOB), f"{body_of(master).rpartition('/')[0]}/{JOB}-1.json"
    master.fs.write(old, content)
    master.zookeeper.commit("point elsewhere", master.fence.epoch, lambda t: t.set_data(node, old.encode()))
    assert master.stores.job_graphs.get(JOB) == submission(JOB)


def state(master: Master) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """All that can be found, but for the number of changes of each node."""
    nodes = kazoo_of(master.zookeeper).ensemble.nodes
    contents = {path: content for path, (content, _stat) in nodes.items()}
    statuses = {path: master.fs.status(path) for path in master.fs.paths()}
    files = {path: master.fs.read(path) for path, at in statuses.items() if at and not at.is_directory}
    return contents, files


def each_point(
    session: OpenSession, change: str, do: Callable[[Master], str], files: bool = False
) -> Iterator[Master]:
    """A master for each point of a change at which ``do`` happens, after it has."""
    for number in count():
        master = prepared(session)
        seen = master.at(number, partial(do, master), files)
        with suppress(Died, LeadershipLost):
            CHANGES[change](master)
        master.undisturbed()
        if seen[0] <= number:
            break
        yield master
    assert number > 1


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("fate", ["done", "undone"])
def test_lost_answer_makes_no_difference(change: str, fate: str, session: OpenSession) -> None:
    smooth = prepared(session)
    CHANGES[change](smooth)
    for master in each_point(session, change, lambda _master: fate):
        if change == "count":
            # a number may be left out
            assert master.checkpoints.next_id() in (4, 5)
        else:
            assert state(master) == state(smooth)


@pytest.mark.parametrize("change", CHANGES)
def test_master_that_dies_leaves_nothing_that_misleads_the_next(change: str, session: OpenSession) -> None:
    def die(_master: Master) -> str:
        raise Died

    smooth = prepared(session)
    CHANGES[change](smooth)
    for master in each_point(session, change, die, files=True):
        heir = successor(master, session)
        assert_sound(heir)
        # it does what was left half-done
        CHANGES[change](heir)
        assert_sound(heir)
        if change != "count":
            assert found_by(heir) == found_by(smooth)


@pytest.mark.parametrize("change", CHANGES)
def test_master_that_is_deposed_meanwhile_changes_all_or_nothing(change: str, session: OpenSession) -> None:
    heirs: list[Master] = []

    def depose(master: Master) -> str:
        heirs.append(successor(master, session))
        return ""

    untouched, smooth = prepared(session), prepared(session)
    CHANGES[change](smooth)
    for _master in each_point(session, change, depose, files=True):
        assert_sound(heirs[-1])
        if change not in MANY_CHANGES:
            assert found_by(heirs[-1]) in (found_by(untouched), found_by(smooth))


@pytest.mark.parametrize("change", CHANGES)
def test_deposed_master_is_told(change: str, session: OpenSession) -> None:
    master = prepared(session)
    heir = successor(master, session)
    before = found_by(heir), state(heir)[1]
    with pytest.raises(LeadershipLost):
        CHANGES[change](master)
    assert (found_by(heir), state(heir)[1]) == before


def test_numbers_rise_over_masters_and_lost_answers(session: OpenSession) -> None:
    master = prepared(session)
    numbers = [master.checkpoints.next_id()]
    for number in range(4):
        heir = successor(master, session)
        heir.at(number, lambda: "done")
        numbers.append(heir.checkpoints.next_id())
        heir.undisturbed()
    assert numbers == sorted(set(numbers))


def test_pointers_are_read_together(session: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A takeover of jobs with many records must not wait for ZooKeeper once for each."""
    master = prepared(session)
    for _ in range(20):
        master.checkpoints.add(checkpoint(master.checkpoints.next_id()), b"metadata")
    happened: list[str] = []
    client = kazoo_of(master.zookeeper)
    ask = client.get_async

    class Noted(Result):
        def wait(self, timeout: float) -> bool:
            happened.append("wait")
            return super().wait(timeout)

    def get_async(path: str, watch: Watch | None = None) -> Result:
        happened.append("ask")
        answer = ask(path, watch)
        return Noted(answer.get())

    monkeypatch.setattr(client, "get_async", get_async)
    assert len(master.checkpoints.all()) == 22
    assert happened.index("wait") == 22, "it waited for an answer before all were asked for"


@pytest.mark.parametrize("fate", ["done", "undone"])
def test_a_pointer_whose_answer_is_lost_is_read_again(fate: str, session: OpenSession) -> None:
    for number in count():
        master = prepared(session)
        seen = master.at(number, lambda: fate)
        assert [info.checkpoint_id for info in master.checkpoints.all()] == [1, 2]
        if seen[0] <= number:
            break
    assert number > 2


def test_records_tell_where_a_job_has_its_checkpoints(session: OpenSession) -> None:
    """Its options, which say so, may be lost."""
    master = prepared(session)
    directory = master.checkpoints.all()[0].external_path.rpartition("/")[0]
    assert master.stores.checkpoint_directory(JOB) == directory
    assert master.stores.checkpoint_directory(OTHER) == ""


def test_numbers_are_above_those_of_the_directory(session: OpenSession) -> None:
    master = prepared(session)
    master.checkpoints.close_job(JobStatus.FAILED)
    assert master.checkpoints.next_id() == 3


def test_zombie_does_not_write_over_its_successors_words(session: OpenSession) -> None:
    master = prepared(session)
    heirs: list[Master] = []

    def wakes(operation: str, path: str) -> None:
        if operation == "write" and not heirs:
            heirs.append(successor(master, session))
            heirs[0].stores.results.put(ended(JOB))

    master.fs.before = wakes
    with pytest.raises(LeadershipLost):
        master.stores.results.put(replace(ended(JOB), restarts=7))
    assert heirs[0].stores.results.get(JOB) == ended(JOB)
    assert len(list(master.fs.paths("/ha/cluster/results"))) == 1


def found_by(master: Master) -> object:
    """What the stores answer."""
    stores = master.stores
    return (
        {job_id: stores.job_graphs.get(job_id) for job_id in stores.job_graphs.job_ids()},
        [job_id for job_id in (JOB, OTHER) if stores.job_graphs.is_canceled(job_id)],
        list(stores.results.all()),
        [info.checkpoint_id for info in master.checkpoints.all()],
        sorted(master.zookeeper.children(master.zookeeper.path("job-keys"))),
        sorted(master.zookeeper.children(master.zookeeper.path("revoked"))),
    )


def assert_sound(master: Master) -> None:
    """Whatever is pointed to can be read."""
    zookeeper = master.zookeeper
    for kind in ("jobgraphs", "results", f"jobs/{JOB}/checkpoints"):
        for name in zookeeper.children(zookeeper.path(kind)):
            pointer = zookeeper.get(f"{zookeeper.path(kind)}/{name}")
            assert pointer is not None
            master.fs.read(pointer[0].decode().removeprefix("hdfs://memory:8020"))
            if "checkpoints" in kind:
                assert master.fs.read(f"/checkpoints/{JOB}/chk-{int(name)}/_metadata") == b"metadata"


def test_what_zookeeper_has_forgotten_is_seen_by_its_document(session: OpenSession) -> None:
    master = prepared(session)
    zookeeper = session(Ensemble())
    heir = Master(zookeeper, master.fs, Fence("next", raise_epoch(zookeeper)))
    assert list(heir.stores.job_graphs.job_ids()) == []
    assert list(heir.stores.job_graphs.forgotten()) == [JOB]
    heir.stores.job_graphs.put(submission(JOB))
    assert list(heir.stores.job_graphs.forgotten()) == []


def test_numbers_are_above_those_of_the_directory_of_a_restored_zookeeper(session: OpenSession) -> None:
    master = prepared(session)
    for number in (7, 9):
        master.fs.make_directory(f"/checkpoints/{JOB}/chk-{number}")
    assert successor(master, session).stores.checkpoints(JOB, DIRECTORY).next_id() == 10
