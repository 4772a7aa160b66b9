"""Which files of a streaming query's checkpoint directory one committed batch needs.

Pure: decides over a listing.  Spark writes every file once and keeps some batches' worth of them,
so the files of a batch can be copied while later batches run.  Layout of Spark 4.3, below the
query's directory::

    metadata                                 id of the query
    offsets/<batch>  commits/<batch>         planned, done; a batch done again needs the one before
    sources/<n>/…                            logs of sources, numbered on their own
    state/<operator>/_metadata, _stateSchema
    state/<operator>/<partition>/[<store>/]  version v = batch v - 1:
        v.snapshot v.delta                   in memory (``hashmap``)
        v.zip v.changelog SSTs/ logs/        RocksDB; the zip names the SSTs and logs it needs

Flink counterpart: ``OperatorState`` with its state handles.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Collection, Iterable
from typing import Final

from yarnflow.core.checkpoint.query_files import COMMITS, DAMAGED_DIRECTORY, OFFSETS

_STATE_FILE: Final = re.compile(r"(\d+)(_[0-9A-Fa-f-]+)?\.(zip|changelog|delta|snapshot)(\.crc)?")
_SNAPSHOTS: Final = ("zip", "snapshot")
#: directories of what snapshots of RocksDB refer to, in that of a store
TABLES_AND_LOGS: Final = ("SSTs", "logs")

#: what says of a stateful operator where the schemas of its state are
_METADATA_FILE: Final = re.compile(r"state/\d+/_metadata/v2/\d+")

#: relative path of a RocksDB snapshot → files it refers to, relative to its directory
ZipFiles = Callable[[str], Iterable[str]]


class StateFilesMissing(Exception):
    """A file that the batch needs is not there; the message names it."""


def names_schemas(path: str) -> bool:
    """Whether a file of a query's directory names schemas by their whole paths."""
    return _METADATA_FILE.fullmatch(path) is not None


def with_schemas_below(content: bytes, directory: str) -> bytes:
    """Such a file of a query's directory that is at another place now.

    Spark looks for the schemas of state where the first batch wrote them, and that may be gone.
    """
    version, _, text = content.decode().partition("\n")
    metadata = json.loads(text)
    for store in metadata["stateStoreInfo"]:
        store["stateSchemaFilePaths"] = [
            f"{directory}/state/{path.rpartition('/state/')[2]}" for path in store["stateSchemaFilePaths"]
        ]
    return f"{version}\n{json.dumps(metadata)}".encode()


def numbered(names: Iterable[str]) -> list[int]:
    """Batches that a log has an entry for, ascending."""
    return sorted(int(name) for name in names if name.isdigit())


def needed_files(
    listing: Collection[str], committed: int, planned: bool, zip_files: ZipFiles
) -> tuple[str, ...]:
    """Files with which a query goes on after batch ``committed``.

    Parameters
    ----------
    listing : collection of str
        All files below the query's directory, relative; hidden ones left out.
    committed : int
        -1 = none was.
    planned : bool
        With the batch after it, so that it is done with the very same input.
    zip_files : callable
        Reads a RocksDB snapshot.

    Raises
    ------
    StateFilesMissing
    """
    present = set(listing)
    chosen: set[str] = set()
    stores: dict[str, dict[str, str]] = {}
    last_planned = committed + 1 if planned else committed
    for path in listing:
        parts = path.split("/")
        if parts[0] in (OFFSETS, COMMITS) and len(parts) == 2:
            # the batch before, because Spark reads where its last one began
            last = last_planned if parts[0] == OFFSETS else committed
            if parts[1].isdigit() and committed - 1 <= int(parts[1]) <= last:
                chosen.add(path)
        elif parts[0] == DAMAGED_DIRECTORY:
            continue
        elif parts[0] != "state" or len(parts) < 3:
            chosen.add(path)
        elif committed >= 0 and _describes_operator(parts):
            if not (parts[-1].isdigit() and int(parts[-1]) > last_planned):
                chosen.add(path)
        elif committed >= 0 and parts[-2] not in TABLES_AND_LOGS:
            directory, _, name = path.rpartition("/")
            stores.setdefault(directory, {})[name] = path
    if committed >= 0:
        for log in (OFFSETS, COMMITS):
            _require(f"{log}/{committed}", present)
    for directory, names in stores.items():
        for name in _store_files(directory, names, committed + 1):
            path = f"{directory}/{name}"
            _require(path, present)
            chosen.add(path)
            if path.endswith(".zip"):
                for other in zip_files(path):
                    _require(f"{directory}/{other}", present)
                    chosen.add(f"{directory}/{other}")
    # checksums Spark keeps beside a file (not the hidden ones of Hadoop's local file system)
    chosen.update(f"{path}.crc" for path in tuple(chosen) if f"{path}.crc" in present)
    return tuple(sorted(chosen))


def zip_references(content: bytes) -> tuple[str, ...]:
    """Files that a RocksDB snapshot refers to, relative to its directory."""
    return tuple(referred_lengths(content))


def referred_lengths(content: bytes) -> dict[str, int]:
    """Files that a RocksDB snapshot refers to, relative to its directory → bytes."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        text = archive.read("metadata").decode()
    # a line with the format's version, then JSON
    described = json.loads(text.partition("\n")[2])
    tables = {f"SSTs/{e['dfsSstFileName']}": int(e["sizeBytes"]) for e in described.get("sstFiles") or ()}
    logs = {f"logs/{e['dfsLogFileName']}": int(e["sizeBytes"]) for e in described.get("logFiles") or ()}
    return tables | logs


def state_version(path: str) -> int | None:
    """Which version of the state a file of a query's directory is of; None = of none, or of many."""
    match = _STATE_FILE.fullmatch(path.rpartition("/")[2]) if path.startswith("state/") else None
    return int(match[1]) if match else None


def is_of_lineage(path: str, version: int) -> bool:
    """Whether a version of the state may need a file whose name says that versions have ids of their own."""
    match = _STATE_FILE.fullmatch(path.rpartition("/")[2]) if path.startswith("state/") else None
    return match is not None and bool(match[2]) and int(match[1]) <= version


def describes_operator(path: str) -> bool:
    """Whether a file of a query's directory says what the state of an operator is, and is of no version."""
    parts = path.split("/")
    return parts[0] == "state" and _describes_operator(parts)


def _describes_operator(parts: list[str]) -> bool:
    return any(part[0] == "_" for part in parts[2:-1])


def _store_files(directory: str, names: dict[str, str], version: int) -> list[str]:
    """The newest snapshot with all changes after it, up to ``version``."""
    found: dict[tuple[int, bool], str] = {}
    others: list[str] = []
    for name in names:
        match = _STATE_FILE.fullmatch(name)
        if match is None:
            others.append(name)
        elif match[4]:
            continue
        elif match[2]:
            # versions with ids of their own: which one counts stands in the commit log
            if int(match[1]) <= version:
                others.append(name)
        else:
            found[int(match[1]), match[3] in _SNAPSHOTS] = name
    if not found:
        return others
    for base in (*sorted((v for v, whole in found if whole and v <= version), reverse=True), 0):
        changes = [found.get((v, False)) for v in range(base + 1, version + 1)]
        if None not in changes:
            snapshot = [found[base, True]] if base else []
            return [*others, *snapshot, *(name for name in changes if name is not None)]
    raise StateFilesMissing(f"{directory}: version {version} of the state is not complete")


def _require(path: str, present: set[str]) -> None:
    if path not in present:
        raise StateFilesMissing(path)
