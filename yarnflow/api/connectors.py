"""Sources and sinks.

Decides how a program names them; reading and writing is Spark's.  PyFlink counterparts:
``FileSource``, ``FileSink``, ``DataGeneratorSource``, ``PrintSinkFunction``.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from yarnflow.api.definitions import check_options
from yarnflow.errors import SchemaError, UnsupportedGraph
from yarnflow.graph import operators
from yarnflow.graph.schema import VALUE_FIELD, Field, Schema
from yarnflow.graph.types import parse_type, to_schema

_SOURCE_FORMATS: Final = ("text", "csv", "json", "parquet")
_SINK_FORMATS: Final = ("csv", "json", "parquet")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TEXT_SCHEMA: Final = Schema((Field(VALUE_FIELD, "string"),), scalar=True)


class Source(ABC):
    """Where records come from; for ``from_source``."""

    #: name of the operator when the program gives none
    name: ClassVar[str] = "Source"
    #: several subtasks may read it
    parallel: ClassVar[bool] = True

    @abstractmethod
    def operator(self) -> tuple[operators.Operator, Schema]:
        """The operator and its fields; raises GraphError for settings that cannot work."""


class Sink(ABC):
    """Where records go; for ``sink_to``."""

    name: ClassVar[str] = "Sink"

    @abstractmethod
    def operator(self, schema: Schema) -> operators.Operator:
        """The operator for records of these fields; raises GraphError if it cannot take them."""


class FileSource(Source):
    """Files of a directory, a glob, or one file.

    Parameters
    ----------
    path : str
        A path or URI; one without a scheme is a path of the cluster's default file system.
    format : str
        ``text`` (a scalar stream of lines), ``csv``, ``json`` or ``parquet``.
    schema : str, type or Schema
        Fields of the records; all formats but text need it.
    options : mapping, optional
        Reader options as Spark names them.
    bounded : bool
        Read what is there and end; else watch for new files for ever.
    max_files_per_trigger : int
        Files taken into one micro-batch, in order of modification time; 0 = no limit.

    See also ``FileSource.for_path(path).format("csv").schema("a INT").build()``.
    """

    name = "File Source"

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str = "text",
        schema: object | None = None,
        options: Mapping[str, object] | None = None,
        bounded: bool = True,
        max_files_per_trigger: int = 0,
    ) -> None:
        self._path = _absolute(path)
        self._format = format
        self._schema = schema
        self._options = dict(options or {})
        self._bounded = bounded
        self._max_files_per_trigger = max_files_per_trigger

    @staticmethod
    def for_path(path: str | os.PathLike[str]) -> FileSourceBuilder:
        """Begin a source by its path."""
        return FileSourceBuilder(path)

    def operator(self) -> tuple[operators.Operator, Schema]:
        if self._format not in _SOURCE_FORMATS:
            raise UnsupportedGraph(f"no file format '{self._format}'; there are {', '.join(_SOURCE_FORMATS)}")
        if self._max_files_per_trigger < 0:
            raise UnsupportedGraph("max_files_per_trigger must be 0 (no limit) or more")
        if self._format == "text":
            schema = _TEXT_SCHEMA
        elif self._schema is None:
            raise SchemaError(f"{self._format} files need schema='name TYPE, …'")
        else:
            found = to_schema(self._schema)
            schema = Schema(found.fields)
        source = operators.FileSource(
            self._path,
            self._format,
            schema,
            check_options(self._options),
            self._bounded,
            self._max_files_per_trigger,
        )
        return source, schema


class FileSourceBuilder:
    """Builds a :class:`FileSource` step by step."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._settings: dict[str, Any] = {"path": path}
        self._options: dict[str, object] = {}

    def format(self, format: str) -> FileSourceBuilder:
        """``text``, ``csv``, ``json`` or ``parquet``."""
        self._settings["format"] = format
        return self

    def schema(self, schema: object) -> FileSourceBuilder:
        """Fields, as DDL text or a Python type."""
        self._settings["schema"] = schema
        return self

    def option(self, key: str, value: object) -> FileSourceBuilder:
        """A reader option as Spark names it."""
        self._options[key] = value
        return self

    def max_files_per_trigger(self, files: int) -> FileSourceBuilder:
        """Files taken into one micro-batch."""
        self._settings["max_files_per_trigger"] = files
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read what is there and end; the default."""
        self._settings["bounded"] = True
        return self

    def monitor_continuously(self) -> FileSourceBuilder:
        """Watch for new files for ever."""
        self._settings["bounded"] = False
        return self

    def build(self) -> FileSource:
        """The source."""
        return FileSource(**self._settings, options=self._options)


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
        return operators.SocketSource(self._host, self._port), _TEXT_SCHEMA


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
        return operators.RateSource(self._rows_per_second, self._count), schema


#: Flink's name for it
DataGeneratorSource = RateSource


class PrintSink(Sink):
    """Records on the driver's standard output.  At-least-once."""

    name = "Print to Std. Out"

    def __init__(self, identifier: str = "") -> None:
        self._identifier = identifier

    def operator(self, schema: Schema) -> operators.Operator:
        return operators.PrintSink(self._identifier)


