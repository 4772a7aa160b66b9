"""One submitted job, as its client sees it.

Flink counterpart: ``JobClient``.  Waiting takes what :mod:`yarnflow.client.job_watch` tells.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from yarnflow.client.cluster import JobCluster, JobListener, SilentListener
from yarnflow.client.collecting import CollectedElements, PageReader
from yarnflow.client.job_watch import Change, JobWatch, interrupts_to
from yarnflow.client.saved_state import typed_state_uri
from yarnflow.client.savepoints import begin_savepoint, retained_text
from yarnflow.core.checkpoint.messages import AfterSavepoint
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    DuplicateJob,
    HaError,
    JobCanceled,
    JobError,
    JobFailed,
    ProgramFailed,
    RemoteError,
    RpcError,
    RpcTimeout,
    UserCodeError,
    UserTraceback,
    YarnflowError,
    error_from_code,
)

if TYPE_CHECKING:
    from yarnflow.api.executor import JobExecutionResult

#: a signal that comes right before a wait is handled after it only
_LOOK_AGAIN_S: Final = 0.5
#: until the end of a job is seen whose cluster has gone with it
_END_SEEN_S: Final = 3.0


def job_command(verb: str, cluster: JobCluster, job_id: JobId) -> str:
    """What a user types to do something with a job."""
    return " ".join(filter(None, (f"yarnflow {verb}", cluster.named_by, job_id)))


def job_error(details: JobDetails) -> YarnflowError | None:
    """The error a job's end means to whoever waited for it; None when it FINISHED.

    A user function's error keeps its class and traceback; so does every other error this
    version knows, with the job named in front.
    """
    overview = details.overview
    title = f"job {overview.name} ({overview.job_id})"
    if overview.status is JobStatus.FINISHED:
        return None
    if overview.status is JobStatus.CANCELED:
        return JobCanceled(f"{title} was canceled")
    if details.error is None:
        return JobFailed(
            f"{title} ended {overview.status.value} without a reported cause; see the JobManager's log"
        )
    info = details.error
    error = error_from_code(info.code, f"{title} failed: {info.message}", info.details)
    if isinstance(error, RemoteError):
        error = JobFailed(f"{title} failed: {info.message}")
    if isinstance(error, (UserCodeError, ProgramFailed)):
        error.__cause__ = UserTraceback(info.details.rstrip("\n")) if info.details else None
    elif info.details:
        error.add_note(info.details)
    return error


class ClusterJobClient:
    """Status, cancellation and end of one job.

    Parameters
    ----------
    connection : JobCluster
        Where it runs.
    job_id, name
        Which job.
    listener : JobListener
        Told of every change while somebody waits.
    attached : bool
        Whether the program that submitted it is to wait for its end.
    cancel_on_interrupt : bool
        An interrupt cancels it although its cluster outlives this process.
    timeout_ms : int
        How long an unreachable JobManager is tried again (``client.timeout``).
    attached_to_existing : bool
        It is another program's: its key is that of a job which was submitted here.
    on_hadoop : bool
        Directories without a scheme are on the cluster's default file system.
    goes_on : str
        What a user is told who waits no longer, where the job's end has been asked for.
    """

    def __init__(
        self,
        connection: JobCluster,
        job_id: JobId,
        name: str,
        listener: JobListener | None = None,
        *,
        attached: bool = True,
        cancel_on_interrupt: bool = False,
        timeout_ms: int = 60_000,
        attached_to_existing: bool = False,
        on_hadoop: bool = False,
        goes_on: str = "",
    ) -> None:
        self._connection = connection
        self._job_id = job_id
        self._name = name
        self._goes_on = goes_on
        self._listener = listener or SilentListener()
        self._attached = attached
        self._cancel_on_interrupt = cancel_on_interrupt or connection.owned
        self._timeout_ms = timeout_ms
        self._watch = JobWatch(connection, job_id, timeout_ms)
        self._last: JobDetails | None = None
        self._interrupt: KeyboardInterrupt | None = None
        self._over = threading.Event()
        self._on_hadoop = on_hadoop
        self._attached_to_existing = attached_to_existing
        self._collected: weakref.ref[CollectedElements] | None = None
        #: the program wanted no more of it: how it ends is nobody's concern
        self.left = False

    @property
    def job_id(self) -> JobId:
        """Id of the job: 32 hexadecimal digits."""
        return self._job_id

    @property
    def name(self) -> str:
        return self._name

    @property
    def ended(self) -> JobDetails | None:
        """Last details when a wait has seen the end."""
        last = self._last
        return last if last is not None and last.overview.status.terminal else None

    def details(self) -> JobDetails:
        """Everything the JobManager knows about the job now."""
        return self._connection.gateway().job_details(self._job_id)

    def status(self) -> JobStatus:
        return self.details().overview.status

    def get_job_status(self) -> JobStatus:
        """PyFlink's name for :meth:`status`."""
        return self.status()

    def cancel(self) -> None:
        """Begin to cancel; the end is seen by :meth:`await_result`."""
        try:
            self._connection.gateway().cancel_job(self._job_id)
        except (RpcError, HaError):
            # a cluster that ends with its job may be gone before it has answered
            if self._connection.final_details(self._job_id) is None:
                raise

    def collected(self) -> CollectedElements:
        """The elements that the job collects, as they come.

        Raises
        ------
        DuplicateJob
            Another program reads them.
        """
        if self._attached_to_existing:
            raise DuplicateJob(
                f"job {self._name} ({self._job_id}) has the same key, runs already and gives its elements to "
                f"the program that submitted it; end it with `{self._command('cancel')}`, or submit with "
                "--on-existing replace or with another job key"
            )
        elements = CollectedElements(
            PageReader(self._connection, self._job_id, self._timeout_ms), self.await_result, self._leave
        )
        self._collected = weakref.ref(elements)
        return elements

    def stop_collecting(self) -> None:
        """The program has ended: cancel the job if its elements were not read to the end."""
        elements = None if self._collected is None else self._collected()
        if elements is not None:
            elements.close()
        elif self._collected is not None and self.ended is None and not self.left:
            self._leave()

    def begin_savepoint(
        self, target_dir: str, *, stop: bool = False, drain: bool = False
    ) -> Callable[[], str]:
        """Ask for a savepoint.

        Parameters
        ----------
        target_dir : str
            Parent directory; empty = ``execution.checkpointing.savepoint-dir``.
        stop : bool
            The job ends with it.
        drain : bool
            All windows fire before; only with ``stop``.

        Returns
        -------
        callable
            Waits for it and gives its path; raises CheckpointError.
        """
        after = AfterSavepoint.CONTINUE
        if stop:
            after = AfterSavepoint.DRAIN if drain else AfterSavepoint.STOP
        if target_dir:
            target_dir = typed_state_uri(target_dir, on_hadoop=self._on_hadoop)
        return begin_savepoint(self._connection, self._job_id, target_dir, after, timeout_ms=self._timeout_ms)

    def get_job_execution_result(self) -> JobExecutionResult:
        """Wait for the end as :meth:`await_result`; a detached program does not wait."""
        # whoever calls this has imported it already; scripts and verbs never pay for it
        from yarnflow.api.executor import JobExecutionResult

        if not self._attached:
            return JobExecutionResult(self._job_id, -1)
        details = self.await_result()
        overview = details.overview
        started_ms = details.timestamps_ms.get(JobStatus.RUNNING.value, overview.start_time_ms)
        return JobExecutionResult(self._job_id, max(0, overview.end_time_ms - started_ms))

    def await_result(self, timeout_s: float | None = None) -> JobDetails:
        """Wait for the end of the job.

        The first interrupt cancels a job of an owned cluster, and leaves any other running; the
        second one, or the end of the canceled job, raises it.

        Returns
        -------
        JobDetails
            Of the FINISHED job.

        Raises
        ------
        UserCodeError, JobFailed, JobCanceled
            How else it ended; also any other error that was its cause.
        RpcTimeout
            ``timeout_s`` is over; the job goes on.
        """
        details = self.await_end(timeout_s)
        error = job_error(details)
        if error is not None:
            raise error
        return details

    def await_end(self, timeout_s: float | None = None) -> JobDetails:
        """As :meth:`await_result`, but every end is a good one.  Raises RpcTimeout, interrupts."""
        details = self.ended or self._wait(timeout_s)
        if self._interrupt is not None:
            raise self._interrupt
        return details

    def _command(self, verb: str) -> str:
        return job_command(verb, self._connection, self._job_id)

    def _leave(self) -> None:
        """Cancel it, and wait for its end as long as for an answer."""
        self.left = True
        try:
            self.cancel()
        except JobError:
            pass  # it has ended by itself meanwhile
        try:
            self.await_end(self._timeout_ms / 1000)
        except RpcTimeout as error:
            self._listener.note(str(error))

    def _wait(self, timeout_s: float | None) -> JobDetails:
        changes: SimpleQueue[Change] = SimpleQueue()
        stop = threading.Event()
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            with interrupts_to(changes.put):
                self._watch.begin(changes.put, stop)
                while True:
                    left_s = math.inf if deadline is None else max(0.0, deadline - time.monotonic())
                    try:
                        change = changes.get(timeout=min(left_s, _LOOK_AGAIN_S))
                    except Empty:
                        if left_s > _LOOK_AGAIN_S:
                            continue
                        raise RpcTimeout(
                            f"job {self._name} ({self._job_id}) did not end within {timeout_s} s"
                        ) from None
                    if isinstance(change, KeyboardInterrupt):
                        self._interrupted(change)
                        continue
                    if isinstance(change, YarnflowError):
                        raise change
                    if isinstance(change, str):
                        self._listener.note(change)
                        continue
                    details, overview = change
                    self._last = details
                    self._listener.changed(details, overview)
                    if details.overview.status.terminal:
                        self._over.set()
                        if self._watch.retained is not None:
                            self._listener.note(retained_text(details, self._watch.retained))
                        return details
        finally:
            stop.set()

    def _interrupted(self, interrupt: KeyboardInterrupt) -> None:
        if not self._cancel_on_interrupt:
            command = self._command("cancel")
            self._listener.note(self._goes_on or f"The job goes on; cancel it with: {command}")
            raise interrupt
        if self._interrupt is not None:
            raise interrupt
        self._interrupt = interrupt
        self._listener.note(f"Cancelling job {self._name} ({self._job_id}); interrupt again to kill it.")
        # not in this thread: the next interrupt must not wait for an answer
        threading.Thread(target=self._try_cancel, name="cancel", daemon=True).start()

    def _try_cancel(self) -> None:
        try:
            self.cancel()
        except YarnflowError as error:
            # of a cluster of this process nothing is left to tell why there was no answer
            if not self._over.wait(_END_SEEN_S):
                self._listener.note(f"Could not cancel: {error}")
