"""What a job is and was: its state machines, what happened to it, and the snapshot others read.

It applies what :mod:`yarnflow.core.job_run.decider` has decided and renders the outcome; it decides nothing.
Times are milliseconds since the epoch.

Flink counterparts: ``DefaultExecutionGraph``, ``ArchivedExecutionGraph``, ``RootExceptionHistoryEntry``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from yarnflow.core.checkpoint.messages import JobStop
from yarnflow.core.ids import JobId, TaskManagerId, VertexId
from yarnflow.core.job import execution as ex
from yarnflow.core.job import job as jb
from yarnflow.core.job.execution_graph import ExecutionGraph, in_state, not_terminal, on_task_manager
from yarnflow.core.messages import ErrorInfo, FailureInfo, JobDetails, JobOverview, QueryProgress
from yarnflow.core.states import ExecutionState, JobStatus, RestartLevel
from yarnflow.errors import LeadershipLost, TaskManagerLost

#: Flink: ``web.exception-history-size``
MAX_FAILURES: Final = 16

_WITHOUT_SLOT: Final = (ExecutionState.CREATED, ExecutionState.SCHEDULED)
_BEFORE_RUNNING: Final = (JobStatus.CREATED, JobStatus.RESTARTING, JobStatus.RECONCILING)

Changed = tuple["JobRecord", tuple[jb.StatusChanged, ...]]


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job's state and history; every method returns a new value."""

    name: str
    job_key: str
    job: jb.JobModel
    executions: ExecutionGraph
    start_ms: int
    end_ms: int = -1
    milestones_ms: Mapping[str, int] = field(default_factory=dict)
    queries: Mapping[str, QueryProgress] = field(default_factory=dict)
    #: oldest first
    failures: tuple[FailureInfo, ...] = ()
    #: those that the restart strategy counted
    restarts: int = 0
    #: None = nobody has stopped it
    stop: JobStop | None = None

    @classmethod
    def create(
        cls,
        job_id: JobId,
        name: str,
        job_key: str,
        vertices: Iterable[tuple[VertexId, str, int, int, str]],
        at_ms: int,
    ) -> JobRecord:
        """A job that was just accepted; ``vertices`` as :meth:`ExecutionGraph.create` takes them."""
        executions = ExecutionGraph.create(vertices, at_ms)
        return cls(name, job_key, jb.JobModel.create(job_id, at_ms), executions, at_ms)

    @property
    def status(self) -> JobStatus:
        """The job's status."""
        return self.job.state

    @property
    def wants_executors(self) -> bool:
        """The job runs, or will."""
        return self.status is JobStatus.RUNNING or self.status in _BEFORE_RUNNING

    def details(self, slots_allocated: int, slots_required: int, waiting_for: str) -> JobDetails:
        """The snapshot; whoever publishes it sets its version."""
        overview = JobOverview(
            job_id=self.job.job_id,
            name=self.name,
            status=self.status,
            start_time_ms=self.start_ms,
            end_time_ms=self.end_ms,
            job_key=self.job_key,
            slots_allocated=slots_allocated,
            slots_required=slots_required,
        )
        return JobDetails(
            overview=overview,
            version=0,
            timestamps_ms=self.job.timestamps_ms(),
            vertices=self.executions.infos(),
            queries=tuple(self.queries.values()),
            failures=self.failures,
            restarts=self.restarts,
            waiting_for=waiting_for,
            milestones_ms=dict(self.milestones_ms),
            error=self.job.error if self.status is JobStatus.FAILED else None,
            stop=self.stop,
        )

    # --- history ---

    def milestone(self, name: str, at_ms: int) -> JobRecord:
        """A step of the start is reached; only the first time counts."""
        return self.milestones({name: at_ms})

    def milestones(self, milestones_ms: Mapping[str, int]) -> JobRecord:
        """Several steps of the start, as a driver reports them."""
        news = {name: at_ms for name, at_ms in milestones_ms.items() if name not in self.milestones_ms}
        return replace(self, milestones_ms={**self.milestones_ms, **news}) if news else self

    def progress(self, queries: Iterable[QueryProgress]) -> JobRecord:
        """The newest progress of some queries."""
        return replace(self, queries={**self.queries, **{query.query: query for query in queries}})

    def failure(
        self, error: ErrorInfo, location: str, level: RestartLevel, recovered: bool, at_ms: int
    ) -> JobRecord:
        """Something broke."""
        return self._with_failure(FailureInfo(at_ms, error, location, level, recovered))

    def adopted(self, epoch: int, at_ms: int) -> JobRecord:
        """The job goes on under another master as if nothing had happened; its history says so."""
        message = f"the master before was lost; the job was adopted by leader epoch {epoch} without a restart"
        error = ErrorInfo(LeadershipLost.code, message)
        return self._with_failure(FailureInfo(at_ms, error, "", RestartLevel.MASTER, True))

    def diagnosed(self, task_manager_id: TaskManagerId, text: str) -> JobRecord:
        """Why a TaskManager was lost became known: the newest entry about that says so."""
        for index in reversed(range(len(self.failures))):
            failure = self.failures[index]
            if failure.location == task_manager_id and failure.error.code == TaskManagerLost.code:
                if text in failure.error.message:
                    return self
                error = replace(failure.error, message=f"{failure.error.message}; {text}")
                told = replace(failure, error=error)
                return replace(self, failures=(*self.failures[:index], told, *self.failures[index + 1 :]))
        return self

    def restarted(self) -> JobRecord:
        """The restart strategy let the job go on."""
        return replace(self, restarts=self.restarts + 1)

    # --- executions ---

    def assign_slots(self, task_manager_ids: Sequence[TaskManagerId], at_ms: int) -> JobRecord:
        """Executions without a slot get one, as far as these go."""
        executions = self.executions
        if not any(each.state in _WITHOUT_SLOT for each in executions):
            return self  # as after most events
        if self.status is JobStatus.RECONCILING:
            executions = executions.adopt_slots(task_manager_ids, at_ms)
        return replace(self, executions=executions.assign_slots(task_manager_ids, at_ms))

    def lost_on(self, task_manager_id: TaskManagerId, error: ErrorInfo, at_ms: int) -> JobRecord:
        """What ran on a TaskManager is gone and waits for a slot again."""
        executions = self.executions.apply(ex.Failed(at_ms, error), on_task_manager(task_manager_id))
        executions = executions.new_attempts(at_ms, in_state(ExecutionState.FAILED))
        return replace(self, executions=executions.scheduled(at_ms))

    # --- the job's life ---

    def initialized(self, at_ms: int) -> Changed:
        """INITIALIZING → CREATED; all executions wait for slots."""
        return replace(self, executions=self.executions.scheduled(at_ms))._step(jb.JobInitialized(at_ms))

    def adopting(self, at_ms: int) -> Changed:
        """INITIALIZING → RECONCILING; the executions of an earlier master run, it is hoped."""
        return self._step(jb.AdoptionBegan(at_ms))

    def running_on(self, task_manager_ids: Collection[TaskManagerId], at_ms: int) -> Changed:
        """The queries are active; executions on these TaskManagers are running, and so the job is."""

        def there(state: ExecutionState) -> Callable[[ex.Execution], bool]:
            return lambda e: e.state is state and e.task_manager_id in task_manager_ids

        executions = self.executions.apply(ex.DeployAcked(at_ms), there(ExecutionState.DEPLOYING))
        for state in (ExecutionState.INITIALIZING, ExecutionState.RECONCILING):
            executions = executions.apply(ex.SwitchedToRunning(at_ms), there(state))
        after = replace(self, executions=executions)
        if not task_manager_ids or self.status not in _BEFORE_RUNNING:
            return after, ()
        # adopted, perhaps with fewer slots than it wants
        return replace(after, executions=executions.scheduled(at_ms))._step(jb.ExecutionsRunning(at_ms))

    def interrupted(self, error: ErrorInfo, at_ms: int) -> Changed:
        """Nothing of the job runs although its query is active: RUNNING → RESTARTING."""
        return self._step(jb.RestartBegan(at_ms, error))

    def restarting(self, error: ErrorInfo, at_ms: int) -> Changed:
        """All executions end with the error and begin again."""
        after, changes = self._all_failed(error, at_ms)._step(jb.RestartBegan(at_ms, error))
        return replace(after, executions=after.executions.new_attempts(at_ms).scheduled(at_ms)), changes

    def failing(self, error: ErrorInfo, at_ms: int) -> Changed:
        """All executions end with the error for good."""
        return self._all_failed(error, at_ms)._step(jb.FailureUnrecoverable(at_ms, error))

    def cancelling(self, at_ms: int) -> Changed:
        """The job is being canceled."""
        executions = self.executions.apply(ex.CancelRequested(at_ms))
        return replace(self, executions=executions)._step(jb.CancelRequested(at_ms))

    def ran(self, at_ms: int) -> Changed:
        """A job that was shorter than a report interval still was RUNNING."""
        return self._step(jb.ExecutionsRunning(at_ms)) if self.status in _BEFORE_RUNNING else (self, ())

    def finished(self, stop: JobStop | None, at_ms: int) -> Changed:
        """The query has done its work, or was stopped; :meth:`ran` before."""
        reconciling = in_state(ExecutionState.RECONCILING)
        executions = self.executions.apply(ex.SwitchedToRunning(at_ms), reconciling)
        executions = executions.apply(ex.Finished(at_ms))
        # a subtask that was being replaced when Spark finished the work elsewhere has nothing left to do
        executions = executions.apply(ex.CancelRequested(at_ms), not_terminal)
        finished = replace(self, executions=executions, stop=stop)
        return finished._step(jb.AllExecutionsFinished(at_ms))

    def all_stopped(self, at_ms: int) -> Changed:
        """Nothing of the job runs any more: CANCELLING → CANCELED, FAILING → FAILED."""
        executions = self.executions.apply(ex.CancelRequested(at_ms)).apply(ex.CancelCompleted(at_ms))
        return replace(self, executions=executions)._step(jb.AllExecutionsTerminal(at_ms))

    def _with_failure(self, failure: FailureInfo) -> JobRecord:
        return replace(self, failures=(*self.failures, failure)[-MAX_FAILURES:])

    def _all_failed(self, error: ErrorInfo, at_ms: int) -> JobRecord:
        executions = self.executions.apply(ex.Failed(at_ms, error)).apply(ex.CancelCompleted(at_ms))
        return replace(self, executions=executions)

    def _step(self, event: jb.JobEvent) -> Changed:
        job, changes = jb.MACHINE.step(self.job, event)
        ends_ms = [change.at_ms for change in changes if change.new.globally_terminal]
        return replace(self, job=job, end_ms=ends_ms[-1] if ends_ms else self.end_ms), changes