class FileSink(Sink):
    """Files of a directory, exactly-once.

    Parameters
    ----------
    path : str
        A directory path or URI.
    format : str
        ``csv``, ``json`` or ``parquet``.
    options : mapping, optional
        Writer options as Spark names them.
    partition_by : sequence of str
        Fields that become ``name=value`` directories.
    """

    name = "File Sink"

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str = "parquet",
        options: Mapping[str, object] | None = None,
        partition_by: tuple[str, ...] | list[str] = (),
    ) -> None:
        self._path = _absolute(path)
        self._format = format
        self._options = dict(options or {})
        self._partition_by = tuple(partition_by)

    @staticmethod
    def for_path(path: str | os.PathLike[str]) -> FileSinkBuilder:
        """Begin a sink by its path."""
        return FileSinkBuilder(path)

    def operator(self, schema: Schema) -> operators.Operator:
        from yarnflow.graph.expressions import unknown_field

        if self._format not in _SINK_FORMATS:
            raise UnsupportedGraph(f"no file format '{self._format}'; there are {', '.join(_SINK_FORMATS)}")
        for name in self._partition_by:
            if schema.known and schema.find(name) is None:
                raise unknown_field(name, schema)
        if schema.known and {n.lower() for n in schema.names} <= {n.lower() for n in self._partition_by}:
            raise UnsupportedGraph("partition_by names all fields, so nothing would be left for the files")
        nested = [f.name for f in schema.fields if f.type and parse_type(f.type).children]
        if self._format == "csv" and nested:
            raise SchemaError(
                f"csv cannot hold field '{nested[0]}' of type {_type(schema, nested[0])}; use json"
            )
        return operators.FileSink(self._path, self._format, check_options(self._options), self._partition_by)


class FileSinkBuilder:
    """Builds a :class:`FileSink` step by step."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._settings: dict[str, Any] = {"path": path}
        self._options: dict[str, object] = {}

    def format(self, format: str) -> FileSinkBuilder:
        """``csv``, ``json`` or ``parquet``."""
        self._settings["format"] = format
        return self

    def option(self, key: str, value: object) -> FileSinkBuilder:
        """A writer option as Spark names it."""
        self._options[key] = value
        return self

    def partition_by(self, *names: str) -> FileSinkBuilder:
        """Fields that become ``name=value`` directories."""
        self._settings["partition_by"] = names
        return self

    def build(self) -> FileSink:
        """The sink."""
        return FileSink(**self._settings, options=self._options)


def _type(schema: Schema, name: str) -> str:
    field = schema.find(name)
    return field.type or "" if field is not None else ""


def _absolute(path: str | os.PathLike[str]) -> str:
    """Relative paths are meant from where the program runs, not from where a driver does."""
    text = os.fspath(path)
    return text if _SCHEME.match(text) or not text else os.path.abspath(text)
