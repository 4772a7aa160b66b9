"""``yarnflow savepoint``: takes, inspects and disposes of savepoints.

``savepoint JOB [DIR]`` takes one, as Flink's verb does, and prints its path on standard output and
nothing else; ``inspect`` and ``dispose`` work on files and need no cluster.  Flink counterpart:
``flink savepoint``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

import click

from yarnflow.cli.checkpoints import duration_text
from yarnflow.cli.common import (
    checked_job_id,
    cluster_options,
    common_options,
    existing_cluster,
    job_argument,
)
from yarnflow.cli.flags.flink_flags import SAVEPOINT_FLAGS, flink_flags, savepoint_type
from yarnflow.cli.output import CONTEXT, Shown, Verb, wants_json
from yarnflow.cli.state_options import absolute_state, interruptible, note, open_file_systems
from yarnflow.client.cluster import job_details
from yarnflow.client.saved_state import dispose, running_job_of
from yarnflow.client.savepoints import new_request, take, trigger
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client as client_options
from yarnflow.config.options import job as job_options
from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointKind
from yarnflow.core.ids import JobId
from yarnflow.errors import CheckpointError, HaError, InvalidOption, JobNotFound, RpcError
from yarnflow.fs.saved_state import SavedState, read_state

_TRIGGER: Final = "trigger"
#: how ``flink savepoint`` is told to dispose of one
_FLINKS_DISPOSE: Final = ("-d", "--dispose")


@dataclass(frozen=True, slots=True)
class TakenSavepoint:
    """A savepoint that was taken, or asked for."""

    job_id: JobId
    #: as in the job's list of checkpoints
    request_id: str
    #: empty: it goes on being taken
    savepoint_path: str
    checkpoint: CheckpointInfo | None = None


@dataclass(frozen=True, slots=True)
class Disposed:
    """What is there no more."""

    #: URIs
    deleted: tuple[str, ...]


class _ByForm(click.Group):
    """What is not the name of a subcommand is the id of a job, or an option before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the subcommand in front that the arguments mean."""
        flag = next((word for word in args if word in _FLINKS_DISPOSE), "")
        if flag and args[0] not in self.commands:
            # also behind other options; what follows it is the path
            position = args.index(flag)
            args = ["dispose", *args[:position], *args[position + 1 :]]
        elif args and args[0] not in (*self.commands, "-h", "--help"):
            args = [_TRIGGER, *args]
        return super().parse_args(ctx, args)


@click.group("savepoint", cls=_ByForm, context_settings=CONTEXT, no_args_is_help=True)
def command() -> None:
    """Take a savepoint of a running job; inspect or dispose of one.

    `yarnflow savepoint JOB [DIR]` takes one.
    """


@command.command(_TRIGGER, cls=Verb, answer=TakenSavepoint)
@job_argument()
@click.argument("directory", metavar="[DIR]", required=False)
@click.option("-detached", "--detached", is_flag=True, help="Return as soon as the cluster has begun.")
@savepoint_type
@flink_flags(*SAVEPOINT_FLAGS)
@cluster_options
def take_savepoint(job: str, directory: str | None, detached: bool, configuration: Configuration) -> Shown:
    """Take a savepoint of a running job, which goes on.

    DIR is where it is made; default: execution.checkpointing.savepoint-dir.
    """
    job_id = checked_job_id(job)
    request = new_request(CheckpointKind.SAVEPOINT, savepoint_directory(directory, configuration))
    with existing_cluster(configuration, job_id) as connection:
        cluster = connection.cluster_of(job_id)
        if detached:
            trigger(cluster, job_id, request)
            note(f"Job {job_id} takes a savepoint; see it with: yarnflow checkpoints {job_id}")
            return Shown(TakenSavepoint(job_id, request.request_id, ""))
        with interruptible(job_id):
            info = take(
                cluster, job_id, request, timeout_ms=configuration.get(client_options.CLIENT_TIMEOUT_MS)
            )
    pause = f", {duration_text(info.pause_ms)} without a batch" if info.pause_ms else ""
    took = duration_text(info.end_ms - info.trigger_ms)
    note(f"Savepoint {info.checkpoint_id} of job {job_id} is complete ({took}{pause}).")
    return Shown(
        TakenSavepoint(job_id, request.request_id, info.external_path, info), info.external_path
    )


@command.command(
    "inspect",
    cls=Verb,
    answer="The manifest, `path` and `total_bytes`; with `--state` `rows` (and `states`), and whether there "
    "are `more`.",
)
@click.argument("path")
@click.option("--state", "part", metavar="OPERATOR|QUERY", help="Show the state itself, as a table.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Rows of --state."
)
@common_options
def inspect(path: str, part: str | None, limit: int, configuration: Configuration) -> Shown:
    """Show what is in a savepoint or retained checkpoint.

    Only --state starts a JVM.
    """
    from yarnflow.cli.savepoint_text import manifest_json, manifest_text

    state = _read(path, configuration)
    if part is not None:
        from yarnflow.cli.savepoint_state import shown_state

        return shown_state(state, part, limit)
    if wants_json():
        return Shown(manifest_json(state))
    return Shown(None, manifest_text(state))


@command.command("dispose", cls=Verb, answer=Disposed)
@click.argument("path")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--force", is_flag=True, help="Its job only seems to run: the cluster is gone.")
@flink_flags(*SAVEPOINT_FLAGS)
@cluster_options
def dispose_of(
    path: str, yes: bool, force: bool, configuration: Configuration
) -> Shown:
    """Delete a savepoint, or the retained checkpoint of a job that is over.

    With the last checkpoint of a job goes all of its state.
    """
    file_systems = open_file_systems()
    state = _read(path, configuration)
    live = "" if force else running_job_of(file_systems, state) or _live_in_cluster(state, configuration)
    if live:
        raise CheckpointError(
            f"{state.uri} is in use: {live}; cancel the job first, or use --force if its cluster is gone"
        )
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidOption(f"--yes is needed to delete {state.uri} without being asked")
        metadata = state.metadata
        click.confirm(f"Delete {state.what} {state.uri} of job {metadata.job_name}?", abort=True, err=True)
    deleted = []
    for uri in dispose(file_systems, state):
        note(f"Deleted {uri}")
        deleted.append(uri)
    return Shown(Disposed(tuple(deleted)))


def savepoint_directory(directory: str | None, configuration: Configuration) -> str:
    """Where a savepoint is to be made, as a URI; empty = where the job's configuration says."""
    option = job_options.SAVEPOINT_DIR
    typed = configuration.get(option) if configuration.source_of(option) == "-D" else ""
    text = directory if directory is not None else typed
    return absolute_state(text, configuration, open_file_systems()) if text or directory is not None else ""


def _read(path: str, configuration: Configuration) -> SavedState:
    file_systems = open_file_systems()
    return read_state(file_systems, absolute_state(path, configuration, file_systems, default_target=""))


def _live_in_cluster(state: SavedState, configuration: Configuration) -> str:
    """What a cluster that was named says of the job of a checkpoint; others are not asked."""
    if state.metadata.kind is CheckpointKind.SAVEPOINT or not configuration.is_set(client_options.TARGET):
        return ""
    job_id = JobId(state.metadata.job_id)
    try:
        with existing_cluster(configuration, job_id) as connection:
            details = job_details(connection.cluster_of(job_id), job_id)
    except (JobNotFound, RpcError, HaError):
        return ""
    status = details.overview.status
    return "" if status.globally_terminal else f"job {details.overview.name} ({job_id}) is {status.value}"
