"""Environments: options, sources, execution."""

import datetime
import decimal
import io
import json
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from tests.api.conftest import Jobs
from yarnflow.api import (
    FileSink,
    FileSource,
    JobExecutionResult,
    JobStatus,
    RateSource,
    Row,
    SocketSource,
    StreamExecutionEnvironment,
    WatermarkStrategy,
)
from yarnflow.api.common import Row as ElementRow
from yarnflow.api.common import Types
from yarnflow.api.executor import use_executor
from yarnflow.core.ids import JobId
from yarnflow.errors import (
    GraphError,
    InvalidExpression,
    InvalidOption,
    ProgramError,
    SchemaError,
    UnknownField,
    UnknownOption,
    UnsupportedGraph,
)
from yarnflow.graph import operators as o
from yarnflow.graph.connectors import sources
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.type_info import PICKLED, checked_type


def rows(operator: sources.CollectionSource) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.ipc.open_stream(io.BytesIO(operator.arrow_ipc)).read_all().to_pylist()
    return found


class Word(NamedTuple):
    word: str
    n: int


@pytest.mark.parametrize(
    ("data", "schema", "ddl"),
    [
        (["a", "b"], None, "value string"),
        ([2**63 - 1], None, "value bigint"),
        ([("a", 1.5)], "f0 STRING, f1 DOUBLE", "f0 string, f1 double"),
        ([Row(x=True, y=[1])], "x BOOLEAN, y ARRAY<BIGINT>", "x boolean, y array<bigint>"),
        ([ElementRow("a", 1), ElementRow(n=2, word="b")], Word, "word string, n bigint"),
        ([{"a": 1}, {"b": "x"}], "a BIGINT, b STRING", "a bigint, b string"),
        ([(1, "x")], "a INT, b STRING", "a int, b string"),
        ([1, 2], "DOUBLE", "value double"),
        ([Word("a", 1)], Word, "word string, n bigint"),
        ([({"k": (1, decimal.Decimal("1.5"))},)], "m MAP<STRING, STRUCT<i: INT, d: DECIMAL(5,2)>>",
         "m map<string,struct<i:int,d:decimal(5,2)>>"),
    ],
)  # fmt: skip
def test_collections(jobs: Jobs, data: list[Any], schema: object, ddl: str) -> None:
    jobs.env.from_collection(data, schema).print()
    node = jobs.graph().nodes[0]
    assert isinstance(node.operator, sources.CollectionSource)
    assert ", ".join(f"{f.name} {f.type}" for f in node.output_schema.fields) == ddl
    assert node.operator.schema == node.output_schema
    assert len(rows(node.operator)) == len(data)
    assert node.parallelism == 1


def test_naive_datetimes_are_utc(jobs: Jobs) -> None:
    jobs.env.from_collection([datetime.datetime(2013, 1, 1, 5)], "TIMESTAMP").print()
    (row,) = rows(jobs.graph().nodes[0].operator)  # type: ignore[arg-type]
    assert row["value"] == datetime.datetime(2013, 1, 1, 5, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ([], None),
        ([None], None),
        ([1, "x"], None),
        (["a", None], None),
        ([2**63], None),
        ([True], None),
        ([("a", 1.5), Word("b", 1)], None),
        ([object], None),
        ([("a", 1)], Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])),
        ([(1,)], [Types.INT()]),
    ],
)
def test_collections_of_elements(jobs: Jobs, data: list[Any], kind: Any) -> None:
    jobs.env.from_collection(data, kind).print()
    node = jobs.graph().nodes[0]
    assert isinstance(node.operator, sources.CollectionSource)
    found = [pickle.loads(row["value"]) for row in rows(node.operator)]
    assert node.output_schema.element_type == (PICKLED if kind is None else checked_type(kind, ""))
    assert node.output_schema.pickled == (kind is None)
    expected = data if kind is None else [ElementRow(*data[0])]
    for row in found:
        if isinstance(row, ElementRow):
            row.set_field_names(None)  # type: ignore[arg-type]
    assert found == expected


