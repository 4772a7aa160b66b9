"""Looks for archives, copies new ones, and forgets what is over.

What is no archive is named in the log once, and passed over.  Flink counterparts:
``HistoryServerArchiveFetcher``, ``HistoryServerApplicationArchiveFetcher``, ``ArchiveRetainedStrategy``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from yarnflow.core.files import FileStatus, FileSystem, FileSystems
from yarnflow.core.ports import Clock
from yarnflow.errors import StorageDenied, StorageError, YarnflowError
from yarnflow.rest.history.form import (
    APPLICATION_FILE,
    APPLICATIONS_FOLDER,
    JOBS_FOLDER,
    MAX_ARCHIVE_BYTES,
    BadArchive,
    Owner,
    decode,
    is_id,
)
from yarnflow.rest.history.store import ArchiveStore, Copied

logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retention:
    """What stays."""

    #: copies go with their archives
    clean_expired: bool = False
    #: newest archives of each directory; -1 = all
    most: int = -1
    #: 0 = none is too old
    ttl_ms: int = 0


@dataclass(slots=True)
class _Unit:
    """What is deleted as one: a job's file, or Flink's folder of an application."""

    path: str
    modified_ms: int
    #: archives in it, with their files
    files: dict[Owner, FileStatus] = field(default_factory=dict)
    #: it goes with a job's file of the same id
    follows: str = ""


@dataclass
class ArchiveFetcher:
    """The directories of one history server; called by one thread.

    Parameters
    ----------
    sources : sequence of str
        URIs.
    file_systems : FileSystems
    store : ArchiveStore
    retention : Retention
    clock : Clock
    stopped : callable
        Give up looking.
    """

    sources: Sequence[str]
    file_systems: FileSystems
    store: ArchiveStore
    retention: Retention
    clock: Clock
    #: looked at between two archives: give up
    stopped: Callable[[], bool] = lambda: False
    #: files that are no archives, as they were when that was said
    _bad: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: folder of an application → when it was changed last, and what was found in it
    _folders: dict[str, tuple[int, _Unit]] = field(default_factory=dict)
    #: source → what was said of it at the last look, which is not said again; and at this one
    _said: dict[str, set[str]] = field(default_factory=dict)
    _said_now: set[str] = field(default_factory=set)
    #: something may be there that this look did not see
    _is_partial: bool = False
    #: directories that could not be read when they were looked at last
    _missing: set[str] = field(default_factory=set)

    def refresh(self) -> None:
        """Look once."""
        for source in self.sources:
            self._said_now, self._is_partial = set(), False
            try:
                self._refresh(source)
                self._missing.discard(source)
                self._said.pop(source, None)
                if self._said_now:
                    self._said[source] = self._said_now
            except YarnflowError as error:
                if source not in self._missing:
                    self._missing.add(source)
                    logger.warning("The archives in %s cannot be looked at (said once): %s", source, error)

    def _refresh(self, source: str) -> None:
        files, directory = self.file_systems(source)
        directory = directory.rstrip("/") or "/"
        if files.status(directory) is None:
            # nothing is forgotten for that: it may be another's mistake
            raise StorageError(f"{source} does not exist; check historyserver.archive.fs.dir")
        units = list(self._units(source, files, directory))
        present = {status.path for unit in units for status in unit.files.values()}
        for path in [path for path in self._bad if path.startswith(f"{directory}/") and path not in present]:
            del self._bad[path]
        units = self._retained(source, files, units)
        known = {copied.owner: copied for copied in self.store.copies(source)}
        there = set()
        for unit in units:
            for owner, status in unit.files.items():
                if self.stopped():
                    return
                there.add(owner)
                copied = known.get(owner)
                as_it_is = (status.path, status.modified_ms, status.length_bytes)
                if copied is None or (copied.path, copied.modified_ms, copied.bytes) != as_it_is:
                    self._copy(files, source, owner, status)
        if self.retention.clean_expired and not self._is_partial:
            for owner in known.keys() - there:
                self.store.remove(owner)
                logger.info("The archive of %s is gone, and so is its copy.", owner.root)

    def _say(self, source: str, path: str, what: str, error: YarnflowError) -> None:
        """Once, until it is over."""
        if path not in self._said.get(source, ()) and path not in self._said_now:
            logger.warning("%s %s (said once): %s", path, what, error)
        self._said_now.add(path)

    def _listed(self, source: str, files: FileSystem, directory: str) -> Sequence[FileStatus] | None:
        """What is in a directory; None = its owner keeps it to himself, which hides nothing of others."""
        try:
            return files.list(directory)
        except StorageDenied as error:
            self._is_partial = True
            self._say(source, directory, "may have archives, and is passed over", error)
            return None

    def _units(self, source: str, files: FileSystem, directory: str) -> Iterator[_Unit]:
        flat = set()
        clusters = []
        for status in files.list(directory):
            if not is_id(status.name):
                continue
            if status.is_directory:
                clusters.append(status)
            else:
                flat.add(status.name)
                yield _Unit(status.path, status.modified_ms, {Owner("jobs", status.name): status})
        seen = set()
        for cluster in clusters:
            for folder in self._listed(source, files, f"{cluster.path}/{APPLICATIONS_FOLDER}") or ():
                if folder.is_directory and is_id(folder.name):
                    seen.add(folder.path)
                    unit = self._application(source, files, folder)
                    unit.follows = folder.name if folder.name in flat else ""
                    yield unit
        for path in [path for path in self._folders if path.startswith(f"{directory}/") and path not in seen]:
            del self._folders[path]

    def _application(self, source: str, files: FileSystem, folder: FileStatus) -> _Unit:
        """A folder is looked into when it is new or changed: there may be thousands."""
        before = self._folders.get(folder.path)
        if before is not None and before[0] == folder.modified_ms:
            return before[1]
        unit = _Unit(folder.path, folder.modified_ms)
        inside = {status.name: status for status in self._listed(source, files, folder.path) or ()}
        summary = inside.get(APPLICATION_FILE)
        if summary is None or summary.is_directory:
            return unit  # it is about to come: it is the last one that is written
        unit.files[Owner("applications", folder.name)] = summary
        if JOBS_FOLDER in inside:
            jobs = self._listed(source, files, f"{folder.path}/{JOBS_FOLDER}")
            if jobs is None:
                return unit  # that may change, and the folder does not
            for status in jobs:
                if is_id(status.name) and not status.is_directory:
                    unit.files[Owner("jobs", status.name)] = status
        self._folders[folder.path] = folder.modified_ms, unit
        return unit

    def _retained(self, source: str, files: FileSystem, units: Sequence[_Unit]) -> list[_Unit]:
        """Delete what is too old or too much."""
        retention = self.retention
        heads = sorted((unit for unit in units if not unit.follows), key=lambda each: -each.modified_ms)
        oldest_ms = self.clock.now_ms() - retention.ttl_ms if retention.ttl_ms else None
        gone = set()
        for number, unit in enumerate(heads):
            too_many = 0 <= retention.most <= number
            if too_many or (oldest_ms is not None and unit.modified_ms < oldest_ms):
                gone.add(unit.path)
        if not gone:
            return list(units)
        names = {path.rpartition("/")[2] for path in gone}
        stay = []
        for unit in units:
            if unit.path not in gone and unit.follows not in names:
                stay.append(unit)
                continue
            try:
                files.delete(unit.path)
                logger.info("The archive %s is over, and deleted.", unit.path)
            except YarnflowError as error:
                self._say(source, unit.path, "is over, but cannot be deleted", error)
            for owner in unit.files:
                self.store.remove(owner)
        return stay

    def _copy(self, files: FileSystem, source: str, owner: Owner, status: FileStatus) -> None:
        as_it_is = status.modified_ms, status.length_bytes
        if self._bad.get(status.path) == as_it_is:
            return
        other = self.store.copy(owner)
        if other is not None and other.source != source and other.source in self.sources:
            return  # the same job, of the directory that is named first
        try:
            if status.length_bytes > MAX_ARCHIVE_BYTES:
                raise BadArchive(f"it has {status.length_bytes} bytes; {MAX_ARCHIVE_BYTES} are the most")
            content = decode(files.read(status.path), owner)
            self.store.put(content, Copied(owner, source, status.path, *as_it_is))
        except BadArchive as error:
            self._bad[status.path] = as_it_is
            logger.warning("%s is no archive that can be shown (said once): %s", status.path, error)
        except YarnflowError as error:
            self._say(source, status.path, "is not read yet", error)
