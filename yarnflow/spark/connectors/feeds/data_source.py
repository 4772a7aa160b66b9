"""A Spark data source whose rows are parts that the driver has received.

Offsets are numbers of parts: ``{"feed": …, "part": 17}``.  What a batch reads is fixed before its offset is
written, so a batch that is done again reads the same, in another driver as well.  The rows of a batch travel
with its plan, through the driver, to one task, in the order they came.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from yarnflow.spark.connectors.feeds.server import FeedClient

FORMAT: Final = "yarnflow-feed"
#: columns that say where a message was, beside its ``value``
PLACE_COLUMNS: Final = ("queue", "part", "message")
_DDL: Final = "value binary, queue string, part bigint, message bigint"
_ARROW: Final = pa.schema(
    [("value", pa.binary()), ("queue", pa.string()), ("part", pa.int64()), ("message", pa.int64())]
)


class FeedDataSource(DataSource):
    """``spark.readStream.format("yarnflow-feed")`` with feed, queue, port and secret as options."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        """Messages and where they were."""
        return _DDL

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Plans in one process for the whole query, and reads in tasks."""
        options = self.options
        return FeedReader(options["feed"], options["queue"], int(options["port"]), options["secret"])


class Parts(InputPartition):
    """All parts of a batch.

    Parameters
    ----------
    first : int
        Number of the first.
    contents : list of bytes
    """

    def __init__(self, first: int, contents: list[bytes]) -> None:
        super().__init__(first)
        self.first = first
        self.contents = contents


class FeedReader(DataSourceStreamReader):
    """Plans and reads parts.

    Parameters
    ----------
    feed : str
        Its name at the driver's server.
    queue : str
        For messages.
    port, secret
        The server's.
    """

    def __init__(self, feed: str, queue: str, port: int, secret: str) -> None:
        self._feed = feed
        self._queue = queue
        self._address = port, secret
        self._opened: FeedClient | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For tasks, which get all they read with their partition."""
        return {**self.__dict__, "_opened": None, "_address": (0, "")}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Before the first part."""
        return self._offset(0)

    def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:  # noqa: N802
        """What the driver has fixed for the next batch; the driver limits it."""
        return self._offset(self._client().latest(self._feed, start["part"]))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One, or none where nothing is to be read."""
        if end["part"] <= start["part"]:
            return []
        contents = self._client().parts(self._feed, start["part"], end["part"])
        return [Parts(start["part"] + 1, contents)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages in the order they came."""
        assert isinstance(partition, Parts), "made by partitions()"
        for number, content in enumerate(partition.contents, partition.first):
            yield from part_batches(content, self._queue, number)

    def stop(self) -> None:
        """Let go of the driver."""
        if self._opened is not None:
            self._opened.close()

    def _client(self) -> FeedClient:
        if self._opened is None:
            self._opened = FeedClient(*self._address)
        return self._opened

    def _offset(self, part: int) -> dict[str, Any]:
        return {"feed": self._feed, "part": part}


def part_batches(content: bytes, queue: str, number: int) -> Iterator[pa.RecordBatch]:
    """The messages of a part with their places, which count from 1."""
    before = 0
    with pa.ipc.open_stream(content) as reader:
        for batch in reader:
            rows = batch.num_rows
            columns = [
                batch.column("value"),
                pa.array([queue] * rows, pa.string()),
                pa.array([number] * rows, pa.int64()),
                pa.array(range(before + 1, before + rows + 1), pa.int64()),
            ]
            before += rows
            yield pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def part_of(offsets: Iterable[str], feed: str, of_all: Callable[[Iterable[int]], int]) -> int:
    """How far a query has read a feed, by the lines of its offset log's entry; 0 = nothing.

    Parameters
    ----------
    of_all : callable
        ``min`` or ``max``, of a query that reads it at several places.
    """
    found: list[int] = []
    for line in offsets:
        if not line.startswith("{"):
            continue
        offset = json.loads(line)
        if isinstance(offset, dict) and offset.get("feed") == feed:
            found.append(int(offset["part"]))
    return of_all(found) if found else 0
