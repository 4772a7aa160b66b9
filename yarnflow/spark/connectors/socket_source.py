"""Lines of a TCP connection as a Spark data source of our own.

Spark's ``socket`` source counts lines from zero after every restart and then drops what comes
until its count has caught up; this one goes on with what the server sends from then on.
At-most-once: lines that were received but not yet processed when the driver died are gone, since
a server cannot be asked again.  When the server closes the connection the stream stays open and
silent.  Runs in a Python process beside the driver.  Flink counterpart: ``socketTextStream``.
"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

FORMAT: Final = "yarnflow-socket"
_CONNECT_TIMEOUT_SECONDS: Final = 10.0
#: lines waiting to be processed; beyond it the server is held back
_QUEUE_LINES: Final = 100_000


class SocketDataSource(DataSource):
    """``spark.readStream.format("yarnflow-socket").option("host", …).option("port", …)``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        """One line per row."""
        return "value string"

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: N802
        """The reader, which lives in one process for the whole query."""
        return SocketReader(self.options["host"], int(self.options["port"]))


class SocketReader(SimpleDataSourceStreamReader):
    """Reads lines in a thread; offsets count the lines handed on.

    Parameters
    ----------
    host, port
        The server.
    """

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._lines: queue.Queue[str] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Before the first line."""
        return {"lines": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[str]], dict[str, int]]:
        """Every line that has come since the last call; never waits."""
        lines = self._connected()
        found: list[tuple[str]] = []
        while len(found) < _QUEUE_LINES:
            try:
                found.append((lines.get_nowait(),))
            except queue.Empty:
                break
        return iter(found), {"lines": start["lines"] + len(found)}

    def readBetweenOffsets(self, start: Any, end: Any) -> Iterator[tuple[str]]:  # noqa: N802
        """A batch that was cut off by a restart: its lines are gone."""
        return iter(())

    def _connected(self) -> queue.Queue[str]:
        if self._lines is None:
            host, port = self._address
            try:
                connection = socket.create_connection(self._address, _CONNECT_TIMEOUT_SECONDS)
            except OSError as error:
                raise ConnectionError(
                    f"socket source: no server at {host}:{port} ({error}); start it first"
                ) from error
            connection.settimeout(None)
            self._lines = queue.Queue(_QUEUE_LINES)
            threading.Thread(target=_receive, args=(connection, self._lines), daemon=True).start()
        return self._lines


def _receive(connection: socket.socket, lines: queue.Queue[str]) -> None:
    with connection, connection.makefile(encoding="utf-8", errors="replace", newline="\n") as stream:
        for line in stream:
            lines.put(line.rstrip("\r\n"))
