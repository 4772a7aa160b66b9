"""Job keys: who gets one, and that never two live jobs have the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.staging.fakes import application
from tests.staging.interleaving import Interleaving
from yarnflow.core.yarn import ApplicationState
from yarnflow.errors import StorageError, StorageUnavailable
from yarnflow.staging.job_keys import JobKeys, KeyHolder, KeyTaken, liveness
from yarnflow.staging.layout import StagingLayout
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.runtime import ManualClock
from yarnflow.testing.yarn_cluster import FakeYarnCluster

LAYOUT = StagingLayout("/user/ann/.yarnflow")
KEY = "flights/daily"
#: which is not of an earlier version
OWNER = f"{LAYOUT.job_key(KEY)}/owner"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@pytest.fixture
def fs(clock: ManualClock) -> MemoryFileSystem:
    return MemoryFileSystem(clock)


@pytest.fixture
def keys(fs: MemoryFileSystem, clock: ManualClock) -> JobKeys:
    return JobKeys(fs, LAYOUT, clock)


def live(holder: KeyHolder) -> bool:
    return True


def dead(holder: KeyHolder) -> bool:
    return False


def test_a_free_key(keys: JobKeys) -> None:
    assert keys.holder(KEY) is None
    assert keys.take(KEY, "d1", "j1", live) == KeyTaken(1)
    assert keys.holder(KEY) == KeyHolder(KEY, 1, "d1", "j1", 1_000_000)
    assert keys.is_newest(KEY, 1)


def test_the_first_key_that_asks_gets_that_of_an_earlier_version(
    keys: JobKeys, fs: MemoryFileSystem
) -> None:
    assert not keys.adopt("main", "main@1"), "there is no such key"
    keys.take("main", "d1", "j1", live)
    fs.delete(f"{LAYOUT.job_key('main')}/owner")  # as an earlier version leaves it
    assert keys.adopt("main", "main@1") and keys.adopt("main", "main@1")
    assert not keys.adopt("main", "main@2")
    keys.take("main", "d2", "j2", dead)
    assert keys.adopt("main", "main@1") and not keys.adopt("main", "main@2")


def test_a_program_with_a_key_of_its_own_takes_over_no_other(keys: JobKeys, fs: MemoryFileSystem) -> None:
    """An earlier client may come later, and its job is another one."""
    keys.take("main@1", "d1", "j1", live)
    keys.take("main", "d2", "j2", live)
    fs.delete(f"{LAYOUT.job_key('main')}/owner")
    assert not keys.adopt("main", "main@1")


def test_who_attaches_by_a_chosen_key_does_not_own_it(keys: JobKeys, fs: MemoryFileSystem) -> None:
    keys.take("main", "d1", "j1", live)
    fs.delete(f"{LAYOUT.job_key('main')}/owner")  # as an earlier version leaves it
    assert isinstance(keys.take("main", "d2", "j2", live), KeyHolder)
    assert keys.adopt("main", "main@1")


def test_a_key_of_this_version_is_not_adopted(keys: JobKeys) -> None:
    """Somebody chose it."""
    keys.take("main", "d1", "j1", live)
    assert not keys.adopt("main", "main@1")


def test_what_the_holder_runs_is_known(keys: JobKeys) -> None:
    keys.take(KEY, "d1", "j1", live, "digest")
    holder = keys.take(KEY, "d2", "j2", live, "other")
    assert isinstance(holder, KeyHolder) and holder.program == "digest"


def test_a_live_holder_keeps_its_key(keys: JobKeys) -> None:
    keys.take(KEY, "d1", "j1", live)
    assert keys.set_application(KEY, 1, "application_1")
    holder = KeyHolder(KEY, 1, "d1", "j1", 1_000_000, "application_1")
    assert keys.take(KEY, "d2", "j2", live) == holder
    assert keys.holder(KEY) == holder
    assert isinstance(keys.take("another", "d2", "j2", live), KeyTaken)


def test_a_dead_holder_is_succeeded(keys: JobKeys, fs: MemoryFileSystem) -> None:
    keys.take(KEY, "d1", "j1", live)
    keys.set_application(KEY, 1, "application_1")
    assert keys.take(KEY, "d2", "j2", dead) == KeyTaken(2)
    assert not keys.is_newest(KEY, 1)
    # what the first one left is gone
    assert fs.paths(LAYOUT.job_keys) == [LAYOUT.job_key(KEY), LAYOUT.generation(KEY, 2), OWNER]


def test_a_submit_that_was_too_slow_must_not_run(keys: JobKeys) -> None:
    keys.take(KEY, "d1", "j1", live)
    keys.take(KEY, "d2", "j2", dead)
    assert not keys.set_application(KEY, 1, "application_1")
    assert keys.set_application(KEY, 2, "application_2")
    assert keys.take(KEY, "d3", "j3", live) == KeyHolder(KEY, 2, "d2", "j2", 1_000_000, "application_2")


def test_client_and_master_both_bind_the_application(keys: JobKeys) -> None:
    keys.take(KEY, "d1", "j1", live)
    assert keys.set_application(KEY, 1, "application_1")
    assert keys.set_application(KEY, 1, "application_1")
    assert not keys.set_application(KEY, 1, "application_2")


def test_a_key_that_was_given_back_is_free_at_once(keys: JobKeys) -> None:
    keys.take(KEY, "d1", "j1", live)
    keys.release(KEY, 1)
    holder = keys.holder(KEY)
    assert holder is not None and holder.revoked and not holder.application_id
    # nobody is asked whether it lives
    assert keys.take(KEY, "d2", "j2", live) == KeyTaken(2)
    keys.set_application(KEY, 2, "application_2")
    keys.release(KEY, 2)
    assert isinstance(keys.take(KEY, "d3", "j3", live), KeyHolder)


def test_what_a_killed_writer_left_is_deleted_in_time(
    keys: JobKeys, fs: MemoryFileSystem, clock: ManualClock
) -> None:
    keys.take(KEY, "d1", "j1", live)
    temporary = f"{LAYOUT.job_key(KEY)}/.0000000000000000002.f00d.tmp"
    fs.write(temporary, b"")
    keys.take(KEY, "d2", "j2", dead)
    assert fs.status(temporary) is not None
    clock.advance(3_600_001)
    keys.take(KEY, "d3", "j3", dead)
    assert fs.status(temporary) is None


def test_old_records_that_cannot_be_deleted_do_no_harm(keys: JobKeys, fs: MemoryFileSystem) -> None:
    keys.take(KEY, "d1", "j1", live)

    def deny(operation: str, path: str) -> None:
        if operation == "delete":
            raise StorageUnavailable("no answer")

    fs.before = deny
    assert keys.take(KEY, "d2", "j2", dead) == KeyTaken(2)
    assert keys.take(KEY, "d3", "j3", dead) == KeyTaken(3)


def once(fs: MemoryFileSystem, path: str, others: Callable[[], object]) -> None:
    """Let ``others`` act just before ``path`` is created."""

    def before(operation: str, name: str) -> None:
        if (operation, name) == ("create", path):
            fs.before = lambda operation, path: None
            others()

    fs.before = before


def test_the_second_of_two_at_the_same_moment(keys: JobKeys, fs: MemoryFileSystem) -> None:
    once(fs, LAYOUT.generation(KEY, 1), lambda: keys.take(KEY, "d2", "j2", dead))
    found = keys.take(KEY, "d1", "j1", live)
    assert isinstance(found, KeyHolder) and found.deployment_id == "d2"


def test_a_holder_that_gets_its_application_while_it_is_taken_for_dead(
    keys: JobKeys, fs: MemoryFileSystem
) -> None:
    keys.take(KEY, "d1", "j1", live)
    once(
        fs, LAYOUT.generation_application(KEY, 1), lambda: keys.set_application(KEY, 1, "application_1")
    )
    found = keys.take(KEY, "d2", "j2", lambda holder: bool(holder.application_id))
    assert isinstance(found, KeyHolder) and found.application_id == "application_1"


def test_a_client_that_slept_through_generations(keys: JobKeys, fs: MemoryFileSystem) -> None:
    keys.take(KEY, "d1", "j1", live)
    keys.set_application(KEY, 1, "application_1")

    def others() -> None:
        assert keys.take(KEY, "d2", "j2", dead) == KeyTaken(2)
        assert keys.take(KEY, "d3", "j3", dead) == KeyTaken(3)
        # so the second generation can be created once more
        assert fs.status(LAYOUT.generation(KEY, 2)) is None

    once(fs, LAYOUT.generation(KEY, 2), others)
    found = keys.take(KEY, "d4", "j4", lambda holder: holder.generation == 3)
    assert isinstance(found, KeyHolder) and found.deployment_id == "d3"
    assert fs.paths(LAYOUT.job_key(KEY)) == [LAYOUT.generation(KEY, 3), OWNER]


def test_a_record_that_cannot_be_read(keys: JobKeys, fs: MemoryFileSystem) -> None:
    keys.take(KEY, "d1", "j1", live)
    fs.write(LAYOUT.generation(KEY, 1), b"{")
    with pytest.raises(StorageError, match=f"{LAYOUT.generation(KEY, 1)} is no record .* hdfs dfs -rm -r"):
        keys.take(KEY, "d2", "j2", dead)


def test_a_key_nobody_gets(keys: JobKeys, fs: MemoryFileSystem) -> None:
    def always_first(operation: str, path: str) -> None:
        if operation == "create" and not path.endswith(".application"):
            fs.write(path, b'{"deployment_id":"d","job_id":"j","created_ms":1}')

    fs.before = always_first
    with pytest.raises(StorageError, match="many clients"):
        keys.take(KEY, "d1", "j1", dead)


def test_liveness(clock: ManualClock) -> None:
    yarn = FakeYarnCluster()
    is_live = liveness(yarn, clock, 60_000)
    running = KeyHolder(KEY, 1, "d1", "j1", 0, "application_1")
    assert not is_live(running)
    yarn.add(application("application_1", "d1", ApplicationState.ACCEPTED))
    assert is_live(running)
    yarn.add(application("application_1", "d1", ApplicationState.KILLED))
    assert not is_live(running)


def test_liveness_of_a_holder_whose_cluster_has_another_master(clock: ManualClock) -> None:
    yarn = FakeYarnCluster()
    is_live = liveness(yarn, clock, 60_000)
    holder = KeyHolder(KEY, 1, "d1", "j1", 0, "application_1")
    yarn.add(application("application_1", "d1", ApplicationState.KILLED))
    yarn.add(application("application_2", "d1", ApplicationState.RUNNING))
    assert is_live(holder)
    yarn.add(application("application_2", "d1", ApplicationState.FINISHED))
    assert not is_live(holder)


def test_liveness_of_a_holder_on_another_yarn(clock: ManualClock) -> None:
    yarn = FakeYarnCluster()
    is_live = liveness(yarn, clock, 60_000, "http://rm:8088")
    assert not is_live(KeyHolder(KEY, 1, "d1", "j1", 0, "application_1", yarn_cluster="http://rm:8088"))
    assert not is_live(KeyHolder(KEY, 1, "d1", "j1", 0, "application_1")), "an older record"
    elsewhere = KeyHolder(KEY, 1, "d1", "j1", 0, "application_1", yarn_cluster="http://other:8088")
    assert is_live(elsewhere)
    # another name for the same YARN
    yarn.add(application("application_1", "d1", ApplicationState.KILLED))
    assert not is_live(elsewhere)
    # a submit that never ended holds no key; what it might still submit may not run
    assert not is_live(KeyHolder(KEY, 1, "d2", "j1", -60_000, yarn_cluster="http://other:8088"))


def test_the_yarn_of_a_holder_is_recorded(fs: MemoryFileSystem, clock: ManualClock) -> None:
    keys = JobKeys(fs, LAYOUT, clock, "http://rm:8088")
    keys.take(KEY, "d1", "j1", live)
    holder = keys.holder(KEY)
    assert holder is not None and holder.yarn_cluster == "http://rm:8088"


def test_liveness_of_a_holder_without_application(clock: ManualClock) -> None:
    yarn = FakeYarnCluster()
    is_live = liveness(yarn, clock, 60_000)
    pending = KeyHolder(KEY, 1, "d1", "j1", clock.now_ms())
    assert is_live(pending)
    # its client died after the submit: the tag tells
    yarn.add(application("application_1", "d1", ApplicationState.FAILED))
    assert not is_live(pending)
    clock.advance(60_000)
    yarn.add(application("application_1", "d1", ApplicationState.RUNNING))
    assert is_live(pending)
    yarn.known.clear()
    assert not is_live(pending)
    assert not is_live(KeyHolder(KEY, 1, "d1", "j1", clock.now_ms() + 60_000))


@dataclass
class World:
    """Clients that submit with one key, their applications, and YARN, which never lies."""

    #: what is guessed about holders without application
    guesses: Iterator[bool]
    #: clients that die between taking the key and submitting
    dying: frozenset[str]
    clock: ManualClock = field(default_factory=lambda: ManualClock(0))
    actors: Interleaving = field(default_factory=Interleaving)
    #: application → has not ended
    applications: dict[str, bool] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    #: all that ever ran
    ran: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.fs = MemoryFileSystem(self.clock, before=self.actors.step)
        self.keys = JobKeys(self.fs, LAYOUT, self.clock)

    def is_live(self, holder: KeyHolder) -> bool:
        self.actors.step()
        if holder.application_id:
            return self.applications[holder.application_id]
        return next(self.guesses, False)

    def client(self, name: str, submits: int) -> None:
        for number in range(submits):
            application_id = f"{name}.{number}"
            taken = self.keys.take(KEY, application_id, application_id, self.is_live)
            if isinstance(taken, KeyHolder):
                continue
            if name in self.dying:
                return
            self.actors.step()
            self.applications[application_id] = True
            master = partial(self.master, application_id, taken.generation)
            self.actors.add(f"master of {application_id}", master)
            if not self.keys.set_application(KEY, taken.generation, application_id):
                self.applications[application_id] = False
                self.running.discard(application_id)

    def master(self, application_id: str, generation: int) -> None:
        if self.keys.set_application(KEY, generation, application_id) and self.applications[application_id]:
            self.running.add(application_id)
            self.ran.add(application_id)
            assert len(self.running) == 1, f"run at the same time: {sorted(self.running)}"
            for _ in range(12):
                self.actors.step()
        self.running.discard(application_id)
        self.applications[application_id] = False


@settings(max_examples=150)
@given(
    clients=st.integers(2, 3),
    submits=st.integers(1, 2),
    turns=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 12)), max_size=16),
    guesses=st.lists(st.booleans(), max_size=8),
    dying=st.frozensets(st.sampled_from(["a", "b", "c"]), max_size=1),
)
def test_never_two_live_jobs_with_one_key(
    clients: int, submits: int, turns: list[tuple[int, int]], guesses: list[bool], dying: frozenset[str]
) -> None:
    world = World(iter(guesses), dying)
    names = ["a", "b", "c"][:clients]
    for name in names:
        world.actors.add(name, partial(world.client, name, submits))
    world.actors.run([choice for choice, steps in turns for _ in range(steps)])
    if not dying & set(names):
        # somebody always wins
        assert world.ran
    # whatever happened, the key can be had afterwards, and only its newest record is left
    states = world.applications
    taken = world.keys.take(KEY, "last", "last", lambda holder: states.get(holder.application_id, False))
    assert isinstance(taken, KeyTaken)
    assert world.fs.paths(LAYOUT.job_key(KEY)) == [LAYOUT.generation(KEY, taken.generation), OWNER]