def test_elements_that_do_not_fit_their_type(jobs: Jobs) -> None:
    said = (
        r"^test_environment\.py:\d+: from_collection\(\): row 1 is \('b', 'x'\), and field \[1\] of "
        r"TupleTypeInfo\(.*\) is a whole number of 32 bits, not 'x' \(str\); correct the row or type_info$"
    )
    jobs.env.from_collection([("a", 1), ("b", "x")], Types.TUPLE([Types.STRING(), Types.INT()])).print()
    with pytest.raises(SchemaError, match=said):
        jobs.env.execute()


@pytest.mark.parametrize(
    ("data", "schema", "part"),
    [
        ([(1, "x"), ("y", "z")], "a INT, b STRING", "row 1: field 'a' int cannot hold 'y' (str)"),
        ([(1,), (1, 2)], "a INT", "row 1 is (1, 2)"),
        ([300], "TINYINT", "row 0: field 'value' tinyint cannot hold 300"),
    ],
)
def test_collections_that_do_not_fit(jobs: Jobs, data: list[Any], schema: str | None, part: str) -> None:
    jobs.env.from_collection(data, schema).print()
    with pytest.raises(SchemaError) as caught:
        jobs.env.execute()
    assert str(caught.value).startswith("test_environment.py:")
    assert part in str(caught.value)


def test_file_sources(jobs: Jobs) -> None:
    built = FileSource.for_path("/in").format("csv").schema("a INT").option(
        "header", True
    ).monitor_continuously()
    jobs.env.from_source(built.max_files_per_trigger(2).build(), source_name="Flights").print()
    node = jobs.graph().nodes[0]
    assert node.name == "Source: Flights"
    assert node.operator == sources.FileSource("/in", "csv", node.output_schema, {"header": "true"}, False, 2)
    jobs.env.read_text_file("relative").print()
    node = jobs.graph().nodes[0]
    assert isinstance(node.operator, sources.FileSource)
    assert node.operator.path.startswith("/") and node.output_schema.scalar and node.operator.bounded
    jobs.env.from_source(FileSource("hdfs://nn/x", "json", "a INT")).print()
    assert jobs.graph().nodes[0].operator.path == "hdfs://nn/x"  # type: ignore[union-attr]


def test_other_sources(jobs: Jobs) -> None:
    jobs.env.from_source(RateSource(5, count=10)).print()
    assert jobs.graph().nodes[0].operator == sources.RateSource(5, 10)
    jobs.env.socket_text_stream("localhost", 9999).print()
    assert jobs.graph().nodes[0].operator == sources.SocketSource("localhost", 9999)
    jobs.env.from_source(RateSource(1), WatermarkStrategy.no_watermarks()).print()
    assert len(jobs.graph().nodes) == 2


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (FileSource("/in", "csv"), SchemaError),
        (FileSource("/in", "xml"), UnsupportedGraph),
        (FileSource("/in", "csv", "a INTT"), SchemaError),
        (SocketSource("h", 0), UnsupportedGraph),
        (RateSource(0), UnsupportedGraph),
    ],
)
def test_sources_refused(jobs: Jobs, source: Any, error: type[GraphError]) -> None:
    jobs.env.from_source(source).print()
    with pytest.raises(error, match=r"^test_environment.py:\d+: from_source\(\): "):
        jobs.env.execute()


@pytest.mark.parametrize(
    ("sink", "error", "part"),
    [
        (FileSink("/o", "xml"), UnsupportedGraph, "no file format 'xml'"),
        (FileSink("/o", "csv"), SchemaError, "csv cannot hold field 'xs'"),
        (FileSink("/o", partition_by=["b"]), UnknownField, "no field 'b'"),
        (FileSink("/o", partition_by=["a", "xs"]), UnsupportedGraph, "nothing would be left"),
    ],
)
def test_sinks_refused(jobs: Jobs, sink: FileSink, error: type[GraphError], part: str) -> None:
    jobs.rows("a INT, xs ARRAY<INT>").sink_to(sink)
    with pytest.raises(error) as caught:
        jobs.env.execute()
    assert part in str(caught.value) and "sink_to()" in str(caught.value)


