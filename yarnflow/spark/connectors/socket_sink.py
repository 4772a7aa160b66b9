"""Lines to a TCP server, from the driver by one connection.

Promises nothing: TCP does not say what the server has read, so what was on its way when a connection broke is
gone, and a micro-batch that is done again is sent again.  A server that does not read is waited for until the
job is stopped.  Flink counterpart: ``SocketClientSink``.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from pyspark.sql import DataFrame

from yarnflow.errors import ServerUnavailable
from yarnflow.graph.connectors.sinks import SocketSink
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.connectors.batch_sink import BatchSink
from yarnflow.spark.connectors.rows_of_columns import sink_rows

_CONNECT_TIMEOUT_S: Final = 10.0
#: handed to the system at a time
_CHUNK_BYTES: Final = 64 * 1024
#: how often it is asked, while the server reads nothing, whether to go on
_LOOK_S: Final = 1.0


class SocketWriter(BatchSink):
    """Lines of one sink.

    Parameters
    ----------
    sink : SocketSink
    scalar : bool or None
        Batches have columns: whether a record is the bare value of one; None = they have messages.
    fence : callable
        Raises when this driver may not write.
    """

    def __init__(self, sink: SocketSink, scalar: bool | None, fence: Fence) -> None:
        self._sink = sink
        self._scalar = scalar
        self._fence = fence
        self._connection: socket.socket | None = None

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Send a batch; no more than two partitions of it are in memory."""
        self._fence()
        rows = sink_rows(frame, self._sink, self._scalar).toLocalIterator(prefetchPartitions=True)
        return self.send(bytes(value) for (value,) in rows)

    def send(self, messages: Iterable[bytes]) -> int:
        """Send messages, each ended by a line feed; how many there were.

        Raises
        ------
        ServerUnavailable
            There is no server, or it has closed the connection.
        Exception
            What the fence raises, also while the server does not read.
        """
        count = 0

        def lines() -> Iterator[bytes]:
            nonlocal count
            for message in messages:
                count += 1
                yield message if message.endswith(b"\n") else message + b"\n"

        try:
            for chunk in _chunks(lines()):
                self._send(chunk)
        except BaseException:
            # it may have ended within a line
            self.close()
            raise
        return count

    def finish(self) -> None:
        """All has been sent."""
        self.close()

    def close(self) -> None:
        """Let go of the connection; the next message makes a new one."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
            self._connection = None

    def _send(self, chunk: bytes) -> None:
        with self._told():
            connection = self._connected()
        left = memoryview(chunk)
        while left:
            with self._told():
                sent = _taken(connection, left)
            if not sent:
                self._fence()
            left = left[sent:]

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ServerUnavailable(f"{self._sink.where}: {error}; see whether it runs") from None

    def _connected(self) -> socket.socket:
        if self._connection is not None and _closed_by_peer(self._connection):
            raise ConnectionResetError("the server has closed the connection")
        if self._connection is None:
            address = self._sink.host, self._sink.port
            self._connection = socket.create_connection(address, _CONNECT_TIMEOUT_S)
            self._connection.settimeout(_LOOK_S)
        return self._connection


def _taken(connection: socket.socket, content: memoryview) -> int:
    """How many bytes the system takes; 0 = none for a while."""
    try:
        return connection.send(content)
    except TimeoutError:
        return 0


def _closed_by_peer(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    finally:
        connection.settimeout(_LOOK_S)


def _chunks(lines: Iterable[bytes]) -> Iterator[bytes]:
    found: list[bytes] = []
    size = 0
    for line in lines:
        found.append(line)
        size += len(line)
        if size >= _CHUNK_BYTES:
            yield b"".join(found)
            found, size = [], 0
    if found:
        yield b"".join(found)
