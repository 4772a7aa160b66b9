"""Sources and sinks of servers as programs describe them: RabbitMQ, Redis, Elasticsearch, sockets."""

from __future__ import annotations

from typing import Any

import pytest

from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common.serialization import ByteArraySchema, SimpleStringSchema
from yarnflow.api.common.typeinfo import Types
from yarnflow.api.datastream.connectors.base import DeliveryGuarantee
from yarnflow.api.datastream.connectors.elasticsearch import (
    Elasticsearch6SinkBuilder,
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    FlushBackoffType,
)
from yarnflow.api.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource
from yarnflow.api.datastream.connectors.redis import (
    RedisCommand,
    RedisCommandDescription,
    RedisConfig,
    RedisMapper,
    RedisSink,
)
from yarnflow.api.executor import use_executor
from yarnflow.errors import GraphError, UnsupportedCall, UnsupportedGraph
from yarnflow.graph.connectors import elasticsearch, rabbitmq, redis, sinks
from yarnflow.graph.connectors.messages import MessageFormatKind
from yarnflow.testing.kept_graph import KeptGraph

TEXT = SimpleStringSchema()


def graph_of(build: Any) -> Any:
    kept = KeptGraph()
    with use_executor(kept):
        env = StreamExecutionEnvironment.get_execution_environment()
        build(env)
        env.execute_async()
    return kept.graphs[-1]


def sink_of(end: Any) -> Any:
    """The operator of a sink behind a stream of texts."""
    graph = graph_of(lambda env: end(env.from_collection(["a"], Types.STRING())))
    return graph.nodes[-1].operator


# --- RabbitMQ -----------------------------------------------------------------------------


def builder() -> RMQConnectionConfig.Builder:
    made = RMQConnectionConfig.Builder().set_host("broker").set_port(5672).set_virtual_host("/")
    return made.set_user_name("ann").set_password("pw")


def test_a_queue_that_is_read() -> None:
    config = builder().set_prefetch_count(7).set_requested_heartbeat(5).build()
    graph = graph_of(lambda env: env.add_source(RMQSource(config, "orders", True, TEXT)).print())
    source = next(n for n in graph.nodes if isinstance(n.operator, rabbitmq.RabbitMqSource))
    assert source.parallelism == 1 and source.output_schema.element_type == Types.STRING()
    found = source.operator
    assert isinstance(found, rabbitmq.RabbitMqSource)
    assert (found.queue, found.use_correlation_id, found.bounded) == ("orders", True, False)
    assert (found.server.prefetch_count, found.server.heartbeat_s) == (7, 5)
    assert found.where == "queue orders of RabbitMQ at broker:5672" and "pw" not in repr(found)


def test_a_queue_that_is_written() -> None:
    found = sink_of(lambda stream: stream.add_sink(RMQSink(builder().build(), "orders", ByteArraySchema())))
    assert isinstance(found, rabbitmq.RabbitMqSink)
    assert (found.queue, found.value.kind) == ("orders", MessageFormatKind.BYTES)


