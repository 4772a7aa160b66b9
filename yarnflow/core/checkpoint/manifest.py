"""The manifest of a savepoint or checkpoint: ``_metadata``, and how their directories are called.

Decides the format and whether a text is of it.  It never touches a file: who writes ``_metadata``
writes it last, so that a directory with one is complete.  Paths in it are relative to its
directory, so that a savepoint can be moved as a whole.  Flink counterparts:
``CheckpointMetadata``, ``MetadataV5Serializer`` (which is binary; this one is JSON for people).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from yarnflow.core.checkpoint.messages import CheckpointKind, QueryPosition
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.errors import RpcProtocolError, SavepointInvalid

METADATA_FILE: Final = "_metadata"
#: in a job's directory: what it was started from; there when all of it is in place
RESTORED_FILE: Final = "restored.json"
#: in a job's directory: the job has begun, and has not ended in order; once its program starts, its
#: content is the manifest of a checkpoint without queries
HELD: Final = "owner.held"
#: it has; the status it ended with is its first line
FREE: Final = "owner.free"
#: its state is that of another job, whose id follows
CLAIMED: Final = "owner.claimed-"
#: raised when an old reader would misunderstand a new text
FORMAT_VERSION: Final = 1

_CHECKPOINT: Final = re.compile(r"chk-([1-9]\d*)")
_CHECKSUM: Final = re.compile(r"[a-z0-9]+:[0-9a-f]+")
_RANDOM_DIGITS: Final = 12
_JOB_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class SavepointFile:
    """One file of a savepoint."""

    #: relative to the savepoint's directory, with ``/``
    path: str
    #: bytes
    length: int
    #: ``sha256:<hex>``; empty = only the length is known
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """What ``_metadata`` says."""

    checkpoint_id: int
    kind: CheckpointKind
    job_id: JobId
    job_name: str
    job_key: str
    created_ms: int
    yarnflow_version: str
    program: ProgramShape
    #: one per query
    positions: tuple[QueryPosition, ...] = ()
    #: SAVEPOINT: all files but ``_metadata``; CHECKPOINT: none, as the queries' directories live on
    files: tuple[SavepointFile, ...] = ()
    #: of :mod:`yarnflow.core.checkpoint.signature`; empty = nobody vouches for it
    signature: str = ""
    format_version: int = FORMAT_VERSION

    @property
    def total_bytes(self) -> int:
        return sum(file.length for file in self.files)


def manifest_in(content: bytes) -> bytes:
    """The manifest in the content of :data:`HELD` or :data:`FREE`; empty = the program has not started."""
    return content[content.find(b"{") :] if b"{" in content else b""


def to_bytes(metadata: SavepointMetadata) -> bytes:
    """The content of ``_metadata``: JSON that people can read."""
    return (json.dumps(json.loads(to_json(metadata)), indent=1) + "\n").encode()


def from_bytes(content: bytes, where: str) -> SavepointMetadata:
    """Read what :func:`to_bytes` wrote.

    Parameters
    ----------
    content : bytes
        The whole file.
    where : str
        Its path, for messages.

    Raises
    ------
    SavepointInvalid
        It is not of this format, or of a newer one, or its file list leads out of its directory.
    """
    try:
        text = content.decode()
        version = json.loads(text).get("format_version")
    except (ValueError, AttributeError, RecursionError):
        raise SavepointInvalid(
            f"{where} is no manifest of a savepoint: not a JSON object; check the path, or take another one"
        ) from None
    if type(version) is not int or version < 1:
        raise SavepointInvalid(f"{where} is no manifest of a savepoint: no format_version; check the path")
    if version > FORMAT_VERSION:
        raise SavepointInvalid(
            f"{where} has format version {version}, this yarnflow reads up to {FORMAT_VERSION}; "
            "use the yarnflow that wrote it, or a newer one"
        )
    try:
        metadata = from_json(SavepointMetadata, text)
    except RpcProtocolError as error:
        raise SavepointInvalid(
            f"{where} is damaged: {error.message.split(';')[0]}; take another savepoint"
        ) from None
    _check_files(metadata, where)
    return metadata


def savepoint_name(job_id: str, random12: str) -> str:
    """``savepoint-<first 6 digits of the job id>-<12 hex digits>``, as Flink's."""
    if not re.fullmatch(f"[0-9a-f]{{{_RANDOM_DIGITS}}}", random12):
        raise ValueError(f"{random12!r} is not {_RANDOM_DIGITS} hex digits")
    return f"savepoint-{job_id[:_JOB_DIGITS]}-{random12}"


def checkpoint_name(checkpoint_id: int) -> str:
    """``chk-<n>``."""
    return f"chk-{checkpoint_id}"


def checkpoint_id_of(name: str) -> int | None:
    """The n of ``chk-<n>``; None when ``name`` is no checkpoint's directory."""
    found = _CHECKPOINT.fullmatch(name)
    return int(found.group(1)) if found else None


def _check_files(metadata: SavepointMetadata, where: str) -> None:
    seen: set[str] = set()
    for file in metadata.files:
        parts = file.path.split("/")
        # whoever restores writes to these paths: they must not lead anywhere else
        if any(part in ("", ".", "..") for part in parts) or "\\" in file.path or "\0" in file.path:
            raise SavepointInvalid(
                f"{where} lists {file.path!r}, which is not a path inside the savepoint; do not use it"
            )
        if file.path in seen or file.path == METADATA_FILE:
            raise SavepointInvalid(
                f"{where} is damaged: {file.path!r} must not be listed, or not twice; take another savepoint"
            )
        if file.length < 0 or (file.checksum and not _CHECKSUM.fullmatch(file.checksum)):
            raise SavepointInvalid(
                f"{where} is damaged: length or checksum of {file.path!r} cannot be; take another savepoint"
            )
        seen.add(file.path)
