"""The form of an archive, which is Flink's: a list of paths of the REST interface with what they answered.

Whatever is read was written by somebody else, and nothing of it is believed before it was looked at.
Flink counterparts: ``FsJsonArchivist``, ``ArchivedJson``, ``ArchivePathUtils``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

#: a longer archive is neither written nor read
MAX_ARCHIVE_BYTES: Final = 64 * 1024 * 1024
#: answers of one archive
MAX_ANSWERS: Final = 200_000
MAX_PATH_CHARACTERS: Final = 1_024

JOBS_OVERVIEW: Final = "/jobs/overview"
APPLICATIONS_OVERVIEW: Final = "/applications/overview"
#: folders of Flink's newer layout: ``<cluster>/applications/<application>/{application-summary,jobs/<job>}``
APPLICATIONS_FOLDER: Final = "applications"
APPLICATION_FILE: Final = "application-summary"
JOBS_FOLDER: Final = "jobs"

_ID: Final = re.compile("[0-9a-f]{32}")
_LARGEST_MS: Final = 2**63 - 1


class BadArchive(Exception):
    """A file is no archive that can be shown; the message says why."""


class ArchivedAnswer(msgspec.Struct):
    """What one path answered; ``json`` is a text of JSON, as Flink has it."""

    path: str
    json: str


class Archive(msgspec.Struct):
    """One file."""

    archive: list[ArchivedAnswer]


@dataclass(frozen=True, slots=True)
class Owner:
    """What an archive is of: a job, or an application."""

    #: ``jobs`` or ``applications``
    kind: str
    id: str

    @property
    def root(self) -> str:
        """Where the paths of its answers begin."""
        return f"/{self.kind}/{self.id}"


@dataclass(frozen=True, slots=True)
class Content:
    """An archive that was looked at."""

    owner: Owner
    #: its entry of the overview of all, as JSON
    summary: bytes
    #: of that
    name: str
    state: str
    start_ms: int
    #: path → JSON
    answers: Mapping[str, bytes]


def is_id(name: str) -> bool:
    """Whether it may be the id of a job, an application or a cluster."""
    return _ID.fullmatch(name) is not None


def cluster_folder(cluster_id: str) -> str:
    """Flink wants 32 hexadecimal digits; ours may be any text."""
    return cluster_id if is_id(cluster_id) else hashlib.sha256(cluster_id.encode()).hexdigest()[:32]


def encode(answers: Iterable[ArchivedAnswer]) -> bytes:
    """The file."""
    return msgspec.json.encode(Archive(list(answers)))


def decode(content: bytes, owner: Owner) -> Content:
    """What an archive of that owner holds.

    Raises
    ------
    BadArchive
        It is not whole, not of that owner, or too large.
    """
    if len(content) > MAX_ARCHIVE_BYTES:
        raise BadArchive(f"it has {len(content)} bytes; {MAX_ARCHIVE_BYTES} are the most")
    try:
        archive = msgspec.json.decode(content, type=Archive)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadArchive(f'it is not {{"archive":[{{"path":…,"json":…}}]}}: {error}') from None
    if len(archive.archive) > MAX_ANSWERS:
        raise BadArchive(f"it has {len(archive.archive)} answers; {MAX_ANSWERS} are the most")
    overview_path = f"/{owner.kind}/overview"
    answers: dict[str, bytes] = {}
    summary: Any = None
    for entry in archive.archive:
        if entry.path == overview_path:
            summary = _summary(entry.json, owner)
        elif not _belongs(entry.path, owner):
            raise BadArchive(f"{entry.path[:120]!r} is no path of {owner.root}")
        else:
            answers[entry.path] = _checked(entry)
    if summary is None:
        raise BadArchive(f"it has no {overview_path}")
    return Content(
        owner,
        msgspec.json.encode(summary),
        _text(summary, "name"),
        _text(summary, "state" if owner.kind == "jobs" else "status"),
        _time_ms(summary, "start-time"),
        answers,
    )


def _belongs(path: str, owner: Owner) -> bool:
    if len(path) > MAX_PATH_CHARACTERS:
        return False
    # a job that is an application has what Flink's REST says of that, too
    return path == owner.root or path.startswith(f"{owner.root}/")


def _checked(entry: ArchivedAnswer) -> bytes:
    raw = entry.json.encode()
    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadArchive(f"the answer of {entry.path[:120]} is no JSON: {error}") from None
    return raw


def _summary(text: str, owner: Owner) -> Any:
    """The one entry of an overview."""
    id_key = "jid" if owner.kind == "jobs" else "id"
    try:
        entries = msgspec.json.decode(text)[owner.kind]
        (only,) = entries
        found = only[id_key]
    except (msgspec.DecodeError, UnicodeError, RecursionError, LookupError, TypeError, ValueError):
        raise BadArchive(f"its overview is not one of {owner.root}") from None
    if found != owner.id:
        raise BadArchive(f"its overview is of {str(found)[:40]!r} and not of {owner.id}")
    return only


def _text(summary: Mapping[str, Any], key: str) -> str:
    value = summary.get(key)
    if not isinstance(value, str):
        raise BadArchive(f"its overview has no {key}")
    return value


def _time_ms(summary: Mapping[str, Any], key: str) -> int:
    value = summary.get(key)
    if not isinstance(value, int) or not -1 <= value <= _LARGEST_MS:
        raise BadArchive(f"its overview has no {key}")
    return value
