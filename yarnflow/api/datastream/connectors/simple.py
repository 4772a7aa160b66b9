"""For trying out: a steady rate of rows, the lines of a TCP server, lines to one."""

from __future__ import annotations

from yarnflow.api.building.definitions import columns
from yarnflow.api.common.serialization import SerializationSchema
from yarnflow.api.datastream.connectors.base import Sink, Source
from yarnflow.errors import UnsupportedGraph
from yarnflow.graph import operators
from yarnflow.graph.connectors import sinks, sources
from yarnflow.graph.schema import VALUE_FIELD, Field, Schema


class SocketSource(Source):
    """Lines of a TCP server, which must be listening already.  A scalar stream; for trying out."""

    name = "Socket Stream"
    parallel = False

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port

    def operator(self) -> tuple[operators.Operator, Schema]:
        if not 0 < self._port < 65536:
            raise UnsupportedGraph(f"{self._port} is no port")
        schema = Schema((Field(VALUE_FIELD, "string"),), scalar=True)
        return sources.SocketSource(self._host, self._port), schema


class SocketSink(Sink):
    """Lines to a TCP server, which must be listening already.  For trying out: it promises nothing.

    Parameters
    ----------
    host : str
    port : int
    serialization_schema : SerializationSchema
        How elements become lines, which are ended by a line feed.
    """

    name = "Socket Sink"

    def __init__(self, host: str, port: int, serialization_schema: SerializationSchema) -> None:
        self._host = host
        self._port = port
        self._value = serialization_schema._written()

    def operator(self, schema: Schema) -> operators.Operator:
        if not 0 < self._port < 65536:
            raise UnsupportedGraph(f"{self._port} is no port")
        if schema.element_type is None:
            columns(schema)
        return sinks.SocketSink(self._host, self._port, self._value)


class RateSource(Source):
    """Rows ``timestamp TIMESTAMP, value BIGINT`` at a steady rate, value counting from 0.

    Parameters
    ----------
    rows_per_second : int
        The rate of all subtasks together.
    count : int, optional
        End after so many rows.
    """

    name = "Rate Source"

    def __init__(self, rows_per_second: int, count: int | None = None) -> None:
        self._rows_per_second = rows_per_second
        self._count = count

    def operator(self) -> tuple[operators.Operator, Schema]:
        if self._rows_per_second < 1 or (self._count is not None and self._count < 0):
            raise UnsupportedGraph("rows_per_second must be 1 or more, and count not negative")
        schema = Schema((Field("timestamp", "timestamp"), Field("value", "bigint")))
        return sources.RateSource(self._rows_per_second, self._count), schema


#: Flink's name for it
DataGeneratorSource = RateSource
