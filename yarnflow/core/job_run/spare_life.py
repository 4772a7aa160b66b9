"""The life of a job's hot spare: how far it is, and when the next is tried after one was lost.

A hot spare is a driver with executors on slots of its own that is not deployed, and so has no lease:
two drivers that write cannot come of it.  When its slots are asked for, what it costs the job and when
it steps in is decided by :mod:`yarnflow.core.job_run.decider`.  Times are milliseconds of a clock that does
not jump.

Flink has no counterpart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Never

from yarnflow.core.fsm import Machine, Row, Timestamps, on, stamped
from yarnflow.core.ids import JobId

#: milestone that a hot spare reports: it is as warm as it will be
REHEARSED: Final = "REHEARSED"
#: before a lost hot spare is replaced; doubled each time, until one is warm
RETRY_MS: Final = 1_000
MAX_RETRY_MS: Final = 60_000


class SpareState(Enum):
    """How far a job's hot spare is."""

    #: no slots were asked for: the job's own come first
    UNWANTED = "UNWANTED"
    #: its slots were asked for; no driver yet
    SLOTS = "SLOTS"
    #: one was lost; the next is tried after a while
    PAUSE = "PAUSE"
    #: its driver is being started
    DRIVER = "DRIVER"
    #: its driver can take executors
    EXECUTORS = "EXECUTORS"
    #: it could go on with the job at once
    WARM = "WARM"
    #: the job is over
    OVER = "OVER"


S = SpareState


@dataclass(frozen=True, slots=True)
class SpareLife:
    """One job's hot spare."""

    job_id: JobId
    state: SpareState = S.UNWANTED
    #: the ResourceManager has been asked for its slots
    slots_asked: bool = False
    #: time of the last entry of each state, in order of entry
    timestamps: Timestamps[SpareState] = ()
    #: of those that were never warm, in a row
    failures: int = 0
    #: PAUSE only: when the next is tried
    retry_ms: int = -1

    @classmethod
    def create(cls, job_id: JobId, at_ms: int) -> SpareLife:
        """Of a job that has just come to this master."""
        return cls(job_id, timestamps=((S.UNWANTED, at_ms),))

    @property
    def exists(self) -> bool:
        """There is a driver, or one is being started."""
        return self.state in (S.DRIVER, S.EXECUTORS, S.WARM)


# --- events -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpareEvent:
    """Something happened to it."""

    at_ms: int


class SlotsAsked(SpareEvent):
    """The job has all of its own, and as many again are asked for."""


class SpareLaunched(SpareEvent):
    """A driver is being started."""


class SpareReady(SpareEvent):
    """The driver can take executors, or one that an earlier master had ready has come."""


class SpareWarm(SpareEvent):
    """Slots, driver and executors are all there, and warm."""


class SpareCooled(SpareEvent):
    """Slots or executors are missing again."""


class SpareLost(SpareEvent):
    """The driver is gone, or of no use."""


class SpareMoved(SpareEvent):
    """The driver is given up, as the next one will have a better place."""


class PauseOver(SpareEvent):
    """The next may be tried."""


class SpareStepped(SpareEvent):
    """The driver goes on with the job."""


class JobOver(SpareEvent):
    """Nothing is wanted any more."""


#: it wants nothing done
Result = tuple[SpareLife, tuple[Never, ...]]
SpareRow = Row[SpareLife, SpareEvent, Never]

# --- functions --------------------------------------------------------------


def _enter(life: SpareLife, state: SpareState, at_ms: int) -> Result:
    timestamps = stamped(life.timestamps, state, at_ms)
    return replace(life, state=state, timestamps=timestamps, retry_ms=-1), ()


def _asked(life: SpareLife, event: SlotsAsked) -> Result:
    return _enter(replace(life, slots_asked=True), S.SLOTS, event.at_ms)


def _asked_late(life: SpareLife, event: SlotsAsked) -> Result:
    return replace(life, slots_asked=True), ()


def _waiting(life: SpareLife, at_ms: int) -> Result:
    return _enter(life, S.SLOTS if life.slots_asked else S.UNWANTED, at_ms)


def _launched(life: SpareLife, event: SpareLaunched) -> Result:
    return _enter(life, S.DRIVER, event.at_ms)


def _ready(life: SpareLife, event: SpareReady) -> Result:
    return _enter(life, S.EXECUTORS, event.at_ms)


def _warm(life: SpareLife, event: SpareWarm) -> Result:
    return _enter(replace(life, failures=0), S.WARM, event.at_ms)


def _cooled(life: SpareLife, event: SpareCooled) -> Result:
    return _enter(life, S.EXECUTORS, event.at_ms)


def _lost(life: SpareLife, event: SpareLost) -> Result:
    delay_ms = min(RETRY_MS << min(life.failures, 10), MAX_RETRY_MS)
    return _paused(replace(life, failures=life.failures + 1), event.at_ms, delay_ms)


