"""JobGraph ↔ JSON for every operator class."""

import dataclasses
import json
import typing

import pytest

from yarnflow.core.ids import JobId, VertexId
from yarnflow.core.messages import ProgramKind
from yarnflow.errors import GraphError
from yarnflow.graph import operators as o
from yarnflow.graph.closures import Closure
from yarnflow.graph.codec import job_graph_from_json, job_graph_to_json
from yarnflow.graph.connectors import (
    elasticsearch,
    kafka,
    lookups,
    messages,
    python,
    rabbitmq,
    redis,
    sinks,
    sources,
)
from yarnflow.graph.job_graph import JobEdge, JobGraph, JobVertex, ShipStrategy, StreamNode
from yarnflow.graph.schema import Field, Schema
from yarnflow.graph.type_info import Types

SCHEMA = Schema((Field("a", "int"), Field("ü", None)))
CLOSURE = Closure(b"\x00\xff", "f", "job.py:3")
KEY = o.Key(("upper(a)",), ("a",))
WINDOW = o.Window(o.WindowKind.SLIDING, size_ms=2, slide_ms=1)
OPERATORS: list[o.Operator] = [
    sources.CollectionSource(SCHEMA, b"arrow"),
    sources.FileSource("/x", "csv", SCHEMA, {"header": "true"}, False, 3),
    sources.SequenceSource(1, 9),
    sources.SocketSource("h", 1),
    sources.RateSource(5),
    sources.RateSource(5, 10),
    o.SqlOperator("SELECT 1", ("v",)),
    o.SelectOperator(("a", "b")),
    o.FilterExpression("a > 1"),
    o.PythonOperator(o.PythonKind.FLAT_MAP, CLOSURE),
    o.AssignTimestamps("", 5),
    o.UnionOperator(),
    o.DropDuplicates(("a",), 1000),
    o.LookupJoin(
        lookups.JdbcLookup(Schema((Field("b", "int"),)), "t", "jdbc:mysql://h/d", "u", "p"),
        (("a", "id"), ("ü", "u")),
        True,
        lookups.LookupOptions(True, 1, 2, 3, False, 4, 5, 6),
    ),
    o.LookupJoin(lookups.FunctionLookup(Schema((Field("b", "int"),)), CLOSURE, True), (("a", "a"),)),
    o.RunningAggregate(KEY, ("sum(x) AS x",)),
    o.KeyedReduce(KEY, CLOSURE),
    o.WindowAggregate(KEY, WINDOW, ("count(*) AS n",)),
    o.WindowProcess(KEY, WINDOW, o.WindowFunctionKind.PROCESS, CLOSURE),
    o.ElementOperator(
        o.ElementKind.KEYED_CO_PROCESS,
        CLOSURE,
        (o.ElementInput(CLOSURE), o.ElementInput(None, True)),
        True,
        (("late", Types.ROW_NAMED(["a"], [Types.LIST(Types.INT())])), ("other", None)),
    ),
    o.SideOutput("late"),
    o.PartitionCustom(CLOSURE, CLOSURE),
    o.PartitionByKey(CLOSURE),
    sinks.CollectSink(5),
    sinks.DiscardSink(),
    sinks.PrintSink("x"),
    sinks.FileSink("/y", "parquet", {}, ("a",)),
    kafka.KafkaSource(
        {"a": "b"},
        kafka.KafkaOffsets(kafka.KafkaOffsetsKind.OFFSETS, 0, (("t", 0, 5),), kafka.KafkaReset.LATEST),
        kafka.KafkaOffsets(kafka.KafkaOffsetsKind.TIMESTAMP, 7),
        partitions=(("t", 0),),
        format=messages.MessageFormat(
            messages.MessageFormatKind.JSON, Types.ROW([Types.INT()]), {"x": "y"}, True
        ),
        options={"maxOffsetsPerTrigger": "5"},
    ),
    kafka.KafkaSink(
        {"a": "b"},
        messages.MessageFormat(messages.MessageFormatKind.STRING, Types.STRING()),
        topic_selector=CLOSURE,
        delivery=kafka.KafkaDelivery.EXACTLY_ONCE,
        transactional_id_prefix="p",
    ),
    rabbitmq.RabbitMqSource(
        rabbitmq.RabbitMqServer("h", 1, "/v", "u", "p", prefetch_count=7),
        "q",
        messages.MessageFormat(messages.MessageFormatKind.STRING, Types.STRING()),
        True,
    ),
    rabbitmq.RabbitMqSink(
        rabbitmq.RabbitMqServer(uri="amqp://h"),
        "q",
        messages.MessageFormat(messages.MessageFormatKind.STRING, Types.STRING()),
    ),
    redis.RedisSink(
        redis.RedisServer("h", 1, 2, "u", "p", 3, True), redis.RedisCommand.SETEX, CLOSURE, "", 5, 1
    ),
    elasticsearch.ElasticsearchSink(
        elasticsearch.ElasticsearchServer(("http://h:9200", "http://i:9200"), "u", "p", "/x", 1, 2),
        "field", True, "key", 5, 6, elasticsearch.FlushBackoff.EXPONENTIAL, 7, 8,
    ),
    sinks.SocketSink("h", 1, messages.MessageFormat(messages.MessageFormatKind.BYTES, Types.STRING())),
    sinks.JdbcSink("INSERT INTO t VALUES (?)", "jdbc:postgresql://h/d", "u", "p", 10, 0),
    python.PythonSource(CLOSURE, SCHEMA, {"a": "b"}, True, True),
    python.PythonSink(CLOSURE, {"a": "b"}, False),
    sinks.ForeachBatchSink(CLOSURE),
]