def test_settings_of_a_connection_are_read_back() -> None:
    made = builder().set_automatic_recovery(False).set_network_recovery_interval(9).set_connection_timeout(8)
    found = made.set_requested_channel_max(7).set_requested_frame_max(4096).build()
    assert (found.get_host(), found.get_port(), found.get_virtual_host()) == ("broker", 5672, "/")
    assert (found.get_user_name(), found.get_password(), found.get_uri()) == ("ann", "pw", None)
    assert (found.is_automatic_recovery(), found.get_network_recovery_interval()) == (False, 9)
    assert (found.get_connection_timeout(), found.get_requested_channel_max()) == (8, 7)
    assert (found.get_requested_frame_max(), found.get_requested_heartbeat()) == (4096, 60)
    by_uri = RMQConnectionConfig.Builder().set_uri("amqps://ann:pw@broker/%2Fshop").build()
    assert (by_uri.get_uri(), by_uri.get_port()) == ("amqps://ann:pw@broker/%2Fshop", None)
    assert by_uri._server.where == "broker:5671//shop" and by_uri._server.login == "ann"


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: RMQConnectionConfig.Builder().set_host("h").build(), "needs set_port, set_virtual_host"),
        (lambda: RMQConnectionConfig.Builder().set_uri("http://ann:pw@h").build(), "is no address"),
        (lambda: builder().set_port(0), "0 is no port"),
        (lambda: builder().set_prefetch_count(70_000), "from 1 to 65535"),
        (lambda: builder().set_requested_heartbeat(-1), "from 0 to 65535"),
        (lambda: builder().set_connection_timeout(-1), "0 or more"),
        (lambda: builder().set_requested_channel_max(70_000), "from 0 to 65535"),
        (lambda: builder().set_requested_frame_max(200_000), "must be 0, or from 4096 to 131072"),
        (lambda: builder().set_requested_frame_max(1), "must be 0, or from 4096 to 131072"),
        (lambda: RMQSource(builder().build(), "", False, TEXT), "RMQSource: '' is no name of a queue"),
        (lambda: RMQSink(builder().build(), "q" * 256, TEXT), "is no name of a queue"),
    ],
)
def test_what_cannot_be_a_queue(make: Any, said: str) -> None:
    with pytest.raises(GraphError, match=said) as caught:
        make()
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    "uri, said",
    [
        ("amqp://ann:pw/abc@broker:5672/vh", r"^amqp://\*{6}@broker:5672/vh is no address .* / is %2F"),
        ("amqp://ann:1pw/pw@broker", r"^amqp://\*{6}@broker is no address"),
        ("amqp://ann:12/pw@broker", r"^amqp://\*{6}@broker is no address"),
        ("amqp://ann:12?pw@broker", r"^amqp://\*{6}@broker is no address"),
        ("amqp://ann:12#pw@broker", r"^amqp://\*{6}@broker is no address"),
        ("amqp://ann:[pw@broker", r"^amqp://\*{6}@broker is no address"),
        ("amqp://ann:pw@broker:56720/a/b", "/ is %2F"),
        ("amqp://ann:pw@broker:567200", "a port is a number"),
        ("amqp://ann:pw@broker:port", "a port is a number"),
        ("amqp://ann:pw@broker:0", "it needs amqp://"),
        ("ann:pw@broker", r"^\*{6}@broker is no address of RabbitMQ: it needs amqp://"),
        ("ann:pw://x@broker", r"^\*{6}@broker is no address of RabbitMQ: it needs amqp://"),
        ("amqp://pw@broker", "it has a user and no password"),
        ("broker:5672", "^broker:5672 is no address of RabbitMQ: it needs amqp://"),
    ],
)
def test_addresses_that_are_none_show_no_password(uri: str, said: str) -> None:
    with pytest.raises(GraphError, match=said) as caught:
        RMQConnectionConfig.Builder().set_uri(uri).build()
    assert "pw" not in str(caught.value) and "ann" not in str(caught.value)


def test_addresses_with_quoted_parts() -> None:
    server = RMQConnectionConfig.Builder().set_uri("amqp://ann:p%2Fw%40@[::1]:5673/a%2Fb").build()._server
    assert server.where == "::1:5673/a/b" and server.secrets == ["p%2Fw%40", "p/w@"]
    assert RMQConnectionConfig.Builder().set_uri("amqp://broker").build()._server.secrets == []
    assert builder().build()._server.secrets == ["pw"]


# --- Redis --------------------------------------------------------------------------------


class Counts(RedisMapper):
    def __init__(self, description: RedisCommandDescription) -> None:
        self.description = description

    def get_command_description(self) -> RedisCommandDescription:
        return self.description

    def get_key_from_data(self, data: Any) -> Any:
        return data

    def get_value_from_data(self, data: Any) -> Any:
        return 1


def test_keys_that_are_written() -> None:
    mapper = Counts(RedisCommandDescription(RedisCommand.HINCRBY, "counts"))
    config = RedisConfig("store", 6380, 2, "ann", "pw", 9, True)
    found = sink_of(lambda stream: stream.sink_to(RedisSink(config, mapper, 5)))
    assert isinstance(found, redis.RedisSink)
    assert found.server == redis.RedisServer("store", 6380, 2, "ann", "pw", 9, True)
    assert (found.command, found.additional_key, found.max_retries) == (RedisCommand.HINCRBY, "counts", 5)
    assert found.where == "Redis at store:6380/2" and "pw" not in repr(found)
    assert found.mapper.name.endswith("Counts")


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: RedisCommandDescription(RedisCommand.HSET), "HSET needs additional_key"),
        (lambda: RedisCommandDescription(RedisCommand.SET, "x"), "SET has no additional_key"),
        (lambda: RedisCommandDescription(RedisCommand.SETEX), "SETEX needs additional_ttl"),
        (lambda: RedisCommandDescription(RedisCommand.SET, "", 5), "SET has no additional_ttl"),
        (lambda: RedisConfig("h", 0), "there is no such server"),
        (lambda: RedisSink(RedisConfig("h"), "x"), "'x' is no RedisMapper"),  # type: ignore[arg-type]
        (
            lambda: RedisSink(RedisConfig("h"), Counts(RedisCommandDescription(RedisCommand.SET)), -1),
            "max_retries=-1 must be",
        ),
    ],
)
def test_what_cannot_be_written_to_redis(make: Any, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        make()


# --- Elasticsearch ------------------------------------------------------------------------


def documents() -> Elasticsearch7SinkBuilder:
    return Elasticsearch7SinkBuilder().set_hosts("h").set_emitter(ElasticsearchEmitter.static_index("i"))


def test_documents_that_are_written() -> None:
    made = Elasticsearch7SinkBuilder().set_hosts(["http://a", "https://b:9201"])
    made.set_emitter(ElasticsearchEmitter.dynamic_index("name", "id", "old")).set_connection_username("ann")
    made.set_connection_password("pw").set_connection_path_prefix("/es").set_connection_timeout(5)
    made.set_socket_timeout(6).set_connection_request_timeout(7).set_bulk_flush_interval(8)
    made.set_bulk_flush_max_actions(9).set_bulk_flush_max_size_mb(2)
    made.set_bulk_flush_backoff_strategy(FlushBackoffType.EXPONENTIAL, 3, 4)
    sink = made.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE).build()
    found = sink_of(lambda stream: stream.sink_to(sink))
    server = elasticsearch.ElasticsearchServer(
        ("http://a:9200", "https://b:9201"), "ann", "pw", "/es", 5, 6
    )
    assert found == elasticsearch.ElasticsearchSink(
        server, "name", True, "id", 9, 2 * 1024 * 1024, elasticsearch.FlushBackoff.EXPONENTIAL, 3, 4
    )
    assert "pw" not in repr(found)
    assert found.where == "the index in field name of Elasticsearch at http://a:9200, https://b:9201"


