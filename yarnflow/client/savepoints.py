"""Asking a cluster for checkpoints and savepoints, and waiting for them.

Every request has an id of its own, so that asking again, which a failover of the master makes
necessary, is no second one.  Flink counterpart: ``ClusterClient.triggerSavepoint`` and
``stopWithSavepoint``.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Final

from yarnflow.client.background import in_background
from yarnflow.client.cluster import JobCluster
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointInfo,
    CheckpointKind,
    CheckpointRequest,
    CheckpointStatus,
    JobCheckpoints,
)
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails
from yarnflow.core.states import JobStatus
from yarnflow.errors import CheckpointError, CheckpointFailed, HaError, RpcError, YarnflowError
from yarnflow.process.dirs import is_of_local_cluster

#: a long poll returns after this time at the latest
POLL_MS: Final = 5_000
_RETRY_S: Final = 0.2


def new_request(
    kind: CheckpointKind,
    target_dir: str = "",
    after: AfterSavepoint = AfterSavepoint.CONTINUE,
    request_id: str = "",
) -> CheckpointRequest:
    """A request with an id of its own, unless one is given."""
    return CheckpointRequest(request_id or secrets.token_hex(16), kind, target_dir, after)


def take(
    cluster: JobCluster,
    job_id: JobId,
    request: CheckpointRequest,
    *,
    timeout_ms: int,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> CheckpointInfo:
    """Ask for a checkpoint and wait until it is durable.

    How long it may take is the cluster's to say (``execution.checkpointing.timeout``).

    Parameters
    ----------
    timeout_ms : int
        How long a cluster that does not answer, or cannot begin, is tried again (``client.timeout``).

    Raises
    ------
    CheckpointFailed
        It was begun and failed.
    CheckpointError
        The job cannot take one.
    """
    answered_s = now()
    asked = False
    while True:
        try:
            if not asked:
                cluster.gateway().trigger_checkpoint(job_id, request)
                asked = True
            info = cluster.gateway().await_checkpoint(job_id, request.request_id, POLL_MS)
        except (RpcError, HaError, CheckpointError) as error:
            # a master that took over meanwhile may know nothing of the request
            forgotten = asked and isinstance(error, CheckpointError)
            if not (forgotten or error.retryable) or (now() - answered_s) * 1000 >= timeout_ms:
                raise
            if cluster.final_details(job_id) is not None or cluster.failure() is not None:
                raise
            asked = asked and not forgotten
            sleep(_RETRY_S)
            continue
        answered_s = now()
        if info.status is CheckpointStatus.FAILED:
            what = "checkpoint" if request.kind is CheckpointKind.CHECKPOINT else "savepoint"
            raise CheckpointFailed(f"{what} {info.checkpoint_id} of job {job_id} failed: {info.failure}")
        if info.status is CheckpointStatus.COMPLETED:
            return info


def begin_savepoint(
    cluster: JobCluster, job_id: JobId, target_dir: str, after: AfterSavepoint, *, timeout_ms: int
) -> Callable[[], str]:
    """:func:`take` a savepoint in the background; what is returned waits for it and gives its path."""
    request = new_request(CheckpointKind.SAVEPOINT, target_dir, after)
    taken = in_background(lambda: take(cluster, job_id, request, timeout_ms=timeout_ms), "savepoint")
    return lambda: taken.result().external_path


def trigger(cluster: JobCluster, job_id: JobId, request: CheckpointRequest) -> None:
    """Ask for a checkpoint and do not wait for it."""
    cluster.gateway().trigger_checkpoint(job_id, request)


def newest_retained(checkpoints: JobCheckpoints) -> CheckpointInfo | None:
    """The newest checkpoint whose files are there, and that no savepoint is."""
    kept = (
        info
        for info in checkpoints.history
        if info.kind is CheckpointKind.CHECKPOINT
        and info.status is CheckpointStatus.COMPLETED
        and info.external_path
        and not info.discarded
    )
    return max(kept, key=lambda info: info.checkpoint_id, default=None)


def retained_state(cluster: JobCluster, details: JobDetails) -> CheckpointInfo | None:
    """What of an ended job's state can be started from; None = nothing, or it cannot be told.

    Not what is in the directory of a local cluster, which stays only if a job of it FAILED.
    """
    if details.overview.status not in (JobStatus.CANCELED, JobStatus.FAILED):
        return None
    try:
        # nobody waits for the next leader to hear this
        gateway = cluster.present_gateway()
        if gateway is None:
            return None
        checkpoints = gateway.job_checkpoints(details.overview.job_id)
    except YarnflowError:
        return None
    if checkpoints.retention == "NO_EXTERNALIZED_CHECKPOINTS":
        return None
    if checkpoints.retention == "DELETE_ON_CANCELLATION" and details.overview.status is JobStatus.CANCELED:
        return None
    newest = newest_retained(checkpoints)
    if newest is None or details.overview.status is JobStatus.FAILED:
        return newest
    return None if is_of_local_cluster(newest.external_path) else newest


def retained_text(details: JobDetails, info: CheckpointInfo) -> str:
    """Where the state is, and what to type to go on from it."""
    overview = details.overview
    text = (
        f"The state of job {overview.name} ({overview.job_id}) is retained.  "
        f"Start from it: yarnflow submit -s {info.external_path} PROGRAM"
    )
    if overview.status is JobStatus.FAILED and overview.job_key:
        text += "  (A submit under the same key does so by itself; --restore none starts empty.)"
    return text
