"""Checkpoints and savepoints: what there are, and how they are begun."""

from __future__ import annotations

from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointKind,
    CheckpointRequest,
    CheckpointStatus,
)
from yarnflow.core.ids import JobId
from yarnflow.errors import CheckpointFailed
from yarnflow.rest.answers import checkpoints as answers
from yarnflow.rest.answers import operations as ops
from yarnflow.rest.answers.shapes import Empty
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.operations import Outcome, Poll
from yarnflow.rest.framework.route import Call
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.context import Cluster
from yarnflow.rest.handlers.vertices import find

_DISPOSAL = "savepoint-disposal"


def history(cluster: Cluster, call: Call) -> answers.Checkpoints:
    """Checkpoints of a job, newest first."""
    job_id = call.get(p.JOB_ID)
    known = cluster.view.job_checkpoints(JobId(job_id))
    return answers.checkpoints(known, cluster.job(job_id).vertices, cluster.now_ms())


def configuration(cluster: Cluster, call: Call) -> answers.CheckpointsConfiguration:
    """When checkpoints of a job are begun, and what becomes of them."""
    job_id = JobId(call.get(p.JOB_ID))
    description = cluster.view.job_description(job_id)
    backend = "" if description is None else description.state_backend
    return answers.configuration(cluster.view.job_checkpoints(job_id), backend)


def details(cluster: Cluster, call: Call) -> answers.Checkpoint:
    """One checkpoint of a job."""
    job_id, number = call.get(p.JOB_ID), call.get(p.CHECKPOINT_ID)
    for info in cluster.view.job_checkpoints(JobId(job_id)).history:
        if info.checkpoint_id == number:
            return answers.checkpoint_details(info, cluster.job(job_id).vertices, cluster.now_ms())
    # Flink's words
    raise RestError(404, f"Could not find checkpointing statistics for checkpoint {number}.")


def subtasks(cluster: Cluster, call: Call) -> Empty:
    """A checkpoint is of whole queries: nothing is known of single subtasks."""
    find(cluster, call)
    details(cluster, call)
    raise RestError(
        501,
        "A checkpoint records committed batches of whole queries; there are no numbers of single subtasks. "
        "See queries in checkpoints/details/:checkpointid.",
    )


def trigger_checkpoint(cluster: Cluster, call: Call, body: ops.CheckpointRequestBody) -> ops.Triggered:
    """Begin a checkpoint."""
    return _begin(cluster, call, body.trigger_id, CheckpointKind.CHECKPOINT)


def trigger_savepoint(cluster: Cluster, call: Call, body: ops.SavepointRequest) -> ops.Triggered:
    """Begin a savepoint; with cancel-job nothing is read after it and the job ends FINISHED."""
    after = AfterSavepoint.STOP if body.cancel_job else AfterSavepoint.CONTINUE
    target = body.target_directory or ""
    return _begin(cluster, call, body.trigger_id, CheckpointKind.SAVEPOINT, target, after)


def stop(cluster: Cluster, call: Call, body: ops.StopRequest) -> ops.Triggered:
    """End a job FINISHED, with a savepoint."""
    after = AfterSavepoint.DRAIN if body.drain else AfterSavepoint.STOP
    target = body.target_directory or ""
    return _begin(cluster, call, body.trigger_id, CheckpointKind.SAVEPOINT, target, after)


def yarn_stop(cluster: Cluster, call: Call) -> ops.Triggered:
    """The same by GET, as YARN's web proxy passes on no POST; into the default directory."""
    return _begin(cluster, call, None, CheckpointKind.SAVEPOINT, "", AfterSavepoint.STOP)


def yarn_stop_with_token(cluster: Cluster, call: Call, body: ops.StopRequestWithToken) -> ops.Triggered:
    """As by POST, with the token in the body."""
    return stop(cluster, call, body)


def checkpoint_status(cluster: Cluster, call: Call) -> ops.OperationAnswer:
    """What became of a checkpoint."""
    return _status(cluster, call, "checkpoint")


def savepoint_status(cluster: Cluster, call: Call) -> ops.OperationAnswer:
    """What became of a savepoint."""
    return _status(cluster, call, "savepoint")


def dispose(cluster: Cluster, call: Call, body: ops.DisposalRequest) -> ops.Triggered:
    """Delete a savepoint."""

    def delete(_trigger_id: str) -> Poll:
        return cluster.operations.in_background(lambda: cluster.view.dispose_savepoint(body.savepoint_path))

    return ops.Triggered(request_id=cluster.operations.begin(_DISPOSAL, None, delete))


def disposal_status(cluster: Cluster, call: Call) -> ops.OperationAnswer:
    """Whether a savepoint is deleted."""
    trigger_id = call.get(p.TRIGGER_ID)
    try:
        return ops.operation(cluster.operations.outcome(_DISPOSAL, trigger_id))
    except KeyError:
        raise RestError(
            404, f"There is no savepoint disposal operation with triggerId={trigger_id}."
        ) from None


def _begin(
    cluster: Cluster,
    call: Call,
    trigger_id: str | None,
    kind: CheckpointKind,
    target_dir: str = "",
    after: AfterSavepoint = AfterSavepoint.CONTINUE,
) -> ops.Triggered:
    job_id = JobId(call.get(p.JOB_ID))
    cluster.view.job_details(job_id)
    is_savepoint = kind is CheckpointKind.SAVEPOINT

    def begin(chosen: str) -> Poll:
        cluster.view.trigger_checkpoint(job_id, CheckpointRequest(chosen, kind, target_dir, after))

        def poll() -> Outcome | None:
            info = cluster.view.await_checkpoint(job_id, chosen, 0)
            if info.status is CheckpointStatus.IN_PROGRESS:
                return None
            if info.status is CheckpointStatus.FAILED:
                return Outcome(error=CheckpointFailed(info.failure))
            return Outcome(info.external_path if is_savepoint else info.checkpoint_id)

        return poll

    scope = f"{kind.value.lower()}/{job_id}"
    chosen = cluster.operations.begin(scope, trigger_id and trigger_id.lower(), begin)
    return ops.Triggered(request_id=chosen)


def _status(cluster: Cluster, call: Call, what: str) -> ops.OperationAnswer:
    job_id, trigger_id = call.get(p.JOB_ID), call.get(p.TRIGGER_ID)
    try:
        return ops.operation(cluster.operations.outcome(f"{what}/{job_id}", trigger_id))
    except KeyError:
        raise RestError(
            404, f"There is no {what} operation with triggerId={trigger_id} for job {job_id}."
        ) from None
