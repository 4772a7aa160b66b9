"""How many workers are asked for and given back: scenarios, and never one too many or too few."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from yarnflow.core.ids import AllocationId, JobId, TaskManagerId
from yarnflow.core.resources.provider import ProviderState, WorkerExit
from yarnflow.core.resources.slot_manager import SlotManager
from yarnflow.core.resources.workers import (
    CANCEL_ANSWER_TIMEOUT_MS,
    FAILURE_WINDOW_MS,
    LOST_WORKER_GRACE_MS,
    CancelRequests,
    Demand,
    ReleaseWorker,
    RequestWorkers,
    StartFailed,
    WorkerDiagnosed,
    WorkerLost,
    WorkerPolicy,
    Workers,
    WorkerState,
)

POLICY = WorkerPolicy(idle_timeout_ms=100, registration_timeout_ms=1_000, retry_interval_ms=30)
NOBODY = TaskManagerId("")


def tm(name: str) -> TaskManagerId:
    return TaskManagerId(f"tm-{name}")


def registered(*names: str, policy: WorkerPolicy = POLICY, at_ms: int = 0) -> Workers:
    """Workers that had work already."""
    books = Workers(policy)
    for name in names:
        books = books.registered(name, tm(name), at_ms)
    return replace(books.plan(Demand(), at_ms)[0], open=0)


def idle(*names: str, since_ms: int = 0) -> Demand:
    return Demand(idle={tm(name): since_ms for name in names})


# --- requests ---------------------------------------------------------------


def test_all_that_is_lacking_is_asked_for_at_once_and_only_once() -> None:
    books, effects = Workers(POLICY).plan(Demand(more=3), 0)
    assert effects == (RequestWorkers(3),)
    assert books.plan(Demand(more=3), 1) == (books, ())
    books = books.provider_state(ProviderState(2, granted=("w1",)), 2).registered("w2", tm("w2"), 3)
    assert books.plan(Demand(more=2), 4)[1] == ()
    assert books.plan(Demand(more=3), 4)[1] == (RequestWorkers(1),)


def test_redundant_workers_are_asked_for_beyond_the_needed_ones() -> None:
    policy = WorkerPolicy(redundant=2)
    assert Workers(policy).plan(Demand(more=1), 0)[1] == (RequestWorkers(3),)
    assert registered("w1", policy=policy).plan(Demand(), 0)[1] == (RequestWorkers(2),)
    assert registered("w1", "w2", policy=policy).plan(idle("w1", "w2"), 0)[1] == ()


def test_a_request_that_is_not_needed_any_more_is_withdrawn() -> None:
    books, _ = Workers(POLICY).plan(Demand(more=3), 0)
    books, effects = books.plan(Demand(more=1), 1)
    assert effects == (CancelRequests(2),)
    assert books.plan(Demand(more=1), 2) == (books, ())
    assert books.requests_canceled(2).plan(Demand(more=1), 3)[1] == ()


def test_nothing_is_asked_for_while_it_is_not_known_what_a_cancel_withdrew() -> None:
    books, _ = Workers(POLICY).plan(Demand(more=2), 0)
    books, _ = books.plan(Demand(), 1)
    books, effects = books.plan(Demand(more=2), 2)
    assert effects == ()
    assert books.requests_canceled(2).plan(Demand(more=2), 3)[1] == (RequestWorkers(2),)
    granted_meanwhile = books.requests_canceled(0)
    assert granted_meanwhile.plan(Demand(more=2), 3)[1] == ()
    assert granted_meanwhile.plan(Demand(), 3)[1] == (), "there is nothing left to withdraw"
    _, effects = books.plan(Demand(more=2), 1 + CANCEL_ANSWER_TIMEOUT_MS)
    assert effects == (RequestWorkers(2),), "an answer that never came is waited for without end"


def test_a_worker_that_came_in_spite_of_a_cancel_is_given_back() -> None:
    books, _ = Workers(POLICY).plan(Demand(more=2), 0)
    books, _ = books.plan(Demand(), 1)
    books = books.requests_canceled(0).provider_state(ProviderState(0, granted=("w1",)), 2)
    books, effects = books.plan(Demand(), 3)
    assert effects == (ReleaseWorker("w1", NOBODY, "it is not needed any more"),)
    assert not books.may_register("w1")
    books = books.registered("w2", tm("w2"), 4)
    books, effects = books.plan(idle("w2", since_ms=4), 4)
    assert effects == (ReleaseWorker("w2", tm("w2"), "it is not needed any more"),)
    assert books.coming == books.present == 0


def test_a_withdrawn_request_that_ends_as_a_released_worker_counts_once() -> None:
    books, _ = Workers(POLICY).plan(Demand(more=2), 0)
    books, _ = books.plan(Demand(more=1), 1)
    books, effects = books.exited(WorkerExit("w1", None, released=True), 2)
    assert effects == ()
    books = books.requests_canceled(1)
    assert (books.coming, books.failures) == (1, ())


def test_expected_workers_are_kept_until_a_job_is_known_or_the_idle_time_is_over() -> None:
    books = Workers.expecting(POLICY, 2, 0)
    assert books.plan(Demand(), 99)[1] == ()
    assert books.deadline_ms(Demand(), 0) == 100
    assert books.plan(Demand(), 100)[1] == (CancelRequests(2),)
    assert books.job_known().plan(Demand(more=1), 1)[1] == (CancelRequests(1),)
    books = books.registered("w1", tm("w1"), 50)
    books, effects = books.plan(idle("w1", since_ms=50), 50)
    assert effects == ()
    assert books.job_known().plan(Demand(idle={tm("w1"): 50}), 60)[1] == (CancelRequests(1),)


def test_an_expected_worker_that_fails_is_replaced() -> None:
    books, _ = Workers.expecting(POLICY, 2, 0).exited(WorkerExit("w1", 1), 5)
    assert books.plan(Demand(), 6)[1] == (RequestWorkers(1),)


def test_a_provider_that_keeps_its_workers_is_left_alone() -> None:
    policy = WorkerPolicy(idle_timeout_ms=100, max_workers=2, kept_by_provider=True)
    books = Workers.expecting(policy, 2, 0)
    assert books.plan(Demand(), 1_000)[1] == ()
    assert books.plan(Demand(more=5), 1_000)[1] == (), "no more than there can be"
    books = books.registered("w1", tm("w1"), 0).registered("w2", tm("w2"), 0)
    books, effects = books.exited(WorkerExit("w1", -9), 1)
    assert effects == (WorkerLost(tm("w1"), "its process ended with status -9"),)
    assert (books.present, books.coming) == (1, 1), "the one that comes in its place"
    books, _ = books.exited(WorkerExit("w3", 1), 2)
    assert books.coming == 1
    assert books.registered("w4", tm("w4"), 3).plan(idle("w2", "w4"), 9_999)[1] == ()


# --- giving back ------------------------------------------------------------


def test_idle_workers_beyond_the_redundant_ones_are_given_back_the_longest_idle_first() -> None:
    policy = WorkerPolicy(redundant=1, idle_timeout_ms=100)
    books = registered("w1", "w2", "w3", policy=policy)
    demand = Demand(idle={tm("w1"): 20, tm("w2"): 10, tm("w3"): 15})
    assert books.plan(demand, 109)[1] == ()
    books, effects = books.plan(demand, 110)
    assert effects == (ReleaseWorker("w2", tm("w2"), "it had no job for 0.1 s"),)
    assert books.deadline_ms(idle("w1", "w3", since_ms=20), 110) == 120


def test_a_worker_somebody_else_started_is_not_given_back() -> None:
    assert registered().plan(idle("standalone"), 10_000)[1] == ()


def test_the_end_of_a_worker_that_was_given_back_is_nothing() -> None:
    books, effects = registered("w1").plan(idle("w1"), 100)
    assert len(effects) == 1
    books, effects = books.exited(WorkerExit("w1", -15, released=True), 101)
    assert (effects, books.present, books.coming) == ((), 0, 0)
    assert not books.may_register("w1")


# --- failures ---------------------------------------------------------------


def test_a_worker_that_ends_before_it_registered_is_replaced_and_counted() -> None:
    books, _ = Workers(POLICY).plan(Demand(more=2), 0)
    books = books.provider_state(ProviderState(1, granted=("w1",)), 1)
    books, effects = books.exited(WorkerExit("w1", 1, "no python"), 2)
    assert effects == (StartFailed("w1", "its process ended with status 1: no python", 1, 0),)
    books, effects = books.plan(Demand(more=2), 2)
    assert effects == (RequestWorkers(1),)
    assert books.exited(WorkerExit("w1", 1), 3) == (books, ()), "told twice"
    assert books.provider_state(ProviderState(1, granted=("w1",)), 3) == books, "a state from before"
    books, effects = books.exited(WorkerExit("never heard of", 1), 3)
    assert effects == (StartFailed("never heard of", "its process ended with status 1", 2, 0),)
    assert books.coming == 1


def test_too_many_failures_in_a_minute_make_a_pause() -> None:
    policy = WorkerPolicy(max_failures_per_minute=2, retry_interval_ms=30)
    demand = Demand(more=1)
    books, _ = Workers(policy).plan(demand, 0)
    for number, pause_ms in ((1, 0), (2, 0), (3, 30)):
        books, effects = books.exited(WorkerExit(f"w{number}", 1, "bad"), 10)
        text = "its process ended with status 1: bad"
        assert effects == (StartFailed(f"w{number}", text, number, pause_ms),)
        books, effects = books.plan(demand, 10)
        assert effects == (() if pause_ms else (RequestWorkers(1),))
    assert books.waiting_for(39) == (
        "TaskManagers fail before they register: its process ended with status 1: bad; "
        "there is a pause of 0.03 s (resourcemanager.start-worker.retry-interval)"
    )
    assert books.deadline_ms(demand, 10) == 40
    assert books.plan(demand, 39)[1] == ()
    books, effects = books.plan(demand, 40)
    assert effects == (RequestWorkers(1),)
    assert "pause" not in books.waiting_for(40)
    assert books.waiting_for(10 + FAILURE_WINDOW_MS) == ""
    books, effects = books.exited(WorkerExit("w4", 1), 10 + FAILURE_WINDOW_MS)
    assert effects[0] == StartFailed("w4", "its process ended with status 1", 1, 0)


def test_a_granted_worker_that_stays_silent_is_given_back_and_replaced() -> None:
    books, _ = Workers(POLICY).plan(Demand(more=1), 0)
    books = books.provider_state(ProviderState(0, granted=("w1",)), 50)
    books = books.provider_state(ProviderState(0, granted=("w1",)), 500)
    assert books.deadline_ms(Demand(more=1), 500) == 1_050
    assert books.plan(Demand(more=1), 1_049)[1] == ()
    books, effects = books.plan(Demand(more=1), 1_050)
    text = "no TaskManager registered within 1 s"
    assert effects == (ReleaseWorker("w1", NOBODY, text), StartFailed("w1", text, 1, 0), RequestWorkers(1))
    assert books.exited(WorkerExit("w1", 143, released=True), 1_060)[1] == ()


def test_what_the_provider_says_is_told_while_requests_are_open() -> None:
    books, _ = Workers(POLICY).plan(Demand(more=1), 0)
    books = books.provider_state(ProviderState(1, "queue default is full"), 1)
    assert books.waiting_for(1) == "queue default is full"
    assert books.provider_state(ProviderState(0, "queue default is full"), 2).waiting_for(2) == ""


# --- losses -----------------------------------------------------------------


def test_an_end_reported_after_the_loss_is_its_diagnosis_once() -> None:
    books, effects = registered("w1").lost("w1", 10)
    assert effects == ()
    assert books.plan(Demand(more=1), 11)[1] == (RequestWorkers(1),)
    killed = WorkerExit("w1", -104, "beyond physical memory limits")
    books, effects = books.exited(killed, 12)
    text = "its process ended with status -104: beyond physical memory limits"
    assert effects == (WorkerDiagnosed(tm("w1"), text),)
    assert books.exited(killed, 13)[1] == ()


def test_an_end_reported_first_is_the_reason_of_the_loss() -> None:
    books, effects = registered("w1").exited(WorkerExit("w1", None, "node lost"), 10)
    assert effects == (WorkerLost(tm("w1"), "its process ended: node lost"),)
    assert books.lost("w1", 11) == (books, ())


def test_a_lost_worker_whose_end_is_not_reported_is_ended() -> None:
    books, _ = registered("w1").lost("w1", 10)
    assert books.deadline_ms(Demand(), 10) == 10 + LOST_WORKER_GRACE_MS
    books, effects = books.plan(Demand(), 10 + LOST_WORKER_GRACE_MS)
    assert effects == (ReleaseWorker("w1", NOBODY, "its end is not reported"),)
    _, effects = registered("w1").lost("w1", 10, hangs=True)
    assert effects == (ReleaseWorker("w1", NOBODY, "its TaskManager does not answer any more"),)


def test_a_lost_task_manager_that_comes_back_makes_its_replacement_superfluous() -> None:
    books, _ = registered("w1").lost("w1", 10)
    books, _ = books.plan(Demand(more=1), 10)
    books = books.registered("w1", tm("w1"), 20)
    assert books.plan(Demand(), 20)[1] == (CancelRequests(1),)


# --- workers of other masters -----------------------------------------------


def test_a_worker_of_another_master_is_no_answer_to_a_request() -> None:
    books, _ = Workers(POLICY).plan(Demand(more=1), 0)
    books = books.registered("theirs", tm("theirs"), 1, foreign=True)
    assert (books.open, books.present) == (1, 1)
    assert books.plan(Demand(), 2)[1] == (CancelRequests(1),)


def test_a_worker_of_another_master_is_told_to_end_by_being_refused() -> None:
    """Nobody here could kill it, and nobody will report its end."""
    books = Workers(POLICY).registered("theirs", tm("theirs"), 0, foreign=True)
    books, effects = books.plan(idle("theirs"), 0)
    assert effects == (), "it is given back before anybody could have wanted it"
    books, effects = books.plan(idle("theirs"), 100)
    assert [effect.worker_id for effect in effects if isinstance(effect, ReleaseWorker)] == ["theirs"]
    assert not books.may_register("theirs")
    assert books.deadline_ms(Demand(), 101) is None


def test_a_lost_worker_of_another_master_may_come_back() -> None:
    books = Workers(POLICY).registered("theirs", tm("theirs"), 0, foreign=True)
    books, effects = books.lost("theirs", 1, hangs=True)
    assert effects == () and books.present == 0 and books.may_register("theirs")


def test_nothing_is_asked_for_while_workers_are_about_to_register() -> None:
    books = Workers(POLICY).patient(50)
    assert books.plan(Demand(more=2), 49)[1] == ()
    assert books.deadline_ms(Demand(more=2), 49) == 50
    assert books.plan(Demand(more=2), 50)[1] == (RequestWorkers(2),)


def test_what_an_earlier_leader_got_is_not_given_back_before_jobs_could_claim_it() -> None:
    """Its provider lives on beside the new leader, which has never asked for anything."""
    books = Workers(POLICY).patient(50).provider_state(ProviderState(0, "", ("w",)), 1)
    books, effects = books.plan(Demand(), 1)
    assert effects == (), "its executor may be what the job goes on with"
    assert books.deadline_ms(Demand(), 51) == 150
    books = books.registered("w", tm("w"), 2)
    books, effects = books.plan(idle("w", since_ms=2), 3)
    assert effects == () and books.may_register("w")
    assert [type(effect) for effect in books.plan(idle("w", since_ms=2), 150)[1]] == [ReleaseWorker]


def test_what_an_earlier_leader_got_is_given_back_when_nobody_claims_it() -> None:
    books = Workers(POLICY).patient(50).provider_state(ProviderState(0, "", ("w",)), 1)
    assert [type(effect) for effect in books.plan(Demand(), 150)[1]] == [ReleaseWorker]


# --- all interleavings ------------------------------------------------------

JOBS = (JobId("j" * 32), JobId("k" * 32))
SLOTS = 2


class AgainstAProvider(RuleBasedStateMachine):
    """The books against a provider whose grants, answers and exits come late and in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.slots = SlotManager()
        self.numbers = iter(range(1_000_000))
        self.commands: deque[RequestWorkers | CancelRequests | ReleaseWorker] = deque()
        self.events: deque[Callable[[], None]] = deque()
        #: the truth at the provider
        self.ungranted = 0
        self.alive: set[str] = set()
        #: told to end, or about to be
        self.leaving: set[str] = set()
        self.unanswered = 0

    @initialize(redundant=st.integers(0, 2), expected=st.integers(0, 2), named=st.booleans())
    def begin(self, redundant: int, expected: int, named: bool) -> None:
        self.named = named
        self.policy = WorkerPolicy(
            redundant, idle_timeout_ms=100, registration_timeout_ms=10_000, max_failures_per_minute=3
        )
        self.books = Workers.expecting(self.policy, expected, 0)
        self.ungranted = expected
        self.plan()

    # what the shell does

    def ids(self) -> Iterator[AllocationId]:
        while True:
            yield AllocationId(f"a{next(self.numbers)}")

    def plan(self) -> None:
        self.slots, requests = self.slots.match(self.now, self.ids())
        for request in requests:
            self.slots = self.slots.request_confirmed(request.allocation_id, self.now)
        demand = self.slots.demand(SLOTS)
        reserved = self.books.reserved if self.now < self.books.reserved_until_ms else 0
        lacking = max(
            demand.more + max(self.policy.redundant - len(demand.idle), 0), reserved - self.books.present
        )
        self.books, effects = self.books.plan(demand, self.now)
        for effect in effects:
            if isinstance(effect, RequestWorkers):
                self.check_request(effect.count, lacking)
            elif isinstance(effect, CancelRequests):
                assert self.unanswered == 0
                self.unanswered += 1
            elif isinstance(effect, ReleaseWorker):
                assert effect.worker_id not in self.leaving, "given back twice"
                self.leaving.add(effect.worker_id)
                self.lose_slots(effect.task_manager_id)
            if isinstance(effect, (RequestWorkers, CancelRequests, ReleaseWorker)):
                self.commands.append(effect)
        assert self.books.canceling or self.books.unnamed or self.books.coming <= max(lacking, 0)

    def check_request(self, count: int, lacking: int) -> None:
        assert self.unanswered == 0, "asked for more while a cancel was under way"
        underway = sum(command.count for command in self.commands if isinstance(command, RequestWorkers))
        unregistered = [
            name for name in self.alive if name not in self.leaving and not self.has_registered(name)
        ]
        assert self.ungranted + underway + len(unregistered) + count <= lacking, "more than needed"

    def has_registered(self, name: str) -> bool:
        worker = self.books.workers.get(name)
        return worker is not None and worker.state is not WorkerState.GRANTED

    def lose_slots(self, task_manager_id: TaskManagerId) -> None:
        self.slots, _ = self.slots.unregister_task_manager(task_manager_id, "")

    # the jobs

    @rule(job=st.sampled_from(JOBS), slots=st.integers(1, 7))
    def declare(self, job: JobId, slots: int) -> None:
        self.slots = self.slots.declare_requirements(job, slots)
        self.books = self.books.job_known()
        self.plan()

    @rule(job=st.sampled_from(JOBS))
    def end_job(self, job: JobId) -> None:
        self.slots, _ = self.slots.free_job(job, self.now)
        self.plan()

    # the provider

    def report_state(self) -> None:
        state = ProviderState(self.ungranted, "", tuple(sorted(self.alive)) if self.named else ())

        def event() -> None:
            self.books = self.books.provider_state(state, self.now)

        self.events.append(event)

    @precondition(lambda self: self.ungranted > 0)
    @rule()
    def grant(self) -> None:
        self.ungranted -= 1
        self.alive.add(f"w{next(self.numbers)}")
        self.report_state()

    @precondition(lambda self: self.commands)
    @rule()
    def perform(self) -> None:
        command = self.commands.popleft()
        if isinstance(command, RequestWorkers):
            self.ungranted += command.count
        elif isinstance(command, CancelRequests):
            withdrawn = min(command.count, self.ungranted)
            self.ungranted -= withdrawn

            def answer() -> None:
                self.unanswered -= 1
                self.books = self.books.requests_canceled(withdrawn)

            self.events.append(answer)
        elif command.worker_id in self.alive:
            self.end(command.worker_id, True)
        self.report_state()

    def end(self, name: str, released: bool) -> None:
        self.alive.discard(name)

        def event() -> None:
            self.books, effects = self.books.exited(WorkerExit(name, 1, released=released), self.now)
            for effect in effects:
                if isinstance(effect, WorkerLost):
                    self.lose_slots(effect.task_manager_id)

        self.events.append(event)

    @precondition(lambda self: self.alive)
    @rule(index=st.integers(0, 9))
    def die(self, index: int) -> None:
        names = sorted(self.alive)
        self.end(names[index % len(names)], False)

    @precondition(lambda self: self.events)
    @rule()
    def deliver(self) -> None:
        self.events.popleft()()
        self.plan()

    # TaskManagers

    @precondition(lambda self: self.alive)
    @rule(index=st.integers(0, 9))
    def register(self, index: int) -> None:
        names = sorted(self.alive)
        self.register_one(names[index % len(names)])

    def register_one(self, name: str) -> None:
        if tm(name) not in self.slots.task_managers and self.books.may_register(name):
            self.books = self.books.registered(name, tm(name), self.now)
            self.slots = self.slots.register_task_manager(tm(name), name, SLOTS, self.now)
            self.plan()

    @rule(index=st.integers(0, 9), hangs=st.booleans())
    def lose(self, index: int, hangs: bool) -> None:
        names = sorted(self.slots.task_managers)
        if names:
            name = names[index % len(names)]
            self.lose_slots(name)
            self.books, effects = self.books.lost(name.removeprefix("tm-"), self.now, hangs=hangs)
            for effect in effects:
                assert isinstance(effect, ReleaseWorker)
                self.leaving.add(effect.worker_id)
                self.commands.append(effect)
            self.plan()

    @rule(ms=st.sampled_from([1, 60, 200, 4_000, 20_000]))
    def time_passes(self, ms: int) -> None:
        # answers come before the time-out that is for lost ones
        if self.unanswered and self.now + ms - self.books.cancel_since_ms >= CANCEL_ANSWER_TIMEOUT_MS:
            return
        self.now += ms
        self.plan()

    def teardown(self) -> None:
        """When all is quiet there is exactly what is needed."""
        if not hasattr(self, "books"):
            return
        for _ in range(12):
            while self.commands or self.events or self.ungranted:
                while self.commands:
                    self.perform()
                while self.ungranted:
                    self.grant()
                while self.events:
                    self.deliver()
            for name in sorted(self.alive):
                self.register_one(name)
            self.time_passes(4_000)
        assert self.slots.missing() == {}, "a job waits for ever"
        demand = self.slots.demand(SLOTS)
        assert len(demand.idle) == self.policy.redundant
        assert {tm(name) for name in self.alive} == set(self.slots.task_managers), "a worker nobody uses"
        assert (self.books.open, self.books.canceling, self.books.unnamed) == (0, 0, 0)


TestAgainstAProvider = AgainstAProvider.TestCase
TestAgainstAProvider.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
