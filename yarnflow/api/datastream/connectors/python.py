"""Sources and sinks that a program defines itself, in Python.

They are subclasses of ``pyspark.sql.datasource.DataSource``, Spark's Python data source API, so that the same
class serves PySpark scripts (``spark.dataSource.register``) and DataStream programs.  Flink counterparts:
``Source`` and ``Sink`` of Java, which have no Python form.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

from yarnflow.api.building.definitions import check_options, columns
from yarnflow.api.datastream.connectors.base import Sink, Source
from yarnflow.api.origin import call_origin
from yarnflow.errors import SchemaError, UnsupportedGraph, UserCodeError
from yarnflow.graph.closures import function_name, make_closure
from yarnflow.graph.connectors import python
from yarnflow.graph.operators import Operator
from yarnflow.graph.schema import Schema
from yarnflow.graph.types import to_schema

_STREAM_READERS: Final = ("streamReader", "simpleStreamReader")
_WRITERS: Final = ("streamWriter", "writer")


class PythonSource(Source):
    """What a class of the program reads.

    Parameters
    ----------
    data_source : type
        A subclass of ``pyspark.sql.datasource.DataSource`` that defines ``reader``, ``streamReader`` or
        ``simpleStreamReader``.
    options : mapping, optional
        What the class finds in ``self.options``; values become text.
    schema : str, type or Schema, optional
        Fields of the rows.  None: what the class's ``schema()`` says, which is then called where the program
        is built.
    bounded : bool, optional
        True: read what is there and end, by ``reader`` if the class has one.  False: read for ever, by
        ``streamReader`` or ``simpleStreamReader``.  None: for ever if the class can.

    Raises
    ------
    UnsupportedGraph
        The class is no data source, or does not read that way.
    """

    name = "Python Source"

    def __init__(
        self,
        data_source: type,
        options: Mapping[str, object] | None = None,
        schema: object | None = None,
        bounded: bool | None = None,
    ) -> None:
        _check_data_source(data_source)
        streams = any(_defines(data_source, method) for method in _STREAM_READERS)
        batches = _defines(data_source, "reader")
        if not (streams or batches):
            raise UnsupportedGraph(
                f"{call_origin()}: {data_source.__name__} cannot be read: it defines neither reader() nor "
                "streamReader() nor simpleStreamReader()"
            )
        if bounded is False and not streams:
            raise UnsupportedGraph(
                f"{call_origin()}: {data_source.__name__} ends: for bounded=False it must define "
                "streamReader() or simpleStreamReader()"
            )
        self._data_source = data_source
        self._options = dict(options or {})
        self._schema = schema
        self._bounded = not streams if bounded is None else bounded
        self._of_batches = self._bounded and batches
        # as the class is now
        self._closure = make_closure(data_source, call_origin())

    def operator(self) -> tuple[Operator, Schema]:
        options = check_options(self._options)
        schema = (
            _schema_of(self._data_source, options)
            if self._schema is None
            else Schema(to_schema(self._schema).fields)
        )
        source = python.PythonSource(self._closure, schema, options, self._bounded, self._of_batches)
        return source, schema


class PythonSink(Sink):
    """What a class of the program writes.

    Exactly-once if ``commit`` takes a batch that it was given before for done: after a failure it comes again
    with the same ``batchId``.  A class that defines ``writer`` alone is not told any: at-least-once.

    Parameters
    ----------
    data_source : type
        A subclass of ``pyspark.sql.datasource.DataSource`` that defines ``streamWriter`` or ``writer``.
    options : mapping, optional
        What the class finds in ``self.options``; values become text.

    Raises
    ------
    UnsupportedGraph
        The class is no data source, or does not write.
    """

    name = "Python Sink"

    def __init__(self, data_source: type, options: Mapping[str, object] | None = None) -> None:
        _check_data_source(data_source)
        if not any(_defines(data_source, method) for method in _WRITERS):
            raise UnsupportedGraph(
                f"{call_origin()}: {data_source.__name__} cannot be written to: it defines neither "
                "streamWriter() nor writer()"
            )
        self._of_streams = _defines(data_source, "streamWriter")
        self._options = dict(options or {})
        self._closure = make_closure(data_source, call_origin())

    def operator(self, schema: Schema) -> Operator:
        columns(schema)
        return python.PythonSink(self._closure, check_options(self._options), self._of_streams)


def _is_sparks(kind: type) -> bool:
    return kind.__module__.startswith("pyspark.")


def _check_data_source(kind: object) -> None:
    if not isinstance(kind, type):
        raise UnsupportedGraph(f"{call_origin()}: give the class of the data source, not {kind!r}")
    if not any(_is_sparks(base) and base.__name__ == "DataSource" for base in kind.__mro__):
        raise UnsupportedGraph(
            f"{call_origin()}: {kind.__name__} is no subclass of pyspark.sql.datasource.DataSource"
        )


def _defines(kind: type, method: str) -> bool:
    """Whether a class overrides a method that Spark's own raises an error in."""
    return any(method in base.__dict__ for base in kind.__mro__ if not _is_sparks(base))


def _schema_of(kind: type, options: Mapping[str, str]) -> Schema:
    """What the class says its rows are."""
    try:
        found: Any = kind(dict(options)).schema()
    except Exception as error:
        raise UserCodeError(
            f"{function_name(kind)}.schema() raised {type(error).__name__}: {error}; correct it, or give "
            "PythonSource a schema"
        ) from error
    if isinstance(found, str):
        return Schema(to_schema(found).fields)
    fields = getattr(found, "fields", None)
    if fields is None or inspect.isroutine(fields):
        raise SchemaError(
            f"{function_name(kind)}.schema() gave {found!r}; it is to be DDL text or a StructType"
        )
    return Schema(to_schema(", ".join(map(_ddl, fields))).fields)


def _ddl(field: Any) -> str:
    name = str(field.name).replace("`", "``")
    return f"`{name}` {field.dataType.simpleString()}"
