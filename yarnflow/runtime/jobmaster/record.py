"""What a job is and was: its state machines, its history, and the snapshot others read.

It applies what the JobMaster has decided and publishes the outcome; it decides nothing.  Used in
the JobMaster's mailbox only, except :meth:`JobRecord.publish` before that has started.

Flink counterparts: ``DefaultExecutionGraph`` and its listeners.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from yarnflow.core import execution as ex
from yarnflow.core import job as jb
from yarnflow.core.execution_graph import ExecutionGraph, in_state, not_terminal, on_task_manager
from yarnflow.core.ids import TaskManagerId
from yarnflow.core.messages import ErrorInfo, FailureInfo, JobSubmission, QueryProgress
from yarnflow.core.ports import Clock
from yarnflow.core.states import ExecutionState, JobStatus, RestartLevel
from yarnflow.graph.job_graph import JobGraph
from yarnflow.runtime.dispatcher.job_board import JobBoard
from yarnflow.runtime.jobmaster.history import JobHistory

logger = logging.getLogger(__name__)

_BEFORE_RUNNING: Final = (JobStatus.CREATED, JobStatus.RESTARTING, JobStatus.RECONCILING)


class JobRecord:
    """One job's state.

    Parameters
    ----------
    submission, graph
        The job.
    clock, board
        The process's.
    resources : callable
        ``() → (slots the job has, what it waits for)``, for the snapshot.
    """

    def __init__(
        self,
        submission: JobSubmission,
        graph: JobGraph,
        clock: Clock,
        board: JobBoard,
        resources: Callable[[], tuple[int, str]],
    ) -> None:
        self._submission = submission
        self._clock = clock
        self._board = board
        self._resources = resources
        now_ms = clock.now_ms()
        self._job = jb.JobModel.create(submission.job_id, now_ms)
        self._executions = ExecutionGraph.create(
            (
                (v.vertex_id, v.name, v.parallelism, v.max_parallelism, v.slot_sharing_group)
                for v in graph.vertices
            ),
            now_ms,
        )
        self._history = JobHistory(submission, graph.required_slots(), now_ms)

    @property
    def status(self) -> JobStatus:
        """The job's status."""
        return self._job.state

    @property
    def wants_executors(self) -> bool:
        """The job runs, or will."""
        return self.status is JobStatus.RUNNING or self.status in _BEFORE_RUNNING

    def publish(self) -> None:
        """Show the present state to everybody."""
        slots, waiting_for = self._resources()
        self._board.publish(self._history.details(self._job, self._executions, slots, waiting_for))

    # --- history ---

    def milestone(self, name: str) -> None:
        """A step of the start is reached now."""
        self._history.milestone(name, self._clock.now_ms())

    def milestones(self, milestones_ms: Mapping[str, int]) -> None:
        """Steps of the start, as a driver reports them."""
        self._history.milestones(milestones_ms)

    def progress(self, queries: Iterable[QueryProgress]) -> None:
        """The newest progress of some queries."""
        self._history.progress(queries)

    def failure(self, error: ErrorInfo, location: str, level: RestartLevel, recovered: bool) -> None:
        """Something broke."""
        self._history.failure(FailureInfo(self._clock.now_ms(), error, location, level, recovered))

    def diagnosed(self, task_manager_id: TaskManagerId, text: str) -> None:
        """Why a TaskManager was lost became known."""
        if self._history.diagnosed(task_manager_id, text):
            self.publish()

    def restarted(self) -> None:
        """The restart strategy let the job go on."""
        self._history.restarted()

    # --- the job's life ---

    def initialized(self) -> None:
        """INITIALIZING → CREATED; all executions wait for slots."""
        now_ms = self._clock.now_ms()
        self._executions = self._executions.scheduled(now_ms)
        self._step(jb.JobInitialized(now_ms))

    def adopting(self) -> None:
        """INITIALIZING → RECONCILING; the executions of an earlier master run, it is hoped."""
        self._step(jb.AdoptionBegan(self._clock.now_ms()))

    def assign_slots(self, task_manager_ids: Sequence[TaskManagerId]) -> None:
        """Executions without a slot get one, as far as these go."""
        now_ms = self._clock.now_ms()
        if self.status is JobStatus.RECONCILING:
            self._executions = self._executions.adopt_slots(task_manager_ids, now_ms)
        self._executions = self._executions.assign_slots(task_manager_ids, now_ms)

    def lost_on(self, task_manager_id: TaskManagerId, error: ErrorInfo) -> None:
        """What ran on a TaskManager is gone and waits for a slot again."""
        now_ms = self._clock.now_ms()
        lost = on_task_manager(task_manager_id)
        self._executions = self._executions.apply(ex.Failed(now_ms, error), lost)
        self._executions = self._executions.new_attempts(now_ms, in_state(ExecutionState.FAILED))
        self._executions = self._executions.scheduled(now_ms)

    def running_on(self, task_manager_ids: Collection[TaskManagerId]) -> None:
        """The queries are active; executions on these TaskManagers are running, and so the job is."""
        now_ms = self._clock.now_ms()

        def there(state: ExecutionState) -> Callable[[ex.Execution], bool]:
            return lambda e: e.state is state and e.task_manager_id in task_manager_ids

        self._executions = self._executions.apply(ex.DeployAcked(now_ms), there(ExecutionState.DEPLOYING))
        for state in (ExecutionState.INITIALIZING, ExecutionState.RECONCILING):
            self._executions = self._executions.apply(ex.SwitchedToRunning(now_ms), there(state))
        if task_manager_ids and self.status in _BEFORE_RUNNING:
            self._step(jb.ExecutionsRunning(now_ms))
            self._executions = self._executions.scheduled(now_ms)  # adopted, with fewer slots than it wants

    def interrupted(self, error: ErrorInfo) -> None:
        """Nothing of the job runs although its query is active: RUNNING → RESTARTING."""
        self._step(jb.RestartBegan(self._clock.now_ms(), error))

    def restarting(self, error: ErrorInfo) -> None:
        """All executions end with the error and begin again."""
        now_ms = self._clock.now_ms()
        self._all_failed(now_ms, error)
        self._step(jb.RestartBegan(now_ms, error))
        self._executions = self._executions.new_attempts(now_ms).scheduled(now_ms)

    def failing(self, error: ErrorInfo) -> None:
        """All executions end with the error for good."""
        now_ms = self._clock.now_ms()
        self._all_failed(now_ms, error)
        self._step(jb.FailureUnrecoverable(now_ms, error))

    def cancelling(self) -> None:
        """The job is being canceled."""
        now_ms = self._clock.now_ms()
        self._step(jb.CancelRequested(now_ms))
        self._executions = self._executions.apply(ex.CancelRequested(now_ms))

    def finished(self) -> None:
        """The query has done its work."""
        now_ms = self._clock.now_ms()
        if self.status in _BEFORE_RUNNING:  # shorter than a report interval
            self._step(jb.ExecutionsRunning(now_ms))
        reconciling = in_state(ExecutionState.RECONCILING)
        self._executions = self._executions.apply(ex.SwitchedToRunning(now_ms), reconciling)
        self._executions = self._executions.apply(ex.Finished(now_ms))
        # a subtask that was being replaced when Spark finished the work elsewhere has nothing left to do
        self._executions = self._executions.apply(ex.CancelRequested(now_ms), not_terminal)
        self._step(jb.AllExecutionsFinished(now_ms))

    def all_stopped(self) -> None:
        """Nothing of the job runs any more: CANCELLING → CANCELED, FAILING → FAILED."""
        now_ms = self._clock.now_ms()
        self._executions = self._executions.apply(ex.CancelRequested(now_ms))
        self._executions = self._executions.apply(ex.CancelCompleted(now_ms))
        self._step(jb.AllExecutionsTerminal(now_ms))

    def _all_failed(self, now_ms: int, error: ErrorInfo) -> None:
        self._executions = self._executions.apply(ex.Failed(now_ms, error))
        self._executions = self._executions.apply(ex.CancelCompleted(now_ms))

    def _step(self, event: jb.JobEvent) -> None:
        self._job, changes = jb.MACHINE.step(self._job, event)
        for change in changes:
            logger.info(
                "Job %s (%s) switched from state %s to %s.",
                self._submission.name,
                self._submission.job_id,
                change.old.value,
                change.new.value,
            )
            self._history.status(change.new, change.at_ms)
        self.publish()