def _moved(life: SpareLife, event: SpareMoved) -> Result:
    return _paused(life, event.at_ms, RETRY_MS)


def _paused(life: SpareLife, at_ms: int, delay_ms: int) -> Result:
    after, _ = _enter(life, S.PAUSE, at_ms)
    return replace(after, retry_ms=at_ms + delay_ms), ()


def _resumed(life: SpareLife, event: PauseOver) -> Result:
    return _waiting(life, event.at_ms)


def _stepped(life: SpareLife, event: SpareStepped) -> Result:
    return _waiting(life, event.at_ms)


def _over(life: SpareLife, event: JobOver) -> Result:
    return _enter(life, S.OVER, event.at_ms)


# --- the table --------------------------------------------------------------

_ROWS: Final[tuple[SpareRow, ...]] = (
    on(S.UNWANTED, SlotsAsked, _asked, S.SLOTS, note="the job has all its own slots"),
    on(S.UNWANTED, SpareLaunched, _launched, S.DRIVER, note="there are slots from an earlier master"),
    on(S.UNWANTED, SpareReady, _ready, S.EXECUTORS, note="an earlier master had one ready"),
    on(S.UNWANTED, JobOver, _over, S.OVER, note="it was never requested"),
    on(S.SLOTS, SpareLaunched, _launched, S.DRIVER, note="it has slots, and the job has run for a while"),
    on(S.SLOTS, SpareReady, _ready, S.EXECUTORS, note="an earlier master had one ready"),
    on(S.SLOTS, JobOver, _over, S.OVER, note="the job ended first"),
    on(S.PAUSE, SlotsAsked, _asked_late, S.PAUSE, note="the lost hot spare came from an earlier master"),
    on(
        S.PAUSE,
        PauseOver,
        _resumed,
        S.SLOTS,
        S.UNWANTED,
        note="longer after each that was never WARM; UNWANTED if slots were not requested",
    ),
    on(S.PAUSE, SpareReady, _ready, S.EXECUTORS, note="an earlier master had one ready"),
    on(S.PAUSE, JobOver, _over, S.OVER, note="the job ended first"),
    on(S.DRIVER, SlotsAsked, _asked_late, S.DRIVER, note="it was started on slots from an earlier master"),
    on(S.DRIVER, SpareReady, _ready, S.EXECUTORS, note="its session is up"),
    on(S.DRIVER, SpareLost, _lost, S.PAUSE, note="it ended, or did not register in time"),
    on(
        S.DRIVER,
        SpareStepped,
        _stepped,
        S.SLOTS,
        S.UNWANTED,
        note="the job's driver was lost; starting another driver would not be faster",
    ),
    on(S.DRIVER, JobOver, _over, S.OVER, note="the job ended first"),
    on(S.EXECUTORS, SlotsAsked, _asked_late, S.EXECUTORS, note="it came from an earlier master"),
    on(S.EXECUTORS, SpareWarm, _warm, S.WARM, note="the driver sees all executors and has run the rehearsal"),
    on(S.EXECUTORS, SpareLost, _lost, S.PAUSE, note="it ended, does not report, or gets no executors"),
    on(S.EXECUTORS, SpareMoved, _moved, S.PAUSE, note="it would be lost with the job's driver"),
    on(S.EXECUTORS, SpareStepped, _stepped, S.SLOTS, S.UNWANTED, note="the job's driver was lost"),
    on(S.EXECUTORS, JobOver, _over, S.OVER, note="the job ended first"),
    on(S.WARM, SlotsAsked, _asked_late, S.WARM, note="it came from an earlier master"),
    on(S.WARM, SpareCooled, _cooled, S.EXECUTORS, note="slots or executors were lost, or given to the job"),
    on(S.WARM, SpareLost, _lost, S.PAUSE, note="it ended, or does not report"),
    on(S.WARM, SpareMoved, _moved, S.PAUSE, note="it would be lost with the job's driver"),
    on(
        S.WARM,
        SpareStepped,
        _stepped,
        S.SLOTS,
        S.UNWANTED,
        note="the job's driver was lost, or its last executor",
    ),
    on(S.WARM, JobOver, _over, S.OVER, note="the job ended first"),
)


def _contradiction(life: SpareLife) -> str:
    if (life.state is S.PAUSE) is not (life.retry_ms >= 0):
        return f"{life.state.name}, retry at {life.retry_ms}"
    return ""


MACHINE: Final[Machine[SpareLife, SpareEvent, Never]] = Machine(
    name="HotSpare",
    states=SpareState,
    initial=S.UNWANTED,
    terminal=(S.OVER,),
    id_of=lambda life: life.job_id,
    rows=_ROWS,
    contradiction=_contradiction,
)
