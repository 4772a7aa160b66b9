"""Plans for people."""

import json
from typing import get_args

import pytest

from tests.graph import graphs as g
from tests.graph.test_codec import OPERATORS
from yarnflow.core.ids import JobId
from yarnflow.graph import operators as o
from yarnflow.graph.connectors import elasticsearch, kafka, lookups, messages, python, rabbitmq, redis, sinks
from yarnflow.graph.generation.chaining import create_job_graph
from yarnflow.graph.plan import compiles_to, describe, duration, guarantee, plan, plan_json
from yarnflow.graph.stream_graph import GraphSettings
from yarnflow.graph.type_info import Types


def test_plan() -> None:
    program = g.Program()
    program.chain(g.SOURCE, g.PYTHON, g.RUNNING, sinks.FileSink("/out", "parquet"))
    graph = create_job_graph(program.build(GraphSettings(job_name="j", parallelism=2)), JobId("a" * 32))
    shown = plan(graph)
    assert (shown["jid"], shown["name"], shown["required_slots"]) == ("a" * 32, "j", 2)
    assert shown["slot_sharing_groups"] == {"default": 2}
    assert [node["inputs"] for node in shown["nodes"]] == [
        [],
        [{"num": 0, "id": 1, "ship_strategy": "FORWARD"}],
        [{"num": 0, "id": 2, "ship_strategy": "HASH"}],
        [{"num": 0, "id": 3, "ship_strategy": "FORWARD"}],
    ]
    assert [
        v["compiles_to"] for v in shown["vertices"]
    ] == ["one Arrow round trip (1 function)", "native columns"]
    assert shown["vertices"][1]["inputs"] == [{"id": shown["vertices"][0]["id"], "ship_strategy": "HASH"}]
    assert shown["sinks"][0]["guarantee"] == "exactly-once"
    assert json.loads(plan_json(graph)) == shown


KEYED = o.PythonOperator(o.PythonKind.KEY, g.CLOSURE)
PYTHON_TIMES = o.AssignTimestamps("", 0)


@pytest.mark.parametrize(
    ("operators", "text"),
    [
        ([g.SOURCE, g.NATIVE, g.TIMES], "native columns"),
        ([g.PYTHON, g.PYTHON, KEYED], "one Arrow round trip (3 functions)"),
        ([g.PYTHON, PYTHON_TIMES, KEYED], "one Arrow round trip (2 functions)"),
        ([g.PYTHON, g.NATIVE, g.PYTHON], "2 Arrow round trips (2 functions)"),
        ([g.REDUCE, g.PRINT], "one Arrow round trip (1 function)"),
        ([g.PYTHON, g.LOOKUP, g.PYTHON], "3 Arrow round trips (3 functions)"),
    ],
)
def test_compiles_to(operators: list[o.Operator], text: str) -> None:
    assert compiles_to(operators) == text


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: type(operator).__name__)
def test_every_operator_is_described_in_one_line(operator: o.Operator) -> None:
    text = describe(operator)
    assert text and "\n" not in text and "None" not in text


def test_every_sink_says_what_it_promises() -> None:
    assert guarantee(sinks.PrintSink()) == "at-least-once"
    assert "commit_once" in guarantee(sinks.ForeachBatchSink(g.CLOSURE))
    assert guarantee(sinks.JdbcSink("", "")) == guarantee(sinks.FileSink("", "csv")) == "exactly-once"
    assert guarantee(sinks.CollectSink()) == "at-least-once"
    assert guarantee(sinks.DiscardSink()) == "at-least-once"
    text = messages.MessageFormat(messages.MessageFormatKind.STRING, Types.STRING())
    topics = [kafka.KafkaSink({}, text, topic="t", delivery=delivery) for delivery in kafka.KafkaDelivery]
    assert [guarantee(sink) for sink in topics] == ["exactly-once", "at-least-once", "none"]
    assert "batch id" in guarantee(python.PythonSink(g.CLOSURE))
    assert guarantee(python.PythonSink(g.CLOSURE, of_streams=False)) == "at-least-once"
    server = rabbitmq.RabbitMqServer("h")
    assert guarantee(rabbitmq.RabbitMqSink(server, "q", text)) == "at-least-once"
    counts = redis.RedisSink(redis.RedisServer("h"), redis.RedisCommand.INCRBY, g.CLOSURE)
    assert guarantee(counts) == "exactly-once"
    documents = elasticsearch.ElasticsearchSink(elasticsearch.ElasticsearchServer(("http://h:9200",)), "i")
    assert guarantee(documents) == "at-least-once"
    assert guarantee(sinks.SocketSink("h", 1, text)) == "none"
    assert len(get_args(o.Sink)) == 12


def test_secrets_of_servers_are_not_described() -> None:
    text = messages.MessageFormat(messages.MessageFormatKind.STRING, Types.STRING())
    queue = rabbitmq.RabbitMqServer(uri="amqps://ann:pw@broker/shop")
    assert describe(rabbitmq.RabbitMqSource(queue, "q", text)) == (
        "string of queue q of RabbitMQ at broker:5671/shop"
    )
    store = redis.RedisServer("store", password="pw")
    counts = redis.RedisSink(store, redis.RedisCommand.HINCRBY, g.CLOSURE, "counts")
    by = f"{g.CLOSURE.name} ({g.CLOSURE.origin})"
    assert describe(counts) == f"HINCRBY counts by {by} to Redis at store:6379"
    assert "pw" not in f"{queue!r}{counts!r}"


def test_lookups() -> None:
    assert describe(g.LOOKUP) == (
        "left join with name, city of shop.people in jdbc:mysql://ann:******@db/shop by id, town = city_id"
    )
    found = o.LookupJoin(lookups.FunctionLookup(g.LOOKUP.lookup.columns, g.CLOSURE), (("id", "id"),))
    assert describe(found) == "inner join with name, city of Python f (job.py:1) by id"


def test_secrets_of_a_database_are_not_described() -> None:
    sink = sinks.JdbcSink("INSERT  INTO t\nVALUES (?)", "jdbc:mysql://ann:pw@db/shop?password=p", "ann", "pw")
    assert describe(sink) == "jdbc:mysql://ann:******@db/shop: INSERT INTO t VALUES (?)"


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0 seconds"), (1, "1 millisecond"), (90_000, "90 seconds"), (7_200_000, "2 hours")]
)
def test_duration(ms: int, text: str) -> None:
    assert duration(ms) == text
