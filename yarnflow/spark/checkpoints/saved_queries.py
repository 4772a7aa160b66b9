"""State that a script's queries are to go on from, put where each of them reads it.

Where a script keeps its checkpoints is known only when it starts its queries.  So a restore leaves the
state of each below the job's directory, and a list of them; when a query is started it is found there by
name, by its checkpoint location, or by its place in the program, and copied to its location.  Decides that
state which is at the location already is never replaced: it is gone on from if it is the very same, and
else the query is refused.  Flink counterpart: none; its state is found by operator ids.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from yarnflow.core.checkpoint.manifest import SavepointMetadata
from yarnflow.core.checkpoint.messages import CheckpointKind, QueryPosition
from yarnflow.core.checkpoint.query_files import COMMITS, OFFSETS
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.errors import RpcProtocolError, SavepointInvalid, StateIncompatible
from yarnflow.spark.checkpoints.file_copy import SourceFileGone, copy_files
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.checkpoints.locations import Locations
from yarnflow.spark.checkpoints.placing import put_in_place, remove_left_work, work_directory
from yarnflow.spark.checkpoints.positions import committed_batch, planned_batch
from yarnflow.spark.checkpoints.savepoint_writer import QueryState, state_paths
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.state.files import StateFilesMissing, names_schemas, with_schemas_below

logger = logging.getLogger(__name__)

#: in a job's directory
SAVED_QUERIES_FILE: Final = "saved-queries.json"
#: at a query's location, hidden as it is no part of the state: the job that has put state there, or goes on
#: from what was there
_OWNER_FILE: Final = ".restored-by"


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """One query of the state that a job was started from."""

    query: str
    #: where it kept its checkpoint (a URI)
    location: str
    #: its state is below the job's directory, under its name; else it was left at the location
    staged: bool = True
    #: name and location of the query that has gone on from it, where that is not below the job's directory
    now_query: str = ""
    now_location: str = ""


@dataclass(frozen=True, slots=True)
class SavedQueries:
    """What a script was started from."""

    #: savepoint or checkpoint
    path: str
    queries: tuple[SavedQuery, ...]
    #: queries may begin without state while state is left that they may be meant to go on from
    allow_non_restored: bool = False


def write_saved_queries(
    files: HadoopFiles, job_dir: str, root: str, manifest: SavepointMetadata, allow_non_restored: bool
) -> None:
    """Leave the list for the script.

    Parameters
    ----------
    job_dir : str
        Of the job that is started.
    root : str
        The directory with the manifest.
    allow_non_restored : bool
        As in :class:`SavedQueries`.

    Raises
    ------
    StorageError
    """
    job = root.rpartition("/")[0]
    kept = manifest.kind is CheckpointKind.CHECKPOINT
    queries = tuple(
        SavedQuery(
            position.query,
            files.qualified(position.directory),
            staged=not (kept and is_elsewhere(files, position, job)),
        )
        for position in manifest.positions
        if may_name_a_directory(position.query) and position.directory
    )
    text = to_json(SavedQueries(root, queries, allow_non_restored))
    files.write(f"{job_dir}/{SAVED_QUERIES_FILE}", text.encode())


def kept_elsewhere(files: HadoopFiles, job: str) -> dict[str, str]:
    """Query → location of the state that a script was started from and that is not below its directory.

    Parameters
    ----------
    job : str
        The directory.

    Raises
    ------
    StateDamaged
    StorageError
    """
    path = f"{job}/{SAVED_QUERIES_FILE}"
    if not files.exists(path):
        return {}
    saved = files.parsed(path, _saved_queries)
    gone_on = {query.now_query: query.now_location for query in saved.queries if query.now_location}
    # what the program has left behind with its user's consent stays there
    left = () if saved.allow_non_restored else saved.queries
    waiting = {query.query: query.location for query in left if not (query.staged or query.now_location)}
    return {**waiting, **gone_on}


def is_elsewhere(files: HadoopFiles, position: QueryPosition, job: str) -> bool:
    """Whether a script keeps the query's state at a place of its own, where it looks for it again.

    Parameters
    ----------
    job : str
        Directory of the job of a retained checkpoint.
    """
    below = f"{files.qualified(position.directory)}/".startswith(f"{files.qualified(job)}/")
    there = may_name_a_directory(position.query) and files.exists(f"{job}/{position.query}")
    return not below and not there and files.exists(position.directory)


def may_name_a_directory(query: str) -> bool:
    """Whether a query's name leads to no other directory; who reads a manifest does not know who wrote it."""
    return query not in ("", ".", "..") and "/" not in query


