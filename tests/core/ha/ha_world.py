"""One job in a small world of masters, drivers and a ZooKeeper, for random interleavings.

Every step is one message sent, heard or lost, or some time going by; who is cut off or stopped is
simply not given steps.  Time is true time and every process's clock at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from yarnflow.core.checkpoint.coordinator import CheckpointCoordinator, CheckpointSettings
from yarnflow.core.checkpoint.effects import Discard, Effect, NeedId, OrderDriver, Persist
from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointOutcome,
    CheckpointStatus,
    QueryPosition,
)
from yarnflow.core.ha import leadership as lead
from yarnflow.core.ha.lease import LeaseClock, LeaseState

SESSION_TIMEOUT_MS = 9_000
SETTINGS = CheckpointSettings(
    interval_ms=1_000, min_pause_ms=0, timeout_ms=5_000, retained=2
)

Result = tuple[CheckpointCoordinator, tuple[Effect, ...]]


@dataclass
class ZooKeeper:
    """The truth: sessions, the latch, the epoch, the lease, and one job's completed checkpoints."""

    now_ms: int = 0
    #: session → when it was last heard of; those that expired are not there
    heard_ms: dict[int, int] = field(default_factory=dict)
    sessions: int = 0
    latch: list[int] = field(default_factory=list)
    epoch: int = 0
    #: session of the driver that has it
    lease: int | None = None
    counter: int = 0
    pointers: dict[int, CheckpointInfo] = field(default_factory=dict)
    #: ids in order of their first write
    written: list[int] = field(default_factory=list)

    def open_session(self) -> int:
        self.sessions += 1
        self.heard_ms[self.sessions] = self.now_ms
        return self.sessions

    def hear(self, session: int) -> bool:
        """Whether the session still is."""
        if session not in self.heard_ms:
            return False
        self.heard_ms[session] = self.now_ms
        return True

    def wait(self, duration_ms: int) -> None:
        """Let time go by, and sessions end when nobody hears of them."""
        self.now_ms += duration_ms
        silent = [s for s, at_ms in self.heard_ms.items() if self.now_ms - at_ms >= SESSION_TIMEOUT_MS]
        for session in silent:
            del self.heard_ms[session]
            self.latch = [other for other in self.latch if other != session]
            self.lease = None if self.lease == session else self.lease


@dataclass
class Driver:
    """One that wants to write, or does."""

    zk: ZooKeeper
    session: int
    clock: LeaseClock = LeaseClock(SESSION_TIMEOUT_MS)
    #: when each call that nobody has heard yet was sent
    calls: list[int] = field(default_factory=list)
    #: when each call was sent whose answer is on its way
    answers: list[int] = field(default_factory=list)

    def heard(self, lost: bool) -> None:
        """ZooKeeper hears the oldest call, and answers that the lease is the driver's, if it is."""
        sent_ms = self.calls.pop(0)
        if lost or not self.zk.hear(self.session):
            return
        if self.clock.state is LeaseState.WAITING and self.zk.lease is None:
            self.zk.lease = self.session
        if self.zk.lease == self.session:
            self.answers.append(sent_ms)

    def hears(self, which: int) -> None:
        """An answer arrives, however late and in whatever order."""
        sent_ms = self.answers.pop(which % len(self.answers))
        waiting = self.clock.state is LeaseState.WAITING
        self.clock = self.clock.acquired(sent_ms) if waiting else self.clock.renewed(sent_ms)

    def may_write(self) -> bool:
        self.clock = self.clock.looked_at(self.zk.now_ms)
        return self.clock.may_write(self.zk.now_ms)


