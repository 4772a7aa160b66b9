"""Parts of received messages in the job's checkpoint directory.

::

    <directory>/<number>.arrow      messages that were fixed before Spark planned the batch that has them
                returning.json      ids of messages that may be delivered again, and the parts they are in
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import pyarrow as pa

from yarnflow.errors import StateDamaged
from yarnflow.spark.connectors.rabbitmq.deliveries import Message
from yarnflow.spark.hadoop_files import DirectoryEntry

_SUFFIX: Final = ".arrow"
_RETURNING: Final = "returning.json"
_SCHEMA: Final = pa.schema([("value", pa.binary()), ("correlation_id", pa.string())])
_BATCH_ROWS: Final = 10_000


class SmallFiles(Protocol):
    """Of :class:`~yarnflow.spark.hadoop_files.HadoopFiles`, what parts need."""

    def entries(self, path: str) -> list[DirectoryEntry]: ...

    def exists(self, path: str) -> bool: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, content: bytes) -> None: ...

    def delete(self, path: str) -> None: ...


class PartFiles:
    """The files of one queue.

    Parameters
    ----------
    files : SmallFiles
    directory : str
        Of this queue alone (a URI).
    """

    def __init__(self, files: SmallFiles, directory: str) -> None:
        self._files = files
        self._directory = directory

    def numbers(self) -> list[int]:
        """Of the parts there are, ascending."""
        names = (entry.name for entry in self._files.entries(self._directory))
        found = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return sorted(int(number) for number in found if number.isdigit())

    def write(self, number: int, messages: Sequence[Message]) -> int:
        """Write a part, whole or not at all; its bytes."""
        content = pack(messages)
        self._files.write(self._path(number), content)
        return len(content)

    def read(self, number: int) -> bytes:
        """A part as :func:`pack` made it."""
        return self._files.read(self._path(number))

    def delete(self, number: int) -> None:
        """Remove a part; nothing if it is not there."""
        self._files.delete(self._path(number))

    def read_returning(self) -> dict[str, int]:
        """What :meth:`write_returning` wrote; empty if it did not."""
        path = f"{self._directory}/{_RETURNING}"
        if not self._files.exists(path):
            return {}
        try:
            return dict(json.loads(self._files.read(path)))
        except (ValueError, TypeError) as error:
            raise StateDamaged(
                f"{path}, which says what messages come again, is damaged ({error}); put it back from a "
                "copy, or delete it, and messages may be read twice"
            ) from error

    def write_returning(self, ids: Mapping[str, int]) -> None:
        """Keep ids and their parts over a crash."""
        self._files.write(f"{self._directory}/{_RETURNING}", json.dumps(ids).encode())

    def _path(self, number: int) -> str:
        return f"{self._directory}/{number}{_SUFFIX}"


def pack(messages: Sequence[Message]) -> bytes:
    """An Arrow stream of messages."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA) as writer:
        for start in range(0, len(messages), _BATCH_ROWS):
            some = messages[start : start + _BATCH_ROWS]
            columns = [[m.body for m in some], [m.correlation_id or None for m in some]]
            arrays = [pa.array(found, kind.type) for found, kind in zip(columns, _SCHEMA, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))
    return bytes(sink.getvalue().to_pybytes())


def ids_of(content: bytes) -> list[str]:
    """The correlation ids of a part."""
    with pa.ipc.open_stream(content) as reader:
        found: list[str | None] = reader.read_all().column("correlation_id").to_pylist()
    return [one for one in found if one]
