"""The cache of uploaded files on HDFS: environments, yarnflow itself, configuration.

Decides what of it may be deleted: never what an application that lives may still need, since
YARN fetches a file anew for each further node.  Whatever was there when it was submitted counts; of
a session also what came later, with a job.
Flink has no counterpart; its uploads end with their application.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from yarnflow.client.yarn.applications import mode_of
from yarnflow.core.files import FileStatus, FileSystem
from yarnflow.core.yarn import ApplicationState, DeploymentMode, YarnCluster
from yarnflow.staging.layout import APPLICATION_TAG, StagingLayout, deployment_tag

#: clocks of clients, NameNode and ResourceManager may differ by this much
CLOCK_MARGIN_MS: Final = 10 * 60_000
_LIVE: Final = tuple(state for state in ApplicationState if not state.ended)


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A file of the cache."""

    sha256: str
    name: str
    uri: str
    size_bytes: int
    uploaded_ms: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of an entry."""

    entry: CacheEntry
    #: why it stays; empty = it is deleted
    kept_because: str = ""


def cache_entries(fs: FileSystem, layout: StagingLayout) -> list[CacheEntry]:
    """All files of the cache, newest first.  Raises StorageError."""
    found = [
        CacheEntry(
            sha256=directory.name,
            name=file.name,
            uri=fs.uri + file.path,
            size_bytes=file.length_bytes,
            uploaded_ms=file.modified_ms,
        )
        for directory in fs.list(layout.cache)
        for file in (fs.list(directory.path) if directory.is_directory else ())
    ]
    return sorted(found, key=lambda entry: (-entry.uploaded_ms, entry.name))


def clean_cache(
    fs: FileSystem,
    layout: StagingLayout,
    cluster: YarnCluster,
    user: str,
    *,
    older_than_ms: int,
    now_ms: int,
    dry_run: bool = False,
) -> list[Decision]:
    """Delete what is old and needed by no application.

    Parameters
    ----------
    older_than_ms : int
        What was uploaded less than this long ago stays.
    dry_run : bool
        Decide only.

    Raises
    ------
    StorageError, YarnError
        Nothing is deleted without knowing which applications live.
    """
    entries = cache_entries(fs, layout)
    users = _users(fs, layout, cluster, user, now_ms) if entries else []
    decisions = []
    for entry in entries:
        reason = ""
        if now_ms - entry.uploaded_ms < older_than_ms:
            reason = "uploaded lately"
        else:
            reason = next((f"used by {one.name}" for one in users if one.may_need(entry)), "")
        decisions.append(Decision(entry, reason))
    if not dry_run:
        kept = {decision.entry.sha256 for decision in decisions if decision.kept_because}
        for decision in decisions:
            # one content may have several names, and stays with the last of them
            if not decision.kept_because:
                sha256, name = decision.entry.sha256, decision.entry.name
                fs.delete(layout.cached_file(sha256, name) if sha256 in kept else f"{layout.cache}/{sha256}")
    return decisions


@dataclass(frozen=True, slots=True)
class _User:
    """An application that lives, or is being submitted."""

    name: str
    started_ms: int
    #: jobs bring files of their own later
    takes_jobs: bool = False

    def may_need(self, entry: CacheEntry) -> bool:
        # what came later was not there when it was submitted
        return self.takes_jobs or entry.uploaded_ms <= self.started_ms + CLOCK_MARGIN_MS


def _users(
    fs: FileSystem, layout: StagingLayout, cluster: YarnCluster, user: str, now_ms: int
) -> list[_User]:
    live = cluster.applications(tag=APPLICATION_TAG, user=user, states=_LIVE)
    known = {tag for application in live for tag in application.tags}
    names = [directory.name for directory in _young(fs, layout, now_ms)]
    return [
        *(
            _User(
                one.application_id,
                one.started_ms if one.started_ms >= 0 else now_ms,
                takes_jobs=mode_of(one) not in (DeploymentMode.PER_JOB, DeploymentMode.APPLICATION),
            )
            for one in live
        ),
        # a directory without an application may belong to a submit that is under way
        *(_User(f"the submit {name}", now_ms) for name in names if deployment_tag(name) not in known),
    ]


def _young(fs: FileSystem, layout: StagingLayout, now_ms: int) -> list[FileStatus]:
    return [entry for entry in fs.list(layout.applications) if now_ms - entry.modified_ms < CLOCK_MARGIN_MS]
