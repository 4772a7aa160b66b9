"""Archives of jobs that have ended, as a leader writes them; libraries are loaded only where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import history as history_options
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails
from yarnflow.core.ports import Clock
from yarnflow.fs.file_systems import file_systems

if TYPE_CHECKING:
    from yarnflow.rest.history.recorder import Recorder
    from yarnflow.rest.history.writer import ArchiveWriter


def check_archive_dir(uri: str) -> None:
    """Find a wrong ``jobmanager.archive.fs.dir`` before there is a leader.

    Raises
    ------
    ConfigError
        Archives cannot be written there.
    """
    if uri:
        # its libraries are not loaded where nothing is archived
        from yarnflow.rest.history import writer

        writer.check_archive_dir(uri)


class Archives:
    """Of one leadership; without ``jobmanager.archive.fs.dir`` none are written.

    Parameters
    ----------
    configuration : Configuration
        The cluster's.
    recorder : callable
        Who makes archives; loads libraries.
    clock : Clock
    """

    def __init__(
        self, configuration: Configuration, recorder: Callable[[], Recorder], clock: Clock
    ) -> None:
        self._writer: ArchiveWriter | None = None
        uri = configuration.get(history_options.ARCHIVE_DIR)
        if uri:
            from yarnflow.rest.history import writer

            cluster_id = configuration.get(cluster_options.CLUSTER_ID)
            self._writer = writer.ArchiveWriter(uri, cluster_id, file_systems(), recorder, clock)

    def start(self) -> None:
        """Begin."""
        if self._writer is not None:
            self._writer.start()

    def ended(self, job_id: JobId) -> None:
        """A job has ended for good; any thread, returns at once."""
        if self._writer is not None:
            self._writer.ended(job_id)

    def recovered(self, jobs: Iterable[JobDetails]) -> None:
        """Jobs that this leader has found: of those that have ended an archive may be missing."""
        if self._writer is not None:
            self._writer.ended_before(
                job.overview.job_id for job in jobs if job.overview.status.globally_terminal
            )

    def finish(self) -> None:
        """The cluster ends: wait a while for the last ones."""
        if self._writer is not None:
            self._writer.finish()

    def stop(self) -> None:
        """Write no more."""
        if self._writer is not None:
            self._writer.stop()
