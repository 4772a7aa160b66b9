"""Carries a drill out: watches the job, lets the fault happen, watches until the job has recovered.

Decides how often is looked and for how long; what was seen is judged by
:mod:`yarnflow.client.drill.report`.  Flink has no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from yarnflow.client.cluster import JobCluster
from yarnflow.client.drill.commits import Batches
from yarnflow.client.drill.report import DrillKind, DrillReport, DrillWatch, directories
from yarnflow.core.checkpoint.query_files import COMMITS, OFFSETS
from yarnflow.core.files import FileSystems
from yarnflow.core.ids import JobId
from yarnflow.core.messages import FaultRequest, JobDetails, LeaderInfo
from yarnflow.core.ports import Clock, DispatcherGateway
from yarnflow.errors import HaError, JobError, JobNotFound, RpcError, YarnflowError

_POLL_MS: Final = 100
#: between two looks into Spark's logs
_LOGS_MS: Final = 1_000
#: batches and time before the fault
_BASELINE_BATCHES: Final = 5
_BASELINE_MS: Final = 15_000
_NO_COMMIT_MS: Final = 60_000
#: after the recovery, for the gaps between commits
_SETTLE_MS: Final = (1_000, 10_000)
_SETTLE_GAPS: Final = 3

#: Spark's checkpoint directory of a query → its logs; None = they cannot be read from here
ReadLogs = Callable[[str], Batches | None]


class Fault(Protocol):
    """The fault; none of its methods is called before :meth:`check`."""

    def check(self) -> tuple[str, int]:
        """What would be hit, and the time by the cluster's clock.

        Raises
        ------
        YarnflowError
            It cannot be done.
        """

    def inject(self) -> tuple[str, int]:
        """Do it; returns what was hit, and when."""

    @property
    def lasts_ms(self) -> int:
        """How long before it has to be lifted; 0 = it is over at once."""

    def lift(self) -> str:
        """Put right what was broken; returns what was done.  Idempotent."""


class ClusterFault:
    """What the cluster breaks itself.

    Parameters
    ----------
    gateway : DispatcherGateway
    kind : DrillKind
    job_id : JobId
    """

    def __init__(self, gateway: DispatcherGateway, kind: DrillKind, job_id: JobId) -> None:
        assert kind.fault is not None
        self._gateway = gateway
        self._request = FaultRequest(kind.fault, job_id)

    def check(self) -> tuple[str, int]:
        """What would be hit."""
        injected = self._gateway.inject_fault(
            FaultRequest(self._request.kind, self._request.job_id, check_only=True)
        )
        return injected.victim, injected.at_ms

    def inject(self) -> tuple[str, int]:
        """Have it done."""
        injected = self._gateway.inject_fault(self._request)
        return injected.victim, injected.at_ms

    @property
    def lasts_ms(self) -> int:
        """Over at once."""
        return 0

    def lift(self) -> str:
        """Nothing to lift."""
        return ""


class Drill:
    """One drill of one job.

    Parameters
    ----------
    cluster : JobCluster
    job_id : JobId
    kind : DrillKind
    fault : Fault
    clock, sleep
        Of this machine; seconds.
    read_logs : callable
    timeout_ms : int
        For the recovery, from the fault (or its lifting) on.
    """

    def __init__(
        self,
        cluster: JobCluster,
        job_id: JobId,
        kind: DrillKind,
        fault: Fault,
        clock: Clock,
        sleep: Callable[[float], object],
        read_logs: ReadLogs,
        timeout_ms: int,
    ) -> None:
        self._cluster = cluster
        self._gateway = cluster.gateway()
        self._job_id = job_id
        self._kind = kind
        self._fault = fault
        self._clock = clock
        self._sleep = sleep
        self._read_logs = read_logs
        self._timeout_ms = timeout_ms
        self._watch = DrillWatch(kind)
        #: cluster's clock minus this one
        self._offset_ms = 0
        self._logs_due_ms = 0
        self._details: JobDetails | None = None

    def check(self) -> str:
        """What will be hit.

        Raises
        ------
        YarnflowError
            It cannot be done.
        """
        asked_ms = self._clock.now_ms()
        victim, at_ms = self._fault.check()
        self._offset_ms = at_ms - (asked_ms + self._clock.now_ms()) // 2
        return victim

    def watch_before(self) -> None:
        """Learn how the job commits when nothing ails it.

        Raises
        ------
        JobError
            It does not run, or commits nothing.
        """
        began_ms = self._clock.monotonic_ms()
        commits = self._watch.commits
        while True:
            details = self._gateway.job_details(self._job_id)
            self._seen(details, self._gateway.leader())
            if details.overview.status.globally_terminal:
                status = details.overview.status.value
                raise JobError(f"job {self._job_id} is {status}; a drill needs a job that runs")
            passed_ms = self._clock.monotonic_ms() - began_ms
            if commits.watched >= _BASELINE_BATCHES or (commits.active and passed_ms >= _BASELINE_MS):
                break
            if passed_ms >= _NO_COMMIT_MS:
                raise JobError(
                    f"job {self._job_id} has committed no batch for {_NO_COMMIT_MS // 1000} s; a drill needs "
                    "a job that runs and has data"
                )
            self._pause()
        self._look_into_logs()

    def run(self) -> DrillReport:
        """Break it, and watch; returns when the job has recovered, is lost, or the time is over."""
        try:
            self._watch.injected(*self._fault.inject())
            lift_ms = self._clock.monotonic_ms() + self._fault.lasts_ms
            while self._clock.monotonic_ms() < lift_ms:
                self._look()
        finally:
            lifted = self._fault.lift()
        if lifted:
            self._watch.lifted(self._now_ms(), lifted)
        deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        while not (self._watch.recovered or self._watch.lost):
            if self._clock.monotonic_ms() >= deadline_ms:
                break
            self._look()
        if self._watch.recovered:
            self._settle()
        self._look_into_logs()
        return self._watch.report()

    def _settle(self) -> None:
        shortest, longest = _SETTLE_MS
        usual_ms = self._watch.commits.gaps().usual_ms
        until_ms = self._clock.monotonic_ms() + min(longest, max(shortest, _SETTLE_GAPS * usual_ms))
        while self._clock.monotonic_ms() < until_ms and not self._watch.finished:
            self._look()

    # --- looking ---

    def _look(self) -> None:
        """Ask the leader; one that does not answer is noted before a new one is waited for."""
        self._pause()
        present = self._cluster.present_gateway()
        if present is None or not self._ask(present):
            if present is not self._gateway:
                self._ask(self._gateway)
        if self._clock.monotonic_ms() >= self._logs_due_ms:
            self._look_into_logs()

    def _ask(self, gateway: DispatcherGateway) -> bool:
        try:
            leader = gateway.leader()
            self._seen(gateway.job_details(self._job_id), leader)
        except (RpcError, HaError, JobNotFound) as error:
            self._watch.unreachable(self._now_ms(), type(error).__name__)
            return False
        return True

    def _seen(self, details: JobDetails, leader: LeaderInfo) -> None:
        self._details = details
        self._watch.seen(details, leader, self._now_ms())

    def _look_into_logs(self) -> None:
        self._logs_due_ms = self._clock.monotonic_ms() + _LOGS_MS
        if self._details is None:
            return
        for query, directory in directories(self._details).items():
            found = self._read_logs(directory)
            if found is not None:
                self._watch.logged(query, found)

    def _pause(self) -> None:
        self._sleep(_POLL_MS / 1000)

    def _now_ms(self) -> int:
        return self._clock.now_ms() + self._offset_ms


def log_reader(file_systems: FileSystems) -> ReadLogs:
    """Reads Spark's logs where this machine reaches them."""

    def read(directory: str) -> Batches | None:
        try:
            fs, path = file_systems(directory)
            times = [
                {
                    int(name): entry.modified_ms
                    for entry in fs.list(f"{path.rstrip('/')}/{log}")
                    if (name := entry.path.rsplit("/", 1)[-1]).isdigit()
                }
                for log in (OFFSETS, COMMITS)
            ]
        except (YarnflowError, OSError):
            return None
        planned_ms, committed_ms = times
        return Batches(planned_ms, committed_ms) if committed_ms else None

    return read
