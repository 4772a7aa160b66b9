"""When a job's checkpoints are taken, and when one is complete.

A checkpoint is the record of the batches Spark committed: one position per query.  Two kinds of
causes: periodic ones (INTERVAL, RETENTION) are recorded from positions the driver reported anyway;
requested ones (REQUESTED, SAVEPOINT, STOP) are an order to the driver, which answers with positions.
One is pending at a time; requests wait in a queue, and periodic ones have no queue, as the next
makes up for any that was left out.

``pending`` goes through DRAWING_ID → (requested: ORDERED →) READY → PERSISTING and ends COMPLETED or
FAILED.  While the master's leadership is in doubt (:meth:`CheckpointCoordinator.suspended`) nothing
begins, is written or expires; answers that arrive are kept.

Never reads a clock, draws an id nor writes: the shell performs the effects and reports back.  A
report about what is over is ignored, so effects may be answered late, twice or never.  Times are
milliseconds of one clock that does not run backwards.

Flink counterparts: ``CheckpointCoordinator``, ``CheckpointRequestDecider``.  There is no
``CheckpointFailureManager``: what a failed checkpoint lacks is the record of something that is
durable all the same, so it never fails the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from yarnflow.core.checkpoint.effects import Discard, Effect, Ended
from yarnflow.core.checkpoint.history import SAVEPOINT_RECORDS, CheckpointHistory
from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointOutcome,
    CheckpointRequest,
    CheckpointStatus,
    CheckpointTrigger,
    QueryPosition,
)
from yarnflow.core.checkpoint.pending import NO_ID, Pending, Stage, advanced, begun, periodic

#: pause before a write is tried again, and after a periodic one that failed
RETRY_PAUSE_MS: Final = 1_000
#: writes of one checkpoint, the first included; a connection may break just before it is noticed
PERSIST_ATTEMPTS: Final = 3

_PERIODIC: Final = (CheckpointTrigger.INTERVAL, CheckpointTrigger.RETENTION)


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """One job's options ``execution.checkpointing.*``."""

    #: 0 = every batch
    interval_ms: int
    min_pause_ms: int
    timeout_ms: int
    #: completed checkpoints that are kept
    retained: int
    #: batches Spark can go back to (``spark.sql.streaming.minBatchesToRetain``)
    keep_batches: int = 100
    #: savepoints of which there is a record
    savepoint_records: int = SAVEPOINT_RECORDS

    @property
    def batches_between(self) -> int:
        """Batches after which one is recorded in any case: so all that are retained stay readable."""
        return max(1, self.keep_batches // (self.retained + 1))


Result = tuple["CheckpointCoordinator", tuple[Effect, ...]]


@dataclass(frozen=True, slots=True)
class CheckpointCoordinator:
    """All checkpoints of one job; every method returns a new value and the effects to perform."""

    settings: CheckpointSettings
    past: CheckpointHistory
    #: newest known position of each query, in order of first mention
    positions: tuple[QueryPosition, ...] = ()
    pending: Pending | None = None
    queue: tuple[tuple[CheckpointRequest, int], ...] = ()
    #: savepoints that an earlier master ordered: all that is missing is the record
    copied: tuple[tuple[CheckpointRequest, CheckpointInfo], ...] = ()
    #: requests of these, and of those that failed
    taken_over: tuple[str, ...] = ()
    newest_id: int = NO_ID
    is_suspended: bool = False
    #: of the last checkpoint (no savepoint), or when the first position was heard of; -1 = neither
    last_trigger_ms: int = -1
    #: of the last checkpoint or savepoint, completed or failed; -1 = none
    last_end_ms: int = -1
    #: no periodic one begins before
    not_before_ms: int = 0
    #: to be discarded once that may be
    unwanted: tuple[int, ...] = ()
    #: the job is, so nothing is begun that nobody has asked for
    is_over: bool = False
    #: when last no query had anything to do, and no checkpoint lacked a batch; -1 = this was not seen
    up_to_date_ms: int = -1

    @classmethod
    def create(cls, settings: CheckpointSettings) -> CheckpointCoordinator:
        """A job without checkpoints."""
        return cls(settings, CheckpointHistory(settings.retained, settings.savepoint_records))

    # --- what is known --------------------------------------------------------

    @property
    def history(self) -> tuple[CheckpointInfo, ...]:
        """Newest first, the pending one included as soon as it has a number."""
        if self.pending is None or self.pending.info.checkpoint_id == NO_ID:
            return self.past.entries
        return (self.pending.info, *self.past.entries)

    @property
    def completed(self) -> int:
        """Since the job was first submitted, as far as records of earlier masters are left."""
        return self.past.completed

    @property
    def failed(self) -> int:
        """Under this master."""
        return self.past.failed

    def find(self, request_id: str) -> CheckpointInfo | None:
        """What a request led to so far; waiting ones have no number yet.  None = no such request."""
        if self.pending is not None and self.pending.info.request_id == request_id:
            return self.pending.info
        for request, at_ms in self.queue:
            if request.request_id == request_id:
                return begun(request, at_ms)
        for request, info in self.copied:
            if request.request_id == request_id:
                return info
        return self.past.find(request_id) if request_id else None

    @property
    def deadline_ms(self) -> int | None:
        """When :meth:`tick` is due; None = there is nothing to wait for."""
        if self.is_suspended:
            return None
        if self.pending is not None:
            retries = self.pending.stage is Stage.READY or (
                self.pending.stage is Stage.DRAWING_ID and not self.pending.asked
            )
            times = (self.pending.expires_ms, self.pending.not_before_ms if retries else None)
            return min((time for time in times if time is not None), default=None)
        if self._forgotten_soon():
            return self.not_before_ms
        return self._interval_over_ms() if self._has_news() else None

    # --- what happened --------------------------------------------------------

    def recovered(self, infos: Sequence[CheckpointInfo], at_ms: int) -> Result:
        """Once, before anything else: what earlier masters completed, from the store."""
        past, subsumed = self.past.recovered(infos)
        newest_id = max((info.checkpoint_id for info in infos), default=NO_ID)
        last_end_ms = max((info.end_ms for info in infos), default=-1)
        after = replace(
            self,
            past=past,
            newest_id=max(self.newest_id, newest_id),
            last_trigger_ms=at_ms,
            # another master's clock may be ahead, which must not hold this one up
            last_end_ms=min(last_end_ms, at_ms),
            unwanted=(*self.unwanted, *subsumed),
        )
        if past.newest is not None:
            after = after._heard_of(past.newest.positions)
        return after._go_on(at_ms, ())

    def progressed(
        self,
        positions: Sequence[QueryPosition],
        at_ms: int,
        idle_at_ms: int = -1,
        silent: Sequence[QueryPosition] = (),
    ) -> Result:
        """The driver committed batches; a position behind a known one is an old report, and ignored.

        Parameters
        ----------
        idle_at_ms : int
            When no query had anything to do; -1 = this was not seen.
        silent : sequence of QueryPosition
            Of queries that have committed nothing since they were started, by Spark's logs alone.
        """
        known = {position.query: position.batch_id for position in self.positions}
        # of the same batch more is known
        newer = [position for position in silent if position.batch_id > known.get(position.query, -1)]
        after = self._heard_of(positions)._heard_of(newer)
        if after.positions and after.last_trigger_ms < 0:
            after = replace(after, last_trigger_ms=at_ms)
        # a query that had to go back, as its state was damaged, does other batches of these numbers
        went_back = any(p.batch_id < known.get(p.query, -1) for p in (*positions, *silent))
        if idle_at_ms > after.up_to_date_ms and not went_back and not after._has_news():
            after = replace(after, up_to_date_ms=idle_at_ms)
        return after._go_on(at_ms, ())

    def requested(self, request: CheckpointRequest, at_ms: int) -> Result:
        """A user wants one.  Asking again with the same ``request_id`` changes nothing."""
        if self.find(request.request_id) is not None:
            return self._go_on(at_ms, ())
        return replace(self, queue=(*self.queue, (request, at_ms)))._go_on(at_ms, ())

    def id_given(self, checkpoint_id: int, at_ms: int) -> Result:
        """The number that was needed."""
        pending = self.pending
        # a number that was drawn for one that expired meanwhile serves the next
        if pending is None or pending.stage is not Stage.DRAWING_ID:
            return replace(self, newest_id=max(self.newest_id, checkpoint_id))._go_on(at_ms, ())
        if checkpoint_id <= self.newest_id:
            # but none goes back
            return replace(self, pending=replace(pending, asked=False))._go_on(at_ms, ())
        stage, info = Stage.NUMBERED, replace(pending.info, checkpoint_id=checkpoint_id)
        if pending.request is None:
            # as of now, not as of the trigger: batches may have been committed since
            stage, info = Stage.READY, replace(info, positions=self.positions)
        numbered = replace(pending, stage=stage, info=info, not_before_ms=0, attempts=0)
        return replace(self, pending=numbered, newest_id=checkpoint_id)._go_on(at_ms, ())

    def id_failed(self, reason: str, at_ms: int) -> Result:
        """No number was to be had; it is tried again a few times."""
        pending = self.pending
        if pending is None or pending.stage is not Stage.DRAWING_ID:
            return self._go_on(at_ms, ())
        return self._try_again(replace(pending, asked=False), f"no number: {reason}", at_ms)

    def outcome(self, outcome: CheckpointOutcome, at_ms: int) -> Result:
        """What the driver says of an order, maybe again; maybe of one that an earlier master gave."""
        pending = self.pending
        if pending is None or pending.stage is not Stage.ORDERED or not _answers(outcome, pending.info):
            return self._taken_over(outcome, at_ms)
        if outcome.failure:
            after, effects = self._ended_badly(outcome.failure, at_ms)
            return after._go_on(at_ms, effects)
        info = _with(pending.info, outcome)
        after = self._heard_of(outcome.positions)
        if info.kind is CheckpointKind.CHECKPOINT:
            # a report may have overtaken it, and a checkpoint is never behind an earlier one
            info = replace(info, positions=after.positions)
        ready = replace(pending, stage=Stage.READY, info=info, not_before_ms=0, attempts=0)
        if ready.expires_ms is None:
            ready = replace(ready, expires_ms=self._expiry(at_ms))
        return replace(after, pending=ready)._go_on(at_ms, ())

    def persisted(self, info: CheckpointInfo, at_ms: int) -> Result:
        """The record is durable, ``external_path`` known.  It counts even while suspended."""
        pending = self.pending
        if pending is None or pending.info.checkpoint_id != info.checkpoint_id:
            if self.past.has_completed(info.checkpoint_id):
                return self._go_on(at_ms, ())
            # it was given up and still got written: nobody knows of it, so nobody would remove it
            return replace(self, unwanted=(*self.unwanted, info.checkpoint_id))._go_on(at_ms, ())
        ended = replace(
            pending.info,
            status=CheckpointStatus.COMPLETED,
            end_ms=at_ms,
            persist_ms=at_ms - pending.persist_began_ms,
            external_path=info.external_path,
            completed=info.completed,
        )
        past, subsumed = self.past.ended(ended)
        after = replace(
            self,
            past=past,
            pending=None,
            last_end_ms=at_ms,
            unwanted=(*self.unwanted, *subsumed),
        )
        return after._go_on(at_ms, (Ended(ended),))

    def persist_failed(self, checkpoint_id: int, reason: str, at_ms: int) -> Result:
        """The record could not be written, or it is not known whether; it is tried again a few times."""
        pending = self.pending
        if (
            pending is None
            or pending.stage is not Stage.PERSISTING
            or pending.info.checkpoint_id != checkpoint_id
        ):
            return self._go_on(at_ms, ())
        return self._try_again(replace(pending, stage=Stage.READY), reason, at_ms)

    def tick(self, at_ms: int) -> Result:
        """Time went by.

        One that is not complete within the time-out has failed, except a stop the driver was
        ordered: it cannot be taken back, so its end is waited for.
        """
        expires_ms = None if self.pending is None else self.pending.expires_ms
        if self.is_suspended or expires_ms is None or at_ms < expires_ms:
            return self._go_on(at_ms, ())
        reason = f"not complete within {self.settings.timeout_ms} ms (execution.checkpointing.timeout)"
        after, effects = self._ended_badly(reason, at_ms)
        return after._go_on(at_ms, effects)

    def driver_lost(self, reason: str, at_ms: int) -> Result:
        """Whatever only the driver could do has failed, also what waits; the client may ask again."""
        after, effects = self, tuple[Effect, ...]()
        in_driver = (Stage.DRAWING_ID, Stage.NUMBERED, Stage.ORDERED)
        pending = self.pending
        if pending is not None and pending.request is not None and pending.stage in in_driver:
            after, effects = self._ended_badly(reason, at_ms)
        waiting, after = after.queue, replace(after, queue=())
        for request, asked_ms in waiting:
            after, more = after._failed(begun(request, asked_ms), reason, at_ms)
            effects += more
        return after._go_on(at_ms, effects)

    def over(self, reason: str, at_ms: int) -> Result:
        """The job has ended: as without its driver, and a periodic one that is not being written is dropped.

        It would stay in progress for ever; nobody has asked for it, and the batches are committed.
        """
        after, pending = replace(self, is_over=True), self.pending
        if pending is not None and pending.request is None and pending.stage is not Stage.PERSISTING:
            after = replace(after, pending=None)
            if pending.persist_began_ms >= 0:
                after = replace(after, unwanted=(*after.unwanted, pending.info.checkpoint_id))
        return after.driver_lost(reason, at_ms)

    def suspended(self) -> Result:
        """The master may have lost the lead: nothing is begun, written or given up until resumed."""
        return replace(self, is_suspended=True), ()

    def resumed(self, at_ms: int) -> Result:
        """It led all the time.  The pending one's time begins anew, as it could not be worked on."""
        after = replace(self, is_suspended=False)
        if self.pending is not None and self.pending.expires_ms is not None:
            after = replace(after, pending=replace(self.pending, expires_ms=self._expiry(at_ms)))
        return after._go_on(at_ms, ())

    # --- rules ----------------------------------------------------------------

    def _taken_over(self, outcome: CheckpointOutcome, at_ms: int) -> Result:
        """Take over the end of a savepoint that an earlier master ordered and has not recorded.

        Not that of a checkpoint: positions may have been recorded since that are newer.
        """
        known = outcome.request_id in self.taken_over or self.find(outcome.request_id) is not None
        if outcome.kind is not CheckpointKind.SAVEPOINT or not outcome.request_id or known:
            return self._go_on(at_ms, ())
        request = CheckpointRequest(outcome.request_id, outcome.kind, after=outcome.after)
        info = replace(begun(request, at_ms), checkpoint_id=outcome.checkpoint_id)
        after = replace(
            self,
            newest_id=max(self.newest_id, outcome.checkpoint_id),
            taken_over=(*self.taken_over, outcome.request_id),
        )
        if outcome.failure:
            after, effects = after._failed(info, outcome.failure, at_ms)
            return after._go_on(at_ms, effects)
        after = after._heard_of(outcome.positions)
        return replace(after, copied=(*after.copied, (request, _with(info, outcome))))._go_on(at_ms, ())

    def _heard_of(self, positions: Sequence[QueryPosition]) -> CheckpointCoordinator:
        known = {position.query: position for position in self.positions}
        for position in positions:
            before = known.get(position.query)
            if before is None or before.batch_id <= position.batch_id:
                known[position.query] = position
        return replace(self, positions=tuple(known.values()))

    def _behind(self) -> int:
        """Batches the newest completed checkpoint is behind, of the query where it is furthest."""
        recorded = dict(self.past.recorded)
        return max((p.batch_id - recorded.get(p.query, -1) for p in self.positions), default=0)

    def _has_news(self) -> bool:
        return self._behind() > 0

    def _forgotten_soon(self) -> bool:
        return self._behind() >= self.settings.batches_between

    def _interval_over_ms(self) -> int:
        interval_over_ms = self.last_trigger_ms + self.settings.interval_ms
        pause_over_ms = self.last_end_ms + self.settings.min_pause_ms if self.last_end_ms >= 0 else 0
        return max(interval_over_ms, pause_over_ms, self.not_before_ms)

    def _expiry(self, at_ms: int) -> int:
        return at_ms + self.settings.timeout_ms

    def _go_on(self, at_ms: int, effects: tuple[Effect, ...]) -> Result:
        """Do what can be done now."""
        if self.is_suspended:
            return self, effects
        after = replace(self, unwanted=())
        effects += tuple(Discard(checkpoint_id) for checkpoint_id in self.unwanted)
        if after.pending is None:
            after = after._begin_next(at_ms)
        if after.pending is None:
            return after, effects
        pending, effect = advanced(after.pending, at_ms)
        return replace(after, pending=pending), effects + ((effect,) if effect else ())

    def _begin_next(self, at_ms: int) -> CheckpointCoordinator:
        # before requests: a savepoint can take long, and Spark goes on forgetting meanwhile
        if self._forgotten_soon() and at_ms >= self.not_before_ms and not self.is_over:
            return self._begin(periodic(CheckpointTrigger.RETENTION, at_ms), None, at_ms)
        if self.copied:
            (request, info), *copies = self.copied
            pending = Pending(Stage.READY, info, self._expiry(at_ms), request)
            return replace(self, copied=tuple(copies), pending=pending)
        if self.queue:
            (request, asked_ms), *others = self.queue
            return replace(self, queue=tuple(others))._begin(begun(request, asked_ms), request, at_ms)
        if self._has_news() and at_ms >= self._interval_over_ms() and not self.is_over:
            return self._begin(periodic(CheckpointTrigger.INTERVAL, at_ms), None, at_ms)
        return self

    def _begin(
        self, info: CheckpointInfo, request: CheckpointRequest | None, at_ms: int
    ) -> CheckpointCoordinator:
        pending = Pending(Stage.DRAWING_ID, info, self._expiry(at_ms), request)
        is_savepoint = info.kind is CheckpointKind.SAVEPOINT
        last_trigger_ms = self.last_trigger_ms if is_savepoint else at_ms
        return replace(self, pending=pending, last_trigger_ms=last_trigger_ms)

    def _try_again(self, pending: Pending, reason: str, at_ms: int) -> Result:
        if self.is_suspended:
            # the connection it failed over: no attempt of the checkpoint's own
            return replace(self, pending=replace(pending, not_before_ms=0)), ()
        attempts = pending.attempts + 1
        if attempts >= PERSIST_ATTEMPTS or (self.is_over and pending.request is None):
            after, effects = replace(self, pending=pending)._ended_badly(reason, at_ms)
            return after._go_on(at_ms, effects)
        again = replace(pending, attempts=attempts, not_before_ms=at_ms + RETRY_PAUSE_MS)
        return replace(self, pending=again)._go_on(at_ms, ())

    def _ended_badly(self, reason: str, at_ms: int) -> Result:
        """The pending one failed."""
        pending = self.pending
        assert pending is not None, "the callers looked"
        after = replace(self, pending=None)
        if pending.persist_began_ms >= 0:
            # perhaps it was written, and only the answer is missing
            after = replace(after, unwanted=(*after.unwanted, pending.info.checkpoint_id))
            if pending.info.external_path:
                reason = f"{reason}; its files are complete, in {pending.info.external_path}"
        return after._failed(pending.info, reason, at_ms)

    def _failed(self, info: CheckpointInfo, reason: str, at_ms: int) -> Result:
        ended = replace(info, status=CheckpointStatus.FAILED, end_ms=at_ms, failure=reason)
        past, _ = self.past.ended(ended)
        after = replace(self, past=past, last_end_ms=at_ms)
        if info.trigger in _PERIODIC:
            # The batches are committed, whether that is recorded or not: no reason to interrupt the job.
            after = replace(after, not_before_ms=at_ms + RETRY_PAUSE_MS)
        return after, (Ended(ended),)


def _answers(outcome: CheckpointOutcome, info: CheckpointInfo) -> bool:
    """Whether the outcome is that of this one, or of the order another master gave for its request."""
    if outcome.checkpoint_id == info.checkpoint_id:
        return True
    return bool(info.request_id) and outcome.request_id == info.request_id


def _with(info: CheckpointInfo, outcome: CheckpointOutcome) -> CheckpointInfo:
    """What the driver has done."""
    return replace(
        info,
        external_path=outcome.target,
        positions=outcome.positions,
        commit_wait_ms=outcome.commit_wait_ms,
        pause_ms=outcome.pause_ms,
        copy_ms=outcome.copy_ms,
        copied_bytes=outcome.copied_bytes,
    )
