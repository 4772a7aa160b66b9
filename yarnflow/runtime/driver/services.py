"""What a driver needs from Spark and from its configuration, as protocols and plain values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from yarnflow.core.checkpoint.messages import CheckpointOrder, CheckpointOutcome
from yarnflow.core.messages import DriverAssignment, IdleQueries, MetricDump, QueryProgress
from yarnflow.core.ports import Clock
from yarnflow.core.resources.attachment import ExecutorAttachment
from yarnflow.runtime.driver.run_context import RunContext
from yarnflow.runtime.registration import RegistrationBackoff


class RunningProgram(Protocol):
    """One run of the job.  Made, started and awaited by the main thread."""

    @property
    def compiles_on_executors(self) -> bool:
        """Whether :meth:`prepare` would wait for executors, and could then not be stopped."""

    def prepare(self) -> None:
        """Compile, as far as that can be done before the start."""

    def start(self) -> None:
        """Start what :meth:`prepare` has compiled; the main of a script is run by ``await_end`` only."""

    def await_end(self) -> None:
        """Block until the end, by :meth:`stop` as well; raises :class:`YarnflowError` when it failed.

        After a checkpoint order that ends the job it returns as if the input had ended.
        """

    def stop(self) -> None:
        """Stop it and return when nothing of it runs any more; any thread, idempotent."""

    def take_checkpoint(self, order: CheckpointOrder) -> CheckpointOutcome:
        """Carry out an order, which may take minutes; any thread.

        Raises :class:`YarnflowError` when it cannot be done, soon after :meth:`stop` as well.
        """


class DriverBackend(Protocol):
    """Spark, as a driver sees it.  Everything raises :class:`YarnflowError` only."""

    def open(self, assignment: DriverAssignment) -> ExecutorAttachment:
        """Bring up what executors dial in to, unless an earlier job has left it.  Main thread; once."""

    def complete(self) -> None:
        """Bring up what programs need, while executors are on their way.  Main thread; once."""

    def executor_ids(self) -> tuple[str, ...]:
        """Executors registered now.  Any thread."""

    def restore(self, context: RunContext, fence: Callable[[], None]) -> bool:
        """Put the state of ``context.restore`` where the job has none of its own yet.

        Main thread; idempotent; whether the job starts from some state.  ``fence`` raises LeaseLost when
        this driver may not write the job's state any more, and JobCanceled when the deployment is over; it
        is asked while this takes its time.

        Raises
        ------
        StateIncompatible, StateDrained, SavepointInvalid, SavepointNotFound
            The job cannot start from it; nothing was changed.
        """

    def rehearse(self, assignment: DriverAssignment, wanted: Callable[[], bool]) -> None:
        """Run something like a job on the executors there are, so that the real one starts warm.

        Any thread.  Ends soon after ``wanted`` says that the driver has something better to do;
        leaves nothing behind.  A failure is logged only: the job itself will meet it again.
        """

    def program(self, context: RunContext, fence: Callable[[], None]) -> RunningProgram:
        """Make the deployment's program; nothing starts yet.  Main thread.

        ``fence`` raises LeaseLost when this driver may not write the job's state any more.
        """

    def progress(self) -> tuple[QueryProgress, ...]:
        """What the queries last said.  Any thread."""

    def idle(self) -> IdleQueries:
        """When the queries had nothing to do.  Any thread."""

    def on_progress(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each batch, from any thread."""

    def set_log_level(self, logger: str, level: str) -> None:
        """Change what a logger of the JVM says; an empty level = that of the logger above it.  Any thread."""

    def metrics(self, last: bool) -> tuple[MetricDump, ...]:
        """What can be measured of the attempt that runs; takes its time.  One thread at a time.

        ``last``: it has ended, and only what it has counted is of interest.
        """

    def usable(self) -> bool:
        """Another deployment can run in this driver.  Any thread."""

    def release(self) -> bool:
        """The job has finished: leave nothing of it in the session, and let that be used for another job.

        Main thread.  False = that is not possible; :meth:`close` is to follow.
        """

    def close(self) -> None:
        """Stop session and JVM.  Idempotent."""


@dataclass(frozen=True, slots=True)
class DriverSettings:
    """Times of one driver, in milliseconds."""

    report_interval_ms: int = 1000
    #: shortest pause between two reports, however quick the batches are
    report_min_pause_ms: int = 100
    #: how long the executors of a deployment may take to register
    executor_timeout_ms: int = 120_000
    #: how long the main thread may take to leave after ``shut_down``
    leave_timeout_ms: int = 10_000
    #: how long an earlier driver of the job may hold the lease
    lease_timeout_ms: int = 60_000
    #: how long a program that has ended waits for a checkpoint that is being taken
    checkpoint_timeout_ms: int = 600_000
    #: once its job has finished the process waits for another one
    serves_several_jobs: bool = False
    #: between two measurements; 0 = none
    metrics_interval_ms: int = 10_000
    #: how long a new leader may take to know the job
    recovery_timeout_ms: int = 20_000
    registration_backoff: RegistrationBackoff = RegistrationBackoff(100, 5_000)


class Milestones:
    """Name → first time it was reached.  Thread-safe."""

    def __init__(self, clock: Clock, reached_ms: Mapping[str, int] | None = None) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._times: dict[str, int] = dict(reached_ms or {})

    def reached(self, name: str) -> None:
        """Note the time, unless it was reached before."""
        with self._lock:
            self._times.setdefault(name, self._clock.now_ms())

    def snapshot(self) -> dict[str, int]:
        """All of them."""
        with self._lock:
            return dict(self._times)
