"""Whether a query may have failed because files of its state are damaged, as Spark tells it.

Decides by the messages alone, so it is a suspicion: what is wrong with the files is found out by reading
them (:mod:`yarnflow.spark.checkpoints.damage.soundness`), since Spark has the same words where a file
system did not answer.
Flink counterpart: none.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from yarnflow.errors import StateDamaged, StorageError, YarnflowError
from yarnflow.spark.run.user_errors import messages_of

logger = logging.getLogger(__name__)

#: what no file system says that will answer later
_CERTAIN: Final = re.compile(
    r"org\.apache\.hadoop\.fs\.ChecksumException|CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED"
    r"|RocksDBException: .*(?:checksum mismatch|[Cc]orrupt|truncated|[Bb]ad (?:table )?magic|too short)"
    r"|Incomplete log file|MALFORMED_LOG_FILE|Log file was malformed"
    r"|STREAMING_CHECKPOINT_MISSING_METADATA_FILE"
    r"|ROW_CHECKSUM_VERIFICATION_FAILED|UNEXPECTED_FILE_SIZE"
    r"|CANNOT_READ_(?:DELTA|SNAPSHOT)_FILE_(?:KEY|VALUE)_SIZE|Error reading (?:delta|snapshot) file"
    r"|Stream is corrupted"
)
_POSSIBLE: Final = re.compile(
    r"CANNOT_LOAD_STATE_STORE|(?:KEY|VALUE)_ROW_FORMAT_VALIDATION_FAILURE"
    r"|BATCH_METADATA_NOT_FOUND|StreamMetadata"
    r"|FileNotFoundException.*/(?:state/\d+/\d+|offsets|commits)/"
    r"|File \S*/(?:state/\d+/\d+|offsets|commits|sources/\d+)/\S+ does not exist"
)
#: what sources, sinks and connections say as well: it counts where state is named beside it
_ANYWHERE: Final = re.compile(r"EOFException|ZipException|JsonParseException|json4s")
_STATE: Final = re.compile(r"/state/|StateStore")
#: the driver reads the entries of Spark's logs, and tasks the records of a source
_JSON: Final = re.compile(r"JsonEOFException|JsonParseException|json4s")
_OF_TASK: Final = re.compile(r"stage failure|Lost task|MALFORMED_RECORD")
_FILE: Final = re.compile(
    r"/(?P<path>(?:state/\d+/\d+/[\w./-]*[\w-]|(?:offsets|commits|sources/\d+)/\d+))(?![\w/])"
)
#: RocksDB reads copies of the files, which are called by their numbers
_TABLE: Final = re.compile(r"/(?P<number>\d{6})\.sst\b")


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What a query may have failed on."""

    #: the line that says so
    said: str
    #: it cannot be anything that passes
    certain: bool
    #: files that Spark found damaged, relative to a query's directory; ``SSTs/<number>`` of RocksDB's tables
    files: tuple[str, ...] = ()


def suspicion_of(messages: Sequence[str]) -> Suspicion | None:
    """From the messages of a failure's causes; None = nothing is said of state."""
    lines = [line.strip() for message in messages for line in message.splitlines()]
    certain = [line for line in lines if _CERTAIN.search(line) and _is_of_state(line)]
    if certain:
        named = {match["path"] for line in certain for match in _FILE.finditer(line)}
        named |= {f"SSTs/{match['number']}" for line in certain for match in _TABLE.finditer(line)}
        return Suspicion(certain[0], True, tuple(sorted(named)))
    possible = next((line for i, line in enumerate(lines) if _is_possible(lines, i)), None)
    return None if possible is None else Suspicion(possible, False)


def explained(
    error: Exception, directory: str, look: Callable[[Collection[str]], None]
) -> YarnflowError | None:
    """What damaged files of the state have to do with a failure; None = nothing.

    Parameters
    ----------
    error : Exception
        What a query failed with; none runs any more.
    directory : str
        The job's, for messages.
    look : callable
        Looks at all files of its queries' state, and raises what is to be said of them; it is given those
        that Spark could not read.
    """
    suspicion = suspicion_of(list(messages_of(error)))
    if suspicion is None:
        return None
    logger.warning("Looking whether files of the state are damaged: %s", suspicion.said)
    try:
        look(suspicion.files)
    except StorageError as found:
        # it could not be found out, and what the query has failed with need not be state at all
        return found if suspicion.certain else None
    except YarnflowError as found:
        return found
    if not suspicion.certain:
        return None
    return StateDamaged(
        f"the state in {directory} is damaged, and its files do not show where: {suspicion.said}; start the "
        "job from a savepoint (-s PATH), or without its state (--restore none)"
    )


def _is_possible(lines: Sequence[str], index: int) -> bool:
    line = lines[index]
    if _POSSIBLE.search(line):
        return True
    if not _ANYWHERE.search(line):
        return False
    if _JSON.search(line) and not any(map(_OF_TASK.search, lines)):
        return True
    return any(_STATE.search(near) or _FILE.search(near) for near in lines[max(index - 1, 0) : index + 2])


def _is_of_state(line: str) -> bool:
    """A file of a source may be damaged as well."""
    return "ChecksumException" not in line or _FILE.search(line) is not None
