"""Parts: the files in which collected elements wait for the program.

A micro-batch leaves any number of parts; names sort in the order of the elements.  A part may be read when
Spark has committed its micro-batch: until then the batch may be done again and leave other parts.  Reading is
acknowledged by asking for what comes after a part: everything up to it is deleted then.

What is in a part is unpickled by the program, so the driver seals it with a key that only processes of the
cluster have, over name and content: who can write files there can neither make a part nor move one.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from yarnflow.core.ids import JobId
from yarnflow.errors import FileChanged

#: in the job's checkpoint directory; below it one directory, named after the query that writes parts
DIRECTORY: Final = "collected"
#: payloads are put into one part until it has this many bytes
PART_BYTES: Final = 1024 * 1024

_NAME: Final = re.compile(r"([0-9]{19})-([0-9]{6})")
_DIGEST: Final = hashlib.sha256
_DIGEST_BYTES: Final = _DIGEST().digest_size
_LENGTH_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class CollectedPage:
    """Elements for the program."""

    #: pickled lists of elements, in order
    payloads: tuple[bytes, ...]
    #: to be said when asking for the next page; then those of this one are deleted
    position: str
    #: the job is over, so there is no next page
    ended: bool = False


def part_name(batch_id: int, number: int) -> str:
    """Name of a micro-batch's part; numbers begin with 0."""
    return f"{batch_id:019d}-{number:06d}"


def batch_of(name: str) -> int | None:
    """The micro-batch of a part; None for names of anything else."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def acknowledged(names: Collection[str], position: str) -> list[str]:
    """Parts that the program has, in order: to be deleted."""
    return sorted(name for name in names if batch_of(name) is not None and name <= position)


def waiting(names: Collection[str], position: str) -> list[str]:
    """Parts that the program has not, in order; some may be of a micro-batch that is not committed."""
    return sorted(name for name in names if batch_of(name) is not None and name > position)


def readable(names: Iterable[str], committed: int) -> list[str]:
    """Those of committed micro-batches, whose last one is ``committed`` (-1 = none)."""
    return [name for name in names if (batch := batch_of(name)) is not None and batch <= committed]


def part_key(cluster_secret: bytes, job_id: JobId) -> bytes:
    """The key that seals a job's parts; tells nothing about the cluster's secret."""
    return hmac.new(cluster_secret, f"collected:{job_id}".encode(), _DIGEST).digest()


def pack(payloads: Iterable[bytes]) -> bytes:
    """Content of a part, not sealed yet."""
    return b"".join(len(payload).to_bytes(_LENGTH_BYTES, "big") + payload for payload in payloads)


def unpack(content: bytes) -> Iterator[bytes]:
    """The payloads of a part whose seal was good."""
    begin = 0
    while begin < len(content):
        end = begin + _LENGTH_BYTES
        length = int.from_bytes(content[begin:end], "big")
        yield content[end : end + length]
        begin = end + length


def seal(key: bytes, name: str, content: bytes) -> bytes:
    """What the file of a part has in it."""
    return _digest(key, name, content) + content


def unseal(key: bytes, name: str, sealed: bytes) -> bytes:
    """Content of a part.

    Raises
    ------
    FileChanged
        No driver of this cluster has written it so.
    """
    digest, content = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:]
    if not hmac.compare_digest(digest, _digest(key, name, content)):
        raise FileChanged(
            f"collected elements {name} were not written by the job's driver, or were changed since; cancel "
            "the job, and see who may write to its checkpoint directory"
        )
    return content


def _digest(key: bytes, name: str, content: bytes) -> bytes:
    made = hmac.new(key, f"{name}\n".encode(), _DIGEST)
    made.update(content)
    return made.digest()
