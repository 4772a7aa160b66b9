"""What a drill saw: when the job's cluster noticed a fault, who took over, when batches were committed.

Fed with what the cluster says of the job and with the batches in Spark's own logs; it asks nobody and
knows no clock.  Decides what counts as recovered: the fault was noticed, the job runs with all its
executions, and every query that committed before has committed since.  Flink has no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from yarnflow.client.drill.commits import Batches, CommitTrack, Gaps, Replay, estimate_replay
from yarnflow.core.messages import FailureInfo, FaultKind, JobDetails, LeaderInfo
from yarnflow.core.states import ExecutionState, JobStatus, RestartLevel


class DrillKind(Enum):
    """What can be drilled; the values are what is typed."""

    LEADER = "leader"
    DRIVER = "driver"
    TASK_MANAGER = "taskmanager"
    APPLICATION = "application"
    ZOOKEEPER = "zookeeper"
    HDFS = "hdfs"

    @property
    def fault(self) -> FaultKind | None:
        """What the cluster is asked to break; None = nothing of the cluster's."""
        return None if self is DrillKind.HDFS else FaultKind[self.name]


#: another master has to lead after it
_OF_LEADER: Final = (DrillKind.LEADER, DrillKind.APPLICATION, DrillKind.ZOOKEEPER)
#: the job itself is hit, and its master has to say so
_OF_JOB: Final = (DrillKind.DRIVER, DrillKind.TASK_MANAGER)
_RUNS: Final = (ExecutionState.RUNNING, ExecutionState.FINISHED)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the timeline."""

    #: fault, detected, lifted, elected, adopted, restored, running, commit
    name: str
    at_ms: int
    #: what was seen, in words
    note: str = ""


@dataclass(frozen=True, slots=True)
class DrillReport:
    """The outcome of one drill."""

    kind: DrillKind
    job_id: str
    job_name: str
    #: what was hit
    victim: str
    fault_ms: int
    events: tuple[Event, ...]
    gaps: Gaps
    replay: Replay
    passed: bool
    #: one sentence: why it passed or failed
    verdict: str


@dataclass
class DrillWatch:
    """Everything that was seen, in the order it was.

    Times are those of the cluster's clocks; whoever feeds it puts its own right before.

    Parameters
    ----------
    kind : DrillKind
    """

    kind: DrillKind
    victim: str = ""
    fault_ms: int = -1
    commits: CommitTrack = field(default_factory=CommitTrack)
    _details: JobDetails | None = None
    _leader: LeaderInfo | None = None
    #: of the leader at the fault
    _epoch: int = 0
    _known_failures: frozenset[tuple[int, str]] = frozenset()
    _failures: list[FailureInfo] = field(default_factory=list)
    _events: dict[str, Event] = field(default_factory=dict)

    # --- what is seen ---

    def seen(self, details: JobDetails, leader: LeaderInfo, at_ms: int) -> None:
        """An answer of the leader."""
        self._details, self._leader = details, leader
        for query in details.queries:
            self.commits.reported(query)
        if self.fault_ms < 0:
            self._epoch = leader.fence.epoch
            self._known_failures = frozenset(map(_key, details.failures))
            return
        self._note_leader(details, leader, at_ms)
        self._note_failures(details.failures)
        self._note_job(details)

    def logged(self, query: str, batches: Batches) -> None:
        """Spark's own logs of a query."""
        self.commits.logged(query, batches)

    def injected(self, victim: str, at_ms: int) -> None:
        self.victim, self.fault_ms = victim, at_ms
        self.commits.fault(at_ms)
        self._event("fault", at_ms, victim)

    def lifted(self, at_ms: int, note: str) -> None:
        """What was broken was put right again by whoever broke it."""
        self._event("lifted", at_ms, note)

    def unreachable(self, at_ms: int, why: str) -> None:
        """A call was not answered by a leader."""
        if self.kind in _OF_LEADER and self.fault_ms >= 0:
            self._event("detected", max(at_ms, self.fault_ms), f"this command's calls fail: {why}")

    def _note_leader(self, details: JobDetails, leader: LeaderInfo, at_ms: int) -> None:
        if leader.fence.epoch <= self._epoch or "elected" in self._events:
            return
        # the new leader has the job a little before it is seen here
        began_ms = details.timestamps_ms.get(JobStatus.INITIALIZING.value, at_ms)
        elected_ms = min(at_ms, began_ms) if began_ms >= self.fault_ms else at_ms
        self._event("elected", elected_ms, f"{leader.address} leads, epoch {leader.fence.epoch}")

    def _note_failures(self, failures: Sequence[FailureInfo]) -> None:
        known = self._known_failures | set(map(_key, self._failures))
        for failure in failures:
            if _key(failure) in known or failure.at_ms < self.fault_ms - _CLOCK_TOLERANCE_MS:
                continue
            self._failures.append(failure)
            if self.kind not in _OF_LEADER:
                self._event("detected", max(failure.at_ms, self.fault_ms), failure.error.message)

    def _note_job(self, details: JobDetails) -> None:
        if not _all_run(details):
            return
        times = details.timestamps_ms
        running_ms = times.get(JobStatus.RUNNING.value, -1)
        if running_ms > self.fault_ms:
            if self.restarted:
                note = "its queries run again, from the last committed batch"
                self._event("restored", running_ms, note)
            elif "elected" in self._events and JobStatus.RECONCILING.value in times:
                self._event("adopted", running_ms, "driver and executors went on under the new leader")
        last_ms = max([running_ms, *_running_since(details)])
        if last_ms > self.fault_ms and self.noticed:
            self._event("running", last_ms, "all executions run")

    def _event(self, name: str, at_ms: int, note: str) -> None:
        self._events.setdefault(name, Event(name, at_ms, note))

    # --- what it means ---

    @property
    def restarted(self) -> bool:
        """The job's queries were started again."""
        details = self._details
        if details is None or self.fault_ms < 0:
            return False
        if any(failure.level in (RestartLevel.QUERY, RestartLevel.DRIVER) for failure in self._failures):
            return True
        times = details.timestamps_ms
        if "elected" in self._events:
            # by the new leader: what it does not adopt it starts
            return JobStatus.RECONCILING.value not in times or JobStatus.RESTARTING.value in times
        return self.kind is DrillKind.DRIVER

    @property
    def noticed(self) -> bool:
        """The cluster has reacted, or what was broken is whole again."""
        if self.kind is DrillKind.HDFS:
            return "lifted" in self._events
        return ("elected" if self.kind in _OF_LEADER else "detected") in self._events

    @property
    def finished(self) -> bool:
        """The job came to its end in good order."""
        return self._status is JobStatus.FINISHED

    @property
    def lost(self) -> bool:
        """The job is over and did not FINISH."""
        status = self._status
        return status is not None and status.globally_terminal and not self.finished

    @property
    def recovered(self) -> bool:
        """Nothing more has to be waited for."""
        details = self._details
        if self.fault_ms < 0 or details is None or not self.noticed:
            return False
        return self.finished or (_all_run(details) and self._committed_again)

    @property
    def _committed_again(self) -> bool:
        turning = (e.at_ms for name, e in self._events.items() if name not in ("fault", "commit"))
        return self.commits.all_since(max([self.fault_ms, *turning]))

    @property
    def _status(self) -> JobStatus | None:
        return None if self._details is None else self._details.overview.status

    def report(self) -> DrillReport:
        """The outcome as far as it is known."""
        details = self._details
        assert details is not None, "nothing was seen"
        first = self.commits.first_after_ms()
        events = dict(self._events)
        if first is not None:
            batches = self.commits.first_after().items()
            note = ", ".join(f"{query}: batch {batch}" for query, batch in batches)
            events["commit"] = Event("commit", first, f"first after the fault; {note}")
        executors_lost = any(failure.level is RestartLevel.TASKS for failure in self._failures)
        return DrillReport(
            kind=self.kind,
            job_id=details.overview.job_id,
            job_name=details.overview.name,
            victim=self.victim,
            fault_ms=self.fault_ms,
            events=tuple(sorted(events.values(), key=lambda event: event.at_ms)),
            gaps=self.commits.gaps(),
            replay=estimate_replay(self.commits, restarted=self.restarted, tasks_lost=executors_lost),
            passed=self.recovered,
            verdict=self._verdict(details),
        )

    def _verdict(self, details: JobDetails) -> str:
        status = details.overview.status
        if self.recovered:
            return "the job came to its end" if self.finished else "the job runs again and commits"
        if self.lost:
            why = f": {details.error.message}" if details.error is not None else ""
            return f"the job is {status.value}{why}"
        if not self.noticed:
            return "the cluster did not notice the fault"
        if not _all_run(details):
            waits = f"; it waits for {details.waiting_for}" if details.waiting_for else ""
            return f"the job is {status.value} and not all of its executions run{waits}"
        return "the job runs, but not every query has committed a batch since"


#: clocks of machines may differ by this much
_CLOCK_TOLERANCE_MS: Final = 1_000


def _key(failure: FailureInfo) -> tuple[int, str]:
    return failure.at_ms, failure.error.message


def _all_run(details: JobDetails) -> bool:
    return details.overview.status is JobStatus.RUNNING and all(
        execution.state in _RUNS for vertex in details.vertices for execution in vertex.executions
    )


def _running_since(details: JobDetails) -> list[int]:
    return [
        execution.timestamps_ms.get(ExecutionState.RUNNING.value, -1)
        for vertex in details.vertices
        for execution in vertex.executions
    ]


def directories(details: JobDetails) -> Mapping[str, str]:
    """Query → Spark's checkpoint directory of it, where that is known."""
    return {query.query: query.directory for query in details.queries if query.directory}
