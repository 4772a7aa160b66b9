"""``yarnflow recover``: gives a cluster the jobs that are stored, and that its ZooKeeper has forgotten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from yarnflow.cli.common import checked_job_id, cluster_options, existing_cluster
from yarnflow.cli.output import Shown, Verb, said
from yarnflow.core.ids import JobId
from yarnflow.core.states import JobStatus
from yarnflow.errors import ConfigError, JobNotFound, JobUnreadable, StorageError, YarnflowError

if TYPE_CHECKING:
    from yarnflow.config.configuration import Configuration
    from yarnflow.core.files import FileSystems
    from yarnflow.core.messages import Fence, JobSubmission
    from yarnflow.core.ports import DispatcherGateway
    from yarnflow.ha.stores.checkpoint_files import CheckpointFiles
    from yarnflow.ha.stores.stored_jobs import StoredJob


@dataclass(frozen=True, slots=True)
class StoredJobSaid:
    """What became of one stored job."""

    job_id: JobId
    #: the cluster has it now, or needs it no more
    settled: bool
    #: in words
    said: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of all of them."""

    jobs: tuple[StoredJobSaid, ...]


@click.command("recover", cls=Verb, answer=Recovery)
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option(
    "--from",
    "directory",
    metavar="DIR",
    help="Where the cluster has stored its jobs; "
    "default: <high-availability.storageDir>/<high-availability.cluster-id>.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option(
    "--trust", is_flag=True, help="Run what the files say although others than you could have written them."
)
@cluster_options
def command(
    jobs: tuple[str, ...],
    directory: str | None,
    dry_run: bool,
    trust: bool,
    configuration: Configuration,
) -> Shown:
    """Bring back jobs that are stored, and that the cluster does not know or cannot read: all or some.

    Each goes on from the state in its checkpoint directory, under its own id.  Files of jobs that have ended
    are deleted.
    """
    from yarnflow.fs.file_systems import file_systems
    from yarnflow.ha.stores.stored_jobs import GRAPHS, doubt, stored_jobs

    wanted = [checked_job_id(job) for job in jobs]
    open_file_system = file_systems()
    file_system, path = open_file_system((directory or _directory(configuration)).rstrip("/"))
    # the cluster is told of it
    where = f"{file_system.uri}{path}"
    if file_system.status(f"{path}/{GRAPHS}") is None:
        raise JobNotFound(
            f"no cluster has stored jobs in {where}: there is no directory {GRAPHS} in it; check "
            "high-availability.storageDir and high-availability.cluster-id, or name the cluster's directory "
            "with --from"
        )
    stored = stored_jobs(open_file_system, where)
    unknown = set(wanted) - {job.job_id for job in stored}
    if unknown:
        raise JobNotFound(f"{where}/{GRAPHS} has nothing of job {', '.join(sorted(unknown))}")
    chosen = [job for job in stored if not wanted or job.job_id in wanted]
    if not chosen:
        return Shown(Recovery(()), f"There are no jobs in {where}.")
    why = "" if trust else doubt(open_file_system, where, chosen)
    if why:
        raise JobUnreadable(
            f"others may have written what the jobs in {where} are to run: {why}; if you know who did, run "
            "this again with --trust"
        )
    work = _Recovery(open_file_system, where, configuration, dry_run)
    with existing_cluster(configuration) as connection:
        results = work.run(connection.gateway(), connection.followed, chosen)
    failed = [result.job_id for result in results if not result.settled]
    error = None
    if failed:
        error = JobUnreadable(
            f"{len(failed)} of {len(chosen)} jobs were not recovered: {', '.join(failed)}"
        )
    return Shown(Recovery(tuple(results)), error=error)


