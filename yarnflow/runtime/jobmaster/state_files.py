"""What one job keeps of its state: records of checkpoints, and where the newest one of its key is.

Every method may block and is called from effects.  What is recorded and what is discarded is
decided elsewhere; here are the orders of writes that leave nothing lost when the process ends
between two of them.

Flink counterparts: ``CompletedCheckpointStore``, ``CheckpointsCleaner``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

from yarnflow import __version__
from yarnflow.core.checkpoint.manifest import SavepointMetadata, to_bytes
from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
    QueryPosition,
)
from yarnflow.core.ha.ports import CheckpointStore, LatestState
from yarnflow.core.messages import JobDetails, JobSubmission
from yarnflow.core.states import JobStatus
from yarnflow.errors import YarnflowError
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.state.shape import shape_of
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings

logger = logging.getLogger(__name__)


class JobStateFiles:
    """One job's records.

    Parameters
    ----------
    submission, graph, settings, services
        The JobMaster's.
    """

    def __init__(
        self,
        submission: JobSubmission,
        graph: JobGraph,
        settings: JobMasterSettings,
        services: JobMasterServices,
    ) -> None:
        self._submission = submission
        self._shape = shape_of(graph)
        self._collects = graph.collects
        self._settings = settings
        self._stores = services.stores
        self._latest = services.stores.latest_states(settings.checkpoint_root)
        self._clock = services.clock
        self._lock = threading.Lock()
        self._opened: CheckpointStore | None = None

    def next_id(self) -> int:
        """A number for a new checkpoint."""
        return self._store().next_id()

    def completed(self) -> Sequence[CheckpointInfo]:
        """What earlier masters recorded."""
        return self._store().all()

    def record(self, info: CheckpointInfo) -> CheckpointInfo:
        """Make a checkpoint or savepoint durable; returns it with its path."""
        metadata = b""
        if info.kind is CheckpointKind.CHECKPOINT:  # a savepoint brings its own
            metadata = to_bytes(self._metadata(info))
        recorded = self._store().add(info, metadata)
        if info.kind is CheckpointKind.CHECKPOINT:  # a savepoint may be disposed of at any time
            self._note_latest(recorded, JobStatus.RUNNING)
        return recorded

    def discard(self, checkpoint_id: int) -> None:
        """Delete a checkpoint that newer ones subsume."""
        self._store().remove(checkpoint_id)

    def end(
        self, details: JobDetails, stop: CheckpointInfo | None, positions: Sequence[QueryPosition]
    ) -> None:
        """The job is over: put down its result, then keep or delete its state.

        Parameters
        ----------
        details : JobDetails
            The last snapshot.
        stop : CheckpointInfo, optional
            What became of the last order to stop the job.
        positions : sequence of QueryPosition
            The last ones; a job whose state is kept leaves a record of them at least.
        """
        # or another master would run it again, perhaps from nothing
        if self._stores.results.get(details.overview.job_id) is None:
            self._stores.results.put(details)
        self._delete_collected()
        status = details.overview.status
        # all there is of a job that stopped and whose savepoint is not known to be good
        unsaved = stop is not None and stop.status is not CheckpointStatus.COMPLETED
        if unsaved or self._settings.retention.keeps(status):
            self._keep(status, positions)
        else:
            self._give_up(status, stop)

    def settle(self, details: JobDetails) -> None:
        """As :meth:`end`, of a job whose master was lost after it had put down the result.  Idempotent.

        Parameters
        ----------
        details : JobDetails
            The result.
        """
        self._delete_collected()
        status, key = details.overview.status, self._submission.job_key
        noted = self._latest.read(key) if key else None
        if noted is not None and (noted.job_id, noted.status) == (self._submission.job_id, status.value):
            if noted.path.startswith(f"{self._settings.checkpoint_dir}/"):
                self._store().close_job(status)
            else:
                self._store().discard_all()
            return
        stop = self._stop()
        # whether one that FINISHED was to leave a savepoint is not in the result
        unsaved = status is JobStatus.FINISHED and stop is None
        if unsaved or self._settings.retention.keeps(status):
            self._keep(status, ())
        else:
            self._give_up(status, stop)

    def _delete_collected(self) -> None:
        if self._collects:
            # what the program of a job that did not finish has not read is nobody's
            self._stores.collected(self._settings.checkpoint_dir).delete_all()

    def _stop(self) -> CheckpointInfo | None:
        """The savepoint that the job has stopped with."""
        stops = [info for info in self.completed() if info.trigger is CheckpointTrigger.STOP]
        return max(stops, key=lambda info: info.checkpoint_id, default=None)

    def _keep(self, status: JobStatus, positions: Sequence[QueryPosition]) -> None:
        newest = self._newest() or self._record_last(positions)
        if newest is not None:
            self._note_latest(newest, status)
        self._store().close_job(status)

    def _give_up(self, status: JobStatus, stop: CheckpointInfo | None) -> None:
        # the pointer goes before what it points to
        if stop is not None:
            self._note_latest(stop, status)
        elif self._submission.job_key:
            self._forget_latest(status)
        self._store().discard_all()

    def _metadata(self, info: CheckpointInfo) -> SavepointMetadata:
        return SavepointMetadata(
            checkpoint_id=info.checkpoint_id,
            kind=info.kind,
            job_id=self._submission.job_id,
            job_name=self._submission.name,
            job_key=self._submission.job_key,
            created_ms=self._clock.now_ms(),
            yarnflow_version=__version__,
            program=self._shape,
            positions=info.positions,
        )

    def _newest(self) -> CheckpointInfo | None:
        checkpoints = [info for info in self.completed() if info.kind is CheckpointKind.CHECKPOINT]
        return max(checkpoints, key=lambda info: info.checkpoint_id, default=None)

    def _record_last(self, positions: Sequence[QueryPosition]) -> CheckpointInfo | None:
        """A job that ended before its first checkpoint was due, but after its first commit."""
        if not positions:
            return None
        now_ms = self._clock.now_ms()
        info = CheckpointInfo(
            checkpoint_id=self.next_id(),
            kind=CheckpointKind.CHECKPOINT,
            status=CheckpointStatus.COMPLETED,
            trigger=CheckpointTrigger.RETENTION,
            trigger_ms=now_ms,
            end_ms=now_ms,
            positions=tuple(positions),
        )
        return self.record(info)

    def _forget_latest(self, status: JobStatus) -> None:
        """The job leaves nothing under its key; what a job before it left is not that of a lost one now."""
        key, job_id = self._submission.job_key, self._submission.job_id
        before = self._latest.read(key)
        state = self._state(status, "", 0)
        if before is not None and before.job_id != job_id:
            # who asks for the latest state still gets that one
            state = replace(
                state, path=before.path, checkpoint_id=before.checkpoint_id, program=before.program
            )
        self._latest.write(state)

    def _note_latest(self, info: CheckpointInfo, status: JobStatus) -> None:
        """Put down under the job's key where its newest state is."""
        if not self._submission.job_key:
            return
        state = self._state(status, info.external_path, info.checkpoint_id)
        try:
            self._latest.write(state)
        except YarnflowError as error:
            if status.globally_terminal:  # else the job would be taken for a lost one
                raise
            # it is found by the checkpoint itself
            logger.warning("Where the newest state of %s is was not put down: %s", state.job_key, error)

    def _state(self, status: JobStatus, path: str, checkpoint_id: int) -> LatestState:
        return LatestState(
            job_key=self._submission.job_key,
            job_id=self._submission.job_id,
            job_name=self._submission.name,
            status=status.value,
            path=path,
            checkpoint_id=checkpoint_id,
            written_ms=self._clock.now_ms(),
            program=self._submission.program_digest,
        )

    def _store(self) -> CheckpointStore:
        with self._lock:
            if self._opened is None:
                self._opened = self._stores.checkpoints(
                    self._submission.job_id, self._settings.checkpoint_dir
                )
            return self._opened
