"""When somebody has to be told: no checkpoint, restarts again and again, growing lag, no TaskManagers.

Decides from observations that carry their time; who is told, and how, is not decided here.  Each rule has a
machine for each subject (a job, or the cluster): a condition must hold for a while before it is an alert,
and an alert is told once when it begins and once when it ends.  Flink has no alerts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from yarnflow.core.fsm import Machine, Row, Timestamps, on, stamped
from yarnflow.core.ids import JobId

#: a master that has just taken over has to hear first that a job had nothing to do, maybe of a new driver
_HEARD_WITHIN_MS: Final = 120_000
#: subject of rules about the cluster as a whole
CLUSTER: Final = ""


class AlertRule(Enum):
    """What is watched."""

    NO_CHECKPOINT = "NO_CHECKPOINT"
    RESTART_LOOP = "RESTART_LOOP"
    LAG_GROWING = "LAG_GROWING"
    NO_TASK_MANAGERS = "NO_TASK_MANAGERS"


class AlertState(Enum):
    """What one rule says of one subject."""

    #: the condition does not hold
    QUIET = "QUIET"
    #: it holds, but not for long enough
    PENDING = "PENDING"
    #: somebody was told
    FIRING = "FIRING"
    #: there is no such subject any more
    ENDED = "ENDED"


A = AlertState


@dataclass(frozen=True, slots=True)
class AlertModel:
    """One rule and one subject."""

    rule: AlertRule
    #: job id; empty = the cluster
    subject: str
    #: how long the condition must hold
    for_ms: int
    state: AlertState
    timestamps: Timestamps[AlertState]
    #: what was told when it began
    text: str = ""

    @classmethod
    def create(cls, rule: AlertRule, subject: str, for_ms: int, at_ms: int) -> AlertModel:
        """Nothing is known yet."""
        return cls(rule, subject, for_ms, A.QUIET, ((A.QUIET, at_ms),))

    @property
    def since_ms(self) -> int:
        """When its state was entered."""
        return self.timestamps[-1][1]


@dataclass(frozen=True, slots=True)
class ConditionHolds:
    """It was looked, and there is something to be told."""

    at_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class ConditionClear:
    """It was looked, and all is well."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class SubjectEnded:
    """The job is over."""

    at_ms: int