@dataclass
class Master:
    """A candidate or leader, with the job's coordinator once it leads."""

    zk: ZooKeeper
    session: int
    model: lead.LeadershipModel
    #: what its connection will tell it
    inbox: list[lead.LeadershipEvent] = field(default_factory=list)
    has_raised: bool = False
    coordinator: CheckpointCoordinator | None = None
    effects: list[Effect] = field(default_factory=list)
    #: answers to effects on their way back
    answers: list[Callable[[CheckpointCoordinator], Result]] = field(default_factory=list)

    @property
    def leads(self) -> bool:
        """In truth; a deposed one may think so, too."""
        return 0 < self.model.epoch == self.zk.epoch

    @property
    def is_fenced(self) -> bool:
        """Whether ZooKeeper refuses its writes."""
        return not self.leads or not self.zk.hear(self.session)

    def is_elected(self) -> None:
        """It is the first at the latch: raise the epoch, once."""
        if self.zk.latch[:1] == [self.session] and not self.has_raised:
            self.has_raised = True
            self.zk.epoch += 1
            self.inbox.append(lead.Elected(self.zk.now_ms, self.zk.epoch))

    def reconnects(self) -> None:
        alive = self.zk.hear(self.session)
        event = lead.ConnectionRestored if alive else lead.SessionLost
        self.inbox.append(event(self.zk.now_ms))

    def hears(self) -> None:
        """The next thing its connection tells."""
        event = self.inbox.pop(0)
        if not lead.MACHINE.accepts(self.model.state, type(event)):
            return
        self.model, effects = lead.MACHINE.step(self.model, event)
        for effect in effects:
            if isinstance(effect, lead.Grant):
                coordinator = CheckpointCoordinator.create(SETTINGS)
                infos = [self.zk.pointers[number] for number in sorted(self.zk.pointers)]
                self.apply(coordinator.recovered(infos, self.zk.now_ms))
            elif isinstance(effect, lead.Freeze):
                self.coordinate(lambda c: c.suspended())
            elif isinstance(effect, lead.Thaw):
                self.coordinate(lambda c: c.resumed(self.zk.now_ms))
            elif isinstance(effect, lead.StandAgain):
                self.session, self.has_raised = self.zk.open_session(), False
                self.zk.latch.append(self.session)

    def coordinate(self, step: Callable[[CheckpointCoordinator], Result]) -> None:
        # a revoked master's process ends, but only after what it has in hand
        if self.coordinator is not None and self.model.state is not lead.Leadership.REVOKED:
            self.apply(step(self.coordinator))

    def apply(self, result: Result) -> None:
        self.coordinator, effects = result
        self.effects += effects

    def performs(self, committed: int, lost: bool) -> None:
        """Perform the oldest effect; ``lost`` = whatever came of it is not heard of."""
        effect, now_ms = self.effects.pop(0), self.zk.now_ms
        fenced = self.is_fenced
        if isinstance(effect, NeedId):
            if fenced or lost:
                self.answers.append(lambda c: c.id_failed("lost", now_ms))
            else:
                self.zk.counter += 1
                number = self.zk.counter
                self.answers.append(lambda c: c.id_given(number, self.zk.now_ms))
        elif isinstance(effect, OrderDriver) and not lost:
            position = QueryPosition("q", committed)
            outcome = CheckpointOutcome(effect.order.checkpoint_id, positions=(position,))
            self.answers.append(lambda c: c.outcome(outcome, self.zk.now_ms))
        elif isinstance(effect, Persist):
            info = replace(effect.info, status=CheckpointStatus.COMPLETED)
            if not fenced:
                self.write(info)
            if fenced or lost:
                self.answers.append(lambda c: c.persist_failed(info.checkpoint_id, "lost", self.zk.now_ms))
            else:
                self.answers.append(lambda c: c.persisted(info, self.zk.now_ms))
        elif isinstance(effect, Discard) and not fenced:
            self.zk.pointers.pop(effect.checkpoint_id, None)

    def write(self, info: CheckpointInfo) -> None:
        if info.checkpoint_id not in self.zk.written:
            assert info.checkpoint_id > max(self.zk.written, default=0), "ids only rise"
            self.zk.written.append(info.checkpoint_id)
        if info.kind is CheckpointKind.CHECKPOINT:
            for other in self.zk.pointers.values():
                if other.kind is info.kind and other.checkpoint_id < info.checkpoint_id:
                    before, after = other.positions[0].batch_id, info.positions[0].batch_id
                    assert before <= after, "a checkpoint is never behind an earlier one"
        self.zk.pointers[info.checkpoint_id] = info