def test_sql(jobs: Jobs) -> None:
    clicks = jobs.rows("user STRING, n INT")
    jobs.env.sql("SELECT user, n FROM clicks WHERE n > 1", clicks=clicks).print()
    graph = jobs.graph()
    assert graph.nodes[1].operator == o.SqlOperator("SELECT user, n FROM clicks WHERE n > 1", ("clicks",))
    assert graph.nodes[1].output_schema.names == ("user", "n")
    jobs.env.sql("SELECT * FROM parquet.`/x`", schema="a INT").map(lambda r: r.a, output_type=int).print()
    assert jobs.graph().nodes[0].output_schema.names == ("a",)
    jobs.env.sql("SELECT * FROM parquet.`/x`").map(lambda r: r.a, output_type=int).print()
    with pytest.raises(SchemaError, match=r"map\(\): .*add schema="):
        jobs.env.execute()


def test_sql_names_its_line(jobs: Jobs) -> None:
    jobs.env.sql("SELECT usr FROM clicks", clicks=jobs.rows("user STRING")).print()
    with pytest.raises(UnknownField, match=r"sql\(\): no field 'usr' in the stream; did you mean 'user'"):
        jobs.env.execute()
    with pytest.raises(InvalidExpression):
        StreamExecutionEnvironment().sql("SELEC").print()
        StreamExecutionEnvironment.get_execution_plan(jobs_with("SELEC"))


def jobs_with(query: str) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment()
    env.sql(query).print()
    return env


def test_names_parallelism_and_options_around_the_program() -> None:
    collector = RecordingExecutor()
    around = {"parallelism.default": "3", "pipeline.max-parallelism": "64"}
    with use_executor(collector, around):
        env = StreamExecutionEnvironment.get_execution_environment()
        assert env.get_parallelism() == 3
        env.from_source(RateSource(1)).print()
        assert env.execute("mine") == JobExecutionResult(collector.graphs[0].job_id, 5)
        env.set_parallelism(2).set_config("spark.sql.ansi.enabled", False)
        env.from_source(RateSource(1)).print().name("Out").set_parallelism(1)
        client = env.execute_async("second")
    first, second = collector.graphs
    assert (first.name, first.nodes[0].parallelism, first.nodes[0].max_parallelism) == ("mine", 3, 64)
    assert first.configuration == {} and len(first.nodes) == 2
    assert [n.parallelism for n in second.nodes] == [2, 1]
    assert second.nodes[1].name == "Out"
    assert second.configuration == {"parallelism.default": "2", "spark.sql.ansi.enabled": "false"}
    assert client.job_id == second.job_id != first.job_id


class FinishedClient:
    def __init__(self, job_id: JobId) -> None:
        self.job_id = job_id

    def get_job_status(self) -> JobStatus:
        return JobStatus.FINISHED

    def cancel(self) -> None:
        raise AssertionError

    def begin_savepoint(
        self, target_dir: str, *, stop: bool = False, drain: bool = False
    ) -> Callable[[], str]:
        raise AssertionError

    def get_job_execution_result(self) -> JobExecutionResult:
        return JobExecutionResult(self.job_id, 5)


class RecordingExecutor:
    def __init__(self) -> None:
        self.graphs: list[JobGraph] = []

    def submit(self, job_graph: JobGraph) -> FinishedClient:
        self.graphs.append(job_graph)
        return FinishedClient(job_graph.job_id)


def test_wrong_options(jobs: Jobs) -> None:
    with pytest.raises(UnknownOption, match="test_environment.py"):
        jobs.env.set_config("paralelism.default", 2)
    with pytest.raises(InvalidOption):
        jobs.env.set_config("parallelism.default", "many")
    for wrong in (0, -2, True, "2"):
        with pytest.raises(GraphError, match=r"^test_environment.py:\d+: parallelism"):
            jobs.env.set_parallelism(wrong)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="32768"):
        jobs.env.set_max_parallelism(32769)


def test_without_an_executor_programs_say_how_to_run_them() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_source(RateSource(1)).print()
    with pytest.raises(ProgramError, match="yarnflow submit"):
        env.execute()


def test_the_plan_needs_no_executor() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_source(RateSource(1)).print()
    for _ in range(2):
        nodes = json.loads(env.get_execution_plan())["nodes"]
        kinds = [(node["pact"], node["parallelism"]) for node in nodes]
        assert kinds == [("Data Source", 1), ("Data Sink", 1)]
        source = {"id": nodes[0]["id"], "ship_strategy": "FORWARD", "side": "second"}
        assert "predecessors" not in nodes[0] and nodes[1]["predecessors"] == [source]
