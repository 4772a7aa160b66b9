"""The sink whose elements the program reads itself: parts in the job's checkpoint directory.

A batch that is done again replaces its own parts; the JobManager reads none before the batch is committed
(see :mod:`yarnflow.core.collect.parts`), so each element reaches the program once.  Before a batch the driver
waits while too much lies unread, and at the end of the job until nothing does: a job that FINISHED has
delivered all.  Flink counterpart: ``CollectSinkFunction``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol, cast

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from yarnflow.core.collect import parts
from yarnflow.spark.connectors.batch_sink import BatchSink
from yarnflow.spark.hadoop_files import DirectoryEntry
from yarnflow.spark.translate.payloads import PAYLOAD_DDL, CollectedRecords
from yarnflow.spark.translate.schemas import from_struct_type, nullable

logger = logging.getLogger(__name__)

#: no batch begins while so many bytes of earlier ones are unread
MAX_UNREAD_BYTES: Final = 64 * 1024 * 1024
#: between two looks whether the program has read, seconds: first, and at most
_FIRST_LOOK_S: Final = 0.02
_LAST_LOOK_S: Final = 0.25


class PartFiles(Protocol):
    """Of :class:`~yarnflow.spark.hadoop_files.HadoopFiles`, what parts need."""

    def entries(self, path: str) -> list[DirectoryEntry]: ...

    def write(self, path: str, content: bytes) -> None: ...

    def delete(self, path: str) -> None: ...


class PartWriter:
    """Parts of one query.

    Parameters
    ----------
    files : PartFiles
    directory : str
        Of the query's parts (a URI).
    key : bytes
        Seals them.
    check : callable
        Raises when nothing may be written any more.
    wait : callable
        Waits so many seconds.
    """

    def __init__(
        self,
        files: PartFiles,
        directory: str,
        key: bytes,
        check: Callable[[], None],
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._files = files
        self._directory = directory
        self._key = key
        self._check = check
        self._wait = wait

    def write(self, batch_id: int, payloads: Iterable[bytes]) -> None:
        """Write a batch, when there is room for it."""
        # before it waits: nobody may read what an earlier attempt left of a batch that is not committed
        for entry in self._entries():
            if parts.batch_of(entry.name) == batch_id:
                self._files.delete(f"{self._directory}/{entry.name}")
        self._await(MAX_UNREAD_BYTES)
        for number, content in enumerate(_packed(payloads)):
            self._check()
            name = parts.part_name(batch_id, number)
            self._files.write(f"{self._directory}/{name}", parts.seal(self._key, name, content))

    def await_read(self) -> None:
        """Wait until the program has all."""
        self._await(1)

    def _await(self, below_bytes: int) -> None:
        """Wait until less is unread."""
        look_s = _FIRST_LOOK_S
        while (unread := sum(entry.length for entry in self._entries())) >= below_bytes:
            if look_s == _FIRST_LOOK_S:
                logger.info("%d bytes of collected elements wait for the program.", unread)
            self._check()
            self._wait(look_s)
            look_s = min(2 * look_s, _LAST_LOOK_S)

    def _entries(self) -> list[DirectoryEntry]:
        return [e for e in self._files.entries(self._directory) if parts.batch_of(e.name) is not None]


def _packed(payloads: Iterable[bytes]) -> Iterator[bytes]:
    """Contents of parts."""
    held: list[bytes] = []
    size = 0
    for payload in payloads:
        held.append(payload)
        size += len(payload)
        if size >= parts.PART_BYTES:
            yield parts.pack(held)
            held, size = [], 0
    if held:
        yield parts.pack(held)


class CollectWriter(BatchSink):
    """Elements that the program itself reads.

    Parameters
    ----------
    parts : PartWriter
    scalar : bool, optional
        Batches have columns: whether a record is the bare value of one; None = they have pickled lists.
    """

    def __init__(self, parts: PartWriter, scalar: bool | None) -> None:
        self._parts = parts
        self._scalar = scalar

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Write a batch; no more than two partitions of it are in memory."""
        if self._scalar is not None:
            schema = from_struct_type(StructType(nullable(frame.schema).fields), self._scalar)
            frame = frame.mapInArrow(cast(Any, CollectedRecords(schema)), PAYLOAD_DDL)
        elements = 0

        def payloads() -> Iterator[bytes]:
            nonlocal elements
            for payload, count in frame.toLocalIterator(prefetchPartitions=True):
                elements += count
                yield bytes(payload)

        self._parts.write(batch_id, payloads())
        return elements

    def finish(self) -> None:
        """Wait until the program has all."""
        self._parts.await_read()