def test_defaults_of_documents_are_those_of_flink() -> None:
    found = documents().set_bulk_flush_max_size_mb(-1).build()._sink
    assert (found.server.hosts, found.index, found.dynamic_index) == (("http://h:9200",), "i", False)
    assert (found.max_actions, found.backoff, found.max_retries) == (1000, elasticsearch.FlushBackoff.NONE, 0)
    assert found.max_bytes > 2**30


def test_addresses_of_elasticsearch() -> None:
    found = documents().set_hosts(["https://[::1]:9201", "[::1]", "H/", "10.0.0.1:80"]).build()._sink
    assert found.server.hosts == (
        "https://[::1]:9201", "http://[::1]:9200", "http://h:9200", "http://10.0.0.1:80"
    )  # fmt: skip


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: Elasticsearch7SinkBuilder().build(), "needs set_hosts"),
        (lambda: Elasticsearch7SinkBuilder().set_hosts("h").build(), "needs set_emitter"),
        (lambda: documents().set_hosts("ftp://h"), "is no address of Elasticsearch"),
        (lambda: documents().set_hosts("http://ann:pw@h"), "the user by set_connection_username"),
        (lambda: documents().set_hosts("http://ann:s3/pw@h:1"), r"^\*+@h:1 is no address"),
        (lambda: documents().set_hosts("ann:pw?x@h"), r"^\*+@h is no address"),
        (lambda: documents().set_hosts("h:port"), "h:port is no address"),
        (lambda: documents().set_hosts("h:0"), "h:0 is no address"),
        (lambda: documents().set_hosts("https://h:9200/es"), "a path by set_connection_path_prefix"),
        (lambda: documents().set_hosts("https://[::1:9200"), "is no address"),
        (lambda: documents().set_emitter("x"), "use ElasticsearchEmitter"),  # type: ignore[arg-type]
        (lambda: documents().set_bulk_flush_max_actions(0), "above 0, or -1"),
        (lambda: documents().set_socket_timeout(0), "above 0"),
        (lambda: ElasticsearchEmitter.static_index(""), "there is no such name"),
    ],
)
def test_what_cannot_be_written_to_elasticsearch(make: Any, said: str) -> None:
    with pytest.raises(GraphError, match=said) as caught:
        make()
    assert "pw" not in str(caught.value)


def test_what_elasticsearch_cannot_promise() -> None:
    with pytest.raises(UnsupportedGraph, match="EXACTLY_ONCE"):
        documents().set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    with pytest.raises(UnsupportedCall, match="use Elasticsearch7SinkBuilder"):
        Elasticsearch6SinkBuilder()
    with pytest.raises(UnsupportedCall):
        documents().get_http_host_class()


# --- sockets ------------------------------------------------------------------------------


def test_lines_to_a_socket() -> None:
    found = sink_of(lambda stream: stream.write_to_socket("h", 9999, TEXT))
    assert isinstance(found, sinks.SocketSink)
    assert (found.host, found.port, found.value.kind) == ("h", 9999, MessageFormatKind.STRING)
    with pytest.raises(UnsupportedGraph, match="0 is no port"):
        sink_of(lambda stream: stream.write_to_socket("h", 0, TEXT))