def find(
    saved: Sequence[SavedQuery], name: str, location: str, place_of: Callable[[str], str]
) -> SavedQuery | None:
    """Which of them a query goes on from; None = none of them can be told to be it.

    Parameters
    ----------
    saved : sequence of SavedQuery
        Those that no query has gone on from so far.
    name : str
        The query's.
    location : str
        Where it keeps its checkpoint (a URI).
    place_of : callable
        The place in the program that is in a name; empty = the program itself has given the name.
    """
    exactly = [query for query in saved if query.query == name]
    exactly = exactly or [query for query in saved if query.location == location]
    if exactly:
        return exactly[0]
    place = place_of(name)
    here = [query for query in saved if place and place_of(query.query) == place]
    if len(here) <= 1:
        return here[0] if here else None
    # one call starts several: their locations differ in a part that they keep at another place
    alike = [_common_end(query.location, location) for query in here]
    best = max(alike)
    return here[alike.index(best)] if best and alike.count(best) == 1 else None


class SavedState:
    """The state of one script's queries.  Thread-safe.

    Parameters
    ----------
    open_files : callable
        Called when they are needed first.
    job_dir : str
        The job's checkpoint directory.
    place_of : callable
        See :func:`find`.
    fence : callable
        Raises when this driver may not write.
    job_key : str
        The job's; empty = it has none.
    """

    def __init__(
        self,
        open_files: Callable[[], HadoopFiles],
        job_dir: str,
        place_of: Callable[[str], str],
        fence: Fence,
        job_key: str = "",
    ) -> None:
        self._open_files = open_files
        self._job_dir = job_dir
        self._place_of = place_of
        self._fence = fence
        self._job_key = job_key
        self._lock = threading.Lock()
        self._saved: SavedQueries | None = None
        #: name of a saved query → location of the one that has gone on from it
        self._taken: dict[str, str] = {}

    @cached_property
    def _files(self) -> HadoopFiles:
        return self._open_files()

    @cached_property
    def _locations(self) -> Locations:
        return Locations(self._files, self._job_dir, self._fence, self._job_key)

    def qualified(self, location: str) -> str:
        """A query's location with scheme and authority, as Spark has it.  Raises StorageError."""
        return self._files.qualified(location).rstrip("/")

    def bring(self, name: str, location: str) -> None:
        """Have a query's state at its location, before the query starts.

        Parameters
        ----------
        location : str
            Qualified.

        Raises
        ------
        StateInUse
            Another job uses the location, and may still run.
        StateIncompatible
            Other state is there, or it cannot be told which of the saved state is the query's.
        StateDamaged
            The list of what the job goes on from is damaged.
        SavepointInvalid
            Files of the saved state are missing.
        LeaseLost, StorageError
        """
        with self._lock:
            saved = self._read()
            if location in self._taken.values():
                return  # started once more
            left = [query for query in saved.queries if query.query not in self._taken]
            found = find(left, name, location, self._place_of)
            if found is None:
                self._check_none_is_meant(saved, left, name, location)
            # before it is looked at: another job would go on there meanwhile
            self._locations.use(location)
            if found is None:
                return
            self._put(saved, found, name, location)
            self._taken[found.query] = location
            self._note(saved, found, name, location)

    def leave(self) -> None:
        """The job's program has ended, and no query of it runs."""
        with self._lock:
            if "_locations" in self.__dict__:
                self._locations.leave()

    def _read(self) -> SavedQueries:
        if self._saved is None:
            path = f"{self._job_dir}/{SAVED_QUERIES_FILE}"
            there = self._files.exists(path)
            self._saved = self._files.parsed(path, _saved_queries) if there else SavedQueries("", ())
        return self._saved

    def _check_none_is_meant(
        self, saved: SavedQueries, left: Collection[SavedQuery], name: str, location: str
    ) -> None:
        meant = [query for query in left if self._place_of(query.query)]
        if not self._place_of(name) or not meant or saved.allow_non_restored:
            return
        raise StateIncompatible(
            f"the query that is started with its checkpoint in {location} has no name, and none of the state "
            f"in {saved.path} can be told to be its own; not gone on from so far: "
            f"{', '.join(f'{query.query} (was in {query.location})' for query in meant)}; start it from the "
            "same place in the program or with the same checkpointLocation, or start without that state "
            "(--allow-non-restored-state)"
        )

    def _put(self, saved: SavedQueries, found: SavedQuery, name: str, location: str) -> None:
        files = self._files
        source = files.qualified(f"{self._job_dir}/{found.query}") if found.staged else found.location
        if source == location:
            return
        if self._is_ours(location):
            self._remove_staged(found, source)
            return
        if all(name.startswith(".") for name in files.children(location)):
            if files.exists(source):
                self._copy(source, found, location)
                logger.info("Query %s goes on in %s from %s.", name, location, saved.path)
        elif self._is_same(source, location):
            self._fence()
            files.write(f"{location}/{_OWNER_FILE}", self._owner)
            logger.info("Query %s goes on in %s: that is the state in %s.", name, location, saved.path)
        else:
            raise StateIncompatible(
                f"{location} has other state than {saved.path}: committed batch "
                f"{committed_batch(files, location)} instead of {committed_batch(files, source)} of query "
                f"{found.query}; it was left as it is: start with another checkpointLocation, or move that "
                "directory away, or go on from it (--restore none)"
            )
        self._remove_staged(found, source)

    def _copy(self, source: str, found: SavedQuery, location: str) -> None:
        files = self._files
        remove_left_work(files, location, self._fence)
        beside = work_directory(location)
        files.make_directory(beside)
        position = QueryPosition(found.query, committed_batch(files, source), source)
        missing = "is missing: the state to start from is not whole; start from another one"
        try:
            paths = state_paths(files, QueryState(position, planned=True))
            copy_files(files, {f"{source}/{path}": f"{beside}/{path}" for path in paths}, self._fence)
        except StateFilesMissing as error:
            raise SavepointInvalid(f"{source}/{error} {missing}") from error
        except SourceFileGone as error:
            raise SavepointInvalid(f"{error} {missing}") from error
        for path in filter(names_schemas, paths):
            files.write(f"{beside}/{path}", with_schemas_below(files.read(f"{beside}/{path}"), location))
        files.write(f"{beside}/{_OWNER_FILE}", self._owner)
        self._locations.mark(location, beside)
        self._fence()
        # empty; a directory is not put in the place of another
        files.delete(location)
        put_in_place(files, beside, location, self._fence)

    def _note(self, saved: SavedQueries, found: SavedQuery, name: str, location: str) -> None:
        """For jobs that start from this one's checkpoints, which may not name one that commits nothing."""
        below = location.startswith(f"{self.qualified(self._job_dir)}/")
        noted = replace(found, now_query=name, now_location=location)
        if below or noted == found:
            return
        queries = tuple(noted if query == found else query for query in saved.queries)
        self._saved = replace(saved, queries=queries)
        self._fence()
        self._files.write(f"{self._job_dir}/{SAVED_QUERIES_FILE}", to_json(self._saved).encode())

    def _remove_staged(self, found: SavedQuery, source: str) -> None:
        if found.staged:
            self._fence()
            self._files.delete(source)

    @property
    def _owner(self) -> bytes:
        return self._job_dir.encode()

    def _is_ours(self, location: str) -> bool:
        """An earlier driver of the job has done it, and the query may have gone on since."""
        path = f"{location}/{_OWNER_FILE}"
        return self._files.exists(path) and self._files.read(path) == self._owner

    def _is_same(self, source: str, location: str) -> bool:
        """Whether both are one query after the same batch, with the same one begun after it."""
        files = self._files
        committed, planned = committed_batch(files, source), planned_batch(files, source)
        if (committed, planned) != (committed_batch(files, location), planned_batch(files, location)):
            return False
        # the time of the batch is in it
        logs = [(OFFSETS, planned), (COMMITS, committed)]
        return all(
            files.read(f"{source}/{log}/{number}") == files.read(f"{location}/{log}/{number}")
            for log, number in logs
            if number >= 0
        )


def _saved_queries(text: str) -> SavedQueries:
    try:
        return from_json(SavedQueries, text)
    except RpcProtocolError as error:
        raise ValueError(str(error)) from error


def _common_end(one: str, other: str) -> int:
    """How many last parts two paths have in common."""
    pairs = zip(reversed(one.split("/")), reversed(other.split("/")), strict=False)
    count = 0
    for a, b in pairs:
        if a != b:
            break
        count += 1
    return count