AlertEvent = ConditionHolds | ConditionClear | SubjectEnded


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell somebody."""

    rule: AlertRule
    subject: str
    #: begins; else it is over
    firing: bool
    text: str
    at_ms: int
    #: when the condition began to hold
    since_ms: int


Result = tuple[AlertModel, tuple[Tell, ...]]
AlertRow = Row[AlertModel, AlertEvent, Tell]


def _enter(model: AlertModel, state: AlertState, at_ms: int) -> AlertModel:
    return replace(model, state=state, timestamps=stamped(model.timestamps, state, at_ms))


def _began(model: AlertModel, event: ConditionHolds) -> Result:
    pending = _enter(model, A.PENDING, event.at_ms)
    return _lasts(pending, event)


def _lasts(model: AlertModel, event: ConditionHolds) -> Result:
    if event.at_ms - model.since_ms < model.for_ms:
        return model, ()
    tell = Tell(model.rule, model.subject, True, event.text, event.at_ms, model.since_ms)
    return replace(_enter(model, A.FIRING, event.at_ms), text=event.text), (tell,)


def _passed(model: AlertModel, event: ConditionClear) -> Result:
    return _enter(model, A.QUIET, event.at_ms), ()


def _resolved(model: AlertModel, event: ConditionClear) -> Result:
    return replace(_enter(model, A.QUIET, event.at_ms), text=""), (_over(model, event.at_ms),)


def _ended(model: AlertModel, event: SubjectEnded) -> Result:
    return _enter(model, A.ENDED, event.at_ms), ()


def _ended_firing(model: AlertModel, event: SubjectEnded) -> Result:
    return replace(_enter(model, A.ENDED, event.at_ms), text=""), (_over(model, event.at_ms),)


def _over(model: AlertModel, at_ms: int) -> Tell:
    return Tell(model.rule, model.subject, False, model.text, at_ms, model.since_ms)


def _unchanged(model: AlertModel, event: AlertEvent) -> Result:
    return model, ()


_ROWS: Final[tuple[AlertRow, ...]] = (
    on(A.QUIET, ConditionHolds, _began, A.PENDING, A.FIRING, note="FIRING if it need not last"),
    on(A.QUIET, ConditionClear, _unchanged, A.QUIET, note="as before"),
    on(A.QUIET, SubjectEnded, _ended, A.ENDED, note="nobody was told"),
    on(A.PENDING, ConditionHolds, _lasts, A.PENDING, A.FIRING, note="FIRING once it has lasted"),
    on(A.PENDING, ConditionClear, _passed, A.QUIET, note="nobody was told"),
    on(A.PENDING, SubjectEnded, _ended, A.ENDED),
    on(A.FIRING, ConditionHolds, _unchanged, A.FIRING, note="told once"),
    on(A.FIRING, ConditionClear, _resolved, A.QUIET, note="its end is told, too"),
    on(A.FIRING, SubjectEnded, _ended_firing, A.ENDED, note="its end is told, too"),
)


def _contradiction(model: AlertModel) -> str:
    if (model.state is A.FIRING) is not bool(model.text):
        return f"{model.state.name} with the text {model.text!r}"
    return ""


MACHINE: Final[Machine[AlertModel, AlertEvent, Tell]] = Machine(
    name="Alert",
    states=AlertState,
    initial=A.QUIET,
    terminal=(A.ENDED,),
    id_of=lambda model: f"{model.rule.name} of {model.subject or 'the cluster'}",
    rows=_ROWS,
    contradiction=_contradiction,
)

# --- what is looked at ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """Limits of the rules; 0 switches one off."""

    checkpoint_max_age_ms: int = 0
    restarts: int = 0
    restarts_window_ms: int = 600_000
    lag_window_ms: int = 0
    #: smaller growth is none
    lag_min_records: int = 0
    no_task_managers_ms: int = 0


@dataclass(frozen=True, slots=True)
class JobObservation:
    """A live job at one time."""

    job_id: JobId
    name: str
    #: periodic checkpoints are taken
    checkpointing: bool
    checkpoint_age_ms: int
    #: restarts since it was submitted
    restarts: int
    #: messages that its sources have not read; None = not known
    pending_records: int | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """The cluster at one time."""

    at_ms: int
    task_managers: int
    jobs: tuple[JobObservation, ...] = ()


#: (time, value), oldest first
History = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class AlertBook:
    """All alerts; every method returns a new value."""

    settings: AlertSettings
    models: Mapping[tuple[AlertRule, str], AlertModel] = field(default_factory=dict)
    restarts: Mapping[str, History] = field(default_factory=dict)
    pending: Mapping[str, History] = field(default_factory=dict)

    @property
    def firing(self) -> tuple[AlertModel, ...]:
        """What somebody was told and is not over."""
        return tuple(model for model in self.models.values() if model.state is A.FIRING)

    def observe(self, seen: Observation) -> tuple[AlertBook, tuple[Tell, ...]]:
        """Look at the cluster."""
        settings, at_ms = self.settings, seen.at_ms
        restarts: dict[str, History] = {
            job.job_id: _kept(
                self.restarts.get(job.job_id, ()), at_ms, job.restarts, settings.restarts_window_ms
            )
            for job in seen.jobs
        }
        pending: dict[str, History] = {
            job.job_id: _kept(
                self.pending.get(job.job_id, ()), at_ms, job.pending_records, settings.lag_window_ms
            )
            for job in seen.jobs
            if job.pending_records is not None
        }
        said = dict(_cluster_conditions(settings, seen))
        for job in seen.jobs:
            said |= _job_conditions(settings, job, restarts[job.job_id], pending.get(job.job_id, ()), at_ms)
        models, tells = dict(self.models), list[Tell]()
        for rule, subject in [*models, *(key for key in said if key not in models)]:
            key = (rule, subject)
            event: AlertEvent
            if key not in said:
                event = SubjectEnded(at_ms)
            else:
                text = said[key]
                event = ConditionHolds(at_ms, text) if text else ConditionClear(at_ms)
            model = models.get(key) or AlertModel.create(rule, subject, _for_ms(settings, rule), at_ms)
            models[key], told = MACHINE.step(model, event)
            tells += told
            if models[key].state is A.ENDED:
                del models[key]
        return AlertBook(settings, models, restarts, pending), tuple(tells)


def _for_ms(settings: AlertSettings, rule: AlertRule) -> int:
    """How long a condition must hold; the other rules look back themselves."""
    if rule is AlertRule.NO_CHECKPOINT:
        return min(settings.checkpoint_max_age_ms, _HEARD_WITHIN_MS)
    return settings.no_task_managers_ms if rule is AlertRule.NO_TASK_MANAGERS else 0


def _cluster_conditions(
    settings: AlertSettings, seen: Observation
) -> Iterable[tuple[tuple[AlertRule, str], str]]:
    if settings.no_task_managers_ms:
        lacks = bool(seen.jobs) and not seen.task_managers
        text = f"no TaskManager is registered, and {len(seen.jobs)} jobs are not over" if lacks else ""
        yield (AlertRule.NO_TASK_MANAGERS, CLUSTER), text


def _job_conditions(
    settings: AlertSettings, job: JobObservation, restarts: History, pending: History, at_ms: int
) -> dict[tuple[AlertRule, str], str]:
    """What each rule has to say of a job; empty = all is well."""
    said = {}
    if settings.checkpoint_max_age_ms and job.checkpointing:
        old = job.checkpoint_age_ms > settings.checkpoint_max_age_ms
        said[AlertRule.NO_CHECKPOINT, str(job.job_id)] = (
            f"no checkpoint has what it did in the last {job.checkpoint_age_ms // 1000} s" if old else ""
        )
    if settings.restarts:
        # a master that has just taken over knows of no restart before
        count = restarts[-1][1] - restarts[0][1]
        window_s = settings.restarts_window_ms // 1000
        said[AlertRule.RESTART_LOOP, str(job.job_id)] = (
            f"restarted {count} times within {window_s} s" if count >= settings.restarts else ""
        )
    if settings.lag_window_ms:
        growth = _growth(pending, settings.lag_window_ms)
        said[AlertRule.LAG_GROWING, str(job.job_id)] = (
            f"its sources are {pending[-1][1]} records behind, {growth} more than "
            f"{(at_ms - pending[0][0]) // 1000} s ago"
            if growth >= max(1, settings.lag_min_records)
            else ""
        )
    return said


def _kept(history: History, at_ms: int, value: int, window_ms: int) -> History:
    """With a further value; of those from before the window one is kept, so that it is covered."""
    longer = (*history, (at_ms, value))
    before = [entry for entry in longer if entry[0] <= at_ms - window_ms]
    return (*before[-1:], *(entry for entry in longer if entry[0] > at_ms - window_ms))


def _growth(history: History, window_ms: int) -> int:
    """By how much it grew over the whole window; 0 = it was below its beginning in between, or is too new."""
    if not history or history[-1][0] - history[0][0] < window_ms:
        return 0
    first = history[0][1]
    return 0 if min(value for _, value in history) < first else history[-1][1] - first
