"""Writes archives of jobs that have ended, in a thread of its own.

That one cannot be written is told, and holds up nothing.  Flink counterpart: ``HistoryServerArchivist``.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from yarnflow.core.files import FileSystem, FileSystems
from yarnflow.core.ids import JobId
from yarnflow.core.ports import Clock
from yarnflow.core.uris import split_uri
from yarnflow.errors import ConfigError, YarnflowError
from yarnflow.rest.history.form import (
    APPLICATION_FILE,
    APPLICATIONS_FOLDER,
    JOBS_FOLDER,
    cluster_folder,
)

logger: Final = logging.getLogger(__name__)

#: before an archive is written again that could not be; the last one again and again
RETRY_PAUSES_MS: Final = (1_000, 2_000, 5_000, 10_000, 30_000, 60_000)
MAX_TRIES: Final = 12
#: archives that wait to be written again; the oldest gives way
MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
#: how long the process may wait for the last ones when it ends; its supervisor kills it after ten seconds
LAST_WRITES_MS: Final = 8_000


class ArchiveMaker(Protocol):
    """Makes archives."""

    def job(self, job_id: JobId) -> bytes:
        """Of a job; raises YarnflowError when it is forgotten."""

    def application(self, job_id: JobId) -> bytes:
        """Of the application that it is; raises the same."""


@dataclass(order=True, slots=True)
class _Waiting:
    """One job whose archive is to be written; the one that is due first comes first."""

    due_ms: int
    #: of arrival
    number: int
    job_id: JobId = field(compare=False)
    #: only if there is none
    if_missing: bool = field(default=False, compare=False)
    #: of application and job; empty = not made yet
    contents: tuple[bytes, bytes] | None = field(default=None, compare=False)
    tries: int = field(default=0, compare=False)

    @property
    def size(self) -> int:
        return 0 if self.contents is None else sum(map(len, self.contents))


def check_archive_dir(uri: str) -> None:
    """Find a wrong option before there is a leader.

    Raises
    ------
    ConfigError
        Archives cannot be written there.
    """
    scheme, _, path = split_uri(uri)
    if uri and (scheme not in ("", "file", "hdfs") or not path.startswith("/")):
        raise ConfigError(
            f"jobmanager.archive.fs.dir: {uri} is no directory that archives can be written to; use hdfs://…,"
            " file://… or an absolute path"
        )


@dataclass
class ArchiveWriter:
    """The archives of one leadership.

    Parameters
    ----------
    uri : str
        Directory (``jobmanager.archive.fs.dir``).
    cluster_id : str
        The cluster's.
    file_systems : FileSystems
    maker : callable
        Makes who makes archives; called in the thread, as it loads libraries.
    clock : Clock
    """

    uri: str
    cluster_id: str
    file_systems: FileSystems
    maker: Callable[[], ArchiveMaker]
    clock: Clock
    #: a heap
    _waiting: list[_Waiting] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    #: names in the directory, once somebody has asked
    _there: frozenset[str] | None = None
    _busy: bool = False
    _stopped: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="archives", daemon=True).start()

    def ended(self, job_id: JobId) -> None:
        """A job has ended for good; any thread, returns at once."""
        self._add([job_id], if_missing=False)

    def ended_before(self, job_ids: Iterable[JobId]) -> None:
        """Jobs have ended under an earlier leader, who may not have come to it."""
        self._add(job_ids, if_missing=True)

    def finish(self, timeout_ms: int = LAST_WRITES_MS) -> bool:
        """Wait until all are written; False = some are not, and are named in the log."""
        with self._changed:
            done = self._changed.wait_for(lambda: not self._waiting and not self._busy, timeout_ms / 1000)
            left = [str(each.job_id) for each in self._waiting]
        if not done:
            logger.warning("The archives of jobs are not written: %s.", ", ".join(left) or "the last one")
        return done

    def stop(self) -> None:
        """Write no more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    # --- in the thread ---

    def _add(self, job_ids: Iterable[JobId], if_missing: bool) -> None:
        with self._changed:
            for job_id in job_ids:
                number = next(self._numbers)
                heapq.heappush(self._waiting, _Waiting(0, number, job_id, if_missing))
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            # loads libraries: a cluster may end with the job that it lives for
            self.maker()
        except Exception:
            logger.exception("Archives cannot be made")
        while True:
            with self._changed:
                while not self._stopped and (pause_ms := self._pause_ms()) != 0:
                    self._changed.wait(None if pause_ms is None else pause_ms / 1000)
                if self._stopped:
                    return
            self.step()

    def step(self) -> bool:
        """Write one that is due; False = there is none."""
        with self._changed:
            if self._pause_ms() != 0:
                return False
            job = heapq.heappop(self._waiting)
            self._busy = True
        again = False
        try:
            again = self._try(job)
        except Exception:  # the cluster must not end for an archive
            logger.exception("The archive of job %s is not written", job.job_id)
        with self._changed:
            self._busy = False
            if again:
                heapq.heappush(self._waiting, job)
                self._bound()
            self._changed.notify_all()
        return True

    def _pause_ms(self) -> int | None:
        """Until one is due; None = there is none."""
        if not self._waiting:
            return None
        return max(0, self._waiting[0].due_ms - self.clock.monotonic_ms())

    def _try(self, job: _Waiting) -> bool:
        """Write one archive; True = try again later."""
        job.tries += 1
        try:
            self._write(job)
            return False
        except YarnflowError as error:
            if not error.retryable or job.tries >= MAX_TRIES:
                logger.warning("The archive of job %s is not written: %s", job.job_id, error)
                return False
            if job.tries == 1:
                logger.warning("The archive of job %s is not written yet: %s", job.job_id, error)
            pause_ms = RETRY_PAUSES_MS[min(job.tries, len(RETRY_PAUSES_MS)) - 1]
            job.due_ms = self.clock.monotonic_ms() + pause_ms
            return True

    def _write(self, job: _Waiting) -> None:
        files, directory = self.file_systems(self.uri)
        path = f"{directory.rstrip('/')}/{job.job_id}"
        if job.if_missing and self._is_there(files, directory, str(job.job_id)):
            return
        if job.contents is None:
            # before anything that may take long: the cluster may forget the job
            job.contents = self._made(job.job_id)
        application, of_job = job.contents
        self._write_application(files, directory, job.job_id, application)
        # the last one: whoever finds it finds all
        files.write(path, of_job)
        logger.info("Archive of job %s: %s, %d bytes.", job.job_id, path, len(of_job))

    def _is_there(self, files: FileSystem, directory: str, name: str) -> bool:
        """All names are asked for at once: there may be thousands of jobs."""
        if self._there is None:
            self._there = frozenset(status.name for status in files.list(directory))
        return name in self._there

    def _made(self, job_id: JobId) -> tuple[bytes, bytes]:
        maker = self.maker()
        return maker.application(job_id), maker.job(job_id)

    def _write_application(self, files: FileSystem, directory: str, job_id: JobId, content: bytes) -> None:
        """In Flink's layout of applications; its history server wants a folder of jobs, be it empty."""
        cluster = cluster_folder(self.cluster_id)
        folder = f"{directory.rstrip('/')}/{cluster}/{APPLICATIONS_FOLDER}/{job_id}"
        files.make_directory(f"{folder}/{JOBS_FOLDER}")
        files.write(f"{folder}/{APPLICATION_FILE}", content)

    def _bound(self) -> None:
        made = sorted((job for job in self._waiting if job.contents is not None), key=lambda job: job.number)
        size = sum(job.size for job in made)
        for job in made[:-1]:
            if size <= MAX_WAITING_BYTES:
                break
            size -= job.size
            self._waiting.remove(job)
            heapq.heapify(self._waiting)
            logger.warning("The archive of job %s is not written: too many wait", job.job_id)
