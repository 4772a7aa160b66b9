"""Whether the files with which a query goes on are as they were written.

Decides by the files alone: a file is damaged when it is there and empty, is not of its form, has another
length than what refers to it says, or does not fit the checksums that the file system keeps of it (HDFS of
each block, Hadoop's local file system in hidden files).  A file system that does not answer is no damage: it
raises, and the job tries again.  At each start the last entries of Spark's logs are read, which are small,
and the lengths of the files of the state; their content is read only when a query has failed on it.
Flink has no counterpart.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from yarnflow.core.checkpoint.query_files import COMMITS, OFFSETS, SINK_IDENTITY_FILE
from yarnflow.errors import FileMissing
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.state.files import (
    TABLES_AND_LOGS,
    StateFilesMissing,
    describes_operator,
    is_of_lineage,
    needed_files,
    numbered,
    referred_lengths,
    state_version,
)

_THREADS: Final = 8
_HEADER: Final = re.compile(r"v\d+")
_SOURCE_LOG: Final = re.compile(r"sources/\d+/\d+(\.compact)?")
#: Spark's identity of a query
METADATA: Final = "metadata"
#: nothing is committed
NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Damage:
    """One damaged file of a query's directory."""

    #: relative to the directory
    path: str
    #: what is wrong with it: a predicate
    said: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What a query can go on from."""

    damaged: tuple[Damage, ...]
    #: the newest batch that is committed and sound; -1 = its beginning, None = there is nothing sound
    batch: int | None
    #: all later batches, whose input is known: they can be done again as they were
    again: tuple[int, ...] = ()
    #: else the first of them: what was written of it and of those behind it may be written twice
    lost: int | None = None


def damage_at_start(files: HadoopFiles, directory: str) -> Damage | None:
    """Of the entries that Spark reads when it starts a query, of its identity, and empty files of its state.

    That is a few small reads, and a listing for each partition of the state, several at a time.

    Raises
    ------
    StorageError
        The file system does not answer.
    """
    planned = numbered(entry.name for entry in files.entries(f"{directory}/{OFFSETS}"))
    committed = numbered(entry.name for entry in files.entries(f"{directory}/{COMMITS}"))
    wanted = [f"{OFFSETS}/{number}" for number in planned[-2:]]
    wanted += [f"{COMMITS}/{number}" for number in committed[-1:]]
    if committed and committed[-1] not in planned:
        wanted.append(f"{OFFSETS}/{committed[-1]}")
    if planned:
        wanted.insert(0, METADATA)
    if files.exists(f"{directory}/{SINK_IDENTITY_FILE}"):
        wanted.append(SINK_IDENTITY_FILE)
    for path in wanted:
        said = _said_of_log(files, directory, path)
        if said:
            return Damage(path, said)
    # tables and logs of RocksDB: an upload that was cut off leaves empty ones which no snapshot names, and
    # where a snapshot does, Spark fails on them
    lengths = files.tree(f"{directory}/state", TABLES_AND_LOGS) if committed else {}
    # Spark takes changes of which there is nothing for none
    found = (f"state/{path}" for path, length in lengths.items() if not length)
    return next((Damage(path, "is empty") for path in found if _is_of_batches(path, committed[-1])), None)


def _is_of_batches(path: str, batch: int) -> bool:
    """Whether a file of the state is of a batch or one before it; a later one is written again."""
    version = state_version(path)
    if version is None:
        return describes_operator(path)
    return version <= batch + 1


class StateCheck:
    """Finds the newest sound batch of a query that does not run; reads each file at most once.

    Parameters
    ----------
    files : HadoopFiles
    directory : str
        The query's.
    suspects : collection of str
        Files, relative to it, that Spark could not read.
    """

    def __init__(self, files: HadoopFiles, directory: str, suspects: Collection[str] = ()) -> None:
        self._files = files
        self._directory = directory
        self._lengths = files.tree(directory)
        self._suspects = [
            path
            for path in self._lengths
            if path in suspects or any(f"/{name}-" in path for name in suspects)
        ]
        self._damaged: dict[str, str] = {}
        self._sound: set[str] = set()
        self._stores = {path.rpartition("/")[0] for path in self._lengths if state_version(path) is not None}
        #: RocksDB's snapshots: file that one refers to → its length
        self._referred: dict[str, dict[str, int]] = {}

    def run(self) -> Finding:
        """Look.

        Raises
        ------
        StorageError
            The file system does not answer.
        """
        planned = numbered(self._names(OFFSETS))
        committed = numbered(self._names(COMMITS))
        self._damaged |= {path: self._said(path) or "cannot be read by Spark" for path in self._suspects}
        sources = [path for path in self._lengths if _SOURCE_LOG.fullmatch(path)]
        self._look_at([METADATA, SINK_IDENTITY_FILE, *sources])
        if planned and METADATA not in self._lengths:
            self._damaged[METADATA] = "is missing"
        if not self._may_do_without_entries():
            return self._finding(None)
        last = max([NONE, *planned, *committed])
        for batch in (*reversed(committed), NONE):
            again = tuple(range(batch + 1, last + 1))
            can_be_done_again = self._are_inputs_known(again)
            if batch == NONE and committed and not can_be_done_again:
                break  # it would begin anew although it has got on
            if batch == NONE or (self._is_sound(batch) and not self._reads_what_is_damaged(batch)):
                # Spark reads it, too; going_back.mend makes it good
                self._look_at([f"{OFFSETS}/{batch - 1}"])
                if can_be_done_again:
                    return self._finding(batch, again)
                unknown = (number for number in again if not self._are_inputs_known([number]))
                return self._finding(batch, (), next(unknown))
        return self._finding(None)

    def _finding(self, batch: int | None, again: tuple[int, ...] = (), lost: int | None = None) -> Finding:
        damaged = tuple(Damage(path, said) for path, said in sorted(self._damaged.items()))
        return Finding(damaged, batch, again, lost)

    def _may_do_without_entries(self) -> bool:
        """Whether the damaged entries of sources' logs are the last ones: no batch before has read them."""
        for path in filter(_SOURCE_LOG.fullmatch, self._damaged):
            log, _, name = path.rpartition("/")
            others = numbered(p.rpartition("/")[2] for p in self._lengths if p.startswith(f"{log}/"))
            if not name.isdigit() or int(name) != max(others):
                return False
        return True

    def _are_inputs_known(self, batches: Collection[int]) -> bool:
        if not self._are_sound([f"{OFFSETS}/{number}" for number in batches]):
            return False
        return not any(map(self._reads_what_is_damaged, batches))

    def _reads_what_is_damaged(self, batch: int) -> bool:
        """Whether a batch, or one before it, has read what a damaged entry of a file source's log says."""
        damaged = [path.split("/") for path in self._damaged if _SOURCE_LOG.fullmatch(path)]
        if not damaged:
            return False
        lines = self._files.read(f"{self._directory}/{OFFSETS}/{batch}").decode().split("\n")[2:]
        for _, source, number in damaged:
            said = lines[int(source)] if int(source) < len(lines) else "-"
            if said != "-" and int(json.loads(said).get("logOffset", number)) >= int(number):
                return True
        return False

    def _names(self, log: str) -> Iterable[str]:
        return (path.partition("/")[2] for path in self._lengths if path.startswith(f"{log}/"))

    def _is_sound(self, batch: int) -> bool:
        """Whether a query can go on behind a committed batch, without the files that are damaged."""
        while True:
            there = [path for path in self._lengths if path not in self._damaged]
            try:
                needed = needed_files(there, batch, False, self._references)
            except StateFilesMissing:
                return False
            except _BadSnapshot:
                continue  # it is among the damaged ones now
            if self._look_at([path for path in needed if _is_checked(path, batch)]):
                # of a store all of whose files are damaged, none would be needed
                stores = {path.rpartition("/")[0] for path in needed if state_version(path) is not None}
                return stores == self._stores and not any(
                    is_of_lineage(path, batch + 1) or describes_operator(path) for path in self._damaged
                )

    def _are_sound(self, paths: Collection[str]) -> bool:
        return all(path in self._lengths for path in paths) and self._look_at(paths)

    def _look_at(self, paths: Collection[str]) -> bool:
        """Whether files are sound; those that are not are noted."""
        new = [
            path
            for path in paths
            if path in self._lengths and path not in self._sound and path not in self._damaged
        ]
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="check") as pool:
            found = dict(zip(new, pool.map(self._said, new), strict=True))
        self._damaged |= {path: said for path, said in found.items() if said}
        self._sound.update(path for path, said in found.items() if not said)
        return not any(path in self._damaged for path in paths)

    def _said(self, path: str) -> str:
        if not path.startswith("state/"):
            return _said_of_log(self._files, self._directory, path)
        length = self._lengths[path]
        expected = next((known[path] for known in self._referred.values() if path in known), length or 1)
        if not length and expected:
            return "is empty"
        if length != expected:
            return f"has {length} bytes, and should have {expected}"
        compressed = state_version(path) is not None and not path.endswith(".zip")
        return self._files.fault_of(f"{self._directory}/{path}", compressed)

    def _references(self, path: str) -> tuple[str, ...]:
        """What a snapshot of RocksDB refers to."""
        parent = path.rpartition("/")[0]
        if path not in self._referred:
            if not self._look_at([path]):
                raise _BadSnapshot
            try:
                lengths = referred_lengths(self._files.read(f"{self._directory}/{path}"))
            except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, EOFError) as error:
                self._damaged[path] = f"is no snapshot of RocksDB ({type(error).__name__})"
                raise _BadSnapshot from error
            referred = self._referred[path] = {f"{parent}/{name}": n for name, n in lengths.items()}
            if not self._are_sound(list(referred)):
                # an earlier snapshot will do, with all changes after it
                self._damaged[path] = "names a file that is damaged or missing"
                raise _BadSnapshot
        return tuple(name[len(parent) + 1 :] for name in self._referred[path])