class _Recovery:
    """One run of the command."""

    def __init__(
        self, file_systems: FileSystems, directory: str, configuration: Configuration, dry_run: bool
    ) -> None:
        self._file_systems = file_systems
        self._directory = directory
        self._configuration = configuration
        self._dry_run = dry_run

    def run(
        self, cluster: DispatcherGateway, leader: Callable[[], Fence | None], stored: Sequence[StoredJob]
    ) -> list[StoredJobSaid]:
        """Say of each job what becomes of it.

        Raises
        ------
        ConfigError
            What this cluster's drivers write would be refused as that of a leader before.
        """
        known = {job.job_id: job.status for job in cluster.list_jobs()}
        self._check_epochs(leader())
        results = []
        for job in stored:
            words, is_there = self._one(cluster, job, known.get(job.job_id))
            said(f"Job {job.job_id} {words}.")
            results.append(StoredJobSaid(job.job_id, is_there, words))
        return results

    def _check_epochs(self, leader: Fence | None) -> None:
        from yarnflow.ha.stores.incarnations import GrantedEpochs

        last = GrantedEpochs(self._file_systems, self._directory).last()
        if leader is not None and leader.epoch < last:
            raise ConfigError(
                f"the jobs in {self._directory} ran under leaders up to epoch {last}, and this cluster's is "
                f"of epoch {leader.epoch}, so sinks would refuse what they write; start the cluster with the "
                "high-availability.storageDir and cluster-id of that directory, or with a copy of all of it"
            )

    def _one(
        self, cluster: DispatcherGateway, job: StoredJob, status: JobStatus | None
    ) -> tuple[str, bool]:
        """What to say of it, and whether all is well with it."""
        from yarnflow.ha.stores.stored_jobs import delete_graphs, delete_superseded

        if status is not None and status is not JobStatus.RECOVERY_FAILED:
            return f"is known to the cluster: {status.value}", True
        if job.is_over or self._has_ended(job):
            # a job that the cluster knows is the cluster's to clear away
            deleted = status is None and self._release(job) and self._delete(delete_graphs, job)
            return "has ended; it is not run again" + ", and its file is deleted" * deleted, True
        if job.submission is None:
            return f"cannot be recovered: {job.path} is damaged", False
        name = job.submission.name
        submission, state = self._with_state(job.submission)
        if self._dry_run:
            return f"({name}) would be recovered{state}", True
        try:
            owner = cluster.submit_job(submission).job_id
        except YarnflowError as error:
            return f"({name}) is not recovered: {error}", False
        if owner != job.job_id:
            return f"({name}) is not recovered: job {owner} has its job key", False
        self._delete(delete_superseded, job)
        return f"({name}) is recovered{state}", True

    def _with_state(self, submission: JobSubmission) -> tuple[JobSubmission, str]:
        """The job for a cluster that may look for state elsewhere, and a clause if there is none."""
        from yarnflow.config.options.job import CHECKPOINT_DIR

        root = self._checkpoint_root(submission)
        if not self._checkpoints(submission).exists_directory():
            return submission, f" without state, as there is none in {root}/{submission.job_id}"
        options = {**submission.configuration, CHECKPOINT_DIR.key: root}
        return replace(submission, configuration=options), ""

    def _has_ended(self, job: StoredJob) -> bool:
        """By the marker in its checkpoint directory: a result that is old is not stored any more."""
        return job.submission is not None and self._checkpoints(job.submission).has_ended()

    def _release(self, job: StoredJob) -> bool:
        """Lay the marker of its checkpoint directory down: its master may not have come to it.

        Else the next job of its key would take it for lost, and do its work again.
        """
        if self._dry_run or job.submission is None or job.ended_as is None:
            return True
        try:
            self._checkpoints(job.submission).release(job.ended_as)
        except StorageError as error:
            click.echo(f"Job {job.job_id}: that it has ended cannot be noted: {error}", err=True)
            return False
        return True

    def _checkpoint_root(self, submission: JobSubmission) -> str:
        from yarnflow.config.checkpoint_root import shared_checkpoint_root

        of_job = self._configuration.with_values(submission.configuration, f"job {submission.job_id}")
        return shared_checkpoint_root(of_job, self._directory)

    def _checkpoints(self, submission: JobSubmission) -> CheckpointFiles:
        from yarnflow.ha.stores.checkpoint_files import CheckpointFiles

        return CheckpointFiles(
            self._file_systems, f"{self._checkpoint_root(submission)}/{submission.job_id}"
        )

    def _delete(self, delete: Callable[[FileSystems, str, StoredJob], None], job: StoredJob) -> bool:
        if self._dry_run:
            return False
        try:
            delete(self._file_systems, self._directory, job)
        except StorageError as error:
            click.echo(f"Job {job.job_id}: a file that is of no use cannot be deleted: {error}", err=True)
            return False
        return True


def _directory(configuration: Configuration) -> str:
    from yarnflow.config.checkpoint_root import cluster_storage

    storage = cluster_storage(configuration)
    if not storage:
        raise ConfigError(
            "high-availability.storageDir is not set; set it as the cluster has it, or name the cluster's "
            "directory below it with --from"
        )
    return storage
