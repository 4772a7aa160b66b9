"""Data sources of programs as they reach the graph."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import ArrayType, StringType, StructType

from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common.typeinfo import Types
from yarnflow.api.datastream.connectors import PythonSink, PythonSource
from yarnflow.api.datastream.functions import SinkFunction, SourceFunction
from yarnflow.api.executor import use_executor
from yarnflow.errors import GraphError, SchemaError, UnsupportedCall, UnsupportedGraph, UserCodeError
from yarnflow.graph.closures import load_closure
from yarnflow.graph.connectors import python
from yarnflow.graph.job_graph import JobGraph
from yarnflow.testing.kept_graph import KeptGraph


class Batches(DataSource):
    def schema(self) -> StructType | str:
        return StructType().add("a b", "long").add("tags", ArrayType(StringType()))

    def reader(self, schema: StructType) -> Any:
        raise AssertionError("not here")


class Both(Batches):
    def streamReader(self, schema: StructType) -> Any:  # noqa: N802
        raise AssertionError("not here")

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        raise AssertionError("not here")


class Simple(DataSource):
    def schema(self) -> StructType | str:
        return "n INT, city STRING"

    def simpleStreamReader(self, schema: StructType) -> Any:  # noqa: N802
        raise AssertionError("not here")

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802
        raise AssertionError("not here")


class Nothing(DataSource):
    pass


class Asking(Simple):
    def schema(self) -> StructType | str:
        raise ConnectionError("no such host")


class Odd(Simple):
    def schema(self) -> StructType | str:
        return ["n"]  # type: ignore[return-value]


def graph_of(source: PythonSource, sink: PythonSink | None = None) -> JobGraph:
    kept = KeptGraph()
    with use_executor(kept):
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_source(source, None, "own")
        stream.print() if sink is None else stream.sink_to(sink)
        env.execute_async()
    return kept.graphs[-1]


def source_of(source: PythonSource) -> python.PythonSource:
    found = graph_of(source).nodes[0].operator
    assert isinstance(found, python.PythonSource)
    return found


def test_what_reaches_the_graph() -> None:
    found = source_of(PythonSource(Simple, {"rows": 5, "on": True}))
    assert found.options == {"rows": "5", "on": "true"}
    assert [(field.name, field.type) for field in found.schema.fields] == [("n", "int"), ("city", "string")]
    loaded: object = load_closure(found.data_source)
    assert isinstance(loaded, type) and loaded.__name__ == "Simple"
    assert found.data_source.origin.startswith("test_python_source.py:")
    sink = graph_of(PythonSource(Simple), PythonSink(Simple, {"path": "/x"})).nodes[-1].operator
    assert isinstance(sink, python.PythonSink) and sink.of_streams and sink.options == {"path": "/x"}


def test_fields_of_a_struct_type() -> None:
    found = source_of(PythonSource(Batches))
    assert [(f.name, f.type) for f in found.schema.fields] == [("a b", "bigint"), ("tags", "array<string>")]
    declared = source_of(PythonSource(Asking, schema="x DOUBLE"))
    assert [(f.name, f.type) for f in declared.schema.fields] == [("x", "double")]


@pytest.mark.parametrize(
    ("kind", "bounded", "ends", "of_batches"),
    [
        (Batches, None, True, True),
        (Batches, True, True, True),
        (Both, None, False, False),
        (Both, False, False, False),
        (Both, True, True, True),
        (Simple, None, False, False),
        (Simple, True, True, False),
    ],
)
def test_what_a_class_can_says_whether_it_ends(
    kind: type, bounded: bool | None, ends: bool, of_batches: bool
) -> None:
    found = source_of(PythonSource(kind, bounded=bounded))
    assert (found.bounded, found.of_batches) == (ends, of_batches)
    assert found.read_at_once is of_batches


def test_what_cannot_be_read_or_written_is_refused_with_the_line() -> None:
    with pytest.raises(UnsupportedGraph, match=r"test_python_source.py:\d+: Nothing cannot be read"):
        PythonSource(Nothing)
    with pytest.raises(UnsupportedGraph, match=r"test_python_source.py:\d+: Batches ends: for bounded=False"):
        PythonSource(Batches, bounded=False)
    with pytest.raises(UnsupportedGraph, match=r"test_python_source.py:\d+: Batches cannot be written to"):
        PythonSink(Batches)
    with pytest.raises(UnsupportedGraph, match="int is no subclass of pyspark.sql.datasource.DataSource"):
        PythonSource(int)
    with pytest.raises(UnsupportedGraph, match="give the class of the data source"):
        PythonSink(Simple({}))  # type: ignore[arg-type]
    sink = graph_of(PythonSource(Both), PythonSink(Both)).nodes[-1].operator
    assert isinstance(sink, python.PythonSink) and not sink.of_streams


def test_a_schema_that_cannot_be_had_is_an_error() -> None:
    with pytest.raises(UserCodeError, match="schema.. raised ConnectionError: no such host; .* a schema"):
        graph_of(PythonSource(Asking))
    with pytest.raises(SchemaError, match=r"Odd.schema\(\) gave \['n'\]; it is to be DDL text"):
        graph_of(PythonSource(Odd))


def test_elements_without_fields_are_no_rows() -> None:
    kept = KeptGraph()
    with use_executor(kept), pytest.raises(SchemaError, match="have no columns"):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection([object], Types.PICKLED_BYTE_ARRAY()).sink_to(PythonSink(Simple))
        env.execute_async()


def test_java_s_functions_and_bare_classes_name_what_to_use() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedCall, match="PythonSource"):
        env.add_source(SourceFunction("org.example.Feed"))
    stream = env.from_collection([1])
    with pytest.raises(UnsupportedCall, match="PythonSink"):
        stream.add_sink(SinkFunction("org.example.Feed"))
    with pytest.raises(GraphError, match="wrap a DataSource of pyspark in PythonSource"):
        env.from_source(Simple)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="wrap a DataSource of pyspark in PythonSink"):
        stream.sink_to(Simple)  # type: ignore[arg-type]