class _BadSnapshot(Exception):
    """A snapshot of RocksDB is damaged; an earlier one may do."""


def _is_checked(path: str, batch: int) -> bool:
    """State, and the entries of one batch: that of the batch before may be read for nothing."""
    return path.startswith("state/") or path in (f"{OFFSETS}/{batch}", f"{COMMITS}/{batch}")


def _said_of_log(files: HadoopFiles, directory: str, path: str) -> str:
    """What is wrong with an entry of a log, or a query's identity; empty = it is sound."""
    where = f"{directory}/{path}"
    try:
        said = files.fault_of(where)
        content = b"" if said else files.read(where)
    except FileMissing:
        return "is missing"
    if said:
        return said
    if not content:
        return "is empty"
    try:
        text = content.decode()
        if path == METADATA:
            return "" if isinstance(json.loads(text)["id"], str) else "names no query"
        if path == SINK_IDENTITY_FILE:
            return ""
        header, *lines = text.split("\n")
        if not _HEADER.fullmatch(header):
            return "does not begin with a version"
        if path.startswith(f"{OFFSETS}/"):
            _parse(lines[:1], dict)
            if len(lines) < 2:
                return "ends before the offsets of a source"
            _parse([line for line in lines[1:] if line.startswith(("{", "["))], (dict, list))
        elif path.startswith(f"{COMMITS}/"):
            _parse(["\n".join(lines)], dict)
        else:
            _parse([line for line in lines if line], dict)
    except (ValueError, KeyError, TypeError) as error:
        return f"cannot be understood ({type(error).__name__}: {str(error).splitlines()[0]})"
    return ""


def _parse(lines: Iterable[str], kind: Any) -> None:
    for line in lines:
        if not isinstance(json.loads(line), kind):
            raise TypeError(f"{line[:40]!r} is no JSON object")


def stale_state(paths: Iterable[str], batch: int) -> list[str]:
    """Files of the versions of state that are later than a committed batch's."""
    return [path for path in paths if (version := state_version(path)) is not None and version > batch + 1]
