"""``yarnflow stop JOB``: ends a job with a savepoint; nothing is read after it.

Prints the savepoint's path on standard output and nothing else.  Flink counterpart: ``flink stop``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import click

from yarnflow.cli.checkpoints import duration_text
from yarnflow.cli.common import (
    checked_job_id,
    cluster_options,
    existing_cluster,
    job_argument,
    terminate_as_interrupt,
)
from yarnflow.cli.flags.flink_flags import savepoint_type
from yarnflow.cli.output import Shown, Verb
from yarnflow.cli.savepoint import savepoint_directory
from yarnflow.cli.state_options import interruptible, note, now_ms, open_file_systems
from yarnflow.cli.view import View, make_view
from yarnflow.client.cluster import JobCluster, job_details
from yarnflow.client.job_client import ClusterJobClient
from yarnflow.client.saved_state import find_savepoint
from yarnflow.client.savepoints import new_request, take, trigger
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client as client_options
from yarnflow.core.checkpoint.messages import AfterSavepoint, CheckpointKind, CheckpointRequest
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobOverview
from yarnflow.core.states import JobStatus
from yarnflow.errors import CheckpointError, HaError, JobError, RpcError, YarnflowError


@dataclass(frozen=True, slots=True)
class Stopped:
    """A job that was stopped, or told to."""

    job_id: JobId
    #: empty: it goes on being taken
    savepoint_path: str
    #: as in :class:`yarnflow.core.checkpoint.messages.CheckpointInfo`
    request_id: str


def _request_id(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if value and re.fullmatch("[0-9a-fA-F]{32}", value) is None:
        raise click.BadParameter(f"{value!r} is not 32 hexadecimal digits")
    return value.lower()


@click.command("stop", cls=Verb, answer=Stopped)
@job_argument()
@click.option("-d", "--drain", is_flag=True, help="Let all windows fire first, as at the end of input.")
@click.option(
    "-p",
    "--savepoint-path",
    "--savepointPath",
    "directory",
    metavar="DIR",
    help="Directory in which the savepoint is made; default: execution.checkpointing.savepoint-dir.",
)
@click.option(
    "--request-id",
    metavar="ID",
    default="",
    callback=_request_id,
    help="32 hexadecimal digits: the same again waits for the same savepoint, and makes no second one.",
)
@click.option("-detached", "--detached", is_flag=True, help="Return as soon as the cluster has begun.")
@savepoint_type
@cluster_options
def command(
    job: str,
    drain: bool,
    directory: str | None,
    request_id: str,
    detached: bool,
    configuration: Configuration,
) -> Shown:
    """Stop a job with a savepoint.

    The batch that runs is committed, nothing is read after it, and the job ends FINISHED.
    """
    return stop_job(
        checked_job_id(job), configuration, directory, drain=drain, detached=detached, request_id=request_id
    )


def stop_job(
    job_id: JobId,
    configuration: Configuration,
    directory: str | None,
    *,
    drain: bool = False,
    detached: bool = False,
    request_id: str = "",
) -> Shown:
    """End a job with a savepoint.

    Parameters
    ----------
    request_id : str
        As of a stop that was asked for before; empty = this is another one.

    Raises
    ------
    JobError
        It has ended already.
    CheckpointError
        The savepoint was not taken; the job goes on.
    """
    terminate_as_interrupt()
    parent = savepoint_directory(directory, configuration)
    after = AfterSavepoint.DRAIN if drain else AfterSavepoint.STOP
    request = new_request(CheckpointKind.SAVEPOINT, parent, after, request_id)
    timeout_ms = configuration.get(client_options.CLIENT_TIMEOUT_MS)
    with existing_cluster(configuration, job_id) as connection:
        cluster = connection.cluster_of(job_id)
        details = job_details(cluster, job_id)
        if details.overview.status.globally_terminal:
            raise JobError(f"job {job_id} cannot be stopped: it is {details.overview.status.value} already")
        if detached:
            trigger(cluster, job_id, request)
            note(f"Stopping job {job_id}; see how far it is with: yarnflow checkpoints {job_id}")
            return Shown(Stopped(job_id, "", request.request_id))
        view = make_view(live=False)
        view.begin(details)
        note(f"Stopping job {job_id} with a savepoint{' after draining it' if drain else ''}.")
        with interruptible(job_id):
            path = _stop(cluster, job_id, request, timeout_ms)
        error = _await_end(cluster, details.overview, view, timeout_ms)
    return Shown(Stopped(job_id, path, request.request_id), path, error=error)


def _stop(cluster: JobCluster, job_id: JobId, request: CheckpointRequest, timeout_ms: int) -> str:
    """Take the savepoint; returns its path."""
    began_ms = now_ms()
    try:
        info = take(cluster, job_id, request, timeout_ms=timeout_ms)
    except (RpcError, HaError, CheckpointError):
        # the cluster may have ended with the job, or its new master remembers no more than that
        found = _left_behind(cluster, job_id, request, began_ms)
        if found:
            return found
        raise
    pause = f", {duration_text(info.pause_ms)} without a batch" if info.pause_ms else ""
    took = duration_text(info.end_ms - info.trigger_ms)
    note(f"Savepoint {info.checkpoint_id} is complete ({took}{pause}).")
    return info.external_path


def _await_end(
    cluster: JobCluster, job: JobOverview, view: View, timeout_ms: int
) -> BaseException | None:
    """Wait for the job's end; whatever comes of that, the savepoint is there."""
    job_id = job.job_id
    unseen = f"The savepoint is complete; see whether job {job_id} has ended with: yarnflow list --all"
    waiting = ClusterJobClient(
        cluster, job_id, job.name, view, timeout_ms=timeout_ms, goes_on=unseen
    )
    try:
        waiting.await_result()
    except KeyboardInterrupt as interrupt:
        return interrupt
    except YarnflowError as error:
        note(unseen if waiting.ended is None else "The savepoint is complete; a job can start from it.")
        return error
    return None


def _left_behind(cluster: JobCluster, job_id: JobId, request: CheckpointRequest, since_ms: int) -> str:
    if not request.target_dir:
        return ""
    try:
        # first what was left behind: another master may not remember the job
        details = cluster.final_details(job_id) or job_details(cluster, job_id)
    except (RpcError, HaError, JobError):
        # of a cluster that is gone the savepoint alone tells
        if cluster.failure() is None:
            return ""
    else:
        if details.overview.status is not JobStatus.FINISHED:
            return ""
    found = find_savepoint(open_file_systems(), request.target_dir, job_id, since_ms)
    return "" if found is None else found.uri