def graph(*operators: o.Operator) -> JobGraph:
    nodes = tuple(
        StreamNode(
            i, f"n{i}", "0" * 32, op, (i - 1,) if i else (), SCHEMA, 2, 128, "default", "uid", "job.py:1"
        )
        for i, op in enumerate(operators)
    )
    vertex = JobVertex(VertexId("f" * 32), "v", tuple(range(len(nodes))), 2, 128, "default")
    edge = JobEdge(vertex.vertex_id, vertex.vertex_id, ShipStrategy.HASH)
    return JobGraph(JobId("a" * 32), "job", ProgramKind.GRAPH, nodes, (vertex,), (edge,), {"k": "v"})


def test_every_operator_class_is_tried() -> None:
    assert {type(operator) for operator in OPERATORS} == set(typing.get_args(o.Operator))


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: type(operator).__name__)
def test_round_trip(operator: o.Operator) -> None:
    before = graph(operator)
    assert job_graph_from_json(job_graph_to_json(before)) == before


def test_round_trip_of_a_whole_graph_and_of_an_empty_one() -> None:
    assert job_graph_from_json(job_graph_to_json(graph(*OPERATORS))) == graph(*OPERATORS)
    script = JobGraph(JobId("a" * 32), "s", ProgramKind.SCRIPT)
    assert job_graph_from_json(job_graph_to_json(script)) == script


def test_round_trip_of_element_types() -> None:
    kind = Types.MAP(Types.STRING(), Types.TUPLE([Types.PICKLED_BYTE_ARRAY(), Types.SQL_DATE()]))
    before = graph(sources.CollectionSource(Schema((), element_type=kind), b""))
    after = job_graph_from_json(job_graph_to_json(before))
    assert after == before
    (node,) = after.nodes
    assert isinstance(node.operator, sources.CollectionSource) and node.operator.schema.element_type == kind


def test_a_pair_has_two_values() -> None:
    operator = next(each for each in OPERATORS if isinstance(each, o.ElementOperator))
    text = job_graph_to_json(graph(operator)).replace('["other",null]', '["other"]')
    with pytest.raises(GraphError, match=r"side_outputs\[1\]: expected 2 values, found 1"):
        job_graph_from_json(text)


def test_fields_left_out_take_their_defaults() -> None:
    document = json.loads(job_graph_to_json(graph(sources.RateSource(5))))
    del document["job_graph"]["configuration"], document["job_graph"]["nodes"][0]["uid"]
    read = job_graph_from_json(json.dumps(document))
    assert read.configuration == {} and read.nodes[0].uid == ""


def _edited(**changes: object) -> str:
    document = json.loads(job_graph_to_json(graph(sources.RateSource(5))))
    document["job_graph"]["nodes"][0].update(changes)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "not JSON"),
        ("[]", "version None"),
        ('{"version": 99}', "version 99"),
        ('{"version": 1}', "job_graph: expected dict"),
        (_edited(parallelism="2"), "job_graph.nodes[0].parallelism: expected int, found str"),
        (_edited(parallelism=True), "expected int, found bool"),
        (_edited(nope=1), "no field 'nope'"),
        (_edited(operator={"type": "Nope"}), "unknown type 'Nope'"),
        (_edited(operator={"type": "RateSource"}), "rows_per_second"),
        (
            _edited(operator={"type": "CollectionSource", "schema": {"fields": []}, "arrow_ipc": "é"}),
            "base64",
        ),
    ],
)
def test_what_is_no_job_graph(text: str, part: str) -> None:
    with pytest.raises(GraphError) as caught:
        job_graph_from_json(text)
    assert part in str(caught.value)


def test_payloads_are_not_shown() -> None:
    assert all("\\x00" not in repr(operator) for operator in OPERATORS if dataclasses.is_dataclass(operator))
