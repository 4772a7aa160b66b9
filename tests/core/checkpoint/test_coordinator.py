"""The checkpoint coordinator, step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from yarnflow.core.checkpoint.coordinator import (
    PERSIST_ATTEMPTS,
    RETRY_PAUSE_MS,
    CheckpointCoordinator,
    CheckpointSettings,
)
from yarnflow.core.checkpoint.effects import Discard, Effect, Ended, NeedId, OrderDriver, Persist
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointInfo,
    CheckpointKind,
    CheckpointOrder,
    CheckpointOutcome,
    CheckpointRequest,
    CheckpointStatus,
    CheckpointTrigger,
    QueryPosition,
)

SETTINGS = CheckpointSettings(
    interval_ms=10_000, min_pause_ms=0, timeout_ms=60_000, retained=1
)
CHECKPOINT = CheckpointRequest("r-1", CheckpointKind.CHECKPOINT)
SAVEPOINT = CheckpointRequest("r-2", CheckpointKind.SAVEPOINT)
STOP = CheckpointRequest("r-3", CheckpointKind.SAVEPOINT, after=AfterSavepoint.STOP)
DONE = CheckpointStatus.COMPLETED

E = TypeVar("E", bound=Effect)
Result = tuple[CheckpointCoordinator, tuple[Effect, ...]]


class Job:
    """A coordinator with a shell that answers nothing by itself."""

    def __init__(self, **settings: int) -> None:
        self.coordinator = CheckpointCoordinator.create(replace(SETTINGS, **settings))
        self.effects: list[Effect] = []
        self.next_id = 1

    def do(self, step: Callable[..., Result], *args: object) -> None:
        self.coordinator, effects = step(*args)
        self.effects += effects

    def commits(self, batch_id: int, at_ms: int, query: str = "q") -> None:
        self.do(self.coordinator.progressed, [QueryPosition(query, batch_id)], at_ms)

    def idles(self, at_ms: int) -> None:
        """Nothing was to be done at this time."""
        self.do(self.coordinator.progressed, [], at_ms + 100, at_ms)

    def asks(self, request: CheckpointRequest, at_ms: int) -> None:
        self.do(self.coordinator.requested, request, at_ms)

    def tick(self, at_ms: int) -> None:
        self.do(self.coordinator.tick, at_ms)

    def taken(self, kind: type[E]) -> E:
        """The only effect since the last look, of this kind."""
        effects, self.effects = self.effects, []
        assert [type(effect) for effect in effects] == [kind]
        assert isinstance(effects[0], kind)
        return effects[0]

    def due(self) -> int | None:
        """When a tick is due."""
        return self.coordinator.deadline_ms

    def idle(self) -> bool:
        """Nothing is to be done, since the last look."""
        return not self.effects

    def gives_id(self, at_ms: int) -> int:
        self.taken(NeedId)
        given = self.next_id
        self.next_id += 1
        self.do(self.coordinator.id_given, given, at_ms)
        return given

    def persists(self, at_ms: int) -> CheckpointInfo:
        """Write what is to be written; returns it as it ended."""
        info = self.taken(Persist).info
        stored = replace(info, external_path=f"/chk-{info.checkpoint_id}")
        self.do(self.coordinator.persisted, stored, at_ms)
        return next(effect.info for effect in self.effects if isinstance(effect, Ended))

    def records(self, batch_id: int, at_ms: int) -> tuple[Effect, ...]:
        """A periodic one from trigger to end; returns what came of it."""
        self.commits(batch_id, at_ms)
        self.gives_id(at_ms)
        self.persists(at_ms)
        effects, self.effects = tuple(self.effects), []
        return effects


def batches(info: CheckpointInfo) -> dict[str, int]:
    return {position.query: position.batch_id for position in info.positions}


# --- when ---------------------------------------------------------------------


def test_the_interval_runs_from_the_first_position_then_from_the_last_trigger() -> None:
    job = Job()
    job.commits(0, 5_000)
    assert job.idle() and job.due() == 15_000
    job.tick(14_999)
    assert job.idle()
    job.tick(15_000)
    job.gives_id(15_000)
    assert job.persists(18_000).trigger is CheckpointTrigger.INTERVAL
    job.effects.clear()
    assert job.due() is None, "nothing was committed since"
    job.commits(1, 20_000)
    assert job.idle() and job.due() == 25_000


def test_the_pause_runs_from_the_last_end() -> None:
    job = Job(min_pause_ms=9_000)
    job.commits(0, 0)
    job.tick(10_000)
    job.gives_id(10_000)
    job.persists(18_000)
    job.commits(1, 18_000)
    assert job.due() == 27_000


def test_without_an_interval_every_batch_is_recorded() -> None:
    job = Job(interval_ms=0)
    for batch_id in range(3):
        job.records(batch_id, batch_id)
    assert job.coordinator.completed == 3


def test_a_job_without_work_is_up_to_date_once_all_is_recorded() -> None:
    job = Job()
    for idle_at_ms in (-1, 2_000, 1_000):
        job.idles(idle_at_ms)
    assert job.coordinator.up_to_date_ms == 2_000, "a report that is late changes nothing"
    assert job.coordinator.last_trigger_ms == -1 and job.due() is None
    job.commits(0, 5_000)
    job.idles(6_000)
    assert job.coordinator.up_to_date_ms == 2_000, "no checkpoint has the batch"
    job.tick(15_000)
    job.gives_id(15_000)
    job.idles(16_000)
    assert job.coordinator.up_to_date_ms == 2_000, "it is being written"
    job.persists(17_000)
    job.idles(16_000)
    assert job.coordinator.up_to_date_ms == 16_000


def test_a_batch_of_which_only_the_logs_of_an_idle_query_know_is_recorded_first() -> None:
    """Driver and master were lost before they told of it."""
    job = Job(interval_ms=0)
    job.records(7, 1_000)
    job.do(job.coordinator.progressed, [], 3_000, 2_500, [QueryPosition("q", 9)])
    assert job.coordinator.up_to_date_ms == -1
    job.gives_id(3_000)
    assert batches(job.persists(3_100)) == {"q": 9}
    job.idles(4_000)
    assert job.coordinator.up_to_date_ms == 4_000


def test_what_a_query_says_of_itself_is_more_than_its_logs_know() -> None:
    job, said = Job(), QueryPosition("q", 3, watermark_ms=7)
    job.do(job.coordinator.progressed, [said], 0)
    job.do(job.coordinator.progressed, [], 1_000, 1_000, [QueryPosition("q", 3)])
    assert job.coordinator.positions == (said,)


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_query_that_had_to_go_back_is_not_up_to_date(is_silent: bool) -> None:
    """Its batches after that are others, and those with known numbers are in no checkpoint."""
    job, behind = Job(interval_ms=0), [QueryPosition("q", 5)]
    job.records(7, 1_000)
    job.do(job.coordinator.progressed, *([], 3_000, 3_000, behind) if is_silent else (behind, 3_000, 3_000))
    assert job.coordinator.up_to_date_ms == -1
    job.records(8, 4_000)
    job.idles(5_000)
    assert job.coordinator.up_to_date_ms == 5_000


def test_positions_are_those_of_the_write_not_of_the_trigger() -> None:
    job = Job(interval_ms=0)
    job.commits(3, 0)
    job.commits(4, 1)
    job.gives_id(2)
    assert batches(job.taken(Persist).info) == {"q": 4}


def test_spark_never_forgets_a_batch_before_a_newer_one_is_recorded() -> None:
    job = Job(interval_ms=3_600_000, retained=3)
    job.commits(0, 0)
    job.commits(23, 1)
    assert job.idle()
    job.commits(24, 2)  # 25 batches: 100 kept, 3 retained and one on its way
    job.gives_id(2)
    assert job.persists(2).trigger is CheckpointTrigger.RETENTION


def test_a_position_never_goes_back() -> None:
    job = Job(interval_ms=0)
    job.records(7, 0)
    job.commits(6, 1)
    assert job.idle() and job.coordinator.positions[0].batch_id == 7


# --- requests -----------------------------------------------------------------


def test_a_request_is_an_order_to_the_driver() -> None:
    job = Job()
    job.commits(4, 0)
    job.asks(CHECKPOINT, 10)
    given = job.gives_id(11)
    order = CheckpointOrder(given, CheckpointKind.CHECKPOINT, request_id="r-1")
    assert job.taken(OrderDriver).order == order
    answer = CheckpointOutcome(given, positions=(QueryPosition("q", 5),), commit_wait_ms=30, pause_ms=2)
    job.do(job.coordinator.outcome, answer, 50)
    info = job.persists(60)
    assert (info.status, info.trigger, batches(info)) == (DONE, CheckpointTrigger.REQUESTED, {"q": 5})
    assert (info.trigger_ms, info.commit_wait_ms, info.pause_ms) == (10, 30, 2)
    assert (info.persist_ms, info.end_ms) == (10, 60)
    assert info.external_path == "/chk-1" and job.coordinator.find("r-1") == info
    assert job.due() is None, "the batch is recorded"


def test_a_repeated_request_is_one_checkpoint() -> None:
    job = Job()
    job.asks(CHECKPOINT, 0)
    job.asks(CHECKPOINT, 1)
    given = job.gives_id(2)
    job.taken(OrderDriver)
    job.do(job.coordinator.outcome, CheckpointOutcome(given), 3)
    job.persists(4)
    job.effects.clear()
    job.asks(CHECKPOINT, 5)
    assert job.idle()


def test_one_at_a_time_in_order() -> None:
    job = Job()
    job.asks(SAVEPOINT, 0)
    job.asks(CHECKPOINT, 1)
    waiting = job.coordinator.find("r-1")
    assert waiting is not None and waiting.status is CheckpointStatus.IN_PROGRESS
    given = job.gives_id(2)
    assert job.taken(OrderDriver).order.kind is CheckpointKind.SAVEPOINT
    job.do(job.coordinator.outcome, CheckpointOutcome(given), 3)
    job.persists(4)
    assert [type(effect) for effect in job.effects] == [Ended, NeedId]


def test_an_answer_that_was_overtaken_by_a_report_does_not_go_back() -> None:
    job = Job()
    job.asks(CHECKPOINT, 0)
    given = job.gives_id(0)
    job.taken(OrderDriver)
    job.commits(9, 1)
    job.do(job.coordinator.outcome, CheckpointOutcome(given, positions=(QueryPosition("q", 8),)), 2)
    assert batches(job.persists(3)) == {"q": 9}


def test_a_savepoint_is_at_the_batches_that_were_copied() -> None:
    job = Job()
    job.asks(SAVEPOINT, 0)
    given = job.gives_id(0)
    job.taken(OrderDriver)
    job.commits(9, 1)
    job.do(job.coordinator.outcome, CheckpointOutcome(given, positions=(QueryPosition("q", 8),)), 2)
    assert batches(job.persists(3)) == {"q": 8}
    assert job.due() is not None, "a savepoint is no checkpoint: 9 is still to be recorded"


def test_repeated_and_foreign_outcomes_are_ignored() -> None:
    job = Job()
    job.do(job.coordinator.outcome, CheckpointOutcome(4), 0)
    job.asks(CHECKPOINT, 0)
    given = job.gives_id(0)
    job.taken(OrderDriver)
    job.do(job.coordinator.outcome, CheckpointOutcome(given + 1, failure="of another"), 1)
    assert job.idle()
    job.do(job.coordinator.outcome, CheckpointOutcome(given), 2)
    job.do(job.coordinator.outcome, CheckpointOutcome(given), 3)
    job.taken(Persist)


# --- failures -----------------------------------------------------------------


def test_a_requested_one_that_fails_never_fails_the_job() -> None:
    job = Job()
    job.asks(CHECKPOINT, 0)
    given = job.gives_id(0)
    job.taken(OrderDriver)
    job.do(job.coordinator.outcome, CheckpointOutcome(given, failure="disk full"), 5)
    info = job.taken(Ended).info
    assert (info.status, info.failure, info.end_ms) == (CheckpointStatus.FAILED, "disk full", 5)
    assert job.coordinator.failed == 1


def fail_periodic(job: Job, batch_id: int, at_ms: int) -> tuple[Effect, ...]:
    job.commits(batch_id, at_ms)
    given = job.gives_id(at_ms)
    for attempt in range(PERSIST_ATTEMPTS):
        job.tick(at_ms + attempt * RETRY_PAUSE_MS)
        job.taken(Persist)
        job.do(job.coordinator.persist_failed, given, "no NameNode", at_ms + attempt * RETRY_PAUSE_MS)
    effects, job.effects = tuple(job.effects), []
    return effects


def test_writing_is_tried_again_and_what_failed_is_made_up_for() -> None:
    """What could not be recorded is committed all the same, so the job has no reason to end."""
    job = Job(interval_ms=0)
    for batch_id in range(3):
        kinds = [type(effect) for effect in fail_periodic(job, batch_id, batch_id * 10_000)]
        assert kinds == [Ended, Discard], "what may have been written is removed"
    assert job.coordinator.failed == 3
    assert [type(effect) for effect in job.records(3, 30_000)] == [Ended]


def test_no_number_is_tried_again_then_fails() -> None:
    job = Job(interval_ms=0)
    job.commits(0, 0)
    for attempt in range(PERSIST_ATTEMPTS):
        assert job.due() is not None
        job.tick(attempt * RETRY_PAUSE_MS)
        job.taken(NeedId)
        job.do(job.coordinator.id_failed, "no ZooKeeper", attempt * RETRY_PAUSE_MS)
    assert [type(effect) for effect in job.effects] == [Ended]


def test_a_late_one_has_failed() -> None:
    job = Job()
    job.asks(SAVEPOINT, 0)
    given = job.gives_id(5)
    job.taken(OrderDriver)
    assert job.due() == 60_000
    job.tick(60_000)
    assert "not complete within 60000 ms" in job.taken(Ended).info.failure
    job.do(job.coordinator.outcome, CheckpointOutcome(given), 60_001)
    assert job.idle() and job.coordinator.pending is None


def test_a_stop_that_was_ordered_is_waited_for() -> None:
    job = Job()
    job.asks(STOP, 0)
    given = job.gives_id(0)
    assert job.taken(OrderDriver).order.after is AfterSavepoint.STOP
    job.tick(10_000_000)
    assert job.idle() and job.due() is None
    job.do(job.coordinator.outcome, CheckpointOutcome(given), 10_000_000)
    assert job.persists(10_000_001).trigger is CheckpointTrigger.STOP


def test_one_that_was_given_up_and_written_all_the_same_is_removed() -> None:
    job = Job(interval_ms=0)
    job.commits(0, 0)
    job.gives_id(0)
    info = job.taken(Persist).info
    job.tick(60_000)
    job.effects.clear()
    job.do(job.coordinator.persisted, info, 60_001)
    assert Discard(info.checkpoint_id) in job.effects


def test_with_the_driver_goes_all_that_needs_it() -> None:
    job = Job()
    job.asks(SAVEPOINT, 0)
    job.asks(CHECKPOINT, 1)
    job.gives_id(2)
    job.taken(OrderDriver)
    job.do(job.coordinator.driver_lost, "the driver is gone", 9)
    failed = [effect.info for effect in job.effects if isinstance(effect, Ended)]
    assert [(info.request_id, info.failure) for info in failed] == [
        ("r-2", "the driver is gone"),
        ("r-1", "the driver is gone"),
    ]
    assert job.coordinator.pending is None and not job.coordinator.queue


def test_a_periodic_one_does_not_need_the_driver() -> None:
    job = Job(interval_ms=0)
    job.commits(0, 0)
    job.gives_id(0)
    job.do(job.coordinator.driver_lost, "gone", 1)
    assert job.persists(2).status is DONE


def test_numbers_only_rise() -> None:
    job = Job(interval_ms=0)
    job.commits(0, 0)
    job.taken(NeedId)
    job.tick(60_000)  # given up; its number comes late
    job.tick(61_000)
    job.effects.clear()
    job.do(job.coordinator.id_given, 8, 61_000)
    assert job.taken(Persist).info.checkpoint_id == 8
    job.do(job.coordinator.persist_failed, 8, "x", 61_000)
    job.do(job.coordinator.id_given, 7, 61_001)
    assert job.coordinator.newest_id == 8


# --- retention ----------------------------------------------------------------


def test_only_the_newest_checkpoints_are_kept_and_no_savepoint_counts() -> None:
    job = Job(interval_ms=0, retained=2)
    job.records(0, 0)
    job.asks(SAVEPOINT, 1)
    given = job.gives_id(1)
    job.taken(OrderDriver)
    job.do(job.coordinator.outcome, CheckpointOutcome(given), 1)
    job.persists(1)
    job.effects.clear()
    assert not [e for e in job.records(1, 2) if isinstance(e, Discard)]
    assert [e for e in job.records(2, 3) if isinstance(e, Discard)] == [Discard(1)]
    discarded = {info.checkpoint_id: info.discarded for info in job.coordinator.history}
    assert discarded == {4: False, 3: False, 2: False, 1: True}


def test_the_history_is_bounded_but_for_what_has_files() -> None:
    job = Job(interval_ms=0)
    job.asks(SAVEPOINT, 0)
    given = job.gives_id(0)
    job.taken(OrderDriver)
    job.do(job.coordinator.outcome, CheckpointOutcome(given), 0)
    job.persists(0)
    job.effects.clear()
    for batch_id in range(40):
        job.records(batch_id, batch_id)
    history = job.coordinator.history
    assert len(history) == 31 and history[-1].kind is CheckpointKind.SAVEPOINT
    assert job.coordinator.completed == 41


def test_only_the_newest_savepoints_have_a_record() -> None:
    """A savepoint an hour makes 8,760 of them in a year; the count goes on."""
    job = Job(savepoint_records=3)
    removed: list[int] = []
    for number in range(10):
        job.asks(replace(SAVEPOINT, request_id=f"hour-{number}"), number)
        given = job.gives_id(number)
        job.taken(OrderDriver)
        job.do(job.coordinator.outcome, CheckpointOutcome(given), number)
        job.persists(number)
        removed += [effect.checkpoint_id for effect in job.effects if isinstance(effect, Discard)]
        job.effects.clear()
    assert [info.checkpoint_id for info in job.coordinator.history] == [10, 9, 8]
    assert removed == list(range(1, 8)), "of the others no record may stay"
    assert job.coordinator.completed == 10
    assert not any(info.discarded for info in job.coordinator.history)


# --- another master -----------------------------------------------------------


def completed(number: int, batch_id: int, end_ms: int) -> CheckpointInfo:
    return CheckpointInfo(
        number,
        CheckpointKind.CHECKPOINT,
        DONE,
        CheckpointTrigger.INTERVAL,
        end_ms,
        end_ms=end_ms,
        positions=(QueryPosition("q", batch_id),),
    )


def test_the_next_master_forgets_savepoints_and_counts_on() -> None:
    """The records may be those of a master that kept all of them."""
    old = [
        replace(completed(number, 0, number), kind=CheckpointKind.SAVEPOINT) for number in range(1, 41)
    ]
    job = Job(savepoint_records=5)
    job.do(job.coordinator.recovered, [*old, completed(41, 60, 900)], 1_000)
    assert list(job.effects) == [Discard(number) for number in range(1, 36)]
    assert [info.checkpoint_id for info in job.coordinator.history] == [41, 40, 39, 38, 37, 36]
    assert job.coordinator.completed == 41, "nobody counted when they were recorded"
    after = Job(savepoint_records=5)
    counted = [replace(info, completed=info.checkpoint_id * 100) for info in job.coordinator.history]
    after.do(after.coordinator.recovered, counted, 1_000)
    assert after.idle() and after.coordinator.completed == 4_100


def test_the_next_master_goes_on() -> None:
    job = Job()
    job.do(job.coordinator.recovered, [completed(4, 40, 900), completed(6, 60, 999_999)], 1_000)
    assert job.taken(Discard).checkpoint_id == 4, "one too many is retained"
    job.commits(59, 1_001)
    assert job.coordinator.positions[0].batch_id == 60, "an old report"
    job.commits(60, 1_001)
    assert job.due() is None
    job.commits(61, 1_002)
    assert job.due() == 11_000, "neither the other's clock nor its trigger holds it up"
    job.tick(11_000)
    job.taken(NeedId)
    job.do(job.coordinator.id_given, 6, 11_000)
    job.taken(NeedId)  # 6 was given before
    job.do(job.coordinator.id_given, 7, 11_000)
    assert job.persists(11_000).checkpoint_id == 7


@pytest.mark.parametrize("answered_when", ["suspended", "resumed"])
def test_while_suspended_nothing_is_begun_or_written(answered_when: str) -> None:
    job = Job(interval_ms=0)
    job.asks(SAVEPOINT, 0)
    given = job.gives_id(0)
    job.taken(OrderDriver)
    job.do(job.coordinator.suspended)
    assert job.due() is None
    if answered_when == "suspended":
        job.do(job.coordinator.outcome, CheckpointOutcome(given), 1)
    job.commits(50, 2)
    job.asks(CHECKPOINT, 3)
    job.tick(100_000)
    assert job.idle(), "not even the time-out"
    job.do(job.coordinator.resumed, 100_000)
    job.tick(100_001)
    if answered_when == "resumed":
        assert job.idle()
        job.do(job.coordinator.outcome, CheckpointOutcome(given), 100_002)
    assert job.persists(100_003).status is DONE


def test_a_write_that_failed_while_suspended_is_done_again() -> None:
    job = Job(interval_ms=0)
    job.commits(0, 0)
    given = job.gives_id(0)
    job.taken(Persist)
    job.do(job.coordinator.suspended)
    for _ in range(PERSIST_ATTEMPTS):
        job.do(job.coordinator.persist_failed, given, "connection lost", 1)
    assert job.idle()
    job.do(job.coordinator.resumed, 5)
    assert job.persists(6).checkpoint_id == given


def test_what_became_durable_while_suspended_is_complete() -> None:
    job = Job(interval_ms=0)
    job.records(0, 0)
    job.commits(1, 1)
    job.gives_id(1)
    info = job.taken(Persist).info
    job.do(job.coordinator.suspended)
    job.do(job.coordinator.persisted, info, 2)
    assert job.taken(Ended).info.status is DONE, "and nothing is removed yet"
    job.do(job.coordinator.resumed, 3)
    assert job.taken(Discard).checkpoint_id == 1


# --- savepoints an earlier master ordered ---------------------------------------


def left(request: CheckpointRequest, failure: str = "") -> CheckpointOutcome:
    """What the driver still says of order 7, given by a master that is gone."""
    return CheckpointOutcome(
        7,
        failure,
        (QueryPosition("q", 5),),
        request_id=request.request_id,
        kind=request.kind,
        target="/saved/savepoint-7",
        after=request.after,
    )


def test_the_savepoint_of_a_lost_master_is_recorded() -> None:
    job = Job()
    job.do(job.coordinator.outcome, left(STOP), 1)
    found = job.coordinator.find("r-3")
    assert found is not None and found.trigger is CheckpointTrigger.STOP
    info = job.persists(2)
    assert (info.checkpoint_id, info.status, batches(info)) == (7, DONE, {"q": 5})
    job.effects.clear()
    job.do(job.coordinator.outcome, left(STOP), 3)
    assert job.idle(), "told again with every report"


def test_it_waits_for_the_one_that_is_being_written() -> None:
    job = Job(interval_ms=0)
    job.commits(0, 0)
    job.next_id = 9
    job.gives_id(0)
    job.do(job.coordinator.outcome, left(STOP), 1)
    assert job.persists(2).checkpoint_id == 9
    assert [type(effect) for effect in job.effects] == [Ended, Persist]
    assert job.coordinator.find("r-3") is not None


def test_its_failure_is_shown() -> None:
    job = Job()
    job.do(job.coordinator.outcome, left(STOP, "disk full"), 1)
    (info,) = job.coordinator.history
    assert (info.status, info.failure, info.request_id) == (CheckpointStatus.FAILED, "disk full", "r-3")


def test_a_request_that_is_repeated_is_answered_by_the_order_of_before() -> None:
    """The driver has carried it out under another number, and will not do it twice."""
    job = Job()
    job.next_id = 8
    job.asks(STOP, 0)
    job.gives_id(0)
    assert job.taken(OrderDriver).order.request_id == "r-3"
    job.do(job.coordinator.outcome, left(STOP), 1)
    assert job.taken(Persist).info.external_path == "/saved/savepoint-7"


def test_the_positions_of_a_lost_masters_checkpoint_are_old() -> None:
    job = Job()
    job.do(job.coordinator.outcome, left(CHECKPOINT), 1)
    assert job.idle() and job.coordinator.find("r-1") is None
